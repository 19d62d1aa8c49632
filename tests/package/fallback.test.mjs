/** What takes the place of a GPU that is lost: another backend with `auto`, or nothing until there is one again. */
import { test } from "node:test";
import { pages } from "./page.mjs";

const { visit } = pages();

test("auto goes on when a device is lost at any step of the opening", () =>
  visit(async ({ lapidary, watch, lose, at_call, settles, assert, right, problem }) => {
    const seen = watch();
    const faults = [];
    let losses = 0;
    for (const [backend, method, at] of [
      ["webgpu", "submit", 2],
      ["webgpu", "mapAsync", 1],
      ["webgl2", "drawArrays", 1],
      ["webgl2", "fenceSync", 2],
      ["webgl2", "getBufferSubData", 3],
    ]) {
      const prototype = { submit: GPUQueue, mapAsync: GPUBuffer }[method]?.prototype ?? WebGL2RenderingContext.prototype;
      const undo = backend === "webgl2" && delete_webgpu();
      const hook = at_call(prototype, method, at, () => lose(seen, backend));
      const { value, error } = await settles(lapidary.Gpu.open());
      hook.stop();
      losses += hook.fired;
      if (undo) undo();
      if (error) faults.push(`${method} ${at}: ${error.code} ${error.message}`);
      else if (hook.fired) {
        const other = value.info().others.find((one) => one.backend === backend);
        if (other?.state !== "off") faults.push(`${method} ${at}: ${JSON.stringify(value.info())}`);
        await right(value, problem(5, 6, 7));
      }
      value?.free();
    }
    assert(losses === 5, `${losses} of 5 losses`);
    assert(faults.length === 0, faults.join("\n"));

    function delete_webgpu() {
      const gpu = Object.getOwnPropertyDescriptor(Navigator.prototype, "gpu");
      delete Navigator.prototype.gpu;
      return () => Object.defineProperty(Navigator.prototype, "gpu", gpu);
    }
  }));

for (const backend of ["webgpu", "webgl2"]) {
  test(`nothing takes the place of a lost device, until there is again: ${backend}`, () =>
    visit(
      async ({ lapidary, watch, lose, wrap, settles, is_fault, assert, same, problem }, backend) => {
        const seen = watch();
        const gpu = await lapidary.Gpu.open({ backend });
        const { a, b, options, expected } = problem(12, 13, 15);
        const pending = Array.from({ length: 4 }, () => settles(gpu.matmul(a, b, options)));
        const undo = [wrap(GPU.prototype, "requestAdapter", () => async () => null)];
        for (const canvas of [OffscreenCanvas, HTMLCanvasElement]) undo.push(wrap(canvas.prototype, "getContext", () => () => null));
        lose(seen, backend);
        for (const { error } of await Promise.all(pending)) is_fault(error, ["unavailable", "device_lost"]);
        is_fault((await settles(gpu.matmul(a, b, options))).error, ["unavailable", "device_lost"]);
        for (const back of undo) back();
        same(await gpu.matmul(a, b, options), expected);
        assert(gpu.info().generation === 2, `generation ${gpu.info().generation}`);
      },
      { argument: backend },
    ));
}

test("auto goes over to another backend when the GPU is gone for good", () =>
  visit(async ({ lapidary, watch, lose, wrap, assert, same, problem }) => {
    // A software GPU that calls itself another is not measured against the CPU.
    const hardware = { vendor: "acme", architecture: "one", device: "", description: "Acme One", isFallbackAdapter: false };
    Object.defineProperty(GPUAdapter.prototype, "info", { get: () => hardware });
    Object.defineProperty(GPUDevice.prototype, "adapterInfo", { get: () => hardware });
    const seen = watch();
    const { a, b, options, expected } = problem(12, 13, 15);
    const info = await lapidary.init_gpu();
    assert(info.backend === "webgpu" && info.vendor === "acme" && info.architecture === "one" && !info.software, JSON.stringify(info));
    wrap(GPU.prototype, "requestAdapter", () => async () => null);
    const pending = lapidary.matmul(a, b, { ...options, report: true });
    lose(seen, "webgpu");
    const { data, replayed, backend } = await pending;
    same(data, expected);
    const after = await lapidary.device_info();
    assert(
      replayed && backend !== "webgpu" && after.backend === backend && after.generation === 2,
      `${replayed} on ${backend}: ${JSON.stringify(after)}`,
    );
    assert(/no adapter/.test(after.others.find((one) => one.backend === "webgpu").reason), JSON.stringify(after));
  }));
