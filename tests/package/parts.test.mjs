/** What of the package is loaded when it is first needed: products need none of it, and what cannot be loaded is told and tried anew. */
import { test } from "node:test";
import { pages, report } from "./page.mjs";
import { serve } from "./server.mjs";
import { SPARING, check } from "./subjects.mjs";

const { visit } = pages();

/** Visits a page of a server without those parts. */
async function without(parts, body, { expected = /404/, ...more } = {}) {
  const server = await serve({ deny: new RegExp(`lapidary_(${parts.join("|")})\\.wasm$`) });
  try {
    return await visit(body, { url: server.url, expected, ...more });
  } finally {
    await server.close();
  }
}

for (const [backend, parts, subjects] of SPARING) {
  test(`${subjects.join(" and ")} on ${backend} need no other parts`, async (t) => {
    await report(t, await check((...visited) => without(parts, ...visited), subjects, backend));
  });
}

for (const backend of ["webgpu", "webgl2", "simd"]) {
  test(`products with results of f16 on ${backend} need nothing of expressions`, async (t) => {
    const body = async ({ lapidary, run }, backend) => {
      const { assert, problem } = await import("/checks/tools.mjs");
      const check = async ({ gpu }) => {
        for (const [m, k, n] of [[2, 2, 2], [3, 5, 7], [64, 64, 64], [1, 40, 40], [40, 40, 1], [200, 200, 200], [16, 5000, 20]]) {
          const { a, b, options, expected } = problem(m, k, n);
          const found = await gpu.matmul(a, b, { ...options, result: "f16" });
          assert(`${found}` === `${new Float16Array(expected)}`, `${m} × ${k} × ${n}`);
        }
      };
      return run({ halves: { check } }, lapidary, backend);
    };
    await report(t, await without(["operations"], body, { argument: backend }));
  });
}

test("a part is fetched once, when it is first needed, and tensors may be freed meanwhile", () =>
  visit(async ({ lapidary, wrap, assert, problem, right }) => {
    const fetched = [];
    wrap(globalThis, "fetch", (original) => (...args) => {
      fetched.push(String(args[0]?.url ?? args[0]).replace(/.*\/lapidary_(.*)\.wasm$/, "$1"));
      return original(...args);
    });
    const { lazy, evaluate, init_gpu, tensor } = lapidary;
    await init_gpu({ backend: "webgpu" });
    await right(lapidary, problem(5, 6, 7));
    // What takes the GPU's place comes on its own, some time later.
    const needed = () => fetched.filter((name) => !name.endsWith("cpu"));
    assert(`${needed()}` === "core_bg", `fetched for a product: ${fetched}`);
    const x = await tensor(Float32Array.of(1, 2, 3), [3]);
    const pending = [evaluate(lazy(x).mul(2)), evaluate(lazy(x).add(1)), evaluate(x)];
    x.dispose();
    const results = await Promise.all((await Promise.all(pending)).map((result) => result.toArray()));
    assert(results.join(";") === "2,4,6;2,3,4;1,2,3", results.join(";"));
    assert(`${needed()}` === "core_bg,operations", `fetched: ${fetched}`);
    // Two at once, whose operands change as soon as they are called.
    const [bytes, options] = [Int8Array.of(1, -2, 3, 4), { m: 2, k: 2, n: 2 }];
    const sums = [lapidary.matmul(bytes, bytes, options), lapidary.matmul(bytes, bytes, options)];
    bytes.fill(0);
    assert(`${(await Promise.all(sums)).join(";")}` === "-5,-10,15,10;-5,-10,15,10", `${await Promise.all(sums)}`);
    assert(`${needed()}` === "core_bg,operations,int8", `fetched: ${fetched}`);
  }));

test("a handle may be freed while parts load for its calls", () =>
  visit(async ({ lapidary, assert, is_fault, rejects, same, settles, problem }) => {
    const { Gpu, lazy } = lapidary;
    const { a, b, options, expected } = problem(5, 6, 7);
    const [x, y] = [Int8Array.from(a), Int8Array.from(b)];
    const gpu = await Gpu.open({ backend: "simd" });
    const tensor = await gpu.tensor(a, [5, 6]);
    const calls = [
      gpu.evaluate(lazy(tensor).add(1)).then((value) => value.toArray()),
      gpu.matmul(x, y, options),
      gpu.benchmark(a, b, { ...options, samples: 1, min_ms: 0 }),
      gpu.clear_tuning(),
      settles(gpu.tune()),
    ];
    gpu.free();
    await rejects("disposed", () => gpu.matmul(x, y, options), /handle/);
    await rejects("disposed", () => gpu.evaluate(lazy(tensor).add(1)), /handle/);
    await rejects("disposed", () => gpu.benchmark(a, b, options), /handle/);
    await rejects("disposed", () => gpu.clear_tuning(), /handle/);
    const [value, sums, { backend }, cleared, tuned] = await Promise.all(calls);
    same(value, a.map((value) => value + 1));
    same(Float32Array.from(sums), expected);
    assert(backend === "simd", `measured on ${backend}`);
    assert(typeof cleared === "boolean", `cleared: ${cleared}`);
    is_fault(tuned.error, "unavailable", /nothing to tune/);
    tensor.dispose();
  }));

