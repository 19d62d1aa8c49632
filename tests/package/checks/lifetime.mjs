/** Handles that are freed, used together, and many at a time. */
import { assert, each, integers, is_fault, problem, product, rejects, right, same, settles, sleep, throws, within } from "./tools.mjs";

/** Products of different sizes. */
const many = (count) => Array.from({ length: count }, (_, i) => problem(1 + ((i * 7) % 61), 1 + ((i * 11) % 53), 1 + ((i * 13) % 47), i));

export default {
  "classes have no constructor of use": ({ lapidary }) => each({ Tensor: 0, Gpu: 0, Reference: 0 }, async (_, name) => {
    for (const args of [[], [1], [Symbol(), 1], [undefined, {}], [null, null]]) throws("invalid_type", () => new lapidary[name](...args), new RegExp(name));
  }),

  "a handle after free": async ({ lapidary: { Gpu }, backend }) => {
    const gpu = await Gpu.open({ backend });
    const { a, b, options } = problem(4, 4, 4);
    gpu.free();
    gpu.free();
    await rejects("disposed", () => gpu.matmul(a, b, options), /handle/);
    await rejects("disposed", () => gpu.tensor(a, [4, 4]), /handle/);
    await rejects("disposed", () => gpu.benchmark(a, b, options), /handle/);
    for (const method of ["info", "memory", "trim"]) throws("disposed", () => gpu[method](), /handle/);
  },

  "a tensor after dispose": async ({ gpu }) => {
    const tensor = await gpu.tensor(integers(16), [4, 4]);
    const pending = [tensor.toArray(), gpu.matmul(tensor, integers(16), { n: 4 })];
    tensor.dispose();
    tensor.dispose();
    same(await pending[0], integers(16), "what was asked for before");
    same(await pending[1], product(integers(16), integers(16), { m: 4, k: 4, n: 4 }), "the product of before");
    assert(tensor.rows === 4 && tensor.columns === 4, "its shape is still known");
    await rejects("disposed", () => tensor.toArray(), /tensor/);
    await rejects("disposed", () => gpu.matmul(tensor, integers(16), { n: 4 }), /tensor/);
    await rejects("disposed", () => gpu.matmul(integers(16), tensor, { m: 4 }), /tensor/);
    await rejects("disposed", () => gpu.benchmark(tensor, tensor, {}), /tensor/);
  },

  "a reference after free": async ({ lapidary: { reference } }) => {
    const { a, b, options, expected } = problem(3, 3, 3);
    const judge = await reference(a, b, options);
    assert(judge.check(expected).ok, "right before");
    judge.free();
    judge.free();
    throws("disposed", () => judge.check(expected), /reference/);
  },

  "using frees": async ({ lapidary: { Gpu, reference }, gpu, backend }) => {
    if (!Symbol.dispose) return;
    const { a, b, options, expected } = problem(3, 3, 3);
    const [handle, tensor, judge] = [await Gpu.open({ backend }), await gpu.tensor(a, [3, 3]), await reference(a, b, options)];
    for (const thing of [handle, tensor, judge]) thing[Symbol.dispose]();
    throws("disposed", () => handle.info());
    throws("disposed", () => judge.check(expected));
    await rejects("disposed", () => tensor.toArray());
  },

  "a tensor of another handle": async ({ lapidary: { Gpu }, gpu, backend }) => {
    const other = await Gpu.open({ backend });
    const tensor = await other.tensor(integers(16), [4, 4]);
    await rejects("invalid_type", () => gpu.matmul(tensor, integers(16), { n: 4 }));
    same(await other.matmul(tensor, integers(16), { n: 4 }), product(integers(16), integers(16), { m: 4, k: 4, n: 4 }));
    tensor.dispose();
    other.free();
  },

  "2, 16 and 64 products at once": async ({ gpu }) => {
    for (const count of [2, 16, 64]) await Promise.all(many(count).map((one, i) => right(gpu, one, `${i} of ${count}`)));
  },

  "all kinds of calls at once": async ({ gpu, lapidary: { reference } }) => {
    const { a, b, options, expected } = problem(30, 20, 40);
    const calls = Array.from({ length: 4 }, () => [
      right(gpu, { a, b, options, expected }),
      gpu.matmul(a, b, { ...options, report: true }).then(({ data }) => same(data, expected)),
      gpu.matmul(a, b, { ...options, keep: true }).then(async (tensor) => {
        same(await tensor.toArray(), expected);
        tensor.dispose();
      }),
      gpu.tensor(a, [30, 20]).then(async (tensor) => {
        same(await gpu.matmul(tensor, b, { n: 40 }), expected);
        tensor.dispose();
      }),
      gpu.benchmark(a, b, { ...options, samples: 1, min_ms: 0 }),
      reference(a, b, options).then((judge) => assert(judge.check(expected).ok, "judged right")),
    ]);
    await Promise.all(calls.flat());
  },

  "a product from within another's result": async ({ gpu }) => {
    const results = await Promise.all(many(8).map(async (one) => {
      await right(gpu, one);
      return right(gpu, problem(5, 6, 7));
    }));
    assert(results.length === 8, "all came");
  },

  "an error among 16 concerns only that call": async ({ gpu }) => {
    const tensor = await gpu.tensor(integers(4), [2, 2]);
    tensor.dispose();
    const wrong = [
      ["length_mismatch", () => gpu.matmul(integers(3), integers(4), { m: 2, k: 2, n: 2 })],
      ["invalid_type", () => gpu.matmul([], integers(4), { m: 2, k: 2, n: 2 })],
      ["disposed", () => gpu.matmul(tensor, integers(4), { n: 2 })],
      ["aborted", () => gpu.matmul(integers(4), integers(4), { m: 2, k: 2, n: 2, signal: AbortSignal.abort() })],
    ];
    for (const [code, call] of wrong) {
      await Promise.all(many(16).map((one, i) => (i === 9 ? rejects(code, call) : right(gpu, one, `${i} with ${code}`))));
    }
  },

  "one of 16 is aborted": async ({ gpu }) => {
    const controller = new AbortController();
    const calls = many(16).map((one, i) => {
      const signal = i === 5 ? controller.signal : undefined;
      return settles(gpu.matmul(one.a, one.b, { ...one.options, signal }).then((result) => same(result, one.expected)));
    });
    controller.abort();
    const faults = (await Promise.all(calls)).map(({ error }) => error);
    is_fault(faults[5], "aborted");
    assert(faults.every((fault, i) => i === 5 || !fault), `${faults}`);
  },

  "free during products: each is right or disposed": async ({ lapidary: { Gpu }, backend }) => {
    for (const wait of [false, true]) {
      const gpu = await Gpu.open({ backend });
      const calls = many(16).map((one) => settles(gpu.matmul(one.a, one.b, one.options).then((result) => same(result, one.expected))));
      const report = settles(gpu.matmul(...Object.values(problem(9, 9, 9)).slice(0, 2), { m: 9, k: 9, n: 9, report: true }));
      const benchmark = settles(gpu.benchmark(integers(64), integers(64), { m: 8, k: 8, n: 8, samples: 2, min_ms: 5 }));
      if (wait) await sleep(1);
      gpu.free();
      for (const { error } of await within(10_000, Promise.all([...calls, report, benchmark]), "a call")) {
        if (error) is_fault(error, "disposed");
      }
      await rejects("disposed", () => gpu.matmul(integers(1), integers(1), { m: 1, k: 1, n: 1 }));
    }
  },

  "20 handles, one after another and some at once": async ({ lapidary: { Gpu }, gpu, backend }) => {
    for (let i = 0; i < 16; i++) {
      const one = await Gpu.open({ backend });
      if (i % 8 === 0) await right(one, problem(7, 8, 9), `handle ${i}`);
      one.free();
    }
    const handles = await Promise.all(Array.from({ length: 4 }, () => Gpu.open({ backend })));
    await Promise.all(handles.map((one, i) => right(one, problem(11, 12, 13, i))));
    for (const one of handles) one.free();
    await right(gpu, problem(4, 5, 6), "the first handle");
    assert(gpu.info().generation === 1, "the first handle's device is still the first");
  },
};
