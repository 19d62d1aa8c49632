/** Operands and dimensions that are wrong: each a rejection with its code and the numbers, and nothing of it stays. */
import { each, integers, problem, rejects } from "./tools.mjs";

function detached(length) {
  const array = new Float32Array(length);
  structuredClone(array.buffer, { transfer: [array.buffer] });
  return array;
}

export const NOT_ARRAYS = {
  "a number": () => 5,
  "a string": () => "1,2,3,4,5,6",
  "an object": () => ({}),
  "an array-like": () => ({ length: 6, 0: 1 }),
  "nested arrays": () => [
    [1, 2, 3],
    [4, 5, 6],
  ],
  "an array": () => [1, 2, 3, 4, 5, 6],
  "a Float64Array": () => new Float64Array(6),
  "an Int32Array": () => new Int32Array(6),
  "a Uint8ClampedArray": () => new Uint8ClampedArray(24),
  "a BigInt64Array": () => new BigInt64Array(6),
  "an ArrayBuffer": () => new ArrayBuffer(24),
  "a DataView": () => new DataView(new ArrayBuffer(24)),
  "null": () => null,
  "a boolean": () => true,
  "a BigInt": () => 6n,
  "a symbol": () => Symbol("x"),
  "a function": () => () => new Float32Array(6),
  "a promise": () => Promise.resolve(new Float32Array(6)),
  "a detached array": () => detached(6),
  "a prototype": () => Float32Array.prototype,
};

export const NOT_DIMENSIONS = {
  "-1": -1,
  "2.7": 2.7,
  "NaN": NaN,
  "Infinity": Infinity,
  "-Infinity": -Infinity,
  "2**32": 2 ** 32,
  "2**32 + 4": 2 ** 32 + 4,
  "2**53": 2 ** 53,
  "a string": "3",
  "a BigInt": 3n,
  "null": null,
  "missing": undefined,
  "a boolean": true,
  "an array": [3],
  "an object": {},
  "a symbol": Symbol("3"),
};

const { a, b } = problem(2, 3, 4);
const c = integers(8);
const sizes = { m: 2, k: 3, n: 4 };
/** The number as a message tells it; anything for what is none. */
export const number_of = (value) => (typeof value === "number" ? new RegExp(String(value).replaceAll(/[+.]/g, "\\$&")) : /./);

