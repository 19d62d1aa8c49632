/** Matrices of f16, and the precision f16x3. Where a device or an engine has not got them, what it says instead. */
import { wrap } from "./faults.mjs";
import { assert, each, integers, is_fault, problem, product, rejects, right, same, settles, skip } from "./tools.mjs";

const sizes = { m: 5, k: 33, n: 7 };
const has = (gpu, feature) => gpu.info().features.includes(feature);
const has_units = (gpu) => has(gpu, "subgroup-matrix");
const needs_units = (gpu) => has_units(gpu) || skip("this device has no matrix units that lapidary can use");
const needs_halves = () => globalThis.Float16Array ?? skip("this engine has no Float16Array");

/** What a handle does for which the browser hides the device's matrix units. */
async function without_units({ Gpu }, backend, body) {
  const hide = (original) =>
    function (name) {
      return name !== "chromium-experimental-subgroup-matrix" && original.call(this, name);
    };
  const undo = wrap(GPUSupportedFeatures.prototype, "has", hide);
  const gpu = await Gpu.open({ backend }).finally(undo);
  await body(gpu).finally(() => gpu.free());
}

/** The same problem with its operands in f16, which holds all its numbers. */
const halved = ({ a, b, options, expected }) => ({ a: new Float16Array(a), b: new Float16Array(b), options, expected });

function same_halves(actual, expected) {
  assert(actual instanceof Float16Array, `${actual} is not a Float16Array`);
  same(new Float32Array(actual), new Float32Array(new Float16Array(expected)));
}

/** Uniform values in [-1, 1). */
function uniform(length, seed) {
  let state = seed;
  return Float32Array.from({ length }, () => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 2 ** 31 - 1);
}

/** The largest error of some fifty rows of a product and the root of the mean of their squares, and the largest as a share of what it may be. */
function errors(actual, a, b, { m, k, n, transpose_a, transpose_b }, u = 2 ** -24) {
  let [most, squares, share, count] = [0, 0, 0, 0];
  for (let i = 0; i < m; i += Math.ceil(m / 50)) {
    for (let j = 0; j < n; j++) {
      let [sum, magnitude] = [0, 0];
      for (let p = 0; p < k; p++) {
        const x = a[transpose_a ? p * m + i : i * k + p] * b[transpose_b ? j * k + p : p * n + j];
        sum += x;
        magnitude += Math.abs(x);
      }
      const error = Math.abs(actual[i * n + j] - sum);
      most = Math.max(most, error);
      squares += error * error;
      count++;
      share = Math.max(share, error / ((2 * k + 12) * u * magnitude));
    }
  }
  return { most, rms: Math.sqrt(squares / count), share };
}

/** A product with transposes, scalings, a bias, an activation and one in a batch, operands as `made` makes them, by a kernel that is so called. */
async function with_all(gpu, m, k, n, options, made, name, of_batch = [m, k, n]) {
  const check = async (what, more, bias) => {
    const { a, b, options: sizes, expected } = made(problem(m, k, n, 3, more));
    const end = bias && { bias, activation: "relu" };
    const { data, kernel } = await gpu.matmul(a, b, { ...sizes, ...options, ...end, report: true });
    assert(name.test(kernel), `${m} × ${k} × ${n} ${what} by ${kernel}`);
    same(data, bias ? expected.map((value, i) => Math.max(0, value + bias[i % n])) : expected, `${m} × ${k} × ${n} ${what}`);
  };
  for (const bits of [0, 1, 2, 3]) await check(`transposed ${bits}`, { transpose_a: bits > 1, transpose_b: bits % 2 === 1, alpha: bits === 2 ? -0.5 : 1 });
  await check("with c", { beta: -2, c: integers(m * n, 8) });
  await check("with all", { transpose_b: true, alpha: 0.5, beta: 3, c: integers(m * n, 9) }, integers(n, 5));
  // A batch, one operand of which is shared.
  [m, k, n] = of_batch;
  const { a, b } = made({ a: integers(6 * m * k, 1), b: integers(3 * k * n, 2) });
  const [x, y] = [await gpu.tensor(a, [2, 3, m, k]), await gpu.tensor(b, [3, k, n])];
  const { data, kernel } = await gpu.matmul(x, y, { ...options, report: true });
  assert(name.test(kernel), `a batch of ${m} × ${k} × ${n} by ${kernel}`);
  for (let item = 0; item < 6; item++) {
    const [own_a, own_b] = [a.subarray(item * m * k, (item + 1) * m * k), b.subarray((item % 3) * k * n, ((item % 3) + 1) * k * n)];
    same(data.slice(item * m * n, (item + 1) * m * n), product(own_a, own_b, { m, k, n }), `${m} × ${k} × ${n}, ${item} of a batch`);
  }
  for (const tensor of [x, y]) tensor.dispose();
}

