/** The browser's GPU process dies, as it does when a driver fails: what was lost comes back, and no result is wrong. */
import { test } from "node:test";
import { pages } from "./page.mjs";

// Browsers give up on the GPU after a few crashes within minutes.
const { own, visit } = pages({ flags: ["--disable-gpu-process-crash-limit", "--disable-domain-blocking-for-3d-apis"] });

for (const backend of ["webgpu", "webgl2"]) {
  test(`a crash of the GPU process under ${backend}`, async () => {
    const session = await own.browser.newBrowserCDPSession();
    // The page says when its calls are under way.
    const expose = { crash: () => session.send("Browser.crashGpuProcess").catch(() => {}) };
    await visit(async ({ lapidary, problem, same, right, settles, is_fault, assert, sleep, within }, backend) => {
      const gpu = await lapidary.Gpu.open({ backend });
      const tensor = await gpu.tensor(new Float32Array(16), [4, 4]);
      for (let turn = 1; turn <= 2; turn++) {
        const all = Array.from({ length: 8 }, (_, i) => problem(30 + i, 41, 51, i));
        const pending = all.map(({ a, b, options }) => settles(gpu.matmul(a, b, { ...options, report: true })));
        if (turn === 2) await Promise.all(pending);
        globalThis.crash();
        if (turn === 2) await sleep(300);
        const ends = await within(30_000, Promise.all(pending), "a call");
        // The fresh device may go with the same crash: then it is said, and the next call is right.
        ends.forEach(({ value, error }, i) => (error ? is_fault(error, ["device_lost", "unavailable"]) : same(value.data, all[i].expected, `product ${i}`)));
        const next = problem(20, 31, 41, turn);
        let end;
        for (let tries = 0; tries < 40; tries++) {
          end = await settles(within(30_000, gpu.matmul(next.a, next.b, next.options), "the next call"));
          if (!end.error) break;
          is_fault(end.error, ["device_lost", "unavailable"]);
          await sleep(100);
        }
        assert(!end.error, `no call was right after crash ${turn}: ${end.error?.message}`);
        same(end.value, next.expected, "the next call");
      }
      assert(gpu.info().generation >= 2, `generation ${gpu.info().generation}`);
      is_fault((await settles(tensor.toArray())).error, "device_lost");
      await right(gpu, problem(9, 9, 9));
    }, { argument: backend, expose });
  });
}
