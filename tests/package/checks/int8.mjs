/** Products of 8-bit integers. Where a backend has not got them, what it says instead. */
import { assert, each, rejects, skip } from "./tools.mjs";

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

const of_products = {
  "every pair of types": ({ gpu }) =>
    each({ "i8 i8": [Int8Array, Int8Array], "u8 i8": [Uint8Array, Int8Array], "i8 u8": [Int8Array, Uint8Array], "u8 u8": [Uint8Array, Uint8Array] }, async ([A, B]) => {
      const [x, y] = [A === Int8Array ? -128 : 255, B === Int8Array ? 127 : 3];
      for (const [m, k, n] of [
        [5, 33, 7],
        [1, 6, 3],
        [3, 0, 4],
        [8, 300, 12],
      ]) {
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
    for (const transpose_a of [false, true])
      for (const transpose_b of [false, true]) {
        const options = { m, k, n, batch, transpose_a, transpose_b };
        same(await gpu.matmul(a, b, options), product(a, b, options), `${transpose_a} ${transpose_b}`);
      }
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

const without = {
  "are refused with a reason": async ({ gpu }) => {
    const a = new Int8Array(4);
    await rejects("invalid_type", () => gpu.matmul(a, a, { m: 2, k: 2, n: 2 }), /no kernel for integers of 8 bits/, /WebGPU/);
    await rejects("invalid_type", () => gpu.tensor(a, [2, 2]), /no kernel for integers of 8 bits/);
  },
};

/** All but WebGL2 have them. */
const only = (on_webgl2, checks) => {
  const here = (check) => (context) => {
    if ((context.backend === "webgl2") !== on_webgl2) skip(on_webgl2 ? "this backend has them" : "WebGL2 has no kernel for them");
    return check(context);
  };
  return Object.fromEntries(Object.entries(checks).map(([name, check]) => [name, here(check)]));
};

export default { ...only(false, of_products), ...only(true, without) };
