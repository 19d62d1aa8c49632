/** Memory comes back, and no more is taken than a product needs. */
import { limit_memory, refuse_buffers, watch_buffers, wrap } from "./faults.mjs";
import { assert, integers, is_fault, is_slow, problem, product, rejects, right, same, settles, skip, sleep } from "./tools.mjs";

/** What a handle holds once nothing is under way, which must be what it held before. */
async function at_rest(gpu, before = { used_bytes: 0, buffers: 0 }) {
  const is_more = ({ used_bytes, buffers }) => used_bytes !== before.used_bytes || buffers !== before.buffers;
  for (let turn = 0; turn < 400 && is_more(gpu.memory()); turn++) await sleep(5);
  const stats = gpu.memory();
  assert(!is_more(stats), `${JSON.stringify(stats)}, but before ${JSON.stringify(before)}`);
  return stats;
}

export default {
  "the counts are numbers": async ({ gpu }) => {
    const stats = gpu.memory();
    const text = JSON.stringify(stats);
    assert(Object.keys(stats).sort().join() === "buffers,peak_bytes,pooled_bytes,used_bytes,wasm_bytes", text);
    assert(Object.values(stats).every((value) => Number.isSafeInteger(value) && value >= 0) && stats.wasm_bytes > 0, text);
    await at_rest(gpu);
  },

  "a product needs its operands, its result and one copy of that": async ({ lapidary: { Gpu }, backend }) => {
    const gpu = await Gpu.open({ backend });
    const [m, k, n] = [201, 241, 255];
    for (let i = 0; i < 3; i++) await right(gpu, problem(m, k, n, i, is_slow(gpu) ? {} : { beta: 1, c: integers(m * n) }));
    const needed = 4 * (m * k + k * n + (is_slow(gpu) ? 2 : 3) * m * n);
    const { peak_bytes, pooled_bytes } = await at_rest(gpu);
    // Lines of textures are filled up, and small buffers of the first test stay in the pool.
    assert(peak_bytes <= needed * (backend === "webgl2" ? 1.5 : 1.07) + 65_536, `${peak_bytes} bytes at the peak, ${needed} needed`);
    // What the self test used lies idle beside, and in WebGL2 room for strips of A: textures and buffers that are never one another.
    assert(pooled_bytes <= peak_bytes * (backend === "webgl2" ? 1.5 : 1) + 65_536, `${pooled_bytes} bytes pooled, ${peak_bytes} at the peak`);
    gpu.trim();
    assert(gpu.memory().pooled_bytes === 0, "nothing is pooled after trim");
    gpu.free();
  },

  "200 products take no more than the first": async ({ gpu }) => {
    const one = problem(64, 63, 63);
    const start = gpu.memory();
    await right(gpu, one);
    const before = await at_rest(gpu, start);
    const more = async () => {
      for (let i = 0; i < 200; i++) same(await gpu.matmul(one.a, one.b, one.options), one.expected);
      return at_rest(gpu, start);
    };
    // The heap of the module grows by pages of 64 KiB, of which what several calls have under way may take one more.
    const [after, later] = [await more(), await more()];
    assert(
      after.peak_bytes === before.peak_bytes &&
        after.pooled_bytes === before.pooled_bytes &&
        after.wasm_bytes <= before.wasm_bytes + 65536 &&
        later.wasm_bytes === after.wasm_bytes,
      JSON.stringify({ before, after, later }),
    );
  },

  "of ever new kernels the latest are kept": async ({ lapidary: { Gpu, lazy }, backend }) => {
    if (backend !== "webgl2") skip("other backends do not tell the page of them");
    const { prototype } = WebGL2RenderingContext;
    const programs = new Set();
    const counted = (name, count) =>
      wrap(prototype, name, (original) => {
        return function (program) {
          const made = original.call(this, program);
          count(program, made);
          return made;
        };
      });
    const undos = [counted("createProgram", (_, made) => programs.add(made)), counted("deleteProgram", (gone) => programs.delete(gone))];
    try {
      const gpu = await Gpu.open({ backend });
      const a = await gpu.tensor(integers(9), [9]);
      const values = async (expr) => {
        const tensor = await gpu.evaluate(expr);
        const data = await tensor.toArray();
        tensor.dispose();
        return data;
      };
      const functions = ["abs", "negative", "relu", "floor", "ceil", "round", "sign", "square", "sin", "cos", "exp", "tanh", "sigmoid", "atan", "erf", "silu"];
      let made = 0;
      for (const first of functions) {
        for (const second of functions) made = Math.max(made, (await values(lazy(a)[first]().add(1)[second]()), programs.size));
        same(await values(lazy(a).abs().negative()), integers(9).map((value) => -Math.abs(value)), `after ${first}`);
      }
      for (const first of functions.slice(0, 2)) for (const second of functions) await values(lazy(a)[first]().mul(2)[second]());
      assert(made > 200 && programs.size <= 256, `${programs.size} programs, ${made} before`);
      gpu.free();
    } finally {
      for (const undo of undos) undo();
    }
  },

  "the pool keeps to its budget": async ({ lapidary: { Gpu }, backend, gpu }) => {
    for (const pool_bytes of is_slow(gpu) ? [50_000] : [0, 50_000]) {
      const own = await Gpu.open({ backend, pool_bytes });
      for (const size of [9, 41, 63, 33, 57]) await right(own, problem(size, size, size));
      const { pooled_bytes } = await at_rest(own);
      assert(pooled_bytes <= pool_bytes, `${pooled_bytes} bytes pooled of ${pool_bytes}`);
      own.free();
    }
  },

  "large operands are written whatever room there is on their way": async ({ lapidary: { Gpu }, backend }) => {
    if (backend !== "webgpu") skip("it is of WebGPU");
    const own = await Gpu.open({ backend });
    const options = { m: 1, k: 300, n: 300 };
    let refused = 0;
    const undo = refuse_buffers(({ usage }) => (usage & GPUBufferUsage.MAP_WRITE) !== 0 && ++refused > 0);
    try {
      for (let round = 0; round < 8; round++) {
        const [a, b] = [integers(300, round), integers(300 * 300, 20 + round)];
        same(await own.matmul(a, b, options), product(a, b, options), `product ${round}`);
        const tensor = await own.tensor(b, [300, 300]);
        same(await tensor.toArray(), b, `tensor ${round}`);
        tensor.dispose();
      }
    } finally {
      undo();
    }
    assert(refused > 0, "no room was asked for");
    own.free();
  },

  "what was to be on the way to the GPU is given back where there is no room for more": async ({ lapidary: { Gpu }, backend }) => {
    if (backend !== "webgpu") skip("it is of WebGPU");
    const own = await Gpu.open({ backend });
    const stages = new Set();
    let [refuses, made] = [false, 0];
    const is_stage = ({ usage }) => (usage & GPUBufferUsage.MAP_WRITE) !== 0;
    const stop = refuse_buffers((descriptor) => is_stage(descriptor) && refuses);
    const is_made = (buffer, descriptor) => {
      if (!is_stage(descriptor)) return;
      made++;
      stages.add(buffer);
    };
    const unwatch = watch_buffers(is_made, (buffer) => stages.delete(buffer));
    try {
      const values = integers(300_000);
      const put = async (sizes) => {
        const tensor = await own.tensor(values.subarray(0, sizes), [sizes]);
        same(await tensor.toArray(), values.subarray(0, sizes));
        tensor.dispose();
        await sleep(20);
      };
      // The third write makes one; a larger one makes more, and those that are there already lie idle meanwhile.
      for (let i = 0; i < 4; i++) await put(100_000);
      assert(stages.size > 0, "there is no ring");
      refuses = true;
      await put(300_000);
      refuses = false;
      assert(stages.size === 0, `${stages.size} buffers are left`);
      own.trim();
      const before = made;
      await put(300_000);
      assert(made === before, `${made - before} buffers were made after that`);
    } finally {
      unwatch();
      stop();
    }
    own.free();
  },

  "a product that the page has no room for is of what its operands were": async ({ lapidary: { Gpu }, backend }) => {
    if (backend.startsWith("web")) skip("it is of the CPU");
    const own = await Gpu.open({ backend, threads: 1 });
    const { a, b, options, expected } = problem(20, 21, 22);
    const { Float32Array } = globalThis;
    let refusals = 1;
    const construct = (target, args, self) => {
      if (args[0] === 20 * 22 && refusals-- > 0) throw new RangeError("Array buffer allocation failed");
      return Reflect.construct(target, args, self);
    };
    await right(own, problem(5, 6, 7));
    own.trim();
    globalThis.Float32Array = new Proxy(Float32Array, { construct });
    try {
      const pending = own.matmul(a, b, options);
      const was_refused = refusals < 1;
      a.fill(0);
      same(await pending, expected);
      assert(was_refused, "nothing was refused");
      own.trim();
      refusals = Infinity;
      await rejects("out_of_memory", () => own.matmul(a, b, options));
    } finally {
      globalThis.Float32Array = Float32Array;
    }
    own.free();
  },

  "what there is no room for in the page is told": async ({ gpu, backend }) => {
    const truths = await gpu.tensor(new Uint8Array(3001).fill(1), [3001], { dtype: "bool" });
    const [x, y] = [new Int8Array(50 * 61).fill(1), new Int8Array(61 * 52).fill(1)];
    const bytes = { m: 50, k: 61, n: 52 };
    await gpu.matmul(x, y, bytes);
    const before = gpu.memory();
    /** With no room for copies of so many elements. */
    const without = async (name, count, call) => {
      const Own = globalThis[name];
      const size = (value) => (typeof value === "number" ? value : value?.length);
      const construct = (target, args, self) => {
        if (size(args[0]) === count && !(args[0] instanceof ArrayBuffer)) throw new RangeError("Array buffer allocation failed");
        return Reflect.construct(target, args, self);
      };
      globalThis[name] = new Proxy(Own, { construct });
      try {
        return await Promise.race([settles(call()), sleep(5000).then(() => ({ error: { code: "no end" } }))]);
      } finally {
        globalThis[name] = Own;
      }
    };
    is_fault((await without("Uint8Array", 3001, () => truths.toArray())).error, "out_of_memory");
    if (!backend.startsWith("web")) is_fault((await without("Float32Array", 50 * 61, () => gpu.matmul(x, y, bytes))).error, "out_of_memory");
    await at_rest(gpu, before);
    truths.dispose();
  },

  "a large product that is kept finds the room that others lie idle in": async ({ lapidary: { Gpu }, backend }) => {
    if (backend !== "webgpu") skip("it is of WebGPU");
    const stop = limit_memory(180 * 2 ** 20);
    try {
      const own = await Gpu.open({ backend, pool_bytes: 2 ** 30 });
      const side = 4480;
      const [x, y] = [integers(side, 1), integers(side, 2)];
      const [a, b] = [await own.tensor(x, [side, 1]), await own.tensor(y, [1, side])];
      (await own.tensor(new Float32Array(2 ** 25), [2 ** 25])).dispose();
      const idle = own.memory().pooled_bytes;
      const kept = await own.matmul(a, b, { keep: true });
      const got = await kept.toArray();
      assert(idle >= 2 ** 27 && got.every((value, i) => value === x[Math.floor(i / side)] * y[i % side]), `${idle} bytes lay idle`);
      own.free();
    } finally {
      stop();
    }
  },

  "a tensor that the page has no room for is tried again without what lies idle": async ({ lapidary: { Gpu }, backend }) => {
    if (backend.startsWith("web")) skip("it is of the CPU");
    const own = await Gpu.open({ backend });
    (await own.tensor(integers(3000), [3000])).dispose();
    const { Float32Array } = globalThis;
    let refusals = 1;
    // Bytes are kept in the page's memory, in words; what has 32 bits may be in the module's.
    const construct = (target, args, self) => {
      if (args[0] === 500 && refusals-- > 0) throw new RangeError("Array buffer allocation failed");
      return Reflect.construct(target, args, self);
    };
    const numbers = integers(2000);
    const values = Int8Array.from(numbers);
    globalThis.Float32Array = new Proxy(Float32Array, { construct });
    try {
      assert(own.memory().pooled_bytes > 0, "nothing lies idle");
      const tensor = await own.tensor(values, [2000]);
      assert(own.memory().pooled_bytes === 0, "something lies idle still");
      same(Float32Array.from(await tensor.toArray()), numbers);
      tensor.dispose();
      own.trim();
      refusals = Infinity;
      await rejects("out_of_memory", () => own.tensor(values, [2000]));
    } finally {
      globalThis.Float32Array = Float32Array;
    }
    own.free();
  },

  "tensors stay what they are while memory grows": async ({ gpu, lapidary: { lazy } }) => {
    const before = gpu.memory();
    const values = integers(50 * 50);
    const a = await gpu.tensor(values, [50, 50]);
    const one = await gpu.tensor(new Float32Array(50 * 50).map((_, i) => i % 51 === 0), [50, 50]);
    const numbers = await gpu.tensor(Int32Array.from(values), [50, 50]);
    for (let i = 0; i < 4; i++) {
      const large = await gpu.tensor(new Float32Array(2 ** (18 + i)), [2 ** (18 + i)]);
      const [product, sum, turned, whole] = await Promise.all([
        gpu.matmul(a, one, { keep: true }),
        gpu.evaluate(lazy(a).add(a)),
        gpu.evaluate(lazy(a).transpose()),
        gpu.evaluate(lazy(numbers).mul(2)),
      ]);
      same(await product.toArray(), values);
      same(await sum.toArray(), values.map((value) => 2 * value));
      same(await turned.toArray(), values.map((_, at) => values[(at % 50) * 50 + Math.floor(at / 50)]));
      same(Float32Array.from(await whole.toArray()), await sum.toArray());
      for (const tensor of [large, product, sum, turned, whole]) tensor.dispose();
    }
    for (const tensor of [a, one, numbers]) tensor.dispose();
    await at_rest(gpu, before);
  },

  "tensors count until they are freed": async ({ gpu }) => {
    const before = gpu.memory();
    const tensors = [];
    for (let i = 0; i < 5; i++) tensors.push(await gpu.tensor(integers(64 * 64), [64, 64]));
    tensors.push(await gpu.matmul(tensors[0], tensors[1], { keep: true }));
    const { used_bytes, buffers } = gpu.memory();
    assert(
      used_bytes >= 6 * 64 * 64 * 4 && used_bytes <= 6 * 64 * 64 * 4 * 1.25 && buffers >= 6,
      `${used_bytes} bytes in ${buffers} buffers`,
    );
    for (const tensor of tensors) tensor.dispose();
    await at_rest(gpu, before);
  },

  "calls that fail or are aborted leave nothing": async ({ gpu }) => {
    const before = gpu.memory();
    const { a, b, options } = problem(50, 60, 70);
    for (const keep of [false, true]) {
      for (let i = 0; i < 5; i++) {
        const controller = new AbortController();
        const pending = settles(gpu.matmul(a, b, { ...options, keep, signal: controller.signal }));
        controller.abort();
        await pending;
        await settles(gpu.matmul(a, a, { ...options, keep }));
        await settles(gpu.tensor(a, [1, 1]));
        await settles(gpu.benchmark(a, a, options));
      }
      await sleep(50);
      await at_rest(gpu, before);
    }
  },

  "an opening that is aborted leaves nothing": async ({ lapidary: { Gpu }, gpu, backend }) => {
    await sleep(0);
    const before = gpu.memory();
    const controller = new AbortController();
    const pending = settles(Gpu.open({ backend, signal: controller.signal }));
    await Promise.resolve();
    controller.abort();
    (await pending).value?.free();
    // The next handle is open after the one that was aborted.
    (await Gpu.open({ backend })).free();
    const after = gpu.memory();
    assert(after.wasm_bytes < before.wasm_bytes + 1_000_000, `wasm_bytes went from ${before.wasm_bytes} to ${after.wasm_bytes}`);
  },

  "forgotten promises and a benchmark leave nothing": async ({ gpu }) => {
    const before = gpu.memory();
    const { a, b, options } = problem(30, 31, 31);
    for (let i = 0; i < 10; i++) void gpu.matmul(a, b, options);
    await sleep(50);
    await gpu.benchmark(a, b, { ...options, samples: 2, min_ms: 1 });
    await at_rest(gpu, before);
  },

  "a benchmark lets the page go on, and stops when it is aborted": async ({ gpu }) => {
    const before = gpu.memory();
    const { a, b, options } = problem(64, 63, 63);
    const controller = new AbortController();
    const start = performance.now();
    const pending = settles(gpu.benchmark(a, b, { ...options, samples: 40, min_ms: 20, signal: controller.signal }));
    await sleep(100);
    controller.abort();
    const { error } = await pending;
    is_fault(error, "aborted");
    const ms = performance.now() - start;
    assert(ms < 1_500, `aborted after ${Math.round(ms)} ms in place of 100`);
    await at_rest(gpu, before);
  },

  "references and handles give their memory back": async ({ lapidary: { Gpu, reference }, backend, gpu }) => {
    const { a, b, options } = problem(20, 20, 20);
    const cycle = async () => {
      (await reference(a, b, options)).free();
      (await Gpu.open({ backend })).free();
    };
    if (!is_slow(gpu)) await cycle();
    const before = gpu.memory().wasm_bytes;
    for (let i = 0; i < (is_slow(gpu) ? 1 : 4); i++) await cycle();
    const after = gpu.memory().wasm_bytes;
    assert(after <= before, `wasm_bytes went from ${before} to ${after}`);
  },
};
