/** Options that are wrong, and bad input to what is not a product. */
import { NOT_ARRAYS, NOT_DIMENSIONS, number_of } from "./input.mjs";
import { each, problem, rejects, same, throws } from "./tools.mjs";

const { a, b } = problem(2, 3, 4);
const sizes = { m: 2, k: 3, n: 4 };

export default {
  "an option that is not known": ({ gpu }) =>
    each({ M: 2, transposeA: true, dtype: "f16", lda_: 3 }, (value, name) =>
      rejects("invalid_option", () => gpu.matmul(a, b, { ...sizes, [name]: value }), new RegExp(`\\b${name}\\b`), /transpose_a/),
    ),

  "an option by the name of the prototype": async ({ gpu, lapidary }) => {
    const told = (more) => JSON.parse(`{"m":2,"k":3,"n":4,"__proto__":${more}}`);
    // What the first call on the shared handle is given is kept until it is open.
    for (let i = 0; i < 2; i++) {
      await rejects("invalid_option", () => lapidary.matmul(a, b, told('{"alpha":5}')), /__proto__/);
      await rejects("invalid_option", () => gpu.matmul(a, b, told('{"alpha":5}')), /__proto__/);
    }
    await rejects("invalid_option", () => lapidary.init_gpu(JSON.parse('{"__proto__":{"backend":"scalar"}}')), /__proto__/);
  },

  "a method without its handle": ({ gpu }) => {
    const { matmul } = gpu;
    return rejects("internal", () => matmul(a, b, sizes));
  },

  "options that are no object": ({ gpu }) =>
    each({ "a number": 5, "a string": "m=2", "null": null, "a boolean": true, "a BigInt": 1n, "a function": () => sizes, "a map": new Map(), "a signal": AbortSignal.abort(), "a promise": Promise.resolve(sizes) }, (options) =>
      rejects("invalid_type", () => gpu.matmul(a, b, options), /\boptions\b/),
    ),

  "no options": ({ gpu }) => rejects("invalid_dimension", () => gpu.matmul(a, b), /\bm\b/),

  "options without a prototype are options": async ({ gpu }) => {
    same(await gpu.matmul(a, b, Object.assign(Object.create(null), sizes)), problem(2, 3, 4).expected);
  },

  "options that throw what is no text": ({ gpu }) =>
    each({ "a symbol": Symbol("x"), "an object without a prototype": Object.create(null) }, async (thrown) => {
      const own = {
        get m() {
          throw thrown;
        },
      };
      for (const options of [own, Object.create(own)]) {
        await rejects("invalid_option", () => gpu.matmul(a, b, options), /\bm\b.*threw (symbol|object)/);
      }
    }),

  "options that cannot be read": async ({ gpu, lapidary }) => {
    const told = class {
      get alpha() {
        throw new Error("mine");
      }
    };
    const throws_mine = () => {
      throw new Error("mine");
    };
    const throws_at = (list) => Object.defineProperty(list, 0, { get: throws_mine });
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    const signal = { aborted: false, addEventListener: throws_mine, removeEventListener: throws_mine };
    for (const matmul of [(...product) => gpu.matmul(...product), lapidary.matmul]) {
      await rejects("invalid_option", () => matmul(a, b, Object.assign(new told(), sizes)), /alpha/, /mine/);
      await rejects("invalid_option", () => matmul(a, b, new Proxy(sizes, { ownKeys: throws_mine })), /mine/);
      await rejects("invalid_option", () => matmul(a, b, proxy));
      await rejects("invalid_type", () => matmul(proxy, b, sizes), /\ba\b/);
      await rejects("invalid_option", () => matmul(a, b, { ...sizes, batch: throws_at([1]) }), /batch/, /mine/);
      await rejects("invalid_option", () => matmul(a, b, { ...sizes, zero_points: proxy }), /zero_points/);
      await rejects("invalid_option", () => matmul(a, b, { ...sizes, signal }), /signal/, /mine/);
    }
    await rejects("invalid_option", () => lapidary.init_gpu(proxy));
    await rejects("invalid_option", () => gpu.tensor(a, throws_at([6])), /shape/, /mine/);
    await rejects("invalid_type", () => gpu.tensor(a, proxy), /shape/);
  },

  "holes are no values": async ({ gpu }) => {
    await rejects("invalid_type", () => gpu.tensor([true, , true, true], [2, 2], { dtype: "bool" }), /\bdata\b/);
    await rejects("length_mismatch", () => gpu.tensor(Float32Array.of(1, 2), []), /a single number/);
    await rejects("invalid_option", () => gpu.matmul(new Int8Array(6), new Int8Array(12), { ...sizes, zero_points: Array(2) }), /zero_points/);
  },

  "options of a wrong type": ({ gpu }) =>
    each(
      {
        transpose_a: [1, "yes", null, 0],
        transpose_b: [{}],
        report: [1, "true"],
        keep: [1, null],
        alpha: ["2", null, 2n, {}, true],
        beta: ["1", null],
        signal: [5, "x", null, {}, true],
      },
      (values, name) =>
        each({ ...values }, (value) =>
          rejects("invalid_option", () => gpu.matmul(a, b, { ...sizes, [name]: value }), new RegExp(`\\b${name}\\b`)),
        ),
    ),

  "wrong options to open with": async ({ lapidary }) => {
    const { Gpu } = lapidary;
    const wrong = {
      backend: ["WebGPU", "cuda", "", 5, null],
      power_preference: ["high", "", 1, null],
      pool_bytes: [-1, 1.5, "1", NaN, null],
      threads: [0, -1, 1.5, 65, "2", NaN, null],
      signal: [{}, 5, null],
      adapter: [1],
    };
    await each(wrong, (values, name) =>
      each({ ...values }, (value) => rejects("invalid_option", () => Gpu.open({ [name]: value }), new RegExp(`\\b${name}\\b`))),
    );
    const objects = { "a map": new Map([["backend", "scalar"]]), "a signal": AbortSignal.abort(), "a promise": Promise.resolve({ backend: "scalar" }) };
    await each({ "a string": "webgpu", "null": null, "a number": 1, ...objects }, (options) =>
      rejects("invalid_type", () => Gpu.open(options), /\boptions\b/),
    );
    await each(objects, async (options) => {
      await rejects("invalid_type", () => lapidary.init_gpu(options), /\boptions\b/);
      await rejects("invalid_type", () => lapidary.tune(options), /\boptions\b/);
    });
  },

  "a tensor of wrong data or shape": async ({ gpu }) => {
    const { "an Int32Array": _whole, ...no_data } = NOT_ARRAYS;
    await each({ ...no_data, "undefined": () => undefined }, (make) =>
      rejects("invalid_type", () => gpu.tensor(make(), [2, 3]), /\bdata\b/),
    );
    await each(
      {
        "missing": undefined,
        "null": null,
        "a string": "23",
        "a number": 6,
        "an object": { rows: 2, columns: 3 },
        "an array-like": { length: 2, 0: 2, 1: 3 },
      },
      (shape) => rejects("invalid_type", () => gpu.tensor(a, shape), /\bshape\b/),
    );
    const { "missing": _, ...sides } = NOT_DIMENSIONS;
    await each(sides, (side) => rejects("invalid_dimension", () => gpu.tensor(a, [side, 3]), /\bshape\b/, number_of(side)));
    await each(sides, (side) => rejects("invalid_dimension", () => gpu.tensor(a, [2, side]), /\bshape\b/, number_of(side)));
    await each({ "3 × 3": [3, 3], "2 × 2": [2, 2], "0 × 6": [0, 6] }, (shape) =>
      rejects("length_mismatch", () => gpu.tensor(a, shape), /\b6\b/, new RegExp(`\\b${shape[0] * shape[1]}\\b`)),
    );
    // Each truth is a word.
    await rejects("limit_exceeded", () => gpu.tensor(new Uint8Array(2 ** 30), [2 ** 30], { dtype: "bool" }), /\b4294967296\b/);
    await rejects("length_mismatch", () => gpu.tensor(a, Array(4).fill(2 ** 20)), /1048576 = more than 2\^63 are needed/);
    await each({ "65536": [65536, 65536], "the most": [2 ** 32 - 1, 2 ** 32 - 1] }, (shape) =>
      rejects(["length_mismatch", "limit_exceeded"], () => gpu.tensor(a, shape), /\d{10}/),
    );
  },

  "a bias or an activation that is none": async ({ gpu }) => {
    await each({ ...NOT_ARRAYS, "null": () => null }, (make) =>
      rejects("invalid_type", () => gpu.matmul(a, b, { ...sizes, bias: make() }), /\bbias\b/),
    );
    await rejects("length_mismatch", () => gpu.matmul(a, b, { ...sizes, bias: new Float32Array(3) }), /\bbias\b/, /\b3\b/, /\b4\b/);
    await each({ ...["Relu", "", 1, null, {}] }, (activation) =>
      rejects("invalid_option", () => gpu.matmul(a, b, { ...sizes, activation }), /\bactivation\b/, /relu/),
    );
  },

  "a batch that does not go together": async ({ gpu }) => {
    const wrong = [-1, 1.5, "2", null, NaN, [2, -1], [1.5], {}];
    await each({ ...wrong }, (batch) => rejects("invalid_dimension", () => gpu.matmul(a, b, { ...sizes, batch }), /\bbatch\b/));
    await rejects("length_mismatch", () => gpu.matmul(a, b, { ...sizes, batch: 2 }), /2 · 2 · 3 = 12/, /\b6\b/);
    await rejects("length_mismatch", () => gpu.matmul(a, b, { ...sizes, batch: 2, stride_a: 0 }), /2 · 3 · 4 = 24/, /\b12\b/);
    await rejects("length_mismatch", () => gpu.matmul(a, b, { ...sizes, batch: 2, stride_a: 0, stride_b: 1 }), /\b13\b/);
    await rejects("invalid_dimension", () => gpu.matmul(a, b, { ...sizes, batch: [1, 2], stride_a: 3 }), /\bstride_a\b/, /\b0\b/);
    await each({ ...["stride_a", "stride_b", "stride_c"] }, (name) =>
      rejects("invalid_dimension", () => gpu.matmul(a, b, { ...sizes, [name]: 9 }), new RegExp(`\\b${name} is 9\\b`), /no batch/),
    );
    const long = Array(200_000).fill(1);
    await rejects("invalid_dimension", () => gpu.matmul(a, b, { ...sizes, batch: long }), /\bbatch is of length 200000\b/, /\b256\b/);
    await rejects("invalid_dimension", () => gpu.tensor(a.slice(0, 1), long), /\bshape is of length 200000\b/, /\b256\b/);
    await each({ ...["1", -1, 0.5, null] }, (stride_b) => rejects("invalid_dimension", () => gpu.matmul(a, b, { ...sizes, stride_b }), /\bstride_b\b/));
    const [two, three, one] = await Promise.all([gpu.tensor(a, [2, 1, 3]), gpu.tensor(b, [3, 4, 1]), gpu.tensor(a.slice(0, 1), [])]);
    await rejects("invalid_dimension", () => gpu.matmul(two, three, {}), /\bk\b/, /\b4\b/);
    await rejects("invalid_dimension", () => gpu.matmul(two, two, { transpose_b: true, batch: 3 }), /\bbatch\b/, /\b3\b/, /\b2\b/);
    await rejects("invalid_dimension", () => gpu.matmul(one, a, { n: 1 }), /one dimension/);
    const stacked = two.reshape([2, 3, 1]);
    const turned = three.reshape([3, 1, 4]);
    await rejects("invalid_dimension", () => gpu.matmul(stacked, turned, {}), /\[3\]/, /\[2\]/);
    throws("length_mismatch", () => two.reshape([2, 4]), /\b6\b/, /2 · 4 = 8/);
    throws("invalid_type", () => two.reshape(6), /\bshape\b/);
    for (const tensor of [two, three, one, stacked, turned]) tensor.dispose();
  },

  "a benchmark of wrong samples": async ({ gpu }) => {
    await each({ samples: [0, -1, 1.5, NaN, Infinity, "5", 1e9, null, 5n], min_ms: [-1, NaN, Infinity, "x", null] }, (values, name) =>
      each({ ...values }, (value) =>
        rejects("invalid_option", () => gpu.benchmark(a, b, { ...sizes, [name]: value }), new RegExp(`\\b${name}\\b`)),
      ),
    );
    await rejects("invalid_option", () => gpu.benchmark(a, b, { ...sizes, repeats: 3 }), /\brepeats\b/, /samples/);
    await rejects("length_mismatch", () => gpu.benchmark(a, a, { ...sizes, samples: 1 }), /\b12\b/);
    await rejects("invalid_type", () => gpu.benchmark([], b, sizes), /\ba\b/);
  },

  "a reference of wrong input, and a result of wrong length": async ({ lapidary }) => {
    await rejects("invalid_type", () => lapidary.reference([], b, sizes), /\ba\b/);
    await rejects("length_mismatch", () => lapidary.reference(a, a, sizes), /\b12\b/);
    await rejects("invalid_type", () => lapidary.reference(a, b, { ...sizes, result: "i32" }), /\bi32\b/);
    await rejects("invalid_option", () => lapidary.reference(a, b, { ...sizes, seed: 1 }), /\bseed\b/);
    await rejects("invalid_dimension", () => lapidary.reference(a, b), /\bm\b/);
    const reference = await lapidary.reference(a, b, sizes);
    await each({ "7": 7, "9": 9, "0": 0 }, (length) =>
      throws("length_mismatch", () => reference.check(new Float32Array(length)), new RegExp(`\\b${length}\\b`), /\b8\b/),
    );
    await each(NOT_ARRAYS, (make) => throws("invalid_type", () => reference.check(make()), /\bresult\b/));
    reference.free();
  },

  "a random matrix of no length": async ({ lapidary: { random_matrix } }) => {
    await each({ "-1": -1, "1.5": 1.5, "a string": "5", "missing": undefined, "NaN": NaN }, (length) =>
      rejects("invalid_dimension", () => random_matrix(length, 1), /\blength\b/),
    );
    await each({ "-1": -1, "1.5": 1.5, "a string": "5", "missing": undefined }, (seed) =>
      rejects("invalid_dimension", () => random_matrix(4, seed), /\bseed\b/),
    );
    await rejects("limit_exceeded", () => random_matrix(2 ** 50, 1), /\d{10}/);
  },
};
