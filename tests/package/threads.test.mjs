/** The CPU's threads: the same bits as one of them gives, with shared memory and without, and one is left where workers fail. */
import { test } from "node:test";
import { pages } from "./page.mjs";
import { serve } from "./server.mjs";

const { visit } = pages();

/** Visits a page of a server that is set up otherwise. */
async function served(options, body, more) {
  const server = await serve(options);
  try {
    return await visit(body, { url: server.url, ...more });
  } finally {
    await server.close();
  }
}

/** Shapes that share rows and columns, with blocks of each kind, and edges. */
const SHAPES = [
  [256, 256, 256],
  [301, 250, 299],
  [64, 300, 1030],
  [1030, 300, 64],
  [70, 2100, 650],
  [650, 2100, 70],
  [130, 129, 1100],
];

async function same_bits({ lapidary, assert, same, sleep }, shapes) {
  const { Gpu } = lapidary;
  const one = await Gpu.open({ backend: "simd", threads: 1 });
  const more = await Gpu.open({ backend: "simd", threads: 3 });
  assert(one.info().name === "CPU, one thread" && more.info().name === "CPU, 3 threads", more.info().name);
  let random = 1;
  const values = (length) => Float32Array.from({ length }, () => (random = (random * 48271) % 2147483647) / 2 ** 30 - 1);
  // The first product that is large enough starts the workers, and does not wait for them.
  const square = [values(300 * 300), values(300 * 300), { m: 300, k: 300, n: 300, report: true }];
  for (let turn = 0; !/3 threads/.test((await more.matmul(...square)).kernel); turn++) {
    assert(turn < 200, `no workers in 10 s: ${more.info().name}`);
    await sleep(50);
  }
  for (const [m, k, n] of shapes) {
    for (let bits = 0; bits < 4; bits++) {
      const [transpose_a, transpose_b] = [bits % 2 === 1, bits > 1];
      const padding = bits === 3 ? 5 : 0;
      const [lda, ldb, ldc] = [(transpose_a ? m : k) + padding, (transpose_b ? k : n) + padding, n + 2 * padding];
      const [a, b] = [values(lda * (transpose_a ? k : m)), values(ldb * (transpose_b ? n : k))];
      const scaled = bits === 1 || bits === 3 ? { alpha: 0.5, beta: 2, c: values(ldc * m), ldc } : { bias: values(n), activation: "silu" };
      const spans = { a: a.subarray(0, a.length - padding), b: b.subarray(0, b.length - padding) };
      if (scaled.c) scaled.c = scaled.c.subarray(0, scaled.c.length - 2 * padding);
      const options = { m, k, n, transpose_a, transpose_b, lda, ldb, ...scaled };
      const { kernel, data } = await more.matmul(spans.a, spans.b, { ...options, report: true });
      const what = `${[m, k, n]} transposed ${transpose_a},${transpose_b}`;
      assert(/, [23] threads$/.test(kernel), `${what} by ${kernel}`);
      same(data, await one.matmul(spans.a, spans.b, options), what);
    }
  }
  // Batches, whose products are shared out whole; of one with the same B the rows are.
  const [m, k, n] = [65, 70, 66];
  const batches = {
    "packed": { batch: 60, bias: values(n), activation: "relu" },
    "transposed, with gaps": { batch: [3, 20], transpose_a: true, transpose_b: true, alpha: 0.5 },
    "one A for all, and C": { batch: 59, stride_a: 0, beta: 2, c: values(59 * m * n) },
    "one B for all": { batch: 61, stride_b: 0 },
    "windows that overlap": { batch: 64, offset_a: 3, stride_a: 40, lda: k + 1, offset_b: 1, stride_b: k * n + 7 },
  };
  for (const [name, told] of Object.entries(batches)) {
    const options = { m, k, n, ...told };
    const items = [told.batch].flat().reduce((x, y) => x * y);
    const length = (offset, stride, own, packed) => (stride === undefined ? items * packed : (offset ?? 0) + (items - 1) * stride + own);
    const a = values(length(told.offset_a, told.stride_a, (m - 1) * (told.lda ?? k) + k, m * k));
    const b = values(length(told.offset_b, told.stride_b, k * n, k * n));
    const { kernel, data } = await more.matmul(a, b, { ...options, report: true });
    assert(/, 3 threads/.test(kernel), `${name} by ${kernel}`);
    same(data, await one.matmul(a, b, options), name);
  }
  const [heads, keys] = [await more.tensor(values(60 * m * k), [4, 15, m, k]), await more.tensor(values(4 * k * n), [4, 1, k, n])];
  const { kernel: by, data: kept_batch } = await more.matmul(heads, keys, { keep: true, report: true });
  const alone = [await one.tensor(await heads.toArray(), [4, 15, m, k]), await one.tensor(await keys.toArray(), [4, 1, k, n])];
  same(await kept_batch.toArray(), await one.matmul(...alone, {}), `a batch of two loops by ${by}`);
  for (const tensor of [heads, keys, kept_batch]) tensor.dispose();
  // Tensors, one after another and many at once, some of them freed before they are read to the end.
  const [x, y] = [await more.tensor(square[0], [300, 300]), await more.tensor(square[1], [300, 300])];
  const expected = await one.matmul(...square.slice(0, 2), { m: 300, k: 300, n: 300 });
  const kept = await Promise.all(Array.from({ length: 12 }, () => more.matmul(x, y, { keep: true })));
  for (const tensor of kept) same(await tensor.toArray(), expected, "a product of tensors");
  const last = more.matmul(x, y, {});
  for (const tensor of [x, y, ...kept]) tensor.dispose();
  const others = await Promise.all([1, 2, 3].map(() => more.tensor(square[2] && new Float32Array(90_000), [300, 300])));
  same(await last, expected, "a product of tensors that were freed");
  for (const tensor of others) tensor.dispose();
  // An operand that changes as soon as the call has returned.
  const Kinds = [ArrayBuffer, ...(globalThis.crossOriginIsolated ? [SharedArrayBuffer] : [])];
  for (const Kind of Kinds) {
    const copies = square.slice(0, 2).map((array) => {
      const copy = new Float32Array(new Kind(array.byteLength));
      copy.set(array);
      return copy;
    });
    const late = more.matmul(...copies, { m: 300, k: 300, n: 300 });
    for (const copy of copies) copy.fill(NaN);
    same(await late, expected, `operands in a ${Kind.name} that changed`);
  }
  const { samples_ms } = await more.benchmark(...square.slice(0, 2), { m: 300, k: 300, n: 300, samples: 2, min_ms: 5 });
  assert(samples_ms.length === 2, "a benchmark");
  for (let turn = 0; more.memory().used_bytes > 0; turn++) {
    assert(turn < 100, `${more.memory().used_bytes} bytes are still in use`);
    await sleep(10);
  }
  const isolated = globalThis.crossOriginIsolated;
  one.free();
  more.free();
  return isolated;
}