test("another device may be opened while parts load for calls on the one before", () =>
  visit(async ({ lapidary, wrap, assert, same, sleep, problem }) => {
    const { evaluate, init_gpu, lazy, matmul, tensor } = lapidary;
    const { a, b, options, expected } = problem(5, 6, 7);
    await init_gpu({ backend: "simd" });
    wrap(globalThis, "fetch", (original) => async (...args) => {
      if (/_(operations|int8)\.wasm/.test(args[0]?.url ?? args[0])) await sleep(300);
      return original(...args);
    });
    const x = await tensor(a, [5, 6]);
    const calls = [evaluate(lazy(x).add(1)), matmul(Int8Array.from(a), Int8Array.from(b), options)];
    assert((await init_gpu({ backend: "scalar" })).backend === "scalar", "opened");
    same(await (await calls[0]).toArray(), a.map((value) => value + 1));
    same(Float32Array.from(await calls[1]), expected);
  }));

test("a part of another build is none of this one's", () =>
  visit(async ({ lapidary, wrap, assert, rejects }) => {
    const undo = wrap(globalThis, "fetch", (original) => async (...args) => {
      const response = await original(...args);
      if (!/_measure\.wasm/.test(response.url)) return response;
      const bytes = new Uint8Array(await response.arrayBuffer());
      const at = new TextDecoder("latin1").decode(bytes).search(/\$[0-9a-f]{12}/);
      if (at < 0) throw new Error("a part names its build");
      bytes[at + 1] = bytes[at + 1] === 48 ? 49 : 48;
      return new Response(bytes, response);
    });
    await lapidary.init_gpu({ backend: "webgpu" });
    await rejects("unavailable", () => lapidary.random_matrix(4, 1), /lapidary_measure\.wasm/, /of the same build/);
    undo();
    assert((await lapidary.random_matrix(4, 1)).length === 4, "a random matrix");
  }));

test("what cannot be loaded is told, and tried anew", () =>
  visit(async ({ lapidary, wrap, assert, rejects, problem, right }) => {
    const { lazy, evaluate, init_gpu, random_matrix } = lapidary;
    await init_gpu({ backend: "simd" });
    const undo = wrap(globalThis, "fetch", () => async () => Promise.reject(new TypeError("no network")));
    for (let turn = 0; turn < 2; turn++) {
      await rejects("unavailable", () => evaluate(lazy(2).add(1)), /lapidary_operations\.wasm/, /no network/, /online/);
      await rejects("unavailable", () => random_matrix(4, 1), /lapidary_measure\.wasm/);
      await rejects("unavailable", () => lapidary.matmul(new Int8Array(4), new Uint8Array(4), { m: 2, k: 2, n: 2 }), /lapidary_int8\.wasm/);
      await rejects("unavailable", () => lapidary.tensor(new Uint8Array(4), [2, 2]), /lapidary_int8\.wasm/);
    }
    await rejects("unavailable", () => init_gpu({ backend: "webgl2" }), /lapidary_webgl2\.wasm/);
    await right(lapidary, problem(5, 6, 7));
    undo();
    const sum = await evaluate(lazy(2).add(1));
    assert((await sum.toArray())[0] === 3, "an expression");
    assert((await random_matrix(4, 1)).length === 4, "a random matrix");
    await init_gpu({ backend: "webgl2" });
    await right(lapidary, problem(5, 6, 7));
  }));

test("a GPU that is lost without a network is replaced by the CPU, which was loaded before", () =>
  visit(async ({ lapidary, watch, lose, wrap, assert, same, problem, sleep }) => {
    // A software GPU that calls itself another is not measured against the CPU.
    const hardware = { vendor: "acme", architecture: "one", device: "", description: "Acme One", isFallbackAdapter: false };
    Object.defineProperty(GPUAdapter.prototype, "info", { get: () => hardware });
    Object.defineProperty(GPUDevice.prototype, "adapterInfo", { get: () => hardware });
    const seen = watch();
    const loaded = [];
    wrap(WebAssembly, "instantiate", (original) => async (...args) => {
      const instance = await original(...args);
      loaded.push(args);
      return instance;
    });
    const info = await lapidary.init_gpu();
    assert(info.backend === "webgpu", JSON.stringify(info));
    for (let turn = 0; loaded.length === 0; turn++) {
      assert(turn < 200, "nothing was loaded in 10 s");
      await sleep(50);
    }
    wrap(globalThis, "fetch", () => async () => Promise.reject(new TypeError("no network")));
    wrap(GPU.prototype, "requestAdapter", () => async () => null);
    const { a, b, options, expected } = problem(12, 13, 15);
    const pending = lapidary.matmul(a, b, { ...options, report: true });
    lose(seen, "webgpu");
    const { data, replayed, backend } = await pending;
    same(data, expected);
    assert(replayed && backend === "simd", `${replayed} on ${backend}`);
    const { reason } = (await lapidary.device_info()).others.find((one) => one.backend === "webgl2");
    assert(/lapidary_webgl2\.wasm/.test(reason), reason);
  }));
