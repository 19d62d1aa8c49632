/** Handles that are freed, used together, and many at a time. */
import {
  assert,
  each,
  integers,
  is_fault,
  is_slow,
  problem,
  product,
  rejects,
  right,
  same,
  settles,
  sleep,
  throws,
  within,
} from "./tools.mjs";

/** Products of different sizes. */
const many = (count) => Array.from({ length: count }, (_, i) => problem(1 + ((i * 7) % 61), 1 + ((i * 10) % 54), 1 + ((i * 14) % 46), i));

export default {
  "classes have no constructor of use": ({ lapidary }) =>
    each({ Tensor: 0, Gpu: 0, Reference: 0 }, async (_, name) => {
      for (const args of [[], [1], [Symbol(), 1], [undefined, {}], [null, null]])
        throws("invalid_type", () => new lapidary[name](...args), new RegExp(name));
    }),

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

  "what a benchmark was given it has to its end": async ({ gpu }) => {
    const [a, bias] = [await gpu.tensor(integers(63), [7, 9]), await gpu.tensor(integers(7), [7])];
    const pending = gpu.benchmark(a, a, { transpose_b: true, bias, samples: 2, min_ms: 0 });
    for (const tensor of [a, bias]) tensor.dispose();
    assert((await pending).samples_ms.length === 2, "two samples");
    await rejects("disposed", () => gpu.benchmark(a, a, { transpose_b: true }), /tensor/);
    const arrays = [integers(900), integers(900), integers(900)];
    const [x, y, c] = arrays;
    const timing = gpu.benchmark(x, y, { m: 30, k: 30, n: 30, beta: 1, c, samples: 2, min_ms: 0 });
    // Nobody has them any more.
    for (const { buffer } of arrays) structuredClone(buffer, { transfer: [buffer] });
    assert((await within(20_000, timing, "a benchmark of arrays")).samples_ms.length === 2, "two samples of arrays");
  },

  "a reference after free": async ({ lapidary: { reference } }) => {
    const { a, b, options, expected } = problem(3, 3, 3);
    const judge = await reference(a, b, options);
    assert(judge.check(expected).ok, "right before");
    judge.free();
    judge.free();
    throws("disposed", () => judge.check(expected), /reference/);
  },

  "a tensor of another handle, and a handle after free": async ({ lapidary: { Gpu, reference }, gpu, backend }) => {
    const other = await Gpu.open({ backend });
    const { a, b, options, expected } = problem(5, 5, 5);
    const tensor = await other.tensor(a, [5, 5]);
    await rejects("invalid_type", () => gpu.matmul(tensor, b, { n: 5 }));
    await rejects("invalid_type", () => gpu.benchmark(b, tensor, { m: 5 }));
    same(await other.matmul(tensor, b, { n: 5 }), expected);
    const judge = await reference(a, b, options);
    for (const thing of [other, tensor, judge]) Symbol.dispose ? thing[Symbol.dispose]() : (thing.free ?? thing.dispose).call(thing);
    await rejects("disposed", () => tensor.toArray(), /tensor/);
    throws("disposed", () => judge.check(expected), /reference/);
    other.free();
    await rejects("disposed", () => other.matmul(a, b, options), /handle/);
    await rejects("disposed", () => other.tensor(a, [5, 5]), /handle/);
    await rejects("disposed", () => other.benchmark(a, b, options), /handle/);
    for (const method of ["info", "memory", "trim"]) throws("disposed", () => other[method](), /handle/);
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
    const results = await Promise.all(
      many(8).map(async (one) => {
        await right(gpu, one);
        return right(gpu, problem(5, 6, 7));
      }),
    );
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
    assert(
      faults.every((fault, i) => i === 5 || !fault),
      `${faults}`,
    );
  },

  "free during products: each is right or disposed": async ({ lapidary: { Gpu }, backend, gpu }) => {
    for (const wait of is_slow(gpu) ? [true] : [false, true]) {
      const own = await Gpu.open({ backend });
      const { a, b, options, expected } = problem(9, 9, 9);
      const calls = many(16).map((one) => settles(own.matmul(one.a, one.b, one.options).then((result) => same(result, one.expected))));
      calls.push(settles(own.matmul(a, b, { ...options, report: true }).then(({ data }) => same(data, expected))));
      calls.push(
        settles(
          own
            .matmul(a, b, { ...options, keep: true })
            .then((tensor) => tensor.toArray())
            .then((data) => same(data, expected)),
        ),
      );
      calls.push(settles(own.benchmark(a, b, { ...options, samples: 2, min_ms: 5 })));
      if (wait) await sleep(1);
      own.free();
      for (const { error } of await within(30_000, Promise.all(calls), "a call")) {
        if (error) is_fault(error, "disposed");
      }
      await rejects("disposed", () => own.matmul(a, b, options));
    }
  },

  "20 handles, one after another and some at once": async ({ lapidary: { Gpu }, gpu, backend }) => {
    const [in_turn, at_once] = is_slow(gpu) ? [3, 2] : [16, 4];
    for (let i = 0; i < in_turn; i++) {
      const one = await Gpu.open({ backend });
      if (i % 8 === 0) await right(one, problem(7, 7, 9), `handle ${i}`);
      one.free();
    }
    const handles = await Promise.all(Array.from({ length: at_once }, () => Gpu.open({ backend })));
    await Promise.all(handles.map((one, i) => right(one, problem(11, 13, 13, i))));
    for (const one of handles) one.free();
    await right(gpu, problem(4, 5, 6), "the first handle");
    assert(gpu.info().generation === 1, "the first handle's device is still the first");
  },
};
