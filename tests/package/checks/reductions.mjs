/** Reductions along axes: the same list on every backend, against the same in double precision. */
import { assert, each, is_slow, rejects, throws } from "./tools.mjs";

const values = (length) => Float32Array.from({ length }, (_, i) => (((i * 7919) % 1009) - 504) / 64);
const sum = (list) => list.reduce((sum, value) => sum + value, 0);
const mean = (list) => sum(list) / list.length;
const spread = (list) => sum(list.map((value) => (value - mean(list)) ** 2));

/** What each makes of a list. */
const OF_LIST = {
  sum,
  mean,
  prod: (list) => list.reduce((product, value) => product * value, 1),
  amax: (list) => Math.max(...list),
  amin: (list) => Math.min(...list),
  argmax: (list) => list.indexOf(Math.max(...list)),
  argmin: (list) => list.indexOf(Math.min(...list)),
  var: (list) => spread(list) / list.length,
  std: (list) => Math.sqrt(spread(list) / list.length),
  normL1: (list) => sum(list.map(Math.abs)),
  normL2: (list) => Math.sqrt(sum(list.map((value) => value * value))),
  logSumExp: (list) => Math.max(...list) + Math.log(sum(list.map((value) => Math.exp(value - Math.max(...list))))),
  any: (list) => Number(list.some((value) => value !== 0)),
  all: (list) => Number(list.every((value) => value !== 0)),
  count: (list) => list.filter((value) => value !== 0).length,
};

/** The lists that axes 0 and 2 of [a, b, c], its last axis, or all of it are made of. */
function lists(data, [a, b, c], axes) {
  const at = (i, j, k) => data[(i * b + j) * c + k];
  const range = (length) => Array.from({ length }, (_, i) => i);
  if (axes === undefined) return [[...data]];
  if (axes === -1) return range(a * b).map((row) => range(c).map((k) => at(Math.floor(row / b), row % b, k)));
  return range(b).map((j) => range(a * c).map((i) => at(Math.floor(i / c), j, i % c)));
}

async function near(gpu, expr, right, what, tolerance = 1e-5) {
  const tensor = await gpu.evaluate(expr);
  const data = await tensor.toArray();
  tensor.dispose();
  assert(data.length === right.length, `${what} has ${data.length} elements, not ${right.length}`);
  right.forEach((right, i) => {
    const is_same = Object.is(data[i], right) || data[i] === right || Math.abs(data[i] - right) <= tolerance * Math.max(Math.abs(right), 1);
    assert(is_same, `${what}[${i}] is ${data[i]}, not ${right}`);
  });
  return tensor;
}