export default {
  "a is not a Float32Array": ({ gpu }) =>
    each({ ...NOT_ARRAYS, "undefined": () => undefined }, (make) => rejects("invalid_type", () => gpu.matmul(make(), b, sizes), /\ba\b/)),

  "b is not a Float32Array": ({ gpu }) =>
    each({ ...NOT_ARRAYS, "undefined": () => undefined }, (make) => rejects("invalid_type", () => gpu.matmul(a, make(), sizes), /\bb\b/)),

  "c is not a Float32Array": ({ gpu }) =>
    each(NOT_ARRAYS, (make) => rejects("invalid_type", () => gpu.matmul(a, b, { ...sizes, beta: 1, c: make() }), /\bc\b/)),

  "a detached array is not an empty one": ({ gpu }) =>
    rejects("invalid_type", () => gpu.matmul(detached(0), detached(6), { m: 2, k: 0, n: 2 }), /detached/),

  "nor is one whose memory has shrunk": async ({ gpu }) => {
    const memory = new ArrayBuffer(8, { maxByteLength: 8 });
    const array = new Float32Array(memory, 0, 2);
    memory.resize?.(4);
    if (array.length === 0) await rejects("invalid_type", () => gpu.tensor(array, [0]), /detached|shrunk/);
  },

  "options whose reading fails": async ({ gpu }) => {
    const options = (name) => Object.defineProperty({ ...sizes }, name, { enumerable: true, get: () => { throw new Error("not read"); } });
    await each({ "signal": "signal", "alpha": "alpha" }, (name) => rejects("invalid_option", () => gpu.matmul(a, b, options(name)), /not read/));
  },

  "an error that is not the package's own has none of its codes": async ({ gpu }) => {
    const errors = { "of Node's": Object.assign(new Error("mine"), { code: "ENOENT" }), "of the page's": new DOMException("mine", "InvalidStateError") };
    await each(errors, (error) => {
      const options = Object.create({ get m() { throw error; } });
      return rejects("invalid_option", () => gpu.matmul(a, b, options), /mine/);
    });
  },

  "m, k or n is not a whole number": ({ gpu }) =>
    each({ m: 0, k: 0, n: 0 }, (_, name) =>
      each(NOT_DIMENSIONS, (value) =>
        rejects("invalid_dimension", () => gpu.matmul(a, b, { ...sizes, [name]: value }), new RegExp(`\\b${name}\\b`), number_of(value)),
      ),
    ),

  "a stride is not a whole number, or too small": async ({ gpu }) => {
    const { "missing": _, ...values } = NOT_DIMENSIONS;
    await each({ lda: 2, ldb: 3, ldc: 3 }, (small, name) =>
      each({ ...values, small }, (value) =>
        rejects(
          ["invalid_dimension", "limit_exceeded", "length_mismatch"],
          () => gpu.matmul(a, b, { ...sizes, beta: 1, c, [name]: value }),
          new RegExp(`\\b${name}\\b|${String(value)}`),
        ),
      ),
    );
    await each({ lda: 2, ldb: 3, ldc: 3, "lda of aᵀ": 1, "ldb of bᵀ": 2 }, (small, name) => {
      const transposes = name.length > 3 ? { transpose_a: true, transpose_b: true } : {};
      return rejects(
        "invalid_dimension",
        () => gpu.matmul(a, b, { ...sizes, ...transposes, beta: 1, c, [name.slice(0, 3)]: small }),
        new RegExp(`${small}`),
        new RegExp(`${small + 1}`),
      );
    });
  },

  "a stride that the array is too short for": ({ gpu }) =>
    each({ lda: 6, ldb: 12, ldc: 8 }, (length, name) =>
      rejects("length_mismatch", () => gpu.matmul(a, b, { ...sizes, beta: 1, c, [name]: 100 }), new RegExp(`\\b${length}\\b`), /\b100\b/),
    ),

  "an offset that is no whole number, or past the end": async ({ gpu }) => {
    const { "missing": _, ...values } = NOT_DIMENSIONS;
    const tensor = await gpu.tensor(a, [2, 3]);
    await each({ offset_a: 6, offset_b: 12, offset_c: 8 }, async (length, name) => {
      for (const value of Object.values(values)) {
        const call = () => gpu.matmul(a, b, { ...sizes, beta: 1, c, [name]: value });
        const pattern = new RegExp(`\\b${name}\\b|${String(value)}|4294967296`);
        await rejects(["invalid_dimension", "limit_exceeded", "length_mismatch"], call, pattern);
      }
      const call = () => gpu.matmul(a, b, { ...sizes, beta: 1, c, [name]: 1 });
      await rejects("length_mismatch", call, new RegExp(`\\b${length}\\b`), new RegExp(`\\b${length + 1}\\b`));
    });
    await rejects("invalid_dimension", () => gpu.matmul(tensor, b, { n: 4, offset_a: 0 }), /\bm\b/);
    await rejects("length_mismatch", () => gpu.matmul(tensor, b, { ...sizes, offset_a: 1 }), /\b6\b/, /\b7\b/);
    tensor.dispose();
  },

  "lengths that are off": ({ gpu }) =>
    each(
      {
        "a short": [integers(5), b, sizes, /\b5\b/, /\b6\b/],
        "a long": [integers(7), b, sizes, /\b7\b/, /\b6\b/],
        "a empty": [integers(0), b, sizes, /\b0\b/, /\b6\b/],
        "b short": [a, integers(11), sizes, /\b11\b/, /\b12\b/],
        "b long": [a, integers(13), sizes, /\b13\b/, /\b12\b/],
        "c short": [a, b, { ...sizes, beta: 1, c: integers(7) }, /\b7\b/, /\b8\b/],
        "c long": [a, b, { ...sizes, beta: 1, c: integers(9) }, /\b9\b/, /\b8\b/],
        "c short without beta": [a, b, { ...sizes, c: integers(7) }, /\b7\b/, /\b8\b/],
        "swapped arrays": [b, a, sizes, /\b12\b/, /\b6\b/],
        "m and k swapped": [a, b, { m: 3, k: 2, n: 4 }, /\b12\b/, /\b8\b/],
        "k and n swapped": [a, b, { m: 2, k: 4, n: 3 }, /\b6\b/, /\b8\b/],
        "transposed without its sizes": [a, b, { m: 3, k: 2, n: 4, transpose_a: true }, /\b12\b/, /\b8\b/],
      },
      ([x, y, options, ...numbers]) => rejects("length_mismatch", () => gpu.matmul(x, y, options), ...numbers),
    ),

  "sizes whose product runs over": ({ gpu }) =>
    each(
      {
        "65536 × 65536": { m: 65536, k: 65536, n: 1 },
        "46341 × 92682": { m: 46341, k: 92682, n: 1 },
        "65536 thrice": { m: 65536, k: 65536, n: 65536 },
        "2**31": { m: 2 ** 31, k: 2, n: 1 },
        "2**31 as k": { m: 2, k: 2 ** 31, n: 2 },
        "the most": { m: 2 ** 32 - 1, k: 2 ** 32 - 1, n: 2 ** 32 - 1 },
      },
      ({ m, k, n }) => rejects(["length_mismatch", "limit_exceeded"], () => gpu.matmul(a, b, { m, k, n }), /\d{10}/),
    ),

  "a b whose size runs over": ({ gpu }) =>
    rejects("length_mismatch", () => gpu.matmul(new Float32Array(65536), b, { m: 1, k: 65536, n: 65536 }), /\b12\b/, /4294967296/),

  "a result past 2**32 elements": ({ gpu }) =>
    rejects("limit_exceeded", () => gpu.matmul(integers(0), integers(0), { m: 65537, k: 0, n: 65537 }), /4295098369/, /4294967296/),

  "beta without c": ({ gpu }) =>
    each({ "1": 1, "-0.5": -0.5, "NaN": NaN }, (beta) =>
      rejects("invalid_option", () => gpu.matmul(a, b, { ...sizes, beta }), /\bbeta\b/, /\bc\b/),
    ),
};
