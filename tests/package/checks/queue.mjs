/** Products of tensors, one after another and none waited for: where there is a queue they are only recorded, and nobody may notice. */
import { every_call, wrap } from "./faults.mjs";
import { assert, each, integers, is_slow, product, rejects, right, problem, same, settles, skip, sleep, within } from "./tools.mjs";

const N = 9;
const SHAPE = [N, N];
const SIZES = { m: N, k: N, n: N };
const has_queue = (gpu) => ["webgpu", "webgl2"].includes(gpu.info().backend);

/** A matrix that moves rows up by one: its powers are as exact as itself. */
const shift = () => Float32Array.from({ length: N * N }, (_, i) => +(((i / N) | 0) === (((i % N) + N - 1) % N)));

const shifted = (values, rows) => Float32Array.from(values, (_, i) => values[((((i / N) | 0) + rows) % N) * N + (i % N)]);

/** Counts the calls of a method while `body` runs. */
async function counted(prototype, name, body) {
  let calls = 0;
  const undo = wrap(
    prototype,
    name,
    (original) =>
      function (...args) {
        calls++;
        return original.apply(this, args);
      },
  );
  await body().finally(undo);
  return calls;
}

/** Rounds in which everything is done that a backend without a queue has to wait for. */
const rounds = (gpu, count) => (has_queue(gpu) ? count : Math.min(count, 40));

