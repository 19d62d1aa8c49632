/** The browser makes a device while the module loads; what is made and not taken is given back. */
import { test } from "node:test";
import { pages } from "./page.mjs";

const { visit } = pages();

test("the device that was made while the module loaded is the one that computes", () =>
  visit(async ({ lapidary, watch, wrap, assert, problem, right, within }) => {
    const seen = watch();
    const made = Promise.withResolvers();
    wrap(GPUAdapter.prototype, "requestDevice", (original) => {
      return function (...args) {
        const making = original.apply(this, args);
        making.then(made.resolve);
        return making;
      };
    });
    wrap(globalThis, "fetch", (original) => async (...args) => {
      await within(20_000, made.promise, "the device before the module");
      return original(...args);
    });
    const gpu = await lapidary.Gpu.open({ backend: "webgpu" });
    assert(gpu.device === seen.devices[0], "another device computes");
    await right(gpu, problem(5, 6, 7));
    // A second handle has its own.
    const second = await lapidary.Gpu.open({ backend: "webgpu" });
    assert(seen.asked === 2 && second.device === seen.devices[1], `${seen.asked} requests`);
    gpu.free();
    await right(second, problem(5, 6, 7));
  }));

test("a device with less than is asked for is given back, and one that cannot be made is asked for again", async () => {
  const body = async ({ lapidary, watch, wrap, assert, problem, right, within }, fails) => {
    const seen = watch();
    const undo = wrap(GPUAdapter.prototype, "requestDevice", (original) => {
      return function () {
        undo();
        return fails ? Promise.reject(new DOMException("none", "OperationError")) : original.call(this);
      };
    });
    const gpu = await lapidary.Gpu.open({ backend: "webgpu" });
    assert(seen.devices.length === (fails ? 1 : 2), `${seen.devices.length} devices`);
    assert(gpu.device === seen.devices.at(-1), "the wrong device computes");
    if (!fails) await within(10_000, seen.devices[0].lost, "the end of the device that does not suit");
    await right(gpu, problem(5, 6, 7));
  };
  await visit(body, { argument: false });
  await visit(body, { argument: true });
});

test("a handle on the CPU leaves the device to the one that it is made for", () =>
  visit(async ({ lapidary, watch, wrap, assert, problem, right }) => {
    const seen = watch();
    const opened = Promise.withResolvers();
    // The GPU is slower than all else.
    wrap(GPUAdapter.prototype, "requestDevice", (original) => {
      return async function (...args) {
        await opened.promise;
        return original.apply(this, args);
      };
    });
    wrap(GPU.prototype, "requestAdapter", (original) => {
      let asked = 0;
      return async function (...args) {
        if (++asked === 2) await opened.promise;
        return original.apply(this, args);
      };
    });
    const opening = lapidary.Gpu.open({ backend: "webgpu" });
    const cpu = await lapidary.Gpu.open({ backend: "simd" });
    opened.resolve();
    const gpu = await opening;
    assert(seen.asked === 1 && gpu.device === seen.devices[0], `${seen.asked} requests`);
    await Promise.all([cpu, gpu].map((each) => right(each, problem(5, 6, 7))));
  }));

test("an opening that fails leaves the device to the one that it is made for", () =>
  visit(async ({ lapidary, watch, assert, settles, problem, right }) => {
    const seen = watch();
    const opening = lapidary.Gpu.open({ backend: "webgpu" });
    assert((await settles(lapidary.Gpu.open({ pool_bytes: -1 }))).error.code === "invalid_option", "it was opened");
    const gpu = await opening;
    assert(seen.asked === 1 && gpu.device === seen.devices[0], `${seen.asked} requests`);
    await right(gpu, problem(5, 6, 7));
  }));

test("a device that is made early is of the power preference that was asked for", async () => {
  const body = async ({ lapidary, wrap, assert, problem, right }, is_aborted) => {
    const preferences = new Map();
    wrap(GPU.prototype, "requestAdapter", (original) => {
      return async function (options) {
        const adapter = await original.call(this, options);
        preferences.set(adapter, options?.powerPreference);
        return adapter;
      };
    });
    wrap(GPUAdapter.prototype, "requestDevice", (original) => {
      return async function (...args) {
        const device = await original.apply(this, args);
        preferences.set(device, preferences.get(this));
        return device;
      };
    });
    const { Gpu, matmul } = lapidary;
    const { a, b, options } = problem(5, 6, 7);
    const other = "low-power";
    const [wanted, opening] = is_aborted
      ? ["high-performance", Gpu.open({ power_preference: other, signal: AbortSignal.abort() }).catch(() => {})]
      : [other, matmul(a, b, options)];
    const gpu = await Gpu.open({ backend: "webgpu", power_preference: wanted });
    assert(preferences.get(gpu.device) === wanted, `${preferences.get(gpu.device)} in place of ${wanted}`);
    await opening;
    await right(gpu, problem(5, 6, 7));
  };
  for (const is_aborted of [false, true]) await visit(body, { argument: is_aborted });
});

test("a device that is lost before it is taken is asked for again", () =>
  visit(async ({ lapidary, watch, wrap, assert, problem, right }) => {
    const seen = watch();
    wrap(globalThis, "fetch", (original) => async (...args) => {
      while (seen.devices.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
      seen.devices[0].destroy();
      await seen.devices[0].lost;
      return original(...args);
    });
    const gpu = await lapidary.Gpu.open({ backend: "webgpu" });
    assert(gpu.device === seen.devices[1], `${seen.devices.length} devices`);
    await right(gpu, problem(5, 6, 7));
  }));

test("a device that nobody takes is given back", () =>
  visit(
    async ({ lapidary, watch, wrap, assert, rejects, problem, right, within }) => {
      const seen = watch();
      const undo = wrap(globalThis, "fetch", () => async () => Promise.reject(new TypeError("no network")));
      await rejects("unavailable", () => lapidary.Gpu.open({ backend: "webgpu" }), /lapidary_core_bg\.wasm/);
      undo();
      // The module is there once the CPU has been asked for, which takes no GPU's device.
      const cpu = await lapidary.Gpu.open({ backend: "simd" });
      await right(cpu, problem(5, 6, 7));
      assert(seen.asked === 1, `${seen.asked} requests`);
      await within(10_000, seen.devices[0].lost, "the end of the device");
    },
  ));