const with_arrays = {
  "operands of f16 give f32": async ({ gpu }) => {
    for (const [m, k, n] of [
      [5, 33, 7],
      [64, 64, 64],
      [1, 100, 9],
      [9, 100, 1],
      [3, 0, 4],
    ])
      await right(gpu, halved(problem(m, k, n)), `${m} × ${k} × ${n}`);
    for (const transpose_a of [false, true])
      for (const transpose_b of [false, true]) await right(gpu, halved(problem(20, 24, 28, 3, { transpose_a, transpose_b, alpha: 0.5 })));
    await right(gpu, halved(problem(6, 9, 4, 2, { beta: 2, c: integers(24) })), "c of f32");
  },

  "tensors of f16 know it": async ({ gpu }) => {
    const { a, b, options, expected } = halved(problem(5, 33, 7));
    const [x, y] = [await gpu.tensor(a, [5, 33]), await gpu.tensor(b, [33, 7])];
    const reshaped = x.reshape([33, 5]);
    assert(x.dtype === "f16" && reshaped.dtype === "f16", `dtype ${x.dtype}`);
    same_halves(await x.toArray(), a);
    const z = await gpu.matmul(x, y, { keep: true });
    assert(z.dtype === "f32", `dtype ${z.dtype} of a product`);
    same(await z.toArray(), expected);
    same(await gpu.matmul(x, b, options), expected, "a tensor and an array");
    for (const tensor of [x, reshaped, y, z]) tensor.dispose();
  },

  "every f16 is itself on the device": async ({ gpu, lapidary: { lazy } }) => {
    const bits = Uint16Array.from({ length: 2 ** 16 }, (_, i) => i);
    const x = await gpu.tensor(bits, [256, 256], { dtype: "f16" });
    const is_nan = (half) => (half & 0x7c00) === 0x7c00 && (half & 0x3ff) !== 0;
    const back = new Uint16Array((await x.toArray()).buffer);
    const wrong = bits.findIndex((half, i) => (is_nan(half) ? !is_nan(back[i]) : back[i] !== half));
    assert(wrong < 0, `${wrong?.toString(16)} came back as ${back[wrong]?.toString(16)}`);
    // As kernels read them: all but those that GPUs may take for zero.
    const read = await gpu.evaluate(lazy(x).cast("f32"));
    const [wide, exact] = [await read.toArray(), new Float16Array(bits.buffer)];
    const other = wide.findIndex((value, i) => !Object.is(value, exact[i]) && (Math.abs(exact[i]) >= 2 ** -14 || Math.abs(exact[i]) === 0));
    assert(other < 0 || Number.isNaN(exact[other]), `${other?.toString(16)} is read as ${wide[other]}`);
    for (const tensor of [x, read]) tensor.dispose();
  },

  "results of f16": async ({ gpu }) => {
    const { a, b, options, expected } = halved(problem(5, 33, 7));
    same_halves(await gpu.matmul(a, b, { ...options, result: "f16" }), expected);
    const { data } = await gpu.matmul(a, b, { ...options, result: "f16", report: true });
    same_halves(data, expected);
    const x = await gpu.tensor(a, [5, 33]);
    const z = await gpu.matmul(x, b, { n: 7, result: "f16", keep: true });
    assert(z.dtype === "f16", `dtype ${z.dtype}`);
    same_halves(await z.toArray(), expected);
    const [p, q] = [integers(15, 5), integers(20, 6)];
    same_halves(await gpu.matmul(p, q, { m: 3, k: 5, n: 4, result: "f16" }), product(p, q, { m: 3, k: 5, n: 4 }));
    for (const tensor of [x, z]) tensor.dispose();
  },

  "products of f16 within expressions": async ({ lapidary: { lazy }, gpu }) => {
    const { a, b, expected } = halved(problem(5, 33, 7));
    const [x, y] = [await gpu.tensor(a, [5, 33]), await gpu.tensor(b, [33, 7])];
    const z = await gpu.evaluate(lazy(x).matmul(y).mul(0.3).relu());
    // A number beside f16 is the nearest of f16.
    same_halves(await z.toArray(), expected.map((value) => Math.max(value * 0.300048828125, 0)));
    for (const tensor of [x, y, z]) tensor.dispose();
  },

  "types that do not go together": async ({ gpu }) => {
    const { a, b, options } = problem(5, 33, 7);
    await rejects("invalid_type", () => gpu.matmul(new Float16Array(a), b, options), /\bb\b/, /f16/);
    await rejects("invalid_type", () => gpu.matmul(a, b, { ...options, beta: 1, c: new Float16Array(35) }), /\bc\b/);
    await rejects("invalid_type", () => gpu.matmul(a, b, { ...options, bias: new Float16Array(7) }), /\bbias\b/);
    await rejects("invalid_option", () => gpu.matmul(new Float16Array(a), new Float16Array(b), { ...options, precision: "f16x3" }), /f16/);
  },

  "the precision f16, whether the device computes in f16 or not": async ({ lapidary, gpu }) => {
    for (const [m, k, n] of [
      [65, 100, 35],
      [128, 256, 128],
    ]) {
      const [a, b] = [new Float16Array(uniform(m * k, 1)), new Float16Array(uniform(k * n, 2))];
      const options = { m, k, n, precision: "f16" };
      const { data, kernel } = await gpu.matmul(a, b, { ...options, report: true });
      const computes = has(gpu, "shader-f16") && !has_units(gpu);
      assert(computes === /tiled f16/.test(kernel), `${kernel} with ${gpu.info().features}`);
      const reference = await lapidary.reference(a, b, options);
      const verdict = reference.check(data);
      assert(verdict.ok, JSON.stringify(verdict));
      reference.free();
    }
    await rejects("invalid_option", () => gpu.matmul(new Float32Array(1), new Float32Array(1), { m: 1, k: 1, n: 1, precision: "f16" }), /f32/);
  },

  "f16 computed in f16 with all that goes with a product": async ({ lapidary, gpu, backend }) => {
    if (!has(gpu, "shader-f16")) skip("this device does not compute in f16");
    await without_units(lapidary, backend, async (own) => {
      assert(has(own, "shader-f16") && !has_units(own), `${own.info().features}`);
      for (const [m, k, n] of [
        [128, 256, 128],
        [129, 65, 67],
        [300, 77, 260],
      ])
        await with_all(own, m, k, n, { precision: "f16" }, halved, /tiled f16/);
    });
  },

  "a reference for f16": async ({ lapidary, gpu }) => {
    const { a, b, options } = halved(problem(20, 30, 10, 9));
    const reference = await lapidary.reference(a, b, options);
    const verdict = reference.check(await gpu.matmul(a, b, options));
    assert(verdict.ok && verdict.elements === 200, JSON.stringify(verdict));
    reference.free();
  },

  "matrix units multiply f16": async ({ gpu }) => {
    needs_units(gpu);
    for (const [m, k, n] of [
      [128, 128, 128],
      [129, 65, 67],
      [100, 1000, 36],
      [300, 77, 260],
      [16, 5000, 24],
    ]) {
      await with_all(gpu, m, k, n, {}, halved, /cooperative/);
    }
  },
};

