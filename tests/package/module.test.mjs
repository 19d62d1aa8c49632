/** How the module is started: what is served wrongly is told, and what is only unusual works. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { pages } from "./page.mjs";
import { PACKAGE, serve } from "./server.mjs";

const { visit } = pages();

/** Visits a page of a server that is set up otherwise. */
async function served(options, body, { expected, argument } = {}) {
  const server = await serve(options);
  try {
    return await visit(body, { url: server.url, expected, argument });
  } finally {
    await server.close();
  }
}

const is_unavailable = async ({ lapidary, each, rejects }) => {
  const four = new Float32Array(4);
  await each(
    {
      init_gpu: () => lapidary.init_gpu(),
      "init_gpu for the CPU": () => lapidary.init_gpu({ backend: "scalar" }),
      device_info: () => lapidary.device_info(),
      matmul: () => lapidary.matmul(four, four, { m: 2, k: 2, n: 2 }),
      tensor: () => lapidary.tensor(four, [2, 2]),
      evaluate: () => lapidary.evaluate(lapidary.lazy(2).add(1)),
      benchmark: () => lapidary.benchmark(four, four, { m: 2, k: 2, n: 2 }),
      memory: () => lapidary.memory(),
      reference: () => lapidary.reference(four, four, { m: 2, k: 2, n: 2 }),
      random_matrix: () => lapidary.random_matrix(4, 1),
      "Gpu.open": () => lapidary.Gpu.open(),
    },
    (call) => rejects("unavailable", call, /lapidary_core_bg\.wasm/, /'wasm-unsafe-eval'/, /served/),
  );
};

const multiplies = async ({ lapidary, right, problem }, backends) => {
  for (const backend of backends) {
    await lapidary.init_gpu({ backend });
    await right(lapidary, problem(5, 6, 7));
  }
};

test("a module that is not there", () => served({ deny: /\.wasm$/ }, is_unavailable, { expected: /404/ }));

test("a page in the module's place", () =>
  served({ replace: { "/package/lapidary_core_bg.wasm": "<!doctype html>" }, type: { ".wasm": "text/html" } }, is_unavailable));

test("half a module", async () => {
  const whole = await readFile(join(PACKAGE, "lapidary_core_bg.wasm"));
  await served({ replace: { "/package/lapidary_core_bg.wasm": whole.subarray(0, whole.length / 2) } }, is_unavailable);
});

test("a policy without 'wasm-unsafe-eval'", () =>
  served({ policy: "script-src 'self' 'unsafe-inline'" }, is_unavailable, { expected: /Content Security Policy/ }));

test("a policy that allows no more than it must", () =>
  served({ policy: "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self'; img-src data:" }, multiplies, {
    argument: ["scalar", "simd", "webgl2", "webgpu"],
  }));

test("a module served as another type", () =>
  served({ type: { ".wasm": "application/octet-stream" } }, multiplies, { argument: ["simd"] }));

test("after a failure the next call tries anew", () =>
  visit(async ({ lapidary, wrap, rejects, right, problem }) => {
    const undo = wrap(globalThis, "fetch", () => async () => Promise.reject(new TypeError("offline")));
    await rejects("unavailable", () => lapidary.init_gpu({ backend: "simd" }), /offline/);
    await rejects("unavailable", () => lapidary.random_matrix(4, 1), /offline/);
    undo();
    await lapidary.init_gpu({ backend: "simd" });
    await right(lapidary, problem(5, 6, 7));
  }));

test("the module is fetched once, however many calls come first", () =>
  visit(async ({ lapidary, wrap, right, problem, assert }) => {
    const fetched = [];
    wrap(globalThis, "fetch", (original) => (...args) => {
      fetched.push(String(args[0]?.url ?? args[0]));
      return original(...args);
    });
    await Promise.all([
      lapidary.init_gpu({ backend: "cpu" }),
      lapidary.random_matrix(4, 1),
      right(lapidary, problem(5, 6, 7)),
      lapidary.Gpu.open({ backend: "scalar" }),
      lapidary.memory(),
    ]);
    const names = fetched.map((path) => path.replace(/.*\/package\//, "")).sort();
    assert(`${names}` === "lapidary_core_bg.wasm,lapidary_cpu.wasm,lapidary_measure.wasm", names.join());
  }));

test("nothing happens before the first call, and nothing is sent elsewhere", async () => {
  const server = await serve();
  const requests = [];
  try {
    await visit(
      async ({ sleep }) => {
        await sleep(500);
        return performance.getEntriesByType("resource").map(({ name }) => name);
      },
      { url: server.url },
    ).then((names) => requests.push(...names));
  } finally {
    await server.close();
  }
  assert.ok(requests.length > 0, "nothing was asked for");
  assert.ok(
    requests.every((name) => name.startsWith(server.url)),
    requests.join(),
  );
  assert.ok(!requests.some((name) => name.endsWith(".wasm")), "importing fetches no module");
});

test("calls under way end when the module is left in the midst of one", () =>
  visit(
    async ({ lapidary, wrap, settles, within, is_fault, right, problem }) => {
      const gpu = await lapidary.Gpu.open({ backend: "webgpu" });
      const tensor = await gpu.tensor(new Float32Array(4), [2, 2]);
      const undo = wrap(GPUBuffer.prototype, "mapAsync", () => () => {
        throw new Error("thrown by a page's own method");
      });
      const downloads = [tensor.toArray(), tensor.toArray()].map((download, i) => settles(within(10_000, download, `download ${i}`)));
      for (const { error } of await Promise.all(downloads)) is_fault(error, ["internal"], /thrown by a page's own method/);
      undo();
      await right(gpu, problem(5, 6, 7));
    },
    { expected: /thrown by a page's own method/ },
  ));
