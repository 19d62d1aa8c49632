/** The browser's GPU process dies, as it does when a driver fails: what was lost comes back, and no result is wrong. */
import { test } from "node:test";
import { pages } from "./page.mjs";

// Browsers give up on the GPU after a few crashes within minutes.
const { own, visit } = pages({ flags: ["--disable-gpu-process-crash-limit", "--disable-domain-blocking-for-3d-apis"] });

for (const [backend, crashes] of [
  ["webgpu", 2],
  ["webgl2", 10],
]) {
  test(`crashes of the GPU process under ${backend}`, async () => {
    const session = await own.browser.newBrowserCDPSession();
    const expose = { crash: () => session.send("Browser.crashGpuProcess").catch(() => {}) };
    await visit(
      async ({ lapidary, problem, same, right, settles, is_fault, assert, sleep, within }, [backend, crashes]) => {
        const gpu = await lapidary.Gpu.open({ backend });
        const all = Array.from({ length: 8 }, (_, i) => problem(30 + i, 41, 51, i));
        const [faults, ends] = [[], []];
        let started = 0;

        // Each is right, or says that the device was lost: the fresh one may go by the same crash.
        const watch = (what, promise, expected) =>
          ends.push(
            settles(within(30_000, promise, what)).then(({ value, error }) => {
              try {
                error ? is_fault(error, ["device_lost", "unavailable"]) : same(value, expected, what);
              } catch (fault) {
                faults.push(fault.message);
              }
            }),
          );

        for (let crash = 1; crash <= crashes; crash++) {
          const tensor = await gpu.tensor(all[0].a, [30, 41]);
          const before = gpu.info().generation;
          globalThis.crash();
          // Calls all along: until the page is told of the crash, WebGL goes on as if nothing were.
          for (
            const end = performance.now() + 20_000;
            gpu.info().generation === before && performance.now() < end;
            await sleep(started % 3)
          ) {
            const { a, b, options, expected } = all[started++ % all.length];
            watch(`product ${started} at crash ${crash}`, gpu.matmul(a, b, options), expected);
            watch(`download ${started} at crash ${crash}`, tensor.toArray(), all[0].a);
          }
          await Promise.all(ends);
          let error;
          for (let tries = 0; tries < 50; tries++) {
            error = (await settles(within(30_000, right(gpu, all[1]), "the next call"))).error;
            if (!["device_lost", "unavailable"].includes(error?.code)) break;
            await sleep(50);
          }
          if (error) faults.push(`after crash ${crash}: ${error.message}`);
          is_fault((await settles(tensor.toArray())).error, "device_lost");
          tensor.dispose();
        }
        assert(faults.length === 0, `${faults.length} of ${ends.length} wrong:\n${faults.join("\n")}`);
        return ends.length;
      },
      { argument: [backend, crashes], expose },
    );
  });
}
