/** Browsers without a GPU path, with a broken one, or without SIMD: named off with a reason, and `auto` still multiplies. */
import { test } from "node:test";
import { pages } from "./page.mjs";

const { visit } = pages();

/** `prepare` takes a backend away. The other GPU path is gone as well, so that little is compiled. */
function without(backend, name, reason, prepare, slow = false) {
  test(`${backend} is off: ${name}`, () =>
    visit(
      async ({ lapidary, assert, settles, is_fault, right, problem, rejects }, [backend, reason, slow]) => {
        const { init_gpu, device_info } = lapidary;
        // A driver that fails at what it computes does so after its shaders were compiled: once is enough.
        if (!slow) {
          const { error } = await settles(lapidary.Gpu.open({ backend }));
          is_fault(error, "unavailable", new RegExp(`^${backend} is not available: .*(${reason}).*;`, "s"));
        }
        const info = await init_gpu();
        const text = JSON.stringify(info);
        assert(info.backend === "simd" && info.reason !== "" && info.others.length === 3, text);
        const other = info.others.find((one) => one.backend === backend);
        assert(other.state === "off" && new RegExp(reason).test(other.reason) && other.remedy !== "", text);
        await right(lapidary, problem(20, 21, 22));
        await rejects("invalid_option", () => init_gpu({ backend: "gpu" }));
        assert((await device_info()).backend === "simd", "still the one of before");
        await right(lapidary, problem(22, 21, 20), "after a failed choice");
      },
      { prepare: `(${prepare})(); (${backend === "webgpu" ? no_webgl2 : no_webgpu})();`, argument: [backend, reason, slow] },
    ));
}

function no_webgpu() {
  delete Navigator.prototype.gpu;
}

function no_webgl2() {
  for (const canvas of [OffscreenCanvas, HTMLCanvasElement]) {
    const { getContext } = canvas.prototype;
    canvas.prototype.getContext = function (kind, ...more) {
      return kind === "webgl2" ? null : getContext.call(this, kind, ...more);
    };
  }
}

/** Chrome before 132, and others, tell it of adapters alone. */
test("devices that do not tell what they are of", () =>
  visit(
    async ({ lapidary, assert, right, problem }) => {
      const { backend } = await lapidary.init_gpu({ backend: "webgpu" });
      assert(backend === "webgpu", backend);
      await right(lapidary, problem(5, 6, 7));
    },
    { prepare: () => delete GPUDevice.prototype.adapterInfo },
  ));

without("webgpu", "no navigator.gpu", "navigator\\.gpu is missing", no_webgpu);

without("webgpu", "no adapter", "no adapter", () => (GPU.prototype.requestAdapter = async () => null));

without(
  "webgpu",
  "a request for an adapter that fails",
  "no adapter",
  () => (GPU.prototype.requestAdapter = () => Promise.reject(new Error("blocked"))),
);

without("webgpu", "a request for an adapter that nobody answers", "did not answer within \\d+ s", () => {
  GPU.prototype.requestAdapter = () => new Promise(() => {});
  // Who waits for this test has less patience than the package.
  const { setTimeout } = globalThis;
  globalThis.setTimeout = (then, ms) => setTimeout(then, Math.min(ms, 3000));
}, true);

without("webgpu", "an adapter without a device", "not today", () => {
  GPUAdapter.prototype.requestDevice = () => Promise.reject(new DOMException("not today", "OperationError"));
});

without("webgpu", "a device that is lost at once", "lost", () => {
  const { requestDevice } = GPUAdapter.prototype;
  GPUAdapter.prototype.requestDevice = async function (...args) {
    const device = await requestDevice.apply(this, args);
    device.destroy();
    return device;
  };
});

without(
  "webgpu",
  "a driver that multiplies wrongly",
  "wrong",
  () => {
    const { writeBuffer } = GPUQueue.prototype;
    GPUQueue.prototype.writeBuffer = function (buffer, at, data, ...more) {
      return writeBuffer.call(this, buffer, at, new Uint8Array(data.byteLength), ...more);
    };
  },
  true,
);

without("webgpu", "shaders that do not compile", "\\S", () => {
  const { createShaderModule } = GPUDevice.prototype;
  GPUDevice.prototype.createShaderModule = function (descriptor) {
    return createShaderModule.call(this, { ...descriptor, code: descriptor.code.replace("fn ", "fn !") });
  };
});

without(
  "webgpu",
  "memory that cannot be made",
  "\\S",
  () => {
    const { createBuffer } = GPUDevice.prototype;
    GPUDevice.prototype.createBuffer = function (descriptor) {
      return createBuffer.call(this, { ...descriptor, size: 2 ** 45 });
    };
  },
  true,
);

without(
  "webgpu",
  "results that cannot be mapped",
  "\\S",
  () => (GPUBuffer.prototype.mapAsync = () => Promise.reject(new DOMException("no", "OperationError"))),
  true,
);

