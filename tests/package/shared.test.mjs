/** The handle that the page shares: opened by whoever comes first, and exchanged while calls are under way. */
import { test } from "node:test";
import { pages } from "./page.mjs";

const { visit } = pages();

const in_page = (name, body, options) => test(name, () => visit(body, options));

/** Where its shaders would take long to compile and do not matter. */
const without_webgpu = { prepare: () => delete Navigator.prototype.gpu };

in_page(
  "a product before anything is opened; a software GPU is measured and the figures are told",
  async ({ lapidary, right, problem, assert }) => {
    await right(lapidary, problem(9, 10, 11));
    const info = await lapidary.device_info();
    assert(info.generation === 1 && info.others.length === 3, JSON.stringify(info));
    // With LAPIDARY_GPU=1 it is a GPU, and nobody has looked at what is behind it.
    if (info.backend === "webgpu") return assert(!info.software, JSON.stringify(info));
    for (const { state, reason, backend } of info.others.filter(({ backend }) => backend.startsWith("web"))) {
      assert(state === "available" && /software GPU: \d+ MFLOP\/s against \d+/.test(reason), `${backend} ${state}: ${reason}`);
    }
  },
);

in_page("operands may be changed before the device is open", async ({ lapidary, integers, problem, same, settles, each }) => {
  const opening = lapidary.init_gpu({ backend: "simd" });
  const changed = (make, change) => async () => {
    const { a, b, options, expected } = problem(6, 7, 8, 1, { beta: 1, c: integers(48) });
    const own = { a: make(a), b: make(b), c: make(options.c) };
    const all = { ...options, c: own.c };
    const pending = settles(lapidary.matmul(own.a, own.b, all));
    change({ ...own, options: all });
    const { value, error } = await pending;
    if (error) throw error;
    same(value, expected);
  };
  const fill = ({ a, b, c }) => [a, b, c].forEach((values) => values.fill(NaN));
  const frame = document.body.appendChild(document.createElement("iframe")).contentWindow;
  const shared = (values) => {
    const out = new Float32Array(new SharedArrayBuffer(values.byteLength));
    out.set(values);
    return out;
  };
  const checks = {
    "filled": changed((values) => values.slice(), fill),
    "shared memory": changed(shared, fill),
    "of another realm": changed((values) => frame.Float32Array.from(values), fill),
    "transferred": changed(
      (values) => values.slice(),
      ({ a, c }) => structuredClone([a, c], { transfer: [a.buffer, c.buffer] }),
    ),
    "options changed": changed(
      (values) => values,
      ({ options }) => Object.assign(options, { m: 3, n: 16, beta: 0, transpose_b: true }),
    ),
    "a tensor": async () => {
      const a = integers(12);
      const before = a.slice();
      const pending = lapidary.tensor(a, [3, 4]);
      a.fill(NaN);
      same(await (await pending).toArray(), before);
    },
  };
  // All are called before the device is open.
  const pending = Object.entries(checks).map(([name, check]) => [name, settles(check())]);
  await opening;
  await each(Object.fromEntries(pending), async (promise) => {
    const { error } = await promise;
    if (error) throw error;
  });
});