for (const isolated of [true, false]) {
  test(`the bits are the same with any number of threads, ${isolated ? "in" : "without"} isolation`, async () => {
    const was = await served({ isolated }, same_bits, { argument: SHAPES });
    if (was !== isolated) throw new Error(`the page was ${was ? "" : "not "}isolated`);
  });
}

/** Multiplies, or measures that, until the device says that workers failed; every result must be right. */
async function goes_on_alone({ lapidary, assert, right, problem, sleep }, [reason, measures]) {
  const gpu = await lapidary.Gpu.open({ backend: "simd", threads: 2 });
  const one = problem(300, 301, 302);
  for (let turn = 0; gpu.info().name === "CPU, 2 threads"; turn++) {
    assert(turn < 200, "no worker failed in 10 s");
    if (measures) assert((await gpu.benchmark(one.a, one.b, { ...one.options, samples: 1, min_ms: 1 })).gflops > 0, "a speed");
    else await right(gpu, one);
    await sleep(50);
  }
  assert(new RegExp(reason).test(gpu.info().name), gpu.info().name);
  const { kernel, device } = await gpu.matmul(one.a, one.b, { ...one.options, report: true });
  assert(/^matmul\/cpu \w+$/.test(kernel) && device === gpu.info().name, `${kernel} on ${device}`);
  await right(gpu, problem(301, 300, 299), "the next one");
  gpu.free();
}

