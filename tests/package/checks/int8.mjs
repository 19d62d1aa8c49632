/** Products of 8-bit integers. */
import { assert, each, is_slow, rejects } from "./tools.mjs";

/** Bytes of all sizes, the extremes among them. */
function bytes(Type, length, seed) {
  let state = seed;
  const out = new Type(length);
  for (let i = 0; i < length; i++) out[i] = [-128, 127, 255][i % 7] ?? (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) >>> 24;
  return out;
}

/** The product as it is defined. */
function product(a, b, { m, k, n, transpose_a, transpose_b, batch = 1, zero_points: [x, y] = [0, 0] }) {
  const out = new Int32Array(batch * m * n);
  for (let at = 0; at < out.length; at++) {
    const [item, i, j] = [Math.floor(at / (m * n)), Math.floor(at / n) % m, at % n];
    for (let p = 0; p < k; p++)
      out[at] += (a[item * m * k + (transpose_a ? p * m + i : i * k + p)] - x) * (b[item * k * n + (transpose_b ? j * k + p : p * n + j)] - y);
  }
  return out;
}

function same(actual, expected, what) {
  assert(actual instanceof Int32Array, `${what}: ${actual} is not an Int32Array`);
  assert(actual.length === expected.length, `${what} has ${actual.length} elements, not ${expected.length}`);
  for (let i = 0; i < actual.length; i++) assert(actual[i] === expected[i], `${what}[${i}] is ${actual[i]}, not ${expected[i]}`);
}

/** All of them; where each takes a kernel that is long in compiling, every other one, in turns. */
const in_turn = (gpu, all, turn) => (is_slow(gpu) ? all.filter((_, i) => (i + turn) % 2 === 0) : all);

const PAIRS = {
  "i8 i8": [Int8Array, Int8Array],
  "u8 i8": [Uint8Array, Int8Array],
  "i8 u8": [Int8Array, Uint8Array],
  "u8 u8": [Uint8Array, Uint8Array],
};
const LAYOUTS = [
  [false, false],
  [false, true],
  [true, true],
  [true, false],
];