in_page("bad input before the device is open", async ({ lapidary, each, rejects, right, problem, integers }) => {
  const gone = new Float32Array(4);
  structuredClone(gone, { transfer: [gone.buffer] });
  const four = integers(4);
  const sizes = { m: 2, k: 2, n: 2 };
  const opening = lapidary.init_gpu({ backend: "simd" });
  await each(
    {
      "a detached": ["invalid_type", () => lapidary.matmul(gone, four, sizes)],
      "c detached": ["invalid_type", () => lapidary.matmul(four, four, { ...sizes, c: gone })],
      "an array": ["invalid_type", () => lapidary.matmul([1, 2, 3, 4], four, sizes)],
      "no arguments": ["invalid_type", () => lapidary.matmul()],
      "options null": ["invalid_type", () => lapidary.matmul(four, four, null)],
      "options a string": ["invalid_type", () => lapidary.matmul(four, four, "m")],
      "no options": ["invalid_dimension", () => lapidary.matmul(four, four)],
      "a length": ["length_mismatch", () => lapidary.matmul(four, integers(5), sizes)],
      "aborted": ["aborted", () => lapidary.matmul(four, four, { ...sizes, signal: AbortSignal.abort() })],
      "c a number": ["invalid_type", () => lapidary.matmul(four, four, { ...sizes, c: 0 })],
      "a tensor detached": ["invalid_type", () => lapidary.tensor(gone, [2, 2])],
      "a benchmark": ["invalid_option", () => lapidary.benchmark(four, four, { ...sizes, samples: 0 })],
      "a reference": ["invalid_type", () => lapidary.reference(gone, four, sizes)],
    },
    ([code, call]) => rejects(code, call),
  );
  await opening;
  await right(lapidary, problem(5, 5, 5));
});

in_page(
  "tensors may be disposed of before it is known that another device cannot be opened",
  async ({ lapidary, assert, each, integers, problem, same, settles }) => {
    const { benchmark, evaluate, init_gpu, lazy, matmul, memory, tensor } = lapidary;
    await init_gpu({ backend: "simd" });
    const { a, b, options, expected } = problem(6, 7, 8, 1, { beta: 1, c: integers(48) });
    const is = async (pending, values) => {
      const tensor = await pending;
      same(await tensor.toArray(), values);
      tensor.dispose();
    };
    const calls = {
      "a product": async (x, y, z) => same(await matmul(x, y, { beta: 1, c: z }), expected),
      "an expression": (x) => is(evaluate(lazy(x).add(1)), a.map((value) => value + 1)),
      "a tensor as an expression": (x) => is(evaluate(x), a),
      "a benchmark": (x, y) => benchmark(x, y, { samples: 1, min_ms: 0 }),
    };
    const before = await memory();
    await each(calls, async (call) => {
      const tensors = await Promise.all([tensor(a, [6, 7]), tensor(b, [7, 8]), tensor(options.c, [6, 8])]);
      const opening = settles(init_gpu({ backend: "webgpu" }));
      const pending = call(...tensors);
      for (const tensor of tensors) tensor.dispose();
      await pending;
      assert((await opening).error?.code === "unavailable", "another device was opened");
    });
    const after = await memory();
    assert(after.used_bytes === before.used_bytes && after.buffers === before.buffers, JSON.stringify({ before, after }));
  },
  without_webgpu,
);

in_page(
  "an opening that waits for another is aborted at once, and the others keep their order",
  async ({ lapidary, assert, is_fault, right, problem, settles, within }) => {
    const [aborting, again] = [new AbortController(), new AbortController()];
    const first = settles(lapidary.init_gpu());
    const aborted = settles(lapidary.init_gpu({ backend: "simd", signal: aborting.signal }));
    const last = settles(lapidary.init_gpu({ backend: "scalar" }));
    const at_once = settles(lapidary.init_gpu({ backend: "simd", signal: AbortSignal.abort() }));
    const newest = settles(lapidary.init_gpu({ backend: "simd", signal: again.signal }));
    aborting.abort();
    again.abort();
    for (const call of [aborted, at_once, newest]) is_fault((await within(10_000, call, "the abort")).error, ["aborted"]);
    const product = settles(right(lapidary, problem(5, 6, 7)));
    globalThis.release();
    const ends = await Promise.all([first, last, product]);
    assert(ends.every(({ error }) => !error), JSON.stringify(ends));
    assert(ends[1].value.backend === "scalar" && (await lapidary.device_info()).backend === "scalar", "the last word");
  },
  {
    prepare: () => {
      const released = new Promise((resolve) => (globalThis.release = resolve));
      const { requestAdapter } = GPU.prototype;
      GPU.prototype.requestAdapter = async function (...options) {
        await released;
        return requestAdapter.apply(this, options);
      };
    },
  },
);

