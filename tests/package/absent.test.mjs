/** Browsers without a GPU path, with a broken one, or without SIMD: named off with a reason, and `auto` still multiplies. */
import { test } from "node:test";
import { pages } from "./page.mjs";

const { visit } = pages();

/** What the page is like, and the backend that is off in it. */
function without(name, backend, prepare, reason, state) {
  test(`${name}: ${backend} is off and says why, the others work`, () => visit(async (tools, [backend, reason, state]) => {
    const { lapidary, assert, settles, is_fault, right, problem, rejects } = tools;
    const { init_gpu, Gpu } = lapidary;
    const { error } = await settles(Gpu.open({ backend }));
    is_fault(error, "unavailable", new RegExp(`^${backend} is not available: .*(${reason})`, "s"));
    const info = await init_gpu();
    const other = info.others.find((one) => one.backend === backend);
    const text = JSON.stringify(info);
    assert(info.backend !== backend && info.reason !== "" && info.others.length === 3, text);
    assert(other.state === state && new RegExp(reason).test(other.reason) && other.remedy !== "", text);
    await right(lapidary, problem(20, 21, 22));
    await rejects("unavailable", () => init_gpu({ backend }), new RegExp(reason));
    await right(lapidary, problem(22, 21, 20), "after a failed choice");
    const cpu = await Gpu.open({ backend: "cpu" });
    await right(cpu, problem(9, 8, 7), "on the CPU");
  }, { prepare, argument: [backend, reason, state] }));
}

without("no navigator.gpu", "webgpu", () => delete Navigator.prototype.gpu, "navigator\\.gpu is missing", "off");
without("no adapter", "webgpu", () => (GPU.prototype.requestAdapter = async () => null), "no adapter", "off");
without("an adapter that is refused", "webgpu", () => (GPU.prototype.requestAdapter = async () => Promise.reject(new Error("blocked"))), "no adapter", "off");
without("no device", "webgpu", () => (GPUAdapter.prototype.requestDevice = async () => Promise.reject(new DOMException("not today", "OperationError"))), "no device", "off");
without("a device that is lost at once", "webgpu", () => {
  const { requestDevice } = GPUAdapter.prototype;
  GPUAdapter.prototype.requestDevice = async function (...args) {
    const device = await requestDevice.apply(this, args);
    device.destroy();
    return device;
  };
}, "lost", "off");
without("a driver that multiplies wrongly", "webgpu", () => {
  const { writeBuffer } = GPUQueue.prototype;
  GPUQueue.prototype.writeBuffer = function (buffer, at, data, ...more) {
    return writeBuffer.call(this, buffer, at, data instanceof Float32Array ? new Float32Array(data.length) : data, ...more);
  };
}, "wrong", "off");
without("a driver whose dispatches do nothing", "webgpu", () => (GPUComputePassEncoder.prototype.dispatchWorkgroups = () => {}), "wrong", "off");
without("a shader that does not compile", "webgpu", () => {
  const { createShaderModule } = GPUDevice.prototype;
  GPUDevice.prototype.createShaderModule = function (descriptor) {
    return createShaderModule.call(this, { ...descriptor, code: descriptor.code.replace("fn ", "fn !") });
  };
}, "\\S", "off");
without("a result that cannot be mapped", "webgpu", () => (GPUBuffer.prototype.mapAsync = async () => Promise.reject(new DOMException("no", "OperationError"))), "\\S", "off");

without("no WebGL2", "webgl2", () => {
  for (const canvas of [OffscreenCanvas, HTMLCanvasElement]) {
    const { getContext } = canvas.prototype;
    canvas.prototype.getContext = function (kind, ...more) {
      return kind === "webgl2" ? null : getContext.call(this, kind, ...more);
    };
  }
}, "no WebGL2 context", "off");
without("no float textures", "webgl2", () => {
  const { getExtension } = WebGL2RenderingContext.prototype;
  WebGL2RenderingContext.prototype.getExtension = function (name) {
    return name === "EXT_color_buffer_float" ? null : getExtension.call(this, name);
  };
}, "EXT_color_buffer_float", "off");
without("a context that is lost at once", "webgl2", () => {
  for (const canvas of [OffscreenCanvas, HTMLCanvasElement]) {
    const { getContext } = canvas.prototype;
    canvas.prototype.getContext = function (...args) {
      const context = getContext.apply(this, args);
      if (args[0] === "webgl2") context?.getExtension("WEBGL_lose_context").loseContext();
      return context;
    };
  }
}, "\\S", "off");
without("a driver that draws wrongly", "webgl2", () => {
  const { texSubImage2D } = WebGL2RenderingContext.prototype;
  WebGL2RenderingContext.prototype.texSubImage2D = function (...args) {
    return texSubImage2D.apply(this, args.map((value) => (value instanceof Float32Array ? new Float32Array(value.length) : value)));
  };
}, "wrong", "off");
without("a drawing that does nothing", "webgl2", () => (WebGL2RenderingContext.prototype.drawArrays = () => {}), "wrong", "off");
without("a shader that does not compile", "webgl2", () => {
  const { shaderSource } = WebGL2RenderingContext.prototype;
  WebGL2RenderingContext.prototype.shaderSource = function (shader, text) {
    return shaderSource.call(this, shader, text.replace("void main", "void !main"));
  };
}, "\\S", "off");