export default {
  "every pair of types": ({ gpu }) =>
    each(PAIRS, async ([A, B], name) => {
      const [x, y] = [A === Int8Array ? -128 : 255, B === Int8Array ? 127 : 3];
      const shapes = [
        [5, 33, 7],
        [1, 6, 3],
        [3, 0, 4],
        [8, 300, 12],
      ];
      for (const [m, k, n] of in_turn(gpu, shapes, Object.keys(PAIRS).indexOf(name))) {
        const [a, b] = [bytes(A, m * k, 1), bytes(B, k * n, 2)];
        for (const zero_points of [[0, 0], [x, y]]) {
          const options = { m, k, n, zero_points };
          same(await gpu.matmul(a, b, options), product(a, b, options), `${m} × ${k} × ${n} from ${zero_points}`);
        }
      }
    }),

  "layouts and batches": async ({ gpu }) => {
    const [m, k, n, batch] = [6, 13, 5, 3];
    const [a, b] = [bytes(Int8Array, batch * m * k, 1), bytes(Uint8Array, batch * k * n, 2)];
    for (const [transpose_a, transpose_b] of LAYOUTS) {
      const options = { m, k, n, batch, transpose_a, transpose_b };
      same(await gpu.matmul(a, b, options), product(a, b, options), `${transpose_a} ${transpose_b}`);
    }
  },

  "sums past what f32 holds exactly": async ({ gpu }) => {
    for (const k of [255, 256, 257, 1023, 1024, 1500]) {
      for (const [A, x, B, y] of [
        [Uint8Array, 255, Uint8Array, 255],
        [Uint8Array, 255, Int8Array, -127],
        [Int8Array, -128, Int8Array, -128],
        [Int8Array, -1, Uint8Array, 1],
      ]) {
        // One row or column is less, so that sums are neither all alike nor multiples of a power of two.
        const [a, b] = [new A(6 * k).fill(x).fill(x - 1, k, 2 * k), new B(k * 5).fill(y)];
        same(await gpu.matmul(a, b, { m: 6, k, n: 5 }), product(a, b, { m: 6, k, n: 5 }), `${x} by ${y}, ${k} times`);
      }
    }
  },

  "rows, columns and many of both": async ({ gpu }) => {
    const few = [[3, 260, 257], [257, 260, 6]];
    const sizes = [[1, 40, 9], [9, 40, 1], [1, 40, 1], [2, 3, 70], [70, 3, 2], ...few, is_slow(gpu) ? [40, 5, 44] : [513, 5, 515]];
    for (const [turn, [m, k, n]] of sizes.entries()) {
      const [a, b] = [bytes(Int8Array, m * k, 3), bytes(Uint8Array, k * n, 4)];
      for (const [transpose_a, transpose_b] of in_turn(gpu, LAYOUTS, turn)) {
        const options = { m, k, n, transpose_a, transpose_b, zero_points: [-3, 7] };
        same(await gpu.matmul(a, b, options), product(a, b, options), `${m} × ${k} × ${n} ${transpose_a} ${transpose_b}`);
      }
    }
  },

  "windows of larger matrices": async ({ gpu }) => {
    const [m, k, n, lda, ldb] = [5, 9, 6, 11, 13];
    const [a, b] = [bytes(Uint8Array, m * lda, 5), bytes(Int8Array, k * ldb, 6)];
    const packed = (from, rows, columns, stride) => from.filter((_, i) => Math.floor(i / stride) < rows && i % stride < columns);
    const expected = product(packed(a, m, k, lda), packed(b, k, n, ldb), { m, k, n });
    same(await gpu.matmul(a, b, { m, k, n, lda, ldb }), expected, "strides");
  },

  "sums as operands of other operations": async ({ gpu, lapidary: { lazy } }) => {
    const [m, k, n] = [7, 20, 6];
    const [a, b] = [bytes(Int8Array, m * k, 7), bytes(Int8Array, k * n, 8)];
    const [x, y] = [await gpu.tensor(a, [m, k]), await gpu.tensor(b, [k, n])];
    const sums = await gpu.matmul(x, y, { keep: true });
    const next = await gpu.evaluate(lazy(sums).negative().transpose());
    const expected = product(a, b, { m, k, n });
    same(await next.toArray(), Int32Array.from({ length: m * n }, (_, i) => -expected[(i % m) * n + Math.floor(i / m)]), "negative, transposed");
    same(await sums.toArray(), expected, "the sums");
    for (const tensor of [x, y, sums, next]) tensor.dispose();
  },

  "tensors know their types": async ({ gpu }) => {
    const [a, b] = [bytes(Uint8Array, 5 * 7, 1), bytes(Int8Array, 7 * 3, 2)];
    const [x, y] = [await gpu.tensor(a, [5, 7]), await gpu.tensor(b, [7, 3])];
    assert(x.dtype === "u8" && y.dtype === "i8", `${x.dtype} ${y.dtype}`);
    const [back, signed] = [await x.toArray(), await y.toArray()];
    assert(back instanceof Uint8Array && `${back}` === `${a}` && signed instanceof Int8Array && `${signed}` === `${b}`, "the values come back");
    const expected = product(a, b, { m: 5, k: 7, n: 3 });
    const kept = await gpu.matmul(x, y, { keep: true });
    assert(kept.dtype === "i32" && `${kept.shape}` === "5,3", `${kept.dtype} of ${kept.shape}`);
    same(await kept.toArray(), expected, "kept");
    const { data, kernel } = await gpu.matmul(x, y, { report: true });
    same(data, expected, kernel);
    for (const tensor of [x, y, kept]) tensor.dispose();
  },

  "in expressions": async ({ gpu, lapidary }) => {
    const [x, y] = [await gpu.tensor(new Int8Array([1, -2, 3, 4, -5, 6]), [2, 3]), await gpu.tensor(new Uint8Array([1, 2, 3, 4, 5, 255]), [3, 2])];
    const sums = await gpu.evaluate(lapidary.lazy(x).matmul(y).add(1));
    same(await sums.toArray(), new Int32Array([11, 760, 20, 1519]), "sums");
    await rejects("invalid_type", () => gpu.evaluate(lapidary.lazy(x).add(1)), /products alone take integers of 8 bits/);
    await rejects("invalid_type", () => gpu.evaluate(lapidary.lazy(1).cast("u8")), /products alone take integers of 8 bits/);
    for (const tensor of [x, y, sums]) tensor.dispose();
  },

  "what they do not have": async ({ gpu }) => {
    const [a, b, sizes] = [new Int8Array(6), new Uint8Array(6), { m: 2, k: 3, n: 2 }];
    const ends = { alpha: 2, bias: new Float32Array(2), activation: "relu", precision: "f16x3" };
    await each(ends, (value, name) => rejects("invalid_option", () => gpu.matmul(a, b, { ...sizes, [name]: value }), new RegExp(name)));
    await rejects("invalid_type", () => gpu.matmul(a, new Float32Array(6), sizes), /\bb\b/, /i8 or u8/);
    await rejects("invalid_type", () => gpu.matmul(a, b, { ...sizes, result: "f32" }), /i32/);
    await rejects("length_mismatch", () => gpu.matmul(a, b, { ...sizes, k: 4 }), /\b8\b/);
    const wrong = [[128, 0], [0, -1], [1], 5, "0,0", [0.5, 0], [NaN, 0], null];
    await each({ ...wrong }, (zero_points) => rejects("invalid_option", () => gpu.matmul(a, b, { ...sizes, zero_points }), /zero_points/));
    await rejects("invalid_option", () => gpu.matmul(new Float32Array(6), new Float32Array(6), { ...sizes, zero_points: [1, 0] }), /i8 or u8/);
  },
};
