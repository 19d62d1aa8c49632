/** Expressions: the same list on every backend, against the same in double precision or in whole numbers. */
import { assert, each, is_slow, rejects, same, settles, skip, throws } from "./tools.mjs";

/** Numbers as a tensor of a type has them. */
const CLASSES = { f32: Float32Array, f16: globalThis.Float16Array, i32: Int32Array, u32: Uint32Array, bool: Uint8Array };

/** Every element of a shape from its coordinates, row by row. */
function filled(shape, value) {
  const out = [];
  const walk = (at) => {
    if (at.length === shape.length) return out.push(value(...at));
    for (let i = 0; i < shape[at.length]; i++) walk([...at, i]);
  };
  walk([]);
  return out;
}

/** Values that are spread over −range to range, whole ones for what is no float. */
const spread = (length, range) => Array.from({ length }, (_, i) => (((i * 37) % 101) / 50 - 1) * range);

async function put(gpu, dtype, values, shape) {
  return gpu.tensor(CLASSES[dtype].from(values), shape ?? [values.length], dtype === "bool" ? { dtype } : undefined);
}

/** Evaluates, frees what it made, and gives the result. */
async function value_of(gpu, expr) {
  const tensor = await gpu.evaluate(expr);
  const { shape, dtype } = tensor;
  const data = await tensor.toArray();
  tensor.dispose();
  return { shape, dtype, data };
}

/** Compares with a shape and the values that it holds, each within `tolerance` of what is right, relatively and at least absolutely. */
async function gives(gpu, expr, dtype, shape, expected, tolerance = 0) {
  const got = await value_of(gpu, expr);
  assert(got.dtype === dtype, `a result of ${got.dtype}, not of ${dtype}`);
  assert(`${got.shape}` === `${shape}`, `a result of [${got.shape}], not of [${shape}]`);
  assert(got.data instanceof CLASSES[dtype], `a result in ${got.data}`);
  assert(got.data.length === expected.length, `${got.data.length} elements, not ${expected.length}`);
  expected.forEach((right, i) => {
    const value = got.data[i];
    const is_same = Object.is(value, +right) || value === +right || Math.abs(value - right) <= tolerance * Math.max(Math.abs(right), 1);
    assert(is_same, `element ${i} is ${value}, not ${right}`);
  });
}

const erf = (x) => {
  let sum = 0;
  for (let n = 0, term = x; n < 200; n++, term *= (-x * x) / n) sum += term / (2 * n + 1);
  return Math.abs(x) > 5 ? Math.sign(x) : (2 / Math.sqrt(Math.PI)) * sum;
};
const sigmoid = (x) => 1 / (1 + Math.exp(-x));
const even = (x) => (Math.abs(x % 1) === 0.5 ? 2 * Math.round(x / 2) : Math.round(x));
/** The nearest number of f16 that is not too large for it. */
const toF16 = (x) => {
  const digit = 2 ** (Math.max(Math.floor(Math.log2(Math.abs(x))), -14) - 10);
  return even(x / digit) * digit;
};
const floored = (a, b) => a - b * Math.floor(a / b);

/** Each with the range that it is tried in, and what it is. */
const OF_ONE = {
  negative: [9, (a) => -a],
  abs: [9, Math.abs],
  sign: [9, Math.sign],
  square: [9, (a) => a * a],
  reciprocal: [9, (a) => 1 / a],
  sqrt: [9, (a) => Math.sqrt(a), 0],
  exp: [9, Math.exp],
  log: [9, Math.log, 0],
  sin: [3, Math.sin],
  cos: [3, Math.cos],
  tan: [1.3, Math.tan],
  asin: [1, Math.asin],
  acos: [1, Math.acos],
  atan: [9, Math.atan],
  sinh: [9, Math.sinh],
  cosh: [9, Math.cosh],
  tanh: [9, Math.tanh],
  asinh: [9, Math.asinh],
  acosh: [9, Math.acosh, 1],
  atanh: [0.99, Math.atanh],
  sigmoid: [9, sigmoid],
  relu: [9, (a) => Math.max(a, 0)],
  softplus: [9, (a) => Math.log1p(Math.exp(a))],
  erf: [3, erf],
  gelu: [4, (a) => (a * (1 + erf(a / Math.SQRT2))) / 2],
  geluTanh: [4, (a) => a * sigmoid(1.5957691216 * (a + 0.044715 * a ** 3))],
  silu: [9, (a) => a * sigmoid(a)],
  floor: [9, Math.floor],
  ceil: [9, Math.ceil],
  round: [9, even],
  trunc: [9, Math.trunc],
  roundToF16: [9, toF16],
};

const OF_TWO = {
  add: (a, b) => a + b,
  sub: (a, b) => a - b,
  mul: (a, b) => a * b,
  div: (a, b) => a / b,
  rem: (a, b) => a % b,
  modulo: floored,
  min: Math.min,
  max: Math.max,
  equal: (a, b) => a === b,
  notEqual: (a, b) => a !== b,
  less: (a, b) => a < b,
  lessEqual: (a, b) => a <= b,
  greater: (a, b) => a > b,
  greaterEqual: (a, b) => a >= b,
};
const COMPARES = ["equal", "notEqual", "less", "lessEqual", "greater", "greaterEqual"];

