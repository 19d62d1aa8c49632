/** The browser's GPU process dies, as it does when a driver fails: what was lost comes back, and no result is wrong. */
import { test } from "node:test";
import { pages } from "./page.mjs";

// Browsers give up on the GPU after a few crashes within minutes.
const { own, visit } = pages({ flags: ["--disable-gpu-process-crash-limit", "--disable-domain-blocking-for-3d-apis"] });

// How long after the crash is asked for the calls begin. Until the page is told of it, WebGL goes on as if nothing were.
const DELAYS = { webgpu: [0, 20], webgl2: [0, 0, 1, 2, 4, 8, 12, 16, 20, 30, 50, 300] };

for (const [backend, delays] of Object.entries(DELAYS)) {
  test(`crashes of the GPU process under ${backend}`, async () => {
    const session = await own.browser.newBrowserCDPSession();
    const expose = { crash: () => session.send("Browser.crashGpuProcess").catch(() => {}) };
    await visit(async ({ lapidary, problem, same, right, settles, is_fault, assert, sleep, within }, [backend, delays]) => {
      const gpu = await lapidary.Gpu.open({ backend });
      const all = Array.from({ length: 8 }, (_, i) => problem(30 + i, 41, 51, i));
      const start = ({ a, b, options }) => settles(gpu.matmul(a, b, options));
      const wrong = [];
      for (const [turn, delay] of delays.entries()) {
        const tensor = await gpu.tensor(all[0].a, [30, 41]);
        const pending = all.map((one) => [one, start(one)]);
        pending.push([{ expected: all[0].a }, settles(tensor.toArray())]);
        globalThis.crash();
        if (delay) await sleep(delay);
        pending.push(...all.map((one) => [one, start(one)]), [{ expected: all[0].a }, settles(tensor.toArray())]);
        for (const [{ expected }, end] of pending) {
          const { value, error } = await within(30_000, end, "a call");
          try {
            // The fresh device may go by the same crash.
            error ? is_fault(error, ["device_lost", "unavailable"]) : same(value, expected);
          } catch (fault) {
            wrong.push(`crash ${turn}, ${delay} ms: ${fault.message}`);
          }
        }
        let error;
        for (let tries = 0; tries < 50; tries++) {
          error = (await settles(within(30_000, right(gpu, all[1]), "the next call"))).error;
          if (!["device_lost", "unavailable"].includes(error?.code)) break;
          await sleep(50);
        }
        if (error) wrong.push(`after crash ${turn}: ${error.message}`);
        is_fault((await settles(tensor.toArray())).error, "device_lost");
        tensor.dispose();
      }
      assert(wrong.length === 0, `${wrong.length} wrong:\n${wrong.join("\n")}`);
      assert(gpu.info().generation > delays.length, `generation ${gpu.info().generation} after ${delays.length} crashes`);
    }, { argument: [backend, delays], expose });
  });
}