in_page("an abort waits for nothing that is loaded or opened", async ({ lapidary, is_fault, right, problem, each, settles, within, wrap }) => {
  let release;
  const released = new Promise((resolve) => (release = resolve));
  const undo = wrap(globalThis, "fetch", (original) => async (...args) => (await released, original(...args)));
  const { a, b, options } = problem(5, 6, 7);
  await each(
    {
      "a product": (signal) => lapidary.matmul(a, b, { ...options, signal }),
      "a product of bytes": (signal) => lapidary.matmul(Int8Array.of(1), Int8Array.of(1), { m: 1, k: 1, n: 1, signal }),
      "a benchmark": (signal) => lapidary.benchmark(a, b, { ...options, signal }),
      "tuning": (signal) => lapidary.tune({ signal }),
      "a reference": (signal) => lapidary.reference(a, b, { ...options, signal }),
      "a handle": (signal) => lapidary.Gpu.open({ signal }),
      "the shared handle": (signal) => lapidary.init_gpu({ signal }),
    },
    async (call) => {
      const controller = new AbortController();
      const pending = settles(call(controller.signal));
      controller.abort();
      is_fault((await within(5_000, pending, "the abort")).error, ["aborted"]);
      is_fault((await within(5_000, settles(call(AbortSignal.abort())), "what was aborted before")).error, ["aborted"]);
    },
  );
  release();
  undo();
  await right(lapidary, problem(5, 6, 7));
}, without_webgpu);

in_page("options are those of the call, and such as cannot be read are refused", async ({ lapidary, assert, integers, rejects, same }) => {
  const [first, second, own] = [{ backend: "simd" }, { backend: "simd" }, { dtype: "i8" }];
  const openings = [lapidary.Gpu.open(first), lapidary.init_gpu(second)];
  first.backend = second.backend = "scalar";
  const bytes = lapidary.tensor(Int8Array.of(1, -1), [2], own);
  own.dtype = "u8";
  const four = integers(4);
  const unread = Object.defineProperty({ m: 2, k: 2, n: 2 }, "alpha", { enumerable: true, get: () => { throw new Error("not read"); } });
  await Promise.all([
    rejects("invalid_option", () => lapidary.matmul(four, four, unread), /not read/),
    rejects("invalid_type", () => lapidary.matmul(four, four, [2, 2, 2]), /options/),
    rejects("invalid_option", () => lapidary.tensor(four, [4], Object.defineProperties({}, Object.getOwnPropertyDescriptors(unread))), /\bm\b|not read/),
  ]);
  const inherited = lapidary.matmul(four, four, Object.create({ m: 2, k: 2, n: 2 }));
  const [gpu, info] = await Promise.all(openings);
  assert(gpu.info().backend === "simd" && info.backend === "simd", `${gpu.info().backend}, ${info.backend}`);
  assert((await bytes).dtype === "i8", (await bytes).dtype);
  same(await inherited, await lapidary.matmul(four, four, { m: 2, k: 2, n: 2 }));
});

in_page("a reference and tuning have what they were given", async ({ lapidary, assert, integers, problem, rejects }) => {
  const { a, b, options, expected } = problem(60, 70, 80, 1, { beta: 1, c: integers(4800) });
  const told = {};
  const [judging, opening] = [lapidary.reference(a, b, options), lapidary.init_gpu({ backend: "simd" })];
  const tuned = rejects("unavailable", () => lapidary.tune(told), /nothing to tune/);
  Object.assign(options, { m: 50, k: 84, alpha: 2 });
  told.samples = 3;
  // Nobody has them any more.
  for (const array of [a, b, options.c]) structuredClone(array.buffer, { transfer: [array.buffer] });
  await Promise.all([opening, tuned]);
  const verdict = (await judging).check(expected);
  assert(verdict.ok, JSON.stringify(verdict));
});