/** GPUs give elementary functions a few units in the last place, and more where they subtract what is nearly equal. */
const TOLERANCE = 2e-5;
/** WGSL promises no more of these: 2⁻¹¹ of the sine. */
const COARSE = 2 ** -10;
const TRIGONOMETRIC = ["sin", "cos", "tan", "asin", "acos", "atan"];

/** Many results in one: compiling takes longest where a CPU emulates a GPU. */
const together = ({ lapidary: { Expr } }, parts) => Expr.concat(parts.map((part) => part.reshape([1, -1])), 0);

async function in_groups(size, list, check) {
  for (let i = 0; i < list.length; i += size) await check(list.slice(i, i + size));
}

/** Two operands of a type, among them equal ones and, of integers, extremes and zeros. */
const PAIRS = {
  f32: [[1.5, -2.25, 0.75, 3, -3, 7.5, -7.5, 0], [0.5, 1.5, -0.5, 3, 3, -2, 2, 1]],
  i32: [[7, -7, 7, -7, 2147483647, -2147483648, 5, 0], [2, 2, -2, -2, 1, -1, 0, 5]],
  u32: [[7, 7, 4294967295, 3, 0, 2147483648, 5, 65537], [2, 7, 1, 4, 4294967295, 3, 0, 65537]],
};

/** What an integer operation gives: 0 for a division by 0, and bits above the 31st dropped. */
function whole(name, dtype, a, b) {
  if (COMPARES.includes(name)) return OF_TWO[name](a, b);
  const wrap = (value) => (dtype === "i32" ? Number(BigInt.asIntN(32, value)) : Number(BigInt.asUintN(32, value)));
  const [x, y] = [BigInt(a), BigInt(b)];
  const modulo = () => ((x % y) + y) % y;
  if (["div", "rem", "modulo"].includes(name)) return y === 0n ? 0 : wrap(name === "div" ? x / y : name === "rem" ? x % y : modulo());
  return wrap({ add: x + y, sub: x - y, mul: x * y, min: x < y ? x : y, max: x > y ? x : y }[name]);
}

/** The first bits of seed 7, by the formula. */
const RANDOM = [0, 1, 2].map((index) => {
  const hash = (x) => {
    const y = Math.imul(x ^ (x >>> 16), 0x7feb352d);
    const z = Math.imul(y ^ (y >>> 15), 0x846ca68b);
    return (z ^ (z >>> 16)) >>> 0;
  };
  return hash(hash(index ^ Math.imul(7, 0x9e3779b9)) ^ hash(7) ^ 0x85ebca6b);
});