test("no WebAssembly SIMD: simd is off, the scalar path and references work", () => visit(async ({ lapidary, assert, rejects, right, problem, product, integers }) => {
  const { init_gpu, reference } = lapidary;
  await rejects("unavailable", () => init_gpu({ backend: "simd" }), /SIMD/);
  const info = await init_gpu({ backend: "cpu" });
  assert(info.backend === "scalar" && info.others.find(({ backend }) => backend === "simd").state === "off", JSON.stringify(info));
  await right(lapidary, problem(33, 34, 35));
  const { a, b, options, expected } = problem(9, 8, 7);
  assert((await reference(a, b, options)).check(expected).ok, "the reference");
}, { prepare: () => {
  const { validate } = WebAssembly;
  WebAssembly.validate = (bytes) => bytes.byteLength > 100_000 && validate(bytes);
} }));

test("a device refused once for what was asked: the defaults are asked for", () => visit(async ({ lapidary, wrap, assert, right, problem }) => {
  const asked = [];
  wrap(GPUAdapter.prototype, "requestDevice", (original) => function (descriptor) {
    asked.push(descriptor);
    return asked.length === 1 ? Promise.reject(new DOMException("limit", "OperationError")) : original.call(this, descriptor);
  });
  const gpu = await lapidary.Gpu.open({ backend: "webgpu" });
  await right(gpu, problem(30, 31, 32));
  assert(asked.length === 2 && [...(asked[1].requiredFeatures ?? [])].length === 0, JSON.stringify(asked));
}));

test("auto goes on when the device is lost at any step of the opening", () => visit(async ({ lapidary, watch, lose, at_call, settles, assert, right, problem, within }) => {
  const seen = watch();
  const faults = [];
  for (let at = 1, fired = true; fired && at <= 6; at++) {
    const hook = at_call(GPUQueue.prototype, "submit", at, () => lose(seen, "webgpu"));
    const { value, error } = await settles(within(8_000, lapidary.Gpu.open(), "the opening"));
    fired = hook.fired;
    hook.stop();
    if (error) faults.push(`submission ${at}: ${error.code} ${error.message}`);
    else await right(value, problem(5, 6, 7));
    value?.free();
  }
  assert(faults.length === 0, faults.join("\n"));
}));

for (const backend of ["webgpu", "webgl2"]) {
  test(`nothing to replace a lost device, until there is again: ${backend}`, () => visit(async ({ lapidary, watch, lose, wrap, settles, is_fault, assert, right, same, problem }, backend) => {
    const seen = watch();
    const gpu = await lapidary.Gpu.open({ backend });
    const { a, b, options, expected } = problem(12, 13, 14);
    const pending = Array.from({ length: 4 }, () => settles(gpu.matmul(a, b, options)));
    const none = { webgpu: [GPU.prototype, "requestAdapter", () => async () => null], webgl2: [OffscreenCanvas.prototype, "getContext", () => () => null] }[backend];
    const undo = [wrap(...none), wrap(HTMLCanvasElement.prototype, "getContext", (original) => (backend === "webgl2" ? () => null : original))];
    lose(seen, backend);
    for (const { error } of await Promise.all(pending)) is_fault(error, ["unavailable", "device_lost"]);
    is_fault((await settles(gpu.matmul(a, b, options))).error, ["unavailable", "device_lost"]);
    for (const back of undo) back();
    same(await gpu.matmul(a, b, options), expected);
    assert(gpu.info().generation === 2, `generation ${gpu.info().generation}`);
  }, { argument: backend }));
}

test("auto goes over to another backend when the GPU is gone for good", () => visit(async ({ lapidary, watch, lose, wrap, assert, same, problem, sleep }) => {
  // A software GPU that calls itself another is not measured against the CPU.
  const hardware = { vendor: "acme", architecture: "one", device: "", description: "Acme One", isFallbackAdapter: false };
  Object.defineProperty(GPUAdapter.prototype, "info", { get: () => hardware });
  Object.defineProperty(GPUDevice.prototype, "adapterInfo", { get: () => hardware });
  const seen = watch();
  const { a, b, options, expected } = problem(12, 13, 14);
  const info = await lapidary.init_gpu();
  assert(info.backend === "webgpu" && info.vendor === "acme" && info.architecture === "one" && !info.software, JSON.stringify(info));
  wrap(GPU.prototype, "requestAdapter", () => async () => null);
  const pending = lapidary.matmul(a, b, { ...options, report: true });
  lose(seen, "webgpu");
  const { data, replayed, backend } = await pending;
  same(data, expected);
  const after = await lapidary.device_info();
  assert(replayed && backend !== "webgpu" && after.backend === backend && after.generation === 2, `${replayed} on ${backend}: ${JSON.stringify(after)}`);
  assert(/no adapter/.test(after.others.find((one) => one.backend === "webgpu").reason), JSON.stringify(after));
}));