in_page("options that are wrong open nothing and change nothing", async ({ lapidary, each, rejects, right, problem, assert }) => {
  await each({ backend: "cuda", power_preference: "most", pool_bytes: -1, size: 3 }, (value, name) =>
    rejects("invalid_option", () => lapidary.init_gpu({ [name]: value }), new RegExp(name)),
  );
  await each({ "a string": "webgpu", "null": null }, (options) => rejects("invalid_type", () => lapidary.init_gpu(options)));
  await rejects("aborted", () => lapidary.init_gpu({ signal: AbortSignal.abort() }));
  await lapidary.init_gpu({ backend: "scalar" });
  await rejects("invalid_option", () => lapidary.init_gpu({ backend: "cuda" }));
  assert((await lapidary.device_info()).backend === "scalar", "the one of before");
  await right(lapidary, problem(5, 6, 7));
});

in_page(
  "calls at once open one device, later ones use it",
  async ({ lapidary, watch, assert, right, problem }) => {
    const seen = watch();
    const { Gpu } = lapidary;
    const { open } = Gpu;
    let opened = 0;
    Gpu.open = (...args) => {
      opened++;
      return open.apply(Gpu, args);
    };
    const products = [1, 2, 3, 4].map((i) => right(lapidary, problem(i, 5, 6)));
    const infos = await Promise.all([
      lapidary.init_gpu(),
      lapidary.init_gpu(),
      lapidary.device_info(),
      lapidary.memory().then(() => lapidary.device_info()),
      lapidary.init_gpu(),
    ]);
    await Promise.all(products);
    assert(
      infos.every((info) => JSON.stringify(info) === JSON.stringify(infos[0])),
      "all say the same",
    );
    assert(opened === 1 && seen.asked === 1, `${opened} handles, ${seen.asked} devices`);
    await right(lapidary, problem(4, 5, 6));
  },
  without_webgpu,
);

in_page("of two openings at once the later has the last word", async ({ lapidary, assert, right, problem, settles }) => {
  const [first, second] = await Promise.all([
    lapidary.init_gpu({ backend: "simd" }),
    lapidary.init_gpu({ backend: "scalar" }),
    right(lapidary, problem(8, 8, 8)),
  ]);
  assert(first.backend === "simd" && second.backend === "scalar", `${first.backend}, ${second.backend}`);
  assert((await lapidary.device_info()).backend === "scalar", "the later");
  const [bad, good] = await Promise.all([settles(lapidary.init_gpu({ backend: "cuda" })), settles(lapidary.init_gpu({ backend: "simd" }))]);
  assert(bad.error.code === "invalid_option" && good.value.backend === "simd", "an error of one is not one of the other");
});

in_page("another backend while products are under way", async ({ lapidary, right, problem, assert, settles, is_fault, same, integers }) => {
  await lapidary.init_gpu({ backend: "webgpu" });
  const tensor = await lapidary.tensor(integers(36), [6, 6]);
  for (const backend of ["simd", "webgl2", "scalar", "webgl2"]) {
    const before = Array.from({ length: 6 }, (_, i) => right(lapidary, problem(30 + i, 40, 50), `before ${backend}`));
    const opening = lapidary.init_gpu({ backend });
    const during = Array.from({ length: 6 }, (_, i) => right(lapidary, problem(20 + i, 30, 40), `during ${backend}`));
    assert((await opening).backend === backend, backend);
    await Promise.all([...before, ...during, right(lapidary, problem(9, 9, 9))]);
    assert((await lapidary.device_info()).backend === backend, `${backend} later`);
  }
  const { error } = await settles(lapidary.matmul(tensor, integers(36), { n: 6 }));
  is_fault(error, ["invalid_type", "disposed"]);
  same(await tensor.toArray(), integers(36), "the tensor's values");
  tensor.dispose();
});