export default {
  "values that are no type or precision": ({ gpu }) =>
    each({ result: ["f64", 16, null], precision: ["f16x2", "high", 3, null] }, (values, name) =>
      each({ ...values }, (value) => {
        const { a, b, options } = problem(5, 33, 7);
        return rejects("invalid_option", () => gpu.matmul(a, b, { ...options, [name]: value }), new RegExp(`\\b${name}\\b`));
      }),
    ),

  "an engine without Float16Array says so": async ({ gpu }) => {
    if (globalThis.Float16Array) skip("this engine has Float16Array");
    const { a, b, options } = problem(5, 33, 7);
    await rejects("unavailable", () => gpu.matmul(a, b, { ...options, result: "f16" }), /Float16Array/);
  },

  "bits of f16 are operands in every engine": async ({ gpu, lapidary: { lazy } }) => {
    const values = [1.5, -2, 2 ** -14, 0.333251953125, 65504, -Infinity, 2 ** -9, -0];
    const bits = Uint16Array.of(0x3e00, 0xc000, 0x0400, 0x3555, 0x7bff, 0xfc00, 0x1800, 0x8000);
    const identity = Float32Array.from({ length: 4 }, (_, i) => +(i % 3 === 0));
    const [x, y] = [await gpu.tensor(bits, [4, 2], { dtype: "f16" }), await gpu.tensor(bits.subarray(0, 4), [2, 2], { dtype: "f16" })];
    const wide = await gpu.evaluate(lazy(x).cast("f32"));
    same(await wide.toArray(), Float32Array.from(values), "as f32");
    const exact = await gpu.tensor(identity, [2, 2]);
    const one = await gpu.evaluate(lazy(exact).cast("f16"));
    same(await gpu.matmul(one, y, {}), Float32Array.from(values.slice(0, 4)), "times what was computed in f16");
    same(await gpu.matmul(y, one, { beta: 2, c: identity }), Float32Array.of(3.5, -2, 2 ** -14, 2.333251953125), "with c");
    for (const tensor of [x, y, wide, exact, one]) tensor.dispose();
  },

  "arrays of f16 take half the memory": async ({ gpu, backend }) => {
    if (!backend.startsWith("web")) skip("the CPU in a browser keeps arrays in f32");
    const bytes_of = async (data, options) => {
      const before = gpu.memory().used_bytes;
      const tensor = await gpu.tensor(data, [256, 256], options);
      const bytes = gpu.memory().used_bytes - before;
      tensor.dispose();
      return bytes;
    };
    const [wide, narrow] = [await bytes_of(new Float32Array(65536)), await bytes_of(new Uint16Array(65536), { dtype: "f16" })];
    assert(wide >= 2 ** 18 && wide === 2 * narrow, `${narrow} bytes of f16, ${wide} of f32`);
  },

  "f16x3 where there are no matrix units": async ({ gpu }) => {
    if (has_units(gpu)) skip("this device has matrix units");
    const { a, b } = problem(5, 33, 7);
    const call = () => gpu.matmul(a, b, { ...sizes, precision: "f16x3" });
    await rejects("invalid_option", call, /precision is f16x3/, /matrix units/, /enable-unsafe-webgpu/);
    const [x, y] = [await gpu.tensor(a, [5, 33]), await gpu.tensor(b, [33, 7])];
    is_fault((await settles(gpu.matmul(x, y, { precision: "f16x3", keep: true }))).error, "invalid_option", /precision/);
    for (const tensor of [x, y]) tensor.dispose();
  },

  "f16x3 is no less exact than f32": async ({ gpu }) => {
    needs_units(gpu);
    for (const [m, k, n] of [
      [704, 512, 704],
      [961, 1000, 1023],
      [1024, 4096, 1024],
    ]) {
      for (const [bits, is_positive] of [[0, false], [1, false], [2, false], [3, false], [0, true]]) {
        const options = { m, k, n, transpose_a: bits > 1, transpose_b: bits % 2 === 1 };
        const values = (count, seed) => (is_positive ? uniform(count, seed).map(Math.abs) : uniform(count, seed));
        const [a, b] = [values(m * k, bits + 1), values(k * n, bits + 9)];
        const { data, kernel } = await gpu.matmul(a, b, { ...options, precision: "f16x3", report: true });
        assert(/f16x3/.test(kernel), `${m} × ${k} × ${n} by ${kernel}`);
        if (bits > 0 && k > 1000) continue;
        const split = errors(data, a, b, options);
        const plain = errors(await gpu.matmul(a, b, options), a, b, options);
        // The largest of all errors is one element's chance: where plain sums are made in parts, up to 1.14 times was measured.
        const both = `${m} × ${k} × ${n}, ${bits}, ${is_positive}: ${JSON.stringify({ split, plain })}`;
        assert(split.share <= 1 && split.rms <= plain.rms && split.most <= 1.25 * plain.most, both);
      }
    }
  },

  "f16x3 takes operands of any magnitude": async ({ gpu }) => {
    needs_units(gpu);
    const [m, k, n] = [700, 512, 701];
    const { a, b, expected } = problem(m, k, n, 4);
    // Small whole numbers, each row and each column times a power of two: what comes out is exact.
    const powers = (count, step) => Array.from({ length: count }, (_, i) => 2 ** (((i * 37) % (2 * step)) - step));
    const [rows, columns] = [powers(m, 60), powers(n, 60)];
    const x = a.map((value, i) => value * rows[Math.floor(i / k)]);
    const y = b.map((value, i) => value * columns[i % n]);
    const scaled = expected.map((value, i) => value * rows[Math.floor(i / n)] * columns[i % n]);
    same(await gpu.matmul(x, y, { m, k, n, precision: "f16x3" }), scaled, "rows and columns scaled");
    // One factor is too large for f16 and the other too small, and their product is neither.
    for (const [p, q] of [[2 ** 120, 2 ** -120], [2 ** -120, 2 ** 60]]) {
      const values = await gpu.matmul(a.map((value) => value * p), b.map((value) => value * q), { m, k, n, precision: "f16x3" });
      same(values, expected.map((value) => value * p * q), `times ${p} and ${q}`);
    }
    const nothing = new Float32Array(m * k);
    same(await gpu.matmul(nothing, b, { m, k, n, precision: "f16x3" }), new Float32Array(m * n), "zeros");
    // What is not finite stays in its row and its column.
    const spoilt = a.slice();
    spoilt[3 * k + 5] = NaN;
    spoilt[9 * k] = Infinity;
    const found = await gpu.matmul(spoilt, b, { m, k, n, precision: "f16x3" });
    found.forEach((value, i) => {
      const row = Math.floor(i / n);
      if (row === 3) assert(Number.isNaN(value), `${value} beside NaN`);
      else if (row === 9) assert(!Number.isFinite(value) || b[i % n] === 0, `${value} of an infinite operand`);
      else assert(value === expected[i], `${value} in row ${row}, not ${expected[i]}`);
    });
  },

  "f16x3 with all that goes with a product": async ({ gpu }) => {
    needs_units(gpu);
    await with_all(gpu, 699, 515, 701, { precision: "f16x3" }, (made) => made, /f16x3/, [250, 553, 320]);
    // Queued as told at once.
    const [x, y] = [await gpu.tensor(integers(6 * 250 * 570, 1), [2, 3, 250, 570]), await gpu.tensor(integers(3 * 570 * 320, 2), [3, 570, 320])];
    const kept = await gpu.matmul(x, y, { precision: "f16x3", keep: true });
    same(await kept.toArray(), await gpu.matmul(x, y, {}), "queued");
    for (const tensor of [x, y, kept]) tensor.dispose();
    if (globalThis.Float16Array) {
      const { a, b, expected } = problem(1250, 600, 1270);
      same_halves(await gpu.matmul(a, b, { m: 1250, k: 600, n: 1270, precision: "f16x3", result: "f16" }), expected);
    }
  },

  "a NaN leaves its neighbours as they are": async ({ gpu, lapidary: { lazy } }) => {
    needs_halves();
    const data = [NaN, 5, 1, NaN, Infinity, NaN, NaN, -Infinity];
    const x = await gpu.tensor(new Float16Array(data), [2, 4]);
    const first = await gpu.tensor(new Float16Array([1, 0, 0, 0]), [4, 1]);
    const row = await gpu.tensor(new Float16Array([2, NaN, 4, 7, 1, 3, NaN, 5]), [1, 1, 8]);
    for (const [what, expr, expected] of [
      ["repeated", lazy(x).broadcastTo([2, 2, 4]), [...data, ...data]],
      ["turned round", lazy(x).flip(1), [NaN, 1, 5, NaN, -Infinity, NaN, NaN, Infinity]],
      ["a product", lazy(x).matmul(first), [NaN, NaN]],
      ["means", lazy(row).averagePool([1]), [2, NaN, 4, 7, 1, 3, NaN, 5]],
    ]) {
      const made = await gpu.evaluate(expr.cast("f32"));
      same(await made.toArray(), Float32Array.from(expected), what);
      made.dispose();
    }
    // In results that are fours of elements, and in those that are pairs.
    for (const n of [1, 3, 4, 8, 68]) {
      const factor = Float32Array.from({ length: 4 * n }, (_, i) => (i < n ? [1, NaN, 300, 3][i % 4] : 0));
      const left = Float32Array.from({ length: 12 }, (_, i) => (i % 4 === 0 ? 300 : 0));
      const expected = Array.from({ length: 3 * n }, (_, i) => [300, NaN, Infinity, 900][(i % n) % 4]);
      const product = await gpu.matmul(new Float16Array(left), new Float16Array(factor), { m: 3, k: 4, n, result: "f16" });
      same(new Float32Array(product), Float32Array.from(expected), `a result of f16 with ${n} columns`);
    }
    for (const tensor of [x, first, row]) tensor.dispose();
  },

  ...Object.fromEntries(Object.entries(with_arrays).map(([name, check]) => [name, (context) => needs_halves() && check(context)])),
};
