/**
 * What follows a convolution, a reduction, softmax or a norm is computed in its kernel: no pass and no memory of its own. And expressions are given
 * before they are computed, whatever has to be compiled.
 */
import { every_call, wrap } from "./faults.mjs";
import { assert, each, integers, is_slow, product, same } from "./tools.mjs";

const N = 9;
const SHAPE = [N, N];
const SIZES = { m: N, k: N, n: N };

/** Values between −1 and 1 in no order. */
const noise = (length, seed) => integers(length, seed).map((value, i) => value / 5 + ((i * 37) % 101) / 505);

async function put(gpu, seed, ...shape) {
  return gpu.tensor(noise(shape.reduce((x, y) => x * y, 1), seed), shape);
}

/** A name, what comes first of tensors, what follows it, and the drawings of both together where a GPU draws. */
const CASES = {
  conv: [(t) => t.image.conv(t.filters, PADDED), (x, t) => x.add(t.residual).relu(), 1],
  "conv of fours": [(t) => t.image.conv(t.fours, PADDED), (x, t) => x.mul(t.channel).sub(0.5).tanh(), 1],
  "conv of rows of fours": [(t) => t.wide.conv(t.filters, PADDED), (x, t) => x.add(t.of_wide).mul(x).sigmoid(), 1],
  "conv and its own gate": [(t) => t.image.conv(t.filters, PADDED), (x) => x.mul(x.sigmoid()), 1],
  softmax: [(t) => t.rows.softmax(1), (x, t) => x.mul(t.others).add(1), 3],
  "softmax of odd rows": [(t) => t.odd.softmax(1), (x, t) => x.mul(t.of_odd), 3],
  "softmax of columns": [(t) => t.rows.softmax(0), (x, t) => x.mul(t.row), 3],
  "layer norm": [(t) => t.rows.layerNorm([1], { scale: t.row, bias: t.row }), (x, t) => x.add(t.others).geluTanh(), 3],
  sum: [(t) => t.rows.mul(0.5).sum(1), (x, t) => x.mul(2).add(t.column).abs().sqrt(), 2],
  variance: [(t) => t.rows.var(0), (x, t) => x.add(t.row).exp(), 2],
  "norm and many scalars": [(t) => t.odd.normL2(1), (x) => x.clamp(0.25, 3).mul(2).add(3).max(1.5).log(), 2],
};
const PADDED = { pads: [[1, 1], [1, 1]] };

async function tensors_of(gpu, lazy) {
  const shapes = {
    image: [2, 5, 6, 7],
    filters: [3, 5, 3, 3],
    wide: [2, 5, 4, 8],
    of_wide: [2, 3, 4, 8],
    fours: [4, 5, 3, 3],
    residual: [2, 3, 6, 7],
    channel: [4, 1, 1],
    rows: [6, 128],
    others: [6, 128],
    row: [128],
    column: [6],
    odd: [5, 33],
    of_odd: [5, 33],
  };
  const tensors = [];
  const expressions = {};
  for (const [name, shape] of Object.entries(shapes)) {
    tensors.push(await put(gpu, tensors.length + 1, ...shape));
    expressions[name] = lazy(tensors.at(-1));
  }
  return { tensors, expressions };
}

export default {
  "what follows is what it is by itself": async ({ gpu, backend, lapidary: { lazy } }) => {
    const { tensors, expressions } = await tensors_of(gpu, lazy);
    await each(is_slow(gpu) ? { conv: CASES.conv, sum: CASES.sum } : CASES, async ([first, then, drawings]) => {
      const between = await gpu.evaluate(first(expressions));
      const last = await gpu.evaluate(then(lazy(between), expressions));
      const expected = await last.toArray();
      gpu.trim();
      let bytes = 0;
      const { calls, undo } = backend === "webgl2" ? every_call(WebGL2RenderingContext.prototype) : { undo() {} };
      const unwrap =
        backend === "webgl2" &&
        wrap(
          WebGL2RenderingContext.prototype,
          "texStorage2D",
          (original) =>
            function (target, levels, format, width, height) {
              bytes += width * height * 16;
              original.call(this, target, levels, format, width, height);
            },
        );
      const fused = await gpu.evaluate(then(first(expressions), expressions));
      if (unwrap) unwrap();
      undo();
      const got = await fused.toArray();
      assert(got.length === expected.length && `${fused.shape}` === `${last.shape}`, `[${fused.shape}] in place of [${last.shape}]`);
      got.forEach((value, i) => {
        const right = expected[i];
        assert(Math.abs(value - right) <= 1e-6 * Math.max(Math.abs(right), 1), `element ${i} is ${value}, not ${right}`);
      });
      if (backend === "webgl2") {
        assert(calls.drawArrays === drawings, `${calls.drawArrays} drawings in place of ${drawings}`);
        // The result and, of rows, what is known of each: less than one more result would be, which is folded into a power of two of texels.
        const most = 2 * 4 * expected.length + (drawings > 1 ? 4096 : 256);
        assert(bytes <= most, `${bytes} bytes of textures for ${expected.length} elements`);
      }
      for (const tensor of [between, last, fused]) tensor.dispose();
    });
    for (const tensor of tensors) tensor.dispose();
  },

  "a page goes on while shaders compile": async ({ lapidary: { Gpu, lazy }, backend }) => {
    if (backend !== "webgl2") return;
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

  "chains of expressions are given before they are computed": async ({ gpu, lapidary: { lazy } }) => {
    if (!["webgpu", "webgl2"].includes(gpu.info().backend)) return;
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
};