export default {
  "each along some axes, the last and all": async ({ gpu, lapidary: { lazy } }) => {
    const shapes = is_slow(gpu) ? [[3, 4, 6]] : [[3, 4, 6], [7, 5, 3], [2, 3, 300]];
    for (const shape of shapes) {
      const data = values(shape[0] * shape[1] * shape[2]);
      const x = await gpu.tensor(data, shape);
      for (const axes of is_slow(gpu) ? [-1] : [[0, 2], -1, undefined]) {
        await each(OF_LIST, (f, name) => {
          // Products stay within what is a number.
          const of = name === "prod" ? lazy(x).mul(0.25) : lazy(x);
          const list = lists(name === "prod" ? data.map((value) => value / 4) : data, shape, axes);
          return near(gpu, of[name](axes), list.map(f), name, name === "prod" ? 1e-4 : undefined);
        });
      }
      x.dispose();
    }
  },

  "shapes and types": async ({ gpu, lapidary: { lazy } }) => {
    const x = await gpu.tensor(values(24), [2, 3, 4]);
    const is = async (expr, shape, dtype) => {
      const tensor = await gpu.evaluate(expr);
      assert(`${tensor.shape}` === `${shape}` && tensor.dtype === dtype, `[${tensor.shape}] of ${tensor.dtype}, not [${shape}] of ${dtype}`);
      tensor.dispose();
    };
    await is(lazy(x).sum(1), [2, 4], "f32");
    await is(lazy(x).sum([0, -1], true), [1, 3, 1], "f32");
    await is(lazy(x).argmax(), [], "u32");
    await is(lazy(x).greater(0).any(0), [3, 4], "bool");
    await is(lazy(x).count([1, 2]), [2], "u32");
    x.dispose();
  },

  "integers wrap around, and extremes are exact": async ({ gpu, lapidary: { lazy } }) => {
    const x = await gpu.tensor(Int32Array.of(2147483647, 1, -5, 7, -2147483648, 3), [2, 3]);
    await near(gpu, lazy(x).sum(1), [2147483643, -2147483638], "sum", 0);
    await near(gpu, lazy(x).prod(1), [Math.imul(2147483647, -5), Math.imul(Math.imul(7, -2147483648), 3)], "prod", 0);
    await near(gpu, lazy(x).amin(0), [7, -2147483648, -5], "amin", 0);
    await near(gpu, lazy(x).argmax(0), [0, 0, 1], "argmax", 0);
    const y = await gpu.tensor(Uint32Array.of(4294967295, 2, 3), [3]);
    await near(gpu, lazy(y).sum(), [4], "sum", 0);
    await near(gpu, lazy(y).amax(), [4294967295], "amax", 0);
    for (const tensor of [x, y]) tensor.dispose();
  },

  "what comes before and after goes with it": async ({ gpu, lapidary: { lazy } }) => {
    const data = values(5 * 40);
    const x = await gpu.tensor(data, [5, 40]);
    const rows = lists(data, [1, 5, 40], -1);
    const exponentials = rows.map((row) => row.map((value) => Math.exp(value - Math.max(...row))));
    const shifted = lazy(x).sub(lazy(x).amax(-1, true)).exp();
    const softmax = exponentials.flatMap((row) => row.map((value) => value / sum(row)));
    await near(gpu, shifted.div(shifted.sum(-1, true)), softmax, "softmax", 1e-5);
    await near(gpu, lazy(x).transpose().square().sum(0), rows.map((row) => sum(row.map((value) => value * value))), "squares", 1e-5);
    x.dispose();
  },

  "long sums lose little": async ({ gpu, lapidary: { lazy, Expr } }) => {
    const length = is_slow(gpu) ? 100_000 : 1_000_000;
    const x = await gpu.evaluate(Expr.index([length]).cast("f32").mul(0).add(0.1));
    const tenth = Math.fround(0.1);
    await near(gpu, lazy(x).sum(), [length * tenth], "sum", 1e-5);
    await near(gpu, lazy(x).mean(), [tenth], "mean", 1e-6);
    await near(gpu, lazy(x).var(), [0], "var", 1e-9);
    x.dispose();
    // One beside which others are lost, within the bound that is documented.
    const ones = await gpu.evaluate(lazy(1).broadcastTo([4095]).pad([[1, 0]], 2 ** 24));
    const lanes = gpu.info().backend.startsWith("web") ? 4096 / 64 + 64 : 64;
    await near(gpu, lazy(ones).sum(), [2 ** 24 + 4095], "sum beside a large one", (lanes + 1) * 2 ** -24);
    ones.dispose();
  },

  "numbers that are none, and large ones": async ({ gpu, lapidary: { lazy } }) => {
    const x = await gpu.tensor(Float32Array.of(1, NaN, 3, -1, Infinity, 2, 1e30, -1e30, 1e30), [3, 3]);
    await near(gpu, lazy(x).amax(1), [NaN, Infinity, Math.fround(1e30)], "amax", 0);
    await near(gpu, lazy(x).argmin(1), [1, 0, 1], "argmin", 0);
    await near(gpu, lazy(x).slice(0, 2, 3).normL2(1), [Math.sqrt(3) * 1e30], "normL2", 1e-5);
    await near(gpu, lazy(x).slice(0, 1, 3).logSumExp(1), [Infinity, Math.fround(1e30)], "logSumExp", 1e-6);
    x.dispose();
  },

  // In every copy of an unrolled loop: with a branch in each they once took minutes to compile, at the end of which the device was lost.
  "of long rows of functions with conditions": async ({ gpu, lapidary: { lazy } }) => {
    const data = Float32Array.from({ length: 2 * 4096 }, (_, i) => (i % 7) - 3);
    const sums = (of) => [0, 4096].map((start) => sum([...data.subarray(start, start + 4096)].map(of)));
    const x = await gpu.tensor(data, [2, 4096]);
    await near(gpu, lazy(x).clamp(-2, 2).amax(1), [2, 2], "amax of clamp", 0);
    await near(gpu, lazy(x).pow(2).sum(1), sums((value) => value ** 2), "sum of powers", 1e-6);
    await near(gpu, lazy(x).cast("i32").div(2).sum(1), sums((value) => Math.trunc(value / 2)), "sum of quotients", 0);
    x.dispose();
  },

  "of what is padded": async ({ gpu, lapidary: { lazy } }) => {
    const x = await gpu.tensor(new Float32Array(192).fill(1), [12, 16]);
    await near(gpu, lazy(x).pad([[1, 1], [0, 2]]).sum(), [192], "sum");
    await near(gpu, lazy(x).pad([[2, 1], [1, 0]], 2).amin(0), [2, ...Array(16).fill(1)], "amin");
    x.dispose();
  },

  "of nothing": async ({ gpu, lapidary: { lazy } }) => {
    const x = await gpu.tensor(new Float32Array(0), [0, 3]);
    await near(gpu, lazy(x).sum(0), [0, 0, 0], "sum");
    await near(gpu, lazy(x).prod(), [1], "prod");
    await near(gpu, lazy(x).sum(1), [], "sum");
    await rejects("invalid_dimension", () => gpu.evaluate(lazy(x).amax(0)), /\[0, 3\]/);
    x.dispose();
  },

  "what is wrong is told": async ({ gpu, lapidary: { lazy } }) => {
    const tensor = await gpu.tensor(values(6), [2, 3]);
    const x = lazy(tensor);
    await rejects("invalid_dimension", () => gpu.evaluate(x.sum(2)), /\b2\b/, /-2 to 1/);
    await rejects("invalid_dimension", () => gpu.evaluate(x.mean([0, -2])), /each axis once/);
    await rejects("invalid_option", () => gpu.evaluate(x.var(0, false, -1)), /correction is -1/);
    throws("invalid_type", () => x.sum("0"), /\baxes\b/);
    throws("invalid_dimension", () => x.sum([0.5]), /\baxes is the number 0.5/);
    throws("invalid_option", () => x.sum(0, 1), /\bkeep is the number 1/);
    throws("invalid_type", () => x.std(0, true, "1"), /\bcorrection\b/);
    tensor.dispose();
  },
};
