/** Expressions that are given before they are computed, and shaders that are not compiled yet. */
import { wrap } from "./faults.mjs";
import { assert, integers, product, same, skip } from "./tools.mjs";

const N = 9;
const SHAPE = [N, N];
const SIZES = { m: N, k: N, n: N };

export default {
  "chains of expressions are given before they are computed": async ({ gpu, lapidary: { lazy } }) => {
    if (!["webgpu", "webgl2"].includes(gpu.info().backend)) skip("the CPU computes at once");
    const x = integers(N * N, 11);
    const a = await gpu.tensor(x, SHAPE);
    let last = await gpu.evaluate(lazy(a).add(0));
    // A turn of the event loop is what a page needs to wait for a GPU.
    let turns = 0;
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => (turns++, port2.postMessage(0));
    port2.postMessage(0);
    const begun = turns;
    for (let i = 0; i < 20; i++) {
      const next = await gpu.evaluate(lazy(last).add(1));
      last.dispose();
      last = next;
    }
    port1.close();
    assert(turns === begun, `${turns - begun} turns of the event loop in 20 additions`);
    same(await last.toArray(), x.map((value) => value + 20));
    for (const tensor of [a, last]) tensor.dispose();
  },

  "a page goes on while shaders compile": async ({ lapidary: { Gpu, lazy }, backend }) => {
    if (backend !== "webgl2") skip("it is of WebGL2");
    // A compiler that takes some turns for each program, of which no other question may be asked before.
    const asked = new Map();
    let early = 0;
    const undo = compiling((program, is_completion) => {
      const times = asked.get(program) ?? 0;
      if (is_completion) asked.set(program, times + 1);
      else early += times < 3;
      return times >= 2;
    });
    try {
      const own = await Gpu.open({ backend });
      const x = integers(N * N, 12);
      const a = await own.tensor(x, SHAPE);
      // Of each what is not compiled is waited for, and what follows it at once comes behind.
      const kept = await Promise.all([1, 2, 1].map((alpha) => own.matmul(a, a, { alpha, transpose_b: true, keep: true })));
      const sums = await Promise.all([lazy(kept[0]).add(a), lazy(kept[1]).sum(1), lazy(kept[2]).add(a)].map((expr) => own.evaluate(expr)));
      const right = product(x, x, { ...SIZES, transpose_b: true });
      const added = right.map((value, i) => value + x[i]);
      same(await sums[0].toArray(), added);
      same(await sums[2].toArray(), added);
      const rows = Float32Array.from({ length: N }, (_, i) => right.subarray(i * N, (i + 1) * N).reduce((sum, value) => sum + 2 * value, 0));
      same(await sums[1].toArray(), rows);
      const { data, kernel_ms } = await own.matmul(x, x, { ...SIZES, alpha: 3, report: true });
      same(data, product(x, x, { ...SIZES, alpha: 3 }));
      assert(kernel_ms >= 0 && asked.size >= 5 && early === 0, `${early} questions too early, of ${asked.size} programs`);
      own.free();
    } finally {
      undo();
    }
  },

  "what is compiled waits for what is not": async ({ lapidary: { Gpu, lazy }, backend }) => {
    if (backend !== "webgl2") skip("it is of WebGL2");
    const begun = new Map();
    let ms = 0;
    const undo = compiling((program) => {
      if (!begun.has(program)) begun.set(program, performance.now() + ms);
      return performance.now() >= begun.get(program);
    });
    try {
      const own = await Gpu.open({ backend });
      const x = integers(N * N, 13);
      const a = await own.tensor(x, SHAPE);
      const values = async (expr) => (await own.evaluate(expr)).toArray();
      const close = (got, expected, what) =>
        assert(got.length === expected.length && got.every((value, i) => Math.abs(value - expected[i]) < 1e-4), `${what}: ${got}`);
      // These are compiled at once, and what is asked for first from here on takes its time.
      const sums = (x) => Float32Array.from({ length: N }, (_, i) => x.subarray(i * N, (i + 1) * N).reduce((sum, value) => sum + value));
      close(await values(lazy(a).matmul(a).sum(1)), sums(product(x, x, SIZES)), "a sum behind a product");
      ms = 300;
      const known = begun.size;
      close(await values(lazy(a).softmax().sum(1)), new Float32Array(N).fill(1), "a sum behind a softmax");
      const squares = x.map((value) => value * value);
      close(await values(lazy(a).square().matmul(a).sum(1)), sums(product(squares, x, SIZES)), "a sum behind a product of squares");
      assert(begun.size > known, "nothing was compiled late");
      own.free();
    } finally {
      undo();
    }
  },
};

/** Has WebGL say of programs whether they are made as `is_made` does, which is told whether that was the question. Gives what undoes it. */
function compiling(is_made) {
  const { prototype } = WebGL2RenderingContext;
  const COMPLETION_STATUS = 0x91b1;
  const undos = [
    wrap(prototype, "getExtension", (original) => {
      return function (name) {
        return name === "KHR_parallel_shader_compile" ? {} : original.call(this, name);
      };
    }),
    wrap(prototype, "getProgramParameter", (original) => {
      return function (program, name) {
        const answer = is_made(program, name === COMPLETION_STATUS);
        return name === COMPLETION_STATUS ? answer : original.call(this, program, name);
      };
    }),
  ];
  return () => undos.forEach((undo) => undo());
}
