/** What follows a product, a convolution, a reduction, softmax or a norm is computed in its kernel: no pass and no memory of its own. */
import { every_call, wrap } from "./faults.mjs";
import { assert, each, integers, is_slow } from "./tools.mjs";

/** Values between −1 and 1 in no order. */
const noise = (length, seed) => integers(length, seed).map((value, i) => value / 5 + ((i * 37) % 101) / 505);

async function put(gpu, seed, ...shape) {
  return gpu.tensor(noise(shape.reduce((x, y) => x * y, 1), seed), shape);
}

/** A name, what comes first of tensors, what follows it, the drawings of both together where a GPU draws, and bytes of textures that the first needs. */
const CASES = {
  product: [(t) => t.rows.matmul(t.others.transpose()), (x, t) => x.mul(0.5).sub(t.column).sigmoid().mul(x), 1],
  "product of fours": [(t) => t.rows.transpose().matmul(t.others), (x, t) => x.add(t.row).abs().sqrt(), 1],
  "product of odd rows": [(t) => t.odd.transpose().matmul(t.of_odd), (x, t) => x.less(0).select(t.odd.slice(0, 0, 1), x.mul(2)), 1],
  "product in strips": [(t) => t.tall.matmul(t.long), (x, t) => x.mul(0.01).add(t.row).tanh(), 9, 64 * 2048 * 4],
  "matrix by vector": [(t) => t.rows.matmul(t.row), (x, t) => x.mul(0.1).add(t.column).exp(), 1],
  "vector by matrix": [(t) => t.column.matmul(t.rows), (x, t) => x.div(t.row.abs().add(1)).square(), 1],
  "batch of products": [(t) => t.image.matmul(t.image.transpose([0, 1, 3, 2])), (x, t) => x.max(t.column).sub(0.5), 1],
  "batch of products of fours": [(t) => t.wide.matmul(t.wide.transpose([0, 1, 3, 2])), (x, t) => x.min(t.channel.reshape([4])).tanh(), 1],
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
    tall: [64, 2048],
    long: [2048, 128],
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
    await each(is_slow(gpu) ? { product: CASES.product, conv: CASES.conv, sum: CASES.sum } : CASES, async ([first, then, drawings, scratch_bytes = 0]) => {
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
        const most = 2 * 4 * expected.length + (drawings > 1 ? 4096 : 256) + scratch_bytes;
        assert(bytes <= most, `${bytes} bytes of textures for ${expected.length} elements`);
      }
      for (const tensor of [between, last, fused]) tensor.dispose();
    });
    for (const tensor of tensors) tensor.dispose();
  },

  "what follows reads as many tensors as it has room for, each time its own": async ({ gpu, lapidary: { lazy } }) => {
    const { tensors, expressions } = await tensors_of(gpu, lazy);
    const { rows, others, image, filters } = expressions;
    for (const [core, shape] of [
      [rows.matmul(others.transpose()), [6, 6]],
      [image.conv(filters, PADDED), [2, 3, 6, 7]],
    ]) {
      const beside = [];
      for (let seed = 30; seed < 40; seed++) beside.push(await put(gpu, seed, ...shape));
      // The same kernels, the second time compiled ahead, with other tensors.
      for (const order of [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]) {
        const [a, b, c, d, e] = order.map((at) => lazy(beside[at]));
        const then = (x) => x.mul(a).add(b.mul(c)).add(d.mul(e));
        const first = await gpu.evaluate(core);
        const last = await gpu.evaluate(then(lazy(first)));
        const whole = await gpu.evaluate(then(core));
        const [expected, got] = [await last.toArray(), await whole.toArray()];
        got.forEach((value, i) => {
          const right = expected[i];
          assert(Math.abs(value - right) <= 1e-5 * Math.max(Math.abs(right), 1), `${order}: element ${i} is ${value}, not ${right}`);
        });
        for (const tensor of [first, last, whole]) tensor.dispose();
      }
      for (const tensor of beside) tensor.dispose();
    }
    for (const tensor of tensors) tensor.dispose();
  },
};