export default {
  "functions of one number": async (subject) => {
    const { gpu, lapidary } = subject;
    await in_groups(is_slow(gpu) ? 6 : 4, Object.entries(OF_ONE), async (group) => {
      const made = group.map(([name, [range, f, least = -range]]) => {
        const values = Float32Array.from(spread(64, 1), (value) => least + ((value + 1) / 2) * (range - least) + 1e-3);
        return { name, f, values };
      });
      const tensors = await Promise.all(made.map(({ values }) => gpu.tensor(values, [8, 8])));
      const expr = together(subject, tensors.map((tensor, i) => lapidary.lazy(tensor)[made[i].name]()));
      const { data } = await value_of(gpu, expr);
      tensors.forEach((tensor) => tensor.dispose());
      made.forEach(({ name, f, values }, place) =>
        values.forEach((value, i) => {
          const [got, right] = [data[place * 64 + i], f(value)];
          const tolerance = TRIGONOMETRIC.includes(name) ? COARSE : TOLERANCE;
          const is_near = Math.abs(got - right) <= tolerance * Math.max(Math.abs(right), 1) || Object.is(got, Math.fround(right));
          assert(is_near, `${name}(${value}) is ${got}, not ${right}`);
        }),
      );
    });
  },

  "numbers of every size by vectors as one by one": async ({ gpu, lapidary: { Gpu, lazy } }) => {
    if (gpu.info().backend !== "simd") skip("of the paths the CPU with SIMD computes by vectors of its own");
    const sizes = Array.from({ length: 3000 }, (_, i) => (i % 2 ? -1 : 1) * 2 ** (((i * 37) % 2801) / 10 - 150));
    const values = [0, -0, NaN, Infinity, -Infinity, 1, -1, 88.72, 88.73, -87.4, -103.9, -104.1, 8191.9, 1e-45, 3.4028235e38, ...sizes];
    const plain = await Gpu.open({ backend: "scalar" });
    const of = async (gpu) => {
      const tensors = [await put(gpu, "f32", values), await put(gpu, "f32", values.toReversed())];
      const [x, y] = tensors.map(lazy);
      const results = {};
      for (const name of [...Object.keys(OF_ONE), "isNan"]) results[name] = (await value_of(gpu, x[name]())).data;
      for (const name of Object.keys(OF_TWO)) results[name] = (await value_of(gpu, x[name](y))).data;
      for (const name of ["sum", "prod", "amax", "amin", "var"]) {
        // Of what is finite; of what is not by itself, since it would be all there is to see.
        for (const part of [x.slice(0, 5, 14), x.slice(0, 15, values.length).mul(1e-20), x]) (results[name] ??= []).push(...(await value_of(gpu, part[name]())).data);
      }
      for (const name of ["softmax", "logSoftmax", "layerNorm", "rmsNorm"]) results[name] = (await value_of(gpu, x.slice(0, 5, 14)[name](0))).data;
      tensors.forEach((tensor) => tensor.dispose());
      return results;
    };
    const [got, right] = [await of(gpu), await of(plain)];
    for (const [name, results] of Object.entries(right)) {
      results.forEach((right, i) => {
        const value = got[name][i];
        const near = Math.abs(value - right) <= 2e-6 * Math.abs(right) + (TRIGONOMETRIC.includes(name) ? 3e-7 : 1e-42);
        assert(Object.is(value, right) || near, `${name}(${values[i]}) is ${value}, not ${right}`);
      });
    }
    // The page's functions are of double precision: not all bits are the same, unless it was they that computed.
    assert(got.exp.some((value, i) => !Object.is(value, right.exp[i])), "there are no vectors here");
    plain.free();
  },

  "functions of two numbers of each type": async (subject) => {
    const { gpu, lapidary } = subject;
    for (const [dtype, [a, b]] of Object.entries(PAIRS)) {
      const [x, y] = [await put(gpu, dtype, a, [1, 8]), await put(gpu, dtype, b, [1, 8])];
      const right = (name) => a.map((a, i) => (dtype === "f32" ? OF_TWO[name](a, b[i]) : whole(name, dtype, a, b[i])));
      const numbers = Object.keys(OF_TWO).filter((name) => !COMPARES.includes(name));
      for (const [names, type] of [[numbers, dtype], [COMPARES, "bool"]]) {
        const expr = together(subject, names.map((name) => lapidary.lazy(x)[name](y)));
        await gives(gpu, expr, type, [names.length, 8], names.flatMap(right), 1e-6);
      }
      for (const tensor of [x, y]) tensor.dispose();
    }
  },

  "powers": async ({ gpu, lapidary: { lazy } }) => {
    const [a, b] = [[2, -2, -2, 0, 9, 1.5, -1.5, 4, 0, 0, -0, -Infinity], [3, 3, 2, 0, 0.5, -2, 3, -0.5, -1, -0.5, -3, 0.5]];
    const [x, y] = [await put(gpu, "f32", a), await put(gpu, "f32", b)];
    await gives(gpu, lazy(x).pow(y), "f32", [12], a.map((a, i) => a ** b[i]), TOLERANCE);
    const [i, j] = [await put(gpu, "i32", [3, -3, 2, -1, 1, 7, 0, -2]), await put(gpu, "i32", [4, 3, -1, -5, -7, 0, 0, 31])];
    await gives(gpu, lazy(i).pow(j), "i32", [8], [81, -27, 0, -1, 1, 1, 1, -2147483648]);
    for (const tensor of [x, y, i, j]) tensor.dispose();
  },

  "bits and truths": async ({ gpu, lapidary: { lazy } }) => {
    const [a, b] = [[0, 1, 0xf0f0, 0xffffffff], [1, 33, 0x0ff0, 31]];
    const [x, y] = [await put(gpu, "u32", a), await put(gpu, "u32", b)];
    const cases = {
      and: (a, b) => (a & b) >>> 0,
      or: (a, b) => (a | b) >>> 0,
      xor: (a, b) => (a ^ b) >>> 0,
      shiftLeft: (a, b) => (b > 31 ? 0 : (a << b) >>> 0),
      shiftRight: (a, b) => (b > 31 ? 0 : a >>> b),
    };
    await each(cases, (f, name) => gives(gpu, lazy(x)[name](y), "u32", [4], a.map((a, i) => f(a, b[i]))));
    await gives(gpu, lazy(x).not(), "u32", [4], a.map((a) => ~a >>> 0));
    const p = await gpu.tensor([true, true, false, false], [4], { dtype: "bool" });
    const q = await put(gpu, "bool", [7, 0, 1, 0]);
    await gives(gpu, q, "bool", [4], [1, 0, 1, 0]);
    await gives(gpu, lazy(p).and(q).or(lazy(p).xor(q).not()), "bool", [4], [1, 0, 0, 1]);
    await gives(gpu, lazy(p).select(x, lazy(y).add(1)), "u32", [4], [0, 1, 0x0ff1, 32]);
    for (const tensor of [x, y, p, q]) tensor.dispose();
  },

  "casts": async ({ gpu, lapidary: { lazy } }) => {
    const x = await put(gpu, "f32", [1.9, -1.9, 0, 3e9, -3e9, 0.5]);
    await gives(gpu, lazy(x).cast("i32"), "i32", [6], [1, -1, 0, 2147483647, -2147483648, 0]);
    await gives(gpu, lazy(x).cast("u32"), "u32", [6], [1, 0, 0, 3e9, 0, 0]);
    await gives(gpu, lazy(x).cast("bool"), "bool", [6], [1, 1, 0, 1, 1, 1]);
    const i = await put(gpu, "i32", [-1, 0, 5, -16777216]);
    await gives(gpu, lazy(i).cast("f32"), "f32", [4], [-1, 0, 5, -16777216]);
    await gives(gpu, lazy(i).cast("u32"), "u32", [4], [4294967295, 0, 5, 4278190080]);
    await gives(gpu, lazy(i).greater(0).cast("f32").mul(0.5), "f32", [4], [0, 0, 0.5, 0]);
    for (const tensor of [x, i]) tensor.dispose();
  },

  "halves": async ({ gpu, lapidary: { lazy } }) => {
    if (!CLASSES.f16) skip("this engine has no Float16Array");
    const a = [1, -2.5, 0.333251953125, 60000, 2 ** -24, -0, 7];
    const x = await put(gpu, "f16", a);
    const bits = new Uint16Array(CLASSES.f16.from(a).buffer);
    const y = await gpu.tensor(bits, [7], { dtype: "f16" });
    await gives(gpu, lazy(x).add(y).mul(0.25), "f16", [7], [...CLASSES.f16.from(a, (a) => a / 2)]);
    await gives(gpu, lazy(x).cast("f32").add(1), "f32", [7], a.map((a) => Math.fround(a + 1)));
    await gives(gpu, lazy(x).cast("f32").mul(3).cast("f16"), "f16", [7], [...CLASSES.f16.from(a, (a) => a * 3)]);
    for (const tensor of [x, y]) tensor.dispose();
  },

  "views": async ({ gpu, lapidary: { lazy, Expr } }) => {
    const a = (i, j, k) => i * 100 + j * 10 + k;
    const values = filled([3, 4, 5], a);
    for (const dtype of ["f32", "i32"]) {
      const tensor = await put(gpu, dtype, values, [3, 4, 5]);
      const x = lazy(tensor);
      const is = (expr, shape, value) => gives(gpu, expr, dtype, shape, filled(shape, value));
      await each(
        {
          "itself": [x, [3, 4, 5], a],
          "transposed": [x.transpose(), [5, 4, 3], (k, j, i) => a(i, j, k)],
          "its axes turned": [x.transpose([1, -1, 0]).add(1), [4, 5, 3], (j, k, i) => a(i, j, k) + 1],
          "a slice": [x.slice(-1, 1, -1, 2), [3, 4, 2], (i, j, k) => a(i, j, 1 + 2 * k)],
          "a slice backwards": [x.slice(1, -1, -9, -3).mul(2), [3, 2, 5], (i, j, k) => 2 * a(i, 3 - 3 * j, k)],
          "flipped": [x.flip(), [3, 4, 5], (i, j, k) => a(2 - i, 3 - j, 4 - k)],
          "flipped along one": [x.flip([1]), [3, 4, 5], (i, j, k) => a(i, 3 - j, k)],
          "in another shape": [x.reshape([-1, 6]), [10, 6], (i, j) => values[i * 6 + j]],
          "turned, then in another shape": [x.transpose().reshape([20, 3]), [20, 3], (r, i) => a(i, r % 4, Math.floor(r / 4))],
          "padded": [x.pad([[1, 0], [0, 2], [2, 1]], -7), [4, 6, 8], (i, j, k) => (i > 0 && j < 4 && k > 1 && k < 7 ? a(i - 1, j, k - 2) : -7)],
          "padded by its edges": [x.slice(0, 0, 1).reshape([4, 5]).pad([[1, 0], [0, 2]], "edge"), [5, 7], (j, k) => a(0, Math.max(j - 1, 0), Math.min(k, 4))],
          "padded by its mirror": [x.slice(1, 0, 1).reshape([3, 5]).pad([[0, 0], [2, 2]], "reflect"), [3, 9], (i, k) => a(i, 0, 4 - Math.abs(4 - Math.abs(k - 2)))],
          "side by side": [Expr.concat([x, x.mul(2), x.slice(1, 0, 1)], 1), [3, 9, 5], (i, j, k) => (j < 4 ? a(i, j, k) : j < 8 ? 2 * a(i, j - 4, k) : a(i, 0, k))],
          "repeated": [x.slice(1, 2, 3).broadcastTo([2, 3, 4, 5]), [2, 3, 4, 5], (_, i, __, k) => a(i, 2, k)],
          "an outer sum": [x.slice(0, 0, 1).reshape([4, 5, 1]).add(x.slice(0, 1, 2).reshape([20])), [4, 5, 20], (j, k, l) => a(0, j, k) + values[20 + l]],
        },
        ([expr, shape, value]) => is(expr, shape, value),
      );
      tensor.dispose();
    }
    await gives(gpu, Expr.index([3, 5]).mul(3).cast("f32"), "f32", [3, 5], filled([3, 5], (i, j) => (i * 5 + j) * 3));
    await gives(gpu, lazy(2.5), "f32", [], [2.5]);
    await gives(gpu, lazy(2).mul(3).broadcastTo([2, 2]), "f32", [2, 2], [6, 6, 6, 6]);
  },

  "a chain, and what is computed twice": async ({ gpu, lapidary: { lazy } }) => {
    const a = spread(35, 3);
    const [x, row] = [await gpu.tensor(Float32Array.from(a), [5, 7]), await gpu.tensor(Float32Array.from(a.slice(0, 7)), [7])];
    const y = lazy(x).mul(0.5).add(row).relu();
    const right = (i) => Math.max(Math.fround(Math.fround(a[i]) * 0.5) + Math.fround(a[i % 7]), 0);
    await gives(gpu, y.mul(y).clamp(0.25, 2), "f32", [5, 7], a.map((_, i) => Math.min(Math.max(right(i) ** 2, 0.25), 2)), 1e-6);
    let long = lazy(x);
    for (let i = 0; i < 240; i++) long = i % 2 ? long.sub(i - 1) : long.add(i);
    await gives(gpu, long.slice(0, 0, 1), "f32", [1, 7], a.slice(0, 7), 1e-4);
    let twice = lazy(x);
    for (let i = 0; i < 60; i++) twice = twice.greater(0).select(twice.mul(1), twice.add(0));
    await gives(gpu, twice.slice(0, 0, 1), "f32", [1, 7], a.slice(0, 7).map(Math.fround), 1e-6);
    const many = await Promise.all(Array.from({ length: 9 }, (_, i) => gpu.tensor(new Float32Array(7).fill(2 ** i), [7])));
    const sum = many.reduce((sum, tensor) => sum.add(tensor), lazy(0));
    await gives(gpu, sum, "f32", [7], new Array(7).fill(511));
    for (const tensor of [x, row, ...many]) tensor.dispose();
  },

  "the same again, of other tensors, shapes, types and numbers": async ({ gpu, lapidary: { lazy } }) => {
    const values = [[1, 2, 3, 4, 5, 6], [6, 4, 2, 0, -2, -4], [0, 10, 20, 30, 40, 50]];
    const floats = await Promise.all(values.map((values) => put(gpu, "f32", values, [2, 3])));
    const wholes = await Promise.all(values.map((values) => put(gpu, "i32", values, [2, 3])));
    const turned = floats.map((tensor) => tensor.reshape([3, 2]));
    const row = await put(gpu, "f32", [100, 200, 300], [3]);
    const of = (x, y, number) => lazy(x).mul(2).sub(y).add(number);
    const right = (x, y, number) => values[x].map((value, i) => value * 2 - values[y][i] + number);
    for (let round = 0; round < 3; round++) {
      for (const [x, y] of [[0, 1], [1, 0], [0, 0], [2, 1], [2, 2]]) {
        const number = [1, 2, 1][round];
        await gives(gpu, of(floats[x], floats[y], number), "f32", [2, 3], right(x, y, number));
        await gives(gpu, of(turned[x], turned[y], number), "f32", [3, 2], right(x, y, number));
        await gives(gpu, of(wholes[x], wholes[y], number), "i32", [2, 3], right(x, y, number));
        // Of one memory in two shapes, and not.
        const sum = values[x].map((value, i) => value + values[y][i]);
        await gives(gpu, lazy(floats[x]).add(lazy(turned[y]).reshape([2, 3])), "f32", [2, 3], sum);
      }
      await gives(gpu, of(floats[0], row, 0), "f32", [2, 3], values[0].map((value, i) => value * 2 - 100 * (1 + (i % 3))));
      // What is not a number, and a zero below none.
      await gives(gpu, lazy(floats[0]).mul(NaN), "f32", [2, 3], new Array(6).fill(NaN));
      await gives(gpu, lazy(floats[0]).mul(-0).reciprocal(), "f32", [2, 3], new Array(6).fill(-Infinity));
      await gives(gpu, lazy(floats[0]).mul(0).reciprocal(), "f32", [2, 3], new Array(6).fill(Infinity));
      for (const tensor of floats) await gives(gpu, lazy(tensor).reshape([6]), "f32", [6], values[floats.indexOf(tensor)]);
      // More than are remembered, and one that is told by many numbers.
      for (let i = 0; round < 2 && i < 70; i++) await gives(gpu, lazy(wholes[0]).add(i), "i32", [2, 3], values[0].map((value) => value + i));
      let long = lazy(wholes[round]);
      for (let i = 0; i < 100; i++) long = long.add(i);
      await gives(gpu, long, "i32", [2, 3], values[round].map((value) => value + 4950));
    }
    for (const tensor of [...floats, ...wholes, ...turned, row]) tensor.dispose();
    await rejects("disposed", () => gpu.evaluate(of(floats[0], floats[1], 1)), /tensor/);
  },

  "sizes past a block, a piece and a line of texels": async ({ gpu, lapidary: { lazy } }) => {
    const [m, n] = is_slow(gpu) ? [131, 257] : [301, 517];
    const values = Float32Array.from({ length: m * n }, (_, i) => i);
    const x = await gpu.tensor(values, [m, n]);
    const { data } = await value_of(gpu, lazy(x).transpose().add(1).slice(0, 1, n, 2));
    const rows = Math.floor(n / 2);
    same(data, Float32Array.from({ length: rows * m }, (_, i) => (i % m) * n + 1 + 2 * Math.floor(i / m) + 1));
    same((await value_of(gpu, lazy(x).add(lazy(x).flip()))).data, new Float32Array(m * n).fill(m * n - 1));
    x.dispose();
  },

  "products and expressions take one another's results": async ({ gpu, lapidary: { lazy } }) => {
    const [a, b] = [spread(15, 2), spread(20, 2)].map((values) => Float32Array.from(values, Math.round));
    const [x, y] = [await gpu.tensor(a, [3, 5]), await gpu.tensor(b, [5, 4])];
    const product = await gpu.matmul(x, y, { keep: true });
    const turned = await gpu.evaluate(lazy(product).add(1).transpose());
    const again = await gpu.matmul(turned, x, { keep: true });
    const p = filled([3, 4], (i, j) => [0, 1, 2, 3, 4].reduce((sum, k) => sum + a[i * 5 + k] * b[k * 4 + j], 1));
    const expected = filled([4, 5], (j, k) => [0, 1, 2].reduce((sum, i) => sum + p[i * 4 + j] * a[i * 5 + k], 0));
    same(await again.toArray(), Float32Array.from(expected));
    const whole = lazy(x).matmul(y).add(lazy(y).slice(0, 0, 1).reshape([4])).relu().transpose().matmul(lazy(x).mul(0.5));
    const q = filled([3, 4], (i, j) => Math.max(p[i * 4 + j] - 1 + b[j], 0));
    await gives(gpu, whole, "f32", [4, 5], filled([4, 5], (j, k) => [0, 1, 2].reduce((sum, i) => sum + q[i * 4 + j] * a[i * 5 + k] * 0.5, 0)));
    for (const tensor of [x, y, product, turned, again]) tensor.dispose();
  },

  "a product with a vector that stays has the shape that it says": async ({ gpu, lapidary: { lazy } }) => {
    const matrix = await put(gpu, "f32", [1, 2, 3, 4], [2, 2]);
    const vector = await put(gpu, "f32", [1, 2], [2]);
    const batch = await put(gpu, "f32", [1, 2, 3, 4, 5, 6, 7, 8], [2, 2, 2]);
    const products = [[matrix, vector, [2], [5, 11]], [vector, matrix, [2], [7, 10]], [vector, vector, [], [5]], [vector, batch, [2, 2], [7, 10, 19, 22]]];
    for (const [a, b, shape, values] of products) {
      for (const report of [false, true]) {
        const given = await gpu.matmul(a, b, { keep: true, report });
        const product = report ? given.data : given;
        await gives(gpu, lazy(product).add(lazy(product)), "f32", shape, values.map((value) => 2 * value));
        product.dispose();
      }
    }
    for (const tensor of [matrix, vector, batch]) tensor.dispose();
  },

  "nothing in, nothing out": async ({ gpu, lapidary: { lazy, Expr } }) => {
    const x = await gpu.tensor(new Float32Array(0), [0, 3]);
    await gives(gpu, lazy(x).add(1), "f32", [0, 3], []);
    await gives(gpu, lazy(x).equal(lazy(x)).transpose(), "bool", [3, 0], []);
    await gives(gpu, lazy(x).pad([[1, 1], [0, 0]], 4), "f32", [2, 3], [4, 4, 4, 4, 4, 4]);
    await gives(gpu, Expr.concat([x, lazy(x).add(1).pad([[0, 1], [0, 0]], 2)], 0), "f32", [1, 3], [2, 2, 2]);
    x.dispose();
  },

  "products of nothing": async ({ gpu, backend, lapidary: { lazy } }) => {
    const [a, b] = [await gpu.tensor(new Float32Array(0), [2, 0]), await gpu.tensor(new Float32Array(0), [0, 3])];
    const x = await put(gpu, "f32", [1, -2, 3], [1, 3]);
    const before = await gpu.evaluate(lazy(x).mul(2));
    await gives(gpu, lazy(a).matmul(b), "f32", [2, 3], new Array(6).fill(0));
    await gives(gpu, lazy(a).matmul(b).add(lazy(x).reshape([3])).relu(), "f32", [2, 3], [1, 0, 3, 1, 0, 3]);
    await gives(gpu, lazy(a).reshape([4, 2, 0]).matmul(b).add(1), "f32", [4, 2, 3], new Array(24).fill(1));
    await gives(gpu, lazy(a).reshape([0]).matmul(lazy(b).reshape([0])), "f32", [], [0]);
    if (backend !== "webgl2") {
      const bytes = await gpu.tensor(new Int8Array(0), [2, 0]);
      await gives(gpu, lazy(bytes).matmul(lazy(bytes).reshape([0, 2])), "i32", [2, 2], [0, 0, 0, 0]);
      bytes.dispose();
    }
    await gives(gpu, lazy(b).matmul(lazy(x).transpose()), "f32", [0, 1], []);
    await gives(gpu, lazy(x).matmul(lazy(b).reshape([3, 0])), "f32", [1, 0], []);
    await gives(gpu, lazy(b).reshape([0, 4, 3]).matmul(lazy(x).transpose()).relu().sum(), "f32", [], [0]);
    same(await before.toArray(), Float32Array.of(2, -4, 6));
    for (const tensor of [a, b, x, before]) tensor.dispose();
  },

  "numbers of a type": async ({ gpu, lapidary: { lazy } }) => {
    const i = await put(gpu, "i32", [1, 2]);
    await gives(gpu, lazy(1.7).cast("i32").cast("f32"), "f32", [], [1]);
    await gives(gpu, lazy(2).cast("bool").cast("f32"), "f32", [], [1]);
    await gives(gpu, lazy(-1).cast("u32").cast("f32"), "f32", [], [0]);
    await gives(gpu, lazy(-1).cast("i32").cast("u32"), "u32", [], [4294967295]);
    await gives(gpu, lazy(65520).cast("f16").cast("f32"), "f32", [], [Infinity]);
    await gives(gpu, lazy(2049).cast("f16").cast("f32"), "f32", [], [2048]);
    await gives(gpu, lazy(1.5).cast("i32").add(i), "i32", [2], [2, 3]);
    for (const value of [0.5, NaN]) await rejects("invalid_option", () => gpu.evaluate(lazy(i).pad([[1, 0]], value)), /i32/);
    await rejects("invalid_option", () => gpu.evaluate(lazy(i).cast("u32").pad([[1, 0]], -1)), /-1/, /u32/);
    await rejects("invalid_option", () => gpu.evaluate(lazy(i).cast("bool").pad([[1, 0]], 7)), /\b7\b/, /bool/);
    const [a, b] = [await put(gpu, "f32", [5, -5, 7]), await put(gpu, "f32", [Infinity, Infinity, 4])];
    await gives(gpu, lazy(a).rem(b), "f32", [3], [5, -5, 3]);
    await gives(gpu, lazy(a).modulo(b), "f32", [3], [5, Infinity, 3]);
    for (const tensor of [i, a, b]) tensor.dispose();
  },

  "random numbers of a seed": async ({ gpu, lapidary: { Expr } }) => {
    const bits = (await value_of(gpu, Expr.randomBits([1000], 7))).data;
    assert(new Set(bits).size > 990 && `${bits.slice(0, 3)}` === `${RANDOM}`, `${bits.slice(0, 3)}`);
    await gives(gpu, Expr.randomUniform([10, 100], 7), "f32", [10, 100], [...bits].map((bits) => (bits >>> 8) / 2 ** 24));
    const normal = (await value_of(gpu, Expr.randomNormal([1000], 2 ** 40 + 1))).data;
    const mean = normal.reduce((sum, value) => sum + value, 0) / 1000;
    const variance = normal.reduce((sum, value) => sum + (value - mean) ** 2, 0) / 1000;
    assert(Math.abs(mean) < 0.1 && Math.abs(variance - 1) < 0.15, `mean ${mean}, variance ${variance}`);
    throws("invalid_dimension", () => Expr.randomBits([2], -1), /\bseed\b/);
  },

  "what is not a number": async ({ gpu, lapidary: { lazy } }) => {
    const x = await put(gpu, "f32", [NaN, Infinity, -Infinity, -0, 1]);
    await gives(gpu, lazy(x).isNan(), "bool", [5], [1, 0, 0, 0, 0]);
    await gives(gpu, lazy(x).isInf(), "bool", [5], [0, 1, 1, 0, 0]);
    await gives(gpu, lazy(x).relu(), "f32", [5], [NaN, Infinity, 0, 0, 1]);
    await gives(gpu, lazy(x).max(0.5), "f32", [5], [NaN, Infinity, 0.5, 0.5, 1]);
    await gives(gpu, lazy(x).clamp(-1, 1), "f32", [5], [NaN, 1, -1, 0, 1]);
    await gives(gpu, lazy(x).cast("i32"), "i32", [5], [0, 2147483647, -2147483648, 0, 1]);
    x.dispose();
  },

  "wrong operands are thrown at once": async ({ gpu, lapidary: { Expr, lazy } }) => {
    const x = lazy(1);
    const wrong = { "a string": "1", "null": null, "undefined": undefined, "an array": new Float32Array(1), "an object": {}, "a BigInt": 1n };
    await each(wrong, (value) => throws("invalid_type", () => lazy(value), /value must be an expression, a Tensor or a number/));
    await each(wrong, (value) => throws("invalid_type", () => x.add(value), /\bb\b/));
    await each(wrong, (value) => throws("invalid_type", () => x.clamp(0, value), /\bmost\b/));
    await each(wrong, (value) => rejects("invalid_type", () => gpu.evaluate(value), /\bexpr\b/));
    throws("invalid_type", () => new Expr(), /lazy/);
    throws("invalid_type", () => Expr.concat(x), /\bparts\b/);
    throws("invalid_type", () => x.reshape(4), /\bshape\b/);
    throws("invalid_type", () => x.pad([1]), /\bwidths\b/);
    throws("invalid_option", () => x.pad([[1, 1]], "mirror"), /mirror/, /reflect/);
    throws("invalid_dimension", () => x.reshape([1.5]), /\bshape is the number 1.5/);
    throws("invalid_dimension", () => x.slice(0, 0, "1"), /\bend is the string "1"/);
    throws("invalid_dimension", () => x.transpose([0, NaN]), /\baxes\b/);
    throws("invalid_dimension", () => Expr.index([-1]), /\bshape is the number -1/);
    throws("invalid_option", () => x.cast("f64"), /\bdtype is the string "f64"/, /f32, f16, i32, u32, bool/);
    throws("invalid_option", () => x.cast(), /\bdtype\b/);
  },

  "what is wrong with an expression is told with the numbers": async ({ gpu, lapidary, backend }) => {
    const { Expr, lazy } = lapidary;
    const [x, i] = [await gpu.tensor(new Float32Array(6), [2, 3]), await gpu.tensor(new Int32Array(6), [2, 3])];
    const a = lazy(x);
    await each(
      {
        "shapes that do not go together": ["invalid_dimension", a.add(a.transpose()), /\[3, 2\]/, /\[2, 3\]/],
        "inner sizes that differ": ["invalid_dimension", a.matmul(x), /\b3\b/, /\b2\b/],
        "a product of whole numbers": ["invalid_type", lazy(i).matmul(i), /i32/],
        "two types": ["invalid_type", a.add(i), /f32/, /i32/],
        "a type that a function does not take": ["invalid_type", lazy(i).sqrt(), /sqrt/, /i32/],
        "a fraction beside whole numbers": ["invalid_option", lazy(i).mul(0.5), /0\.5/, /i32/],
        "an axis that there is none of": ["invalid_dimension", a.slice(2, 0, 1), /\b2\b/, /from -2 to 1/],
        "a step of 0": ["invalid_dimension", a.slice(0, 0, 1, 0), /\b0\b/],
        "an axis twice": ["invalid_dimension", a.transpose([0, 0]), /each axis once/],
        "too few axes": ["invalid_dimension", a.transpose([0]), /\b1\b/, /\b2\b/],
        "another number of elements": ["invalid_dimension", a.reshape([4, -1]), /\[4, -1\]/, /\b6\b/],
        "no parts": ["invalid_dimension", Expr.concat([]), /\b0\b/],
        "parts that do not fit": ["invalid_dimension", Expr.concat([a, a.transpose()]), /\[3, 2\]/],
        "a condition that is none": ["invalid_type", a.select(1, 0), /f32/],
        "a mirror too narrow": ["invalid_dimension", a.pad([[2, 0], [0, 0]], "reflect"), /\b2\b/, /at most 1/],
        "a shape past all bounds": ["limit_exceeded", Expr.index([65536, 65536]), /4294967296/],
        "a size past all bounds": ["invalid_dimension", Expr.index([2 ** 40]), /1099511627776/],
      },
      ([code, expr, ...patterns]) => rejects(code, () => gpu.evaluate(expr), ...patterns),
    );
    const other = await lapidary.Gpu.open({ backend });
    await rejects("invalid_type", () => other.evaluate(a.add(1)), /same device/);
    other.free();
    await rejects("invalid_type", () => gpu.matmul(i, i, { transpose_b: true }), /i32/);
    x.dispose();
    await rejects("disposed", () => gpu.evaluate(a.add(1)), /tensor/);
    i.dispose();
  },

  "deep ones": async ({ gpu, backend, lapidary: { lazy } }) => {
    const x = await gpu.tensor(Float32Array.of(1, 2, 3, 4), [2, 2]);
    const after = async (times, next, shape, expected) => {
      let expr = lazy(x);
      for (let i = 0; i < times; i++) expr = next(expr);
      const tensor = await gpu.evaluate(expr);
      assert(`${tensor.shape}` === `${shape}`, `${tensor.shape} after ${next}`);
      same(await tensor.toArray(), Float32Array.from(expected), `${next}`);
      tensor.dispose();
    };
    await after(is_slow(gpu) ? 300 : 20_000, (expr) => expr.add(0), [2, 2], [1, 2, 3, 4]);
    await after(20_001, (expr) => expr.transpose(), [2, 2], [1, 3, 2, 4]);
    // GPUs would compile a kernel for each size.
    if (!backend.startsWith("web")) {
      const edges = Array.from({ length: 602 * 602 }, (_, i) => (Math.floor(i / 602) < 301 ? 1 : 3) + (i % 602 < 301 ? 0 : 1));
      await after(300, (expr) => expr.pad([[1, 1], [1, 1]], "edge"), [602, 602], edges);
      await after(500, (expr) => expr.pad([[1, 1], [1, 1]], "reflect").slice(0, 1, 3).slice(1, 1, 3), [2, 2], [1, 2, 3, 4]);
      await after(500, (expr) => expr.matmul(expr.sub(expr)).add(expr), [2, 2], [1, 2, 3, 4]);
    }
    x.dispose();
  },

  "many parts in one": async ({ gpu, lapidary: { Expr, lazy } }) => {
    const count = is_slow(gpu) ? 260 : 1000;
    const x = await gpu.tensor(Float32Array.of(1, 2), [1, 2]);
    const parts = Array.from({ length: count }, () => lazy(x));
    const whole = await gpu.evaluate(Expr.concat(parts).sum(0));
    same(await whole.toArray(), Float32Array.of(count, 2 * count));
    for (const tensor of [x, whole]) tensor.dispose();
  },

  "data of other types": async ({ gpu }) => {
    await rejects("invalid_type", () => gpu.tensor(new Uint8ClampedArray(4), [4]), /\bdata\b/, /dtype/);
    await rejects("invalid_type", () => gpu.tensor(new Int32Array(4), [4], { dtype: "f32" }), /Float32Array for f32/);
    await rejects("invalid_type", () => gpu.tensor([1, 0], [2], { dtype: "bool" }), /true and false/);
    await rejects("invalid_option", () => gpu.tensor(new Float32Array(4), [4], { dtype: "f64" }), /f64/);
    await rejects("invalid_option", () => gpu.tensor(new Float32Array(4), [4], { type: "f32" }), /dtype/);
    await rejects("length_mismatch", () => gpu.tensor(new Int32Array(4), [5]), /\b4\b/, /\b5\b/);
    await rejects("length_mismatch", () => gpu.tensor([true], [2], { dtype: "bool" }), /\b1\b/, /\b2\b/);
  },

  "expressions give their memory back": async ({ gpu, lapidary: { lazy } }) => {
    const before = gpu.memory().used_bytes;
    const x = await gpu.tensor(Float32Array.from(spread(999, 1)), [999]);
    for (let i = 0; i < 20; i++) {
      const pending = gpu.evaluate(lazy(x).exp().reshape([3, 333]).transpose().add(i));
      await settles(gpu.evaluate(lazy(x).add(lazy(x).reshape([1, 1, 333, 3]))));
      (await pending).dispose();
    }
    x.dispose();
    const { used_bytes } = gpu.memory();
    assert(used_bytes === before, `${used_bytes} bytes are in use, before ${before}`);
  },
};
