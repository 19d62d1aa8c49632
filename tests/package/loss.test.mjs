/**
 * The GPU goes away: idle, during calls, at every step of a call, and again. No result is ever wrong, none is waited for in vain, and
 * the next call works. All on one handle for each backend, since each fresh device compiles its shaders anew.
 */
import { test } from "node:test";
import { pages, report } from "./page.mjs";

const { visit } = pages();

for (const backend of ["webgpu", "webgl2"]) {
  test(`losses on ${backend}`, async (t) =>
    report(
      t,
      await visit(
        async ({ lapidary, watch, lose, ...tools }, backend) => {
          const seen = watch();
          const gpu = await lapidary.Gpu.open({ backend });
          const { default: checks } = await import("/checks/loss.mjs");
          const results = [];
          for (const [name, check] of Object.entries(checks)) {
            const start = performance.now();
            let end = { fault: null };
            try {
              await tools.within(tools.PATIENCE_MS, check({ lapidary, gpu, backend, seen, kill: () => lose(seen, backend) }), "the check");
              await tools.within(30_000, tools.right(gpu, tools.problem(6, 7, 9), "the next call"), "the next call");
            } catch (error) {
              end = tools.ended(error);
              // What a failed check leaves behind is not the next one's fault.
              await tools.settles(gpu.matmul(...Object.values(tools.problem(2, 3, 3))));
            }
            results.push({ name, ...end, ms: performance.now() - start });
          }
          return results;
        },
        { argument: backend },
      ),
    ));
}

test("a freed handle gives its device back", () =>
  visit(async ({ lapidary, watch, assert, sleep, problem, right, settles }) => {
    const seen = watch();
    const controller = new AbortController();
    const aborted = settles(lapidary.Gpu.open({ backend: "webgpu", signal: controller.signal }));
    controller.abort();
    await aborted;
    const [gpu, gl] = [await lapidary.Gpu.open({ backend: "webgpu" }), await lapidary.Gpu.open({ backend: "webgl2" })];
    await right(gpu, problem(5, 5, 7));
    await right(gl, problem(5, 5, 7));
    gpu.free();
    gl.free();
    assert(
      seen.contexts.every(({ context }) => context.isContextLost()),
      "the WebGL2 context is given back",
    );
    const given = await Promise.all(seen.devices.map((device) => Promise.race([device.lost, sleep(500)])));
    assert(given.length > 0 && given.every(Boolean), `${given.filter(Boolean).length} of ${given.length} devices are given back`);
  }));