without("webgl2", "no context", "no WebGL2 context", no_webgl2);

without("webgl2", "canvases that throw", "no WebGL2 context", () => {
  for (const canvas of [OffscreenCanvas, HTMLCanvasElement])
    canvas.prototype.getContext = () => {
      throw new Error("blocked");
    };
});

without("webgl2", "no float textures", "EXT_color_buffer_float", () => {
  const { getExtension } = WebGL2RenderingContext.prototype;
  WebGL2RenderingContext.prototype.getExtension = function (name) {
    return name === "EXT_color_buffer_float" ? null : getExtension.call(this, name);
  };
});

without("webgl2", "a context that is lost at once", "\\S", () => {
  for (const canvas of [OffscreenCanvas, HTMLCanvasElement]) {
    const { getContext } = canvas.prototype;
    canvas.prototype.getContext = function (...args) {
      const context = getContext.apply(this, args);
      if (args[0] === "webgl2") context?.getExtension("WEBGL_lose_context").loseContext();
      return context;
    };
  }
});

without("webgl2", "a driver that multiplies wrongly", "wrong", () => {
  const { texSubImage2D } = WebGL2RenderingContext.prototype;
  WebGL2RenderingContext.prototype.texSubImage2D = function (...args) {
    return texSubImage2D.apply(
      this,
      args.map((value) => (value instanceof Float32Array ? new Float32Array(value.length) : value)),
    );
  };
});

without("webgl2", "a driver that draws nothing", "wrong", () => (WebGL2RenderingContext.prototype.drawArrays = () => {}));

without("webgl2", "shaders that do not compile", "\\S", () => {
  const { shaderSource } = WebGL2RenderingContext.prototype;
  WebGL2RenderingContext.prototype.shaderSource = function (shader, text) {
    return shaderSource.call(this, shader, text.replace("void main", "void !main"));
  };
});

without("webgl2", "no memory", "\\S", () => {
  const { texStorage2D } = WebGL2RenderingContext.prototype;
  WebGL2RenderingContext.prototype.texStorage2D = function (target, levels, format) {
    return texStorage2D.call(this, target, levels, format, 1 << 20, 1 << 20);
  };
});

test("simd is off: an engine without it; the scalar path and references work", () =>
  visit(async ({ lapidary, assert, rejects, right, problem }) => {
    const { init_gpu, reference } = lapidary;
    const { validate } = WebAssembly;
    // The package's own module is started without a question; the kernel with SIMD is asked about.
    WebAssembly.validate = (bytes) => bytes.byteLength < 100 && validate(bytes);
    await rejects("unavailable", () => init_gpu({ backend: "simd" }), /SIMD/);
    const info = await init_gpu({ backend: "cpu" });
    assert(info.backend === "scalar" && info.others.find(({ backend }) => backend === "simd").state === "off", JSON.stringify(info));
    await right(lapidary, problem(33, 34, 35));
    const { a, b, options, expected } = problem(9, 8, 7);
    assert((await reference(a, b, options)).check(expected).ok, "the reference");
  }));

test("an engine without relaxed SIMD: the kernel without it is as right", () =>
  visit(async ({ lapidary, assert, right, problem }) => {
    const { validate } = WebAssembly;
    // f32x4.relaxed_madd is the opcode fd 85 02.
    const relaxed = (bytes) => new Uint8Array(bytes).some((byte, i, all) => byte === 0xfd && all[i + 1] === 0x85 && all[i + 2] === 0x02);
    WebAssembly.validate = (bytes) => validate(bytes) && !relaxed(bytes);
    const gpu = await lapidary.Gpu.open({ backend: "simd" });
    assert(gpu.info().features.join() === "simd128", JSON.stringify(gpu.info()));
    const { a, b, options } = problem(9, 8, 7);
    const { kernel } = await gpu.matmul(a, b, { ...options, report: true });
    assert(kernel === "matmul/cpu simd", kernel);
    for (const [m, k, n] of [[33, 34, 35], [20, 2050, 40], [130, 9, 1030]]) await right(gpu, problem(m, k, n));
  }));

test("a device refused for what was asked, while the module loaded and then: the defaults are asked for", () =>
  visit(async ({ lapidary, wrap, assert, right, problem }) => {
    const asked = [];
    wrap(
      GPUAdapter.prototype,
      "requestDevice",
      (original) =>
        function (descriptor) {
          asked.push(descriptor);
          return asked.length <= 2 ? Promise.reject(new DOMException("limit", "OperationError")) : original.call(this, descriptor);
        },
    );
    const gpu = await lapidary.Gpu.open({ backend: "webgpu" });
    await right(gpu, problem(30, 31, 33));
    assert(asked.length === 3 && [...(asked[2].requiredFeatures ?? [])].length === 0, JSON.stringify(asked));
    const [early, later] = asked.map(({ requiredFeatures }) => [...requiredFeatures].sort().join());
    assert(early === later && early !== "", `first ${early}, then ${later}`);
  }));