in_page(
  "what cannot be opened does not concern the calls of others",
  async ({ lapidary, assert, each, integers, rejects, right, problem, settles }) => {
    const { evaluate, init_gpu, lazy } = lapidary;
    await rejects("unavailable", () => init_gpu({ backend: "webgpu" }));
    // Before anything is open there is nothing to go on with but what is opened next.
    const failed = [settles(init_gpu({ backend: "webgpu" })), right(lapidary, problem(5, 6, 7)), init_gpu({ backend: "simd" })];
    assert((await Promise.all(failed))[0].error.code === "unavailable", "nothing was opened");
    const wrong = {
      invalid_option: { backend: "nonsense" },
      unavailable: { backend: "webgpu" },
      aborted: { backend: "scalar", signal: AbortSignal.abort() },
    };
    await each(wrong, async (options, code) => {
      const opening = settles(init_gpu(options));
      const calls = [right(lapidary, problem(8, 9, 10)), lapidary.tensor(integers(4), [4]), evaluate(lazy(2).add(1)), init_gpu()];
      const [, tensor, sum, info] = await Promise.all(calls);
      assert(info.backend === "simd" && (await opening).error.code === code, `${info.backend}, ${(await opening).error}`);
      for (const value of [tensor, sum]) value.dispose();
    });
    const bad = settles(init_gpu({ backend: "webgpu" }));
    await right(lapidary, problem(9, 9, 9));
    assert((await lapidary.device_info()).backend === "simd" && (await bad).error, "the one of before");
  },
  without_webgpu,
);

in_page("an operand that there is no room to copy is told", async ({ lapidary, integers, rejects, wrap }) => {
  const a = integers(36);
  const undo = wrap(Object.getPrototypeOf(Float32Array.prototype), "slice", (original) => {
    return function (...args) {
      if (this === a) throw new RangeError("Array buffer allocation failed");
      return original.apply(this, args);
    };
  });
  const opening = lapidary.init_gpu({ backend: "simd" });
  const sizes = { m: 6, k: 6, n: 6 };
  const calls = [
    () => lapidary.matmul(a, integers(36), sizes),
    () => lapidary.matmul(integers(36), integers(36), { ...sizes, beta: 1, c: a }),
    () => lapidary.reference(a, integers(36), sizes),
  ];
  for (const call of calls) await rejects("out_of_memory", call);
  undo();
  await opening;
});

in_page("options may be those of a class", async ({ lapidary, problem, same, rejects }) => {
  const { a, b, expected, options } = problem(6, 7, 8);
  class Sizes {
    get m() { return options.m; }
    get k() { return options.k; }
    get n() { return options.n; }
  }
  await lapidary.init_gpu({ backend: "simd" });
  for (const opening of [undefined, lapidary.init_gpu({ backend: "scalar" })]) {
    same(await lapidary.matmul(a, b, new Sizes()), expected);
    await opening;
  }
  const reference = await lapidary.reference(a, b, new Sizes());
  reference.check(expected);
  reference.free();
  await rejects("invalid_option", () => lapidary.reference(a, b, Object.assign(new Sizes(), { size: 1 })), /size/);
});

in_page(
  "an opening that is aborted leaves the device of before",
  async ({ lapidary, settles, is_fault, assert, right, problem, sleep }) => {
    await lapidary.init_gpu({ backend: "simd" });
    const controller = new AbortController();
    const pending = settles(lapidary.init_gpu({ backend: "webgpu", signal: controller.signal }));
    const product = right(lapidary, problem(8, 9, 10));
    await sleep(1);
    controller.abort("stop");
    const { error } = await pending;
    is_fault(error, "aborted");
    assert(error.cause === "stop", `${error.cause}`);
    await product;
    await right(lapidary, problem(8, 9, 10));
    assert((await lapidary.device_info()).backend === "simd", "the one of before");
  },
);