for (const isolated of [true, false]) {
  const where = isolated ? "in" : "without";
  const fails = (name, reason, prepare, more) => {
    const argument = [reason, more?.measures];
    test(`${name}, ${where} isolation`, () => served({ isolated, ...more }, goes_on_alone, { argument, prepare, expected: more?.expected }));
  };

  fails("no workers at all", "one thread, .*Worker", () => delete globalThis.Worker);

  fails("a policy without workers of the page's own", "worker-src blob:", undefined, {
    policy: "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self'; img-src data:",
    expected: /Content Security Policy/,
  });

  const no_room = () => {
    const Own = globalThis.Blob;
    globalThis.Blob = function ([text]) {
      return new Own([text.replace("thread.run(", "{ throw new Error('no room for it') }; thread.run(")]);
    };
  };
  fails("a worker that fails at its first product", "no room for it", no_room, { expected: /no room for it/ });
  fails("a worker that fails while that is measured", "no room for it", no_room, { expected: /no room for it/, measures: true });

  fails("a worker that never answers", "did not answer", () => {
    const Own = globalThis.Blob;
    globalThis.Blob = function ([text]) {
      return new Own([text.replace("thread.run(", "for (;;) {} thread.run(")]);
    };
    // Who waits for this test has less patience than the package.
    const { setTimeout } = globalThis;
    globalThis.setTimeout = (then, ms) => setTimeout(then, Math.min(ms, 1000));
  });
}

for (const isolated of [true, false]) {
  test(`a worker that never answers is missed beside one that does, ${isolated ? "in" : "without"} isolation`, () =>
    served(
      { isolated },
      async ({ lapidary, assert, right, same, problem, sleep }) => {
        const gpu = await lapidary.Gpu.open({ backend: "simd", threads: 3 });
        const { a, b, options, expected } = problem(300, 301, 302);
        for (let turn = 0; globalThis.alive < 2; turn++) {
          assert(turn < 200, "no second worker in 10 s");
          await right(gpu, problem(300, 301, 302));
          await sleep(50);
        }
        // What the other one answers goes on all the while.
        const products = [];
        for (let turn = 0; !/one did not answer/.test(gpu.info().name); turn++) {
          assert(turn < 200, `${gpu.info().name} after 6 s`);
          products.push(gpu.matmul(a, b, options));
          await sleep(30);
        }
        for (const product of products) same(await product, expected);
        gpu.free();
      },
      {
        prepare: () => {
          globalThis.alive = 0;
          const Own = globalThis.Worker;
          globalThis.Worker = class extends Own {
            postMessage(message, ...more) {
              this.number ??= ++globalThis.alive;
              if (!message.job || this.number !== 2) super.postMessage(message, ...more);
            }
          };
          const { setTimeout } = globalThis;
          globalThis.setTimeout = (then, ms) => setTimeout(then, Math.min(ms, 1000));
        },
      },
    ));
}

for (const isolated of [true, false]) {
  test(`products that follow one another at once have all threads, ${isolated ? "in" : "without"} isolation`, () =>
    served({ isolated }, async ({ lapidary, assert, same, problem }) => {
      const gpu = await lapidary.Gpu.open({ backend: "simd", threads: 2 });
      const { a, b, options, expected } = problem(300, 301, 302);
      const begun = performance.now();
      // Nothing here waits for anything else than the products.
      for (let by = ""; !/2 threads/.test(by); ) {
        assert(performance.now() - begun < 20_000, `by ${by} after 20 s`);
        const { data, kernel } = await gpu.matmul(a, b, { ...options, report: true });
        same(data, expected);
        by = kernel;
      }
      gpu.free();
    }));
}

test("workers end when they are idle, and when the handle is freed", () =>
  visit(
    async ({ lapidary, assert, right, problem, sleep }) => {
      const one = problem(300, 301, 302);
      const gpu = await lapidary.Gpu.open({ backend: "simd", threads: 2 });
      await right(gpu, problem(30, 30, 30));
      assert(globalThis.alive === 0, "small products start none");
      await right(gpu, one);
      assert(globalThis.alive === 1, `${globalThis.alive} workers`);
      for (let turn = 0; globalThis.alive > 0; turn++) {
        assert(turn < 100, "idle workers do not end");
        await sleep(50);
      }
      await right(gpu, one);
      assert(globalThis.alive === 1 && gpu.info().name === "CPU, 2 threads", "they start anew");
      gpu.free();
      await sleep(50);
      assert(globalThis.alive === 0, "a freed handle leaves workers");
    },
    {
      prepare: () => {
        globalThis.alive = 0;
        const Own = globalThis.Worker;
        globalThis.Worker = class extends Own {
          constructor(...args) {
            super(...args);
            globalThis.alive++;
          }
          terminate() {
            super.terminate();
            globalThis.alive--;
          }
        };
        const { setTimeout } = globalThis;
        globalThis.setTimeout = (then, ms) => setTimeout(then, ms === 20_000 ? 1000 : ms);
      },
    },
  ));