export default {
  "a chain, each operand freed as soon as it is used": async ({ gpu }) => {
    const values = integers(N * N);
    const [step, first] = [await gpu.tensor(shift(), SHAPE), await gpu.tensor(values, SHAPE)];
    const before = gpu.memory();
    let last = first;
    const turns = rounds(gpu, 700);
    for (let i = 0; i < turns; i++) {
      const next = await gpu.matmul(step, last, { keep: true });
      if (last !== first) last.dispose();
      last = next;
    }
    same(await last.toArray(), shifted(values, turns), `the product after ${turns}`);
    assert(gpu.memory().peak_bytes - before.peak_bytes < 64 * N * N * 4, "freed operands serve again");
    for (const tensor of [first, step, last]) tensor.dispose();
  },

  "products of any sizes, of what was uploaded or computed, freed in any order": async ({ gpu }) => {
    const sides = [4, 9, 20, 130];
    // Moves rows up by one, so that products of products stay exact.
    const shifts = [];
    for (const side of sides) {
      const rows = Float32Array.from({ length: side * side }, (_, i) => +(((i / side) | 0) === (((i % side) + side - 1) % side)));
      shifts.push(await gpu.tensor(rows, [side, side]));
    }
    const before = gpu.memory();
    let seed = 5;
    const below = (most) => ((seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0) >>> 8) % most;
    const values = sides.map((side) => [1, 2, 3].map((seed) => integers(side * side, seed)));
    // Each with the values that it began with, and by how many rows they have moved.
    const live = sides.map(() => []);
    let which = 0;
    for (let turn = 0; turn < rounds(gpu, 250); turn++) {
      if (below(3) === 0) which = below(sides.length);
      const [side, known] = [sides[which], live[which]];
      if (known.length === 0 || below(12) === 0) {
        const from = below(3);
        known.push({ tensor: await gpu.tensor(values[which][from], [side, side]), from, rows: 0 });
      } else {
        const { tensor, from, rows } = known[below(known.length)];
        known.push({ tensor: await gpu.matmul(shifts[which], tensor, { keep: true }), from, rows: rows + 1 });
      }
      while (known.length > 6) known.splice(below(known.length), 1)[0].tensor.dispose();
    }
    for (const [i, side] of sides.entries()) {
      for (const { tensor, from, rows } of live[i]) {
        const expected = Float32Array.from({ length: side * side }, (_, at) => values[i][from][(((((at / side) | 0) + rows) % side) * side) + (at % side)]);
        same(await tensor.toArray(), expected, `of side ${side}, moved ${rows} times`);
        tensor.dispose();
      }
    }
    const after = gpu.memory();
    assert(after.used_bytes === before.used_bytes && after.buffers === before.buffers, JSON.stringify({ before, after }));
    for (const tensor of shifts) tensor.dispose();
  },

  "windows of tensors, read where they lie": async ({ gpu }) => {
    const [x, y] = [integers(12 * 20, 1), integers(15 * 9, 2)];
    const [a, b] = [await gpu.tensor(x, [12, 20]), await gpu.tensor(y, [15, 9])];
    const [m, k, n] = [5, 7, 4];
    for (const [i, j] of [[0, 0], [3, 8], [7, 13], [6, 4]]) {
      const kept = await gpu.matmul(a, b, { m, k, n, offset_a: i * 20 + j, offset_b: 2 * 9 + 5, keep: true });
      same(await kept.toArray(), product(x.subarray(i * 20 + j), y.subarray(23), { m, k, n, lda: 20, ldb: 9 }), `from ${i}, ${j}`);
      assert(`${kept.shape}` === "5,4", "its shape");
      kept.dispose();
    }
    const options = { m, k, n, transpose_a: true, offset_a: 23, beta: 2, c: x, offset_c: 41, ldc: 20 };
    const expected = product(x.subarray(23), y, { ...options, lda: 20, c: x.subarray(41) });
    same(await gpu.matmul(a, y, { ...options, ldb: n }), expected, "transposed, of a tensor and an array");
    same(await gpu.matmul(a, y, { ...options, ldb: n, c: a, ldc: undefined }), expected, "with a window of a tensor added");
    const batch = { m: 3, k: 4, n: 9, batch: 2, offset_a: 21, lda: 20, stride_a: 60, stride_b: 36 };
    const items = [0, 1].map((item) => product(x.subarray(21 + 60 * item), y.subarray(36 * item), { ...batch, lda: 20 }));
    same(await gpu.matmul(a, b, { ...batch, offset_b: 0 }), Float32Array.of(...items[0], ...items[1]), "a batch");
    for (const tensor of [a, b]) tensor.dispose();
  },

  "results are read in any order, and at once": async ({ gpu }) => {
    const [x, y] = [integers(N * N, 1), integers(N * N, 2)];
    const [a, b] = [await gpu.tensor(x, SHAPE), await gpu.tensor(y, SHAPE)];
    const alphas = Array.from({ length: rounds(gpu, 90) }, (_, i) => i - 7);
    const kept = await Promise.all(alphas.map((alpha) => gpu.matmul(a, b, { alpha, keep: true })));
    const check = async (i) => same(await kept[i].toArray(), product(x, y, { ...SIZES, alpha: alphas[i] }), `result ${i}`);
    await check(kept.length - 1);
    await check(0);
    await Promise.all(kept.map((_, i) => check((i * 7) % kept.length)));
    for (const tensor of [a, b, ...kept]) tensor.dispose();
  },

  "the queue is full": async ({ gpu }) => {
    const x = integers(N * N, 9);
    const a = await gpu.tensor(x, SHAPE);
    // Each reading ends a batch, and no batch is judged before the browser has a turn.
    const pending = [];
    const tensors = [];
    for (let i = 0; i < rounds(gpu, 400); i++) {
      tensors.push(await gpu.matmul(a, a, { alpha: i % 5, keep: true }));
      pending.push(tensors[i].toArray());
    }
    (await Promise.all(pending)).forEach((values, i) => same(values, product(x, x, { ...SIZES, alpha: i % 5 }), `result ${i}`));
    for (const tensor of [a, ...tensors]) tensor.dispose();
  },

  "more kinds of products than are remembered": async ({ gpu }) => {
    const x = integers(N * N, 3);
    const a = await gpu.tensor(x, SHAPE);
    // Each alpha has parameters of its own; twice, so that those of before are overwritten.
    const alphas = Array.from({ length: rounds(gpu, 600) }, (_, i) => (i % 300) - 150);
    const kept = await Promise.all(alphas.map((alpha) => gpu.matmul(a, a, { alpha, transpose_a: alpha % 2 === 0, keep: true })));
    for (let i = 0; i < kept.length; i += 37) {
      const expected = product(x, x, { ...SIZES, alpha: alphas[i], transpose_a: alphas[i] % 2 === 0 });
      same(await kept[i].toArray(), expected, `alpha ${alphas[i]}`);
    }
    for (const tensor of [a, ...kept]) tensor.dispose();
  },

  "memory of operands serves again, or is given back, before they were read": async ({ gpu }) => {
    const [x, y, z] = [1, 2, 3].map((seed) => integers(N * N, seed));
    for (const trims of [false, true]) {
      const [a, b] = [await gpu.tensor(x, SHAPE), await gpu.tensor(y, SHAPE)];
      const pending = gpu.matmul(a, b, { keep: true });
      a.dispose();
      if (trims) gpu.trim();
      // Is written where A was.
      const uploads = [gpu.tensor(z, SHAPE), gpu.matmul(z, z, SIZES)];
      b.dispose();
      const c = await pending;
      const d = await gpu.matmul(c, await uploads[0], { keep: true });
      c.dispose();
      if (trims) gpu.trim();
      same(await d.toArray(), product(product(x, y, SIZES), z, SIZES), "what was computed before");
      same(await (await uploads[0]).toArray(), z, "what was written since");
      same(await uploads[1], product(z, z, SIZES), "a product of arrays meanwhile");
      d.dispose();
      (await uploads[0]).dispose();
    }
  },

  "calls that are waited for, between those that are not": async ({ gpu }) => {
    const [x, y] = [integers(N * N, 4), integers(N * N, 5)];
    const [a, b] = [await gpu.tensor(x, SHAPE), await gpu.tensor(y, SHAPE)];
    const [xy, options] = [product(x, y, SIZES), { ...SIZES, beta: 1, c: x }];
    const calls = {
      kept: async () => {
        const c = await gpu.matmul(a, b, { keep: true });
        const d = await gpu.matmul(c, y, { n: N, keep: true });
        same(await d.toArray(), product(xy, y, SIZES));
        for (const tensor of [c, d]) tensor.dispose();
      },
      plain: async () => same(await gpu.matmul(a, b, {}), xy),
      report: async () => same((await gpu.matmul(a, b, { report: true })).data, xy),
      report_kept: async () => {
        const { data } = await gpu.matmul(a, b, { report: true, keep: true });
        same(await data.toArray(), xy);
        data.dispose();
      },
      added: async () => {
        const c = await gpu.matmul(a, b, { beta: 1, c: x, keep: true });
        same(await c.toArray(), product(x, y, options));
        c.dispose();
      },
      arrays: () => right(gpu, { a: x, b: y, options, expected: product(x, y, options) }),
      benchmark: () => gpu.benchmark(a, b, { samples: 1, min_ms: 0 }),
    };
    await each(calls, (call) => call());
    await Promise.all(Object.values(calls).flatMap((call) => [call(), call(), call()]));
    for (const tensor of [a, b]) tensor.dispose();
  },

  "what is wrong is told at the call, and what is queued goes on": async ({ gpu, lapidary: { Gpu }, backend }) => {
    const x = integers(N * N, 6);
    const other = await Gpu.open({ backend });
    const [a, wide, foreign] = [await gpu.tensor(x, SHAPE), await gpu.tensor(integers(2 * N), [2, N]), await other.tensor(x, SHAPE)];
    const gone = await gpu.tensor(x, SHAPE);
    gone.dispose();
    const before = gpu.matmul(a, a, { keep: true });
    const wrong = {
      "a shape": ["invalid_dimension", () => gpu.matmul(a, wide, { keep: true })],
      "a stride": ["length_mismatch", () => gpu.matmul(a, a, { lda: N + 1, keep: true })],
      "beta without c": ["invalid_option", () => gpu.matmul(a, a, { beta: 1, keep: true })],
      "an option": ["invalid_option", () => gpu.matmul(a, a, { kept: true })],
      "a freed tensor": ["disposed", () => gpu.matmul(a, gone, { keep: true })],
      "a tensor of another handle": ["invalid_type", () => gpu.matmul(foreign, a, { keep: true })],
      "an aborted signal": ["aborted", () => gpu.matmul(a, a, { keep: true, signal: AbortSignal.abort() })],
    };
    await each(wrong, ([code, call]) => rejects(code, call));
    const after = await gpu.matmul(await before, a, { keep: true });
    same(await after.toArray(), product(product(x, x, SIZES), x, SIZES));
    for (const tensor of [a, wide, foreign, await before, after]) tensor.dispose();
    other.free();
  },

  "a tensor has its shape and its place": async ({ gpu, backend }) => {
    const [a, b] = [await gpu.tensor(integers(6), [3, 2]), await gpu.tensor(integers(12), [3, 4])];
    const c = await gpu.matmul(a, b, { transpose_a: true, keep: true });
    assert(c.rows === 2 && c.columns === 4 && c.backend === backend, `${c.rows} × ${c.columns} on ${c.backend}`);
    const d = await gpu.matmul(c, c, { transpose_b: true, keep: true });
    assert(d.rows === 2 && d.columns === 2, `${d.rows} × ${d.columns}`);
    const none = await gpu.matmul(c, b, { m: 0, k: 0, lda: 4, transpose_a: true, keep: true }).catch((error) => error);
    assert(none.code === "invalid_dimension", "a tensor's shape holds");
    const zero = await gpu.matmul(a, b, { transpose_a: true, alpha: 0, keep: true });
    same(await zero.toArray(), new Float32Array(8), "alpha 0");
    for (const tensor of [a, b, c, d, zero]) tensor.dispose();
  },

  "exactly the live tensors are counted, before anything is computed": async ({ gpu }) => {
    const size = 64;
    const a = await gpu.tensor(integers(size * size), [size, size]);
    const before = gpu.memory();
    const count = rounds(gpu, 300);
    const kept = await Promise.all(Array.from({ length: count }, () => gpu.matmul(a, a, { keep: true })));
    const during = gpu.memory();
    const [bytes, buffers] = [during.used_bytes - before.used_bytes, during.buffers - before.buffers];
    assert(buffers === count && bytes === count * size * size * 4, `${bytes} bytes in ${buffers} buffers for ${count} tensors`);
    kept.forEach((tensor) => tensor.dispose());
    const after = gpu.memory();
    assert(after.used_bytes === before.used_bytes && after.buffers === before.buffers, JSON.stringify({ before, after }));
    a.dispose();
  },

  "ten thousand rounds end where they began": async ({ gpu }) => {
    const x = integers(N * N, 7);
    const start = gpu.memory();
    // Small tensors share buffers; one of that side has its own, from the pool.
    const SIDE = 300;
    const large = integers(SIDE * SIDE, 8);
    const create_multiply_dispose = async (values, side) => {
      const a = await gpu.tensor(values, [side, side]);
      (await gpu.matmul(a, a, { keep: true })).dispose();
      a.dispose();
    };
    const round = async () => {
      for (let i = 0; i < (is_slow(gpu) ? 300 : 1000); i++) await create_multiply_dispose(x, N);
      for (let i = 0; i < (has_queue(gpu) && !gpu.info().software ? 100 : 1); i++) await create_multiply_dispose(large, SIDE);
      const a = await gpu.tensor(x, SHAPE);
      const last = await gpu.matmul(a, a, { keep: true });
      same(await last.toArray(), product(x, x, SIZES));
      for (const tensor of [a, last]) tensor.dispose();
    };
    await round();
    const before = gpu.memory();
    for (let i = 0; i < 9; i++) await round();
    const after = gpu.memory();
    assert(after.used_bytes === start.used_bytes && after.buffers === start.buffers, JSON.stringify({ start, after }));
    // How many operands are under way at once is the GPU's affair; what a round left behind would be nine times what the first did.
    const most = { pooled_bytes: 2 * before.pooled_bytes + 2 ** 22, peak_bytes: 2 * before.peak_bytes + 2 ** 22, wasm_bytes: before.wasm_bytes + 2 ** 17 };
    assert(Object.entries(most).every(([name, bytes]) => after[name] <= bytes), JSON.stringify({ before, after }));
  },

  "an operand that is multiplied again and again is kept in another form, which changes nothing": async ({ gpu, backend }) => {
    if (backend !== "webgpu") skip("it is of WebGPU");
    const [m, k, n] = [129, 203, 131];
    const [x, y] = [integers(m * k, 3), integers(k * n, 4)];
    const expected = product(x, y, { m, k, n });
    const [a, b] = [await gpu.tensor(x, [m, k]), await gpu.tensor(y, [k, n])];
    const before = gpu.memory();
    /** How many launches it takes. */
    const multiply = () =>
      counted(GPUComputePassEncoder.prototype, "dispatchWorkgroups", async () => {
        const c = await gpu.matmul(a, b, { keep: true });
        same(await c.toArray(), expected);
        c.dispose();
      });
    assert((await multiply()) === 1, "the first product is one launch");
    // The kernel that reads the forms is compiled beside other work, some time.
    const until_made = async () => {
      while ((await multiply()) === 1) await sleep(10);
    };
    await within(30_000, until_made(), "a form of an operand");
    for (let i = 0; i < 5; i++) assert((await multiply()) === 1, "it is made once");
    const during = gpu.memory();
    assert(during.used_bytes === before.used_bytes && during.buffers === before.buffers, JSON.stringify({ before, during }));
    gpu.trim();
    assert((await multiply()) > 1, "given back with free memory, it is made again");
    for (const tensor of [a, b]) tensor.dispose();
  },

  "many share a submission, and what nobody reads is submitted too": async ({ gpu, backend }) => {
    if (backend !== "webgpu") skip("it is of WebGPU");
    const a = await gpu.tensor(integers(N * N), SHAPE);
    const queue = async (count) => Promise.all(Array.from({ length: count }, () => gpu.matmul(a, a, { keep: true })));
    let kept = await queue(1);
    await sleep(50);
    const few = await counted(GPUQueue.prototype, "submit", async () => {
      kept.push(...(await queue(3)));
      await sleep(50);
    });
    assert(few === 1, `${few} submissions of 3 products that nobody reads`);
    const many = await counted(GPUQueue.prototype, "submit", async () => {
      kept.push(...(await queue(1000)));
      await kept.at(-1).toArray();
    });
    assert(many <= 10, `${many} submissions of 1000 products`);
    const launches = await counted(GPUComputePassEncoder.prototype, "dispatchWorkgroups", async () => {
      kept.push(...(await queue(1000)));
      await kept.at(-1).toArray();
    });
    assert(launches <= 20, `${launches} launches of 1000 products`);
    const groups = await counted(GPUDevice.prototype, "createBindGroup", async () => {
      for (const tensor of kept) tensor.dispose();
      kept = await queue(1000);
      await kept.at(-1).toArray();
    });
    assert(groups <= 4, `${groups} bind groups for products that were computed before`);
    for (const tensor of [a, ...kept]) tensor.dispose();
  },

  "nothing of WebGL's is asked that waits, and nothing is told twice": async ({ gpu, backend }) => {
    if (backend !== "webgl2") skip("it is of WebGL2");
    const a = await gpu.tensor(integers(N * N), SHAPE);
    const round = async (count) => {
      for (let i = 0; i < count; i++) (await gpu.matmul(a, a, { keep: true })).dispose();
    };
    await round(2);
    const { calls, undo } = every_call(WebGL2RenderingContext.prototype);
    await round(1000).finally(undo);
    assert(calls.drawArrays === 1000, `${calls.drawArrays} drawings of 1000 products`);
    for (const name of ["getError", "getParameter", "getProgramParameter", "checkFramebufferStatus", "readPixels", "finish", "texStorage2D", "uniform1uiv", "useProgram", "viewport"])
      assert(!calls[name], `${calls[name]} times ${name}`);
    const others = Object.entries(calls).filter(([name]) => !["drawArrays", "isContextLost"].includes(name));
    assert(others.reduce((sum, [, count]) => sum + count, 0) < 300, `beside 1000 drawings ${JSON.stringify(others)}`);
    a.dispose();
  },

  "free with a queue: each is right or disposed": async ({ lapidary: { Gpu }, backend }) => {
    const x = integers(N * N, 8);
    const own = await Gpu.open({ backend });
    const a = await own.tensor(x, SHAPE);
    const kept = Array.from({ length: 30 }, () => settles(own.matmul(a, a, { keep: true })));
    own.free();
    for (const { error, value } of await within(20_000, Promise.all(kept), "a queued product")) {
      if (error) assert(error.code === "disposed", `${error.code}: ${error.message}`);
      else same(await value.toArray(), product(x, x, SIZES));
    }
    await rejects("disposed", () => own.matmul(a, a, { keep: true }), /handle/);
    await right(own, problem(3, 3, 3)).then(
      () => assert(false, "a product on a freed handle"),
      () => {},
    );
  },
};
