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
    const { prototype } = WebGL2RenderingContext;
    const COMPLETION_STATUS = 0x91b1;
    // A compiler that takes some turns for each program, of which no other question may be asked before.
    const asked = new Map();
    let early = 0;
    const undos = [
      wrap(prototype, "getExtension", (original) => {
        return function (name) {
          return name === "KHR_parallel_shader_compile" ? {} : original.call(this, name);
        };
      }),
      wrap(prototype, "getProgramParameter", (original) => {
        return function (program, name) {
          const times = asked.get(program) ?? 0;
          if (name !== COMPLETION_STATUS) early += times < 3;
          else asked.set(program, times + 1);
          return name === COMPLETION_STATUS ? times >= 2 : original.call(this, program, name);
        };
      }),
    ];
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
      for (const undo of undos) undo();
    }
  },
};
