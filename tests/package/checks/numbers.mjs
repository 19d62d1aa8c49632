/** Shapes, scalings, strides and tensors: every element compared. */
import { assert, integers, is_slow, problem, product, rejects, right, same } from "./tools.mjs";

/** A matrix stored with a stride, NaN between its rows and, if asked, after the last. */
function padded(values, rows, columns, stride, tail = 0) {
  const out = new Float32Array(Math.max(0, (rows - 1) * stride + columns) + tail).fill(NaN);
  for (let row = 0; row < rows; row++) out.set(values.subarray(row * columns, (row + 1) * columns), row * stride);
  return out;
}

/** What only a wrong judge takes for right, in double precision and beyond single. */
const BEYOND = [
  { a: [Infinity, 2], b: [3, 4], wrong: [5, 0, -Infinity, NaN], right: [Infinity] },
  { a: [1e20, 1e20], b: [1e20, 1e20], wrong: [5, -Infinity, 3e38], right: [Infinity] },
  { a: [1e38, 1e38], b: [1e38, 1], wrong: [1, 1e38], right: [Infinity] },
  { a: [1e30, 1e30, 1], b: [1e30, -1e30, 1], wrong: [NaN], right: [1, 0] },
];

export default {
  "what is beyond all numbers is judged as well": async ({ lapidary }) => {
    for (const { a, b, wrong, right } of BEYOND) {
      const judge = await lapidary.reference(Float32Array.from(a), Float32Array.from(b), { m: 1, k: a.length, n: 1 });
      const taken = (values) => values.filter((value) => judge.check(Float32Array.of(value)).ok);
      assert(taken(wrong).length === 0, `${taken(wrong)} is taken for ${a} · ${b}`);
      assert(taken(right).length === right.length, `only ${taken(right)} is taken for ${a} · ${b}`);
      judge.free();
    }
  },

  "no rows, no columns, nothing to sum": async ({ gpu }) => {
    for (const [m, k, n] of [
      [0, 3, 4],
      [3, 4, 0],
      [0, 0, 0],
      [0, 5, 0],
      [3, 0, 4],
      [1, 0, 1],
    ])
      await right(gpu, problem(m, k, n), [m, k, n].join(" × "));
    const c = integers(12);
    await right(gpu, problem(3, 0, 4, 1, { beta: 2, c }), "k = 0 with c");
    await right(gpu, problem(3, 0, 4, 1, { beta: 0, c: new Float32Array(12).fill(NaN) }), "k = 0 with beta = 0");
    await right(gpu, problem(0, 3, 4, 1, { beta: 1, c: integers(0) }), "m = 0 with c");
    await right(gpu, problem(3, 0, 4, 1, { transpose_a: true, transpose_b: true, lda: 9, ldb: 9 }), "k = 0 transposed");
  },

  "odd sizes": async ({ gpu }) => {
    const sizes = [
      [1, 1, 1],
      [2, 3, 5],
      [17, 31, 13],
      [33, 65, 7],
      [64, 64, 64],
      [65, 63, 67],
      [127, 5, 129],
      [1, 200, 1],
      [200, 1, 200],
      [1, 100, 255],
      [255, 100, 1],
      [3, 257, 3],
      [129, 128, 127],
    ];
    await Promise.all(sizes.map(([m, k, n]) => right(gpu, problem(m, k, n), `${m} × ${k} × ${n}`)));
    await right(gpu, problem(251, 241, 256));
  },

  "transposes, scalings and strides": async ({ gpu }) => {
    const [m, k, n] = [19, 26, 35];
    const layouts = [
      [false, false],
      [false, true],
      [true, false],
      [true, true],
    ];
    const scalings = [
      [1, 0],
      [-0.5, 0],
      [1, 1],
      [2, -4],
      [0, 0],
      [0, 2],
    ];
    let cases = layouts.flatMap(([transpose_a, transpose_b]) =>
      scalings.flatMap(([alpha, beta]) => [0, 3].map((pad) => ({ transpose_a, transpose_b, alpha, beta, pad }))),
    );
    // Of what is compiled by itself, each layout and each way to scale.
    if (is_slow(gpu)) cases = cases.filter(({ transpose_a, transpose_b, beta }) => (beta === 0) === (transpose_a === transpose_b));
    await Promise.all(
      cases.map(async ({ pad, ...options }) => {
        const [a_rows, a_columns] = options.transpose_a ? [k, m] : [m, k];
        const [b_rows, b_columns] = options.transpose_b ? [n, k] : [k, n];
        const all = { m, k, n, ...options };
        let [a, b, c] = [integers(m * k, 7), integers(k * n, 8), integers(m * n, 9)];
        if (pad) {
          [a, b, c] = [
            padded(a, a_rows, a_columns, a_columns + pad),
            padded(b, b_rows, b_columns, b_columns + 2 * pad, 5),
            padded(c, m, n, n + pad),
          ];
          Object.assign(all, { lda: a_columns + pad, ldb: b_columns + 2 * pad });
          if (options.beta !== 0) all.ldc = n + pad;
        }
        if (options.beta !== 0) all.c = c;
        same(await gpu.matmul(a, b, all), product(a, b, all), JSON.stringify({ ...options, pad }));
      }),
    );
  },

  "what is not read does not count": async ({ gpu }) => {
    const { a, b, options, expected } = problem(5, 6, 7);
    const nan = (length) => new Float32Array(length).fill(NaN);
    same(await gpu.matmul(a, b, { ...options, beta: 0, c: nan(35) }), expected, "c with beta = 0");
    same(await gpu.matmul(nan(30), nan(42), { ...options, alpha: 0 }), new Float32Array(35), "a and b with alpha = 0");
    same(
      await gpu.matmul(nan(30), nan(42), { ...options, alpha: 0, beta: 2, c: expected }),
      expected.map((x) => 2 * x),
      "a and b with alpha = 0 and c",
    );
  },

  "a window of a larger matrix": async ({ gpu }) => {
    const large = integers(20 * 30);
    const [a, b] = [large.subarray(3 * 30 + 5), large.subarray(10 * 30 + 1)];
    const options = { m: 4, k: 6, n: 8, lda: 30, ldb: 30 };
    same(await gpu.matmul(a, b, options), product(a, b, options));
  },

  "tensors give their shapes and chain": async ({ gpu, backend, lapidary: { Tensor } }) => {
    const [x, y, z] = [integers(6 * 10, 1), integers(10 * 7, 2), integers(5 * 7, 3)];
    const a = await gpu.tensor(x, [6, 10]);
    const xy = product(x, y, { m: 6, k: 10, n: 7 });
    const ab = await gpu.matmul(a, y, { n: 7, keep: true });
    assert(a instanceof Tensor && ab instanceof Tensor, "both are tensors");
    assert(ab.rows === 6 && ab.columns === 7 && ab.backend === backend, `${ab.rows} × ${ab.columns} on ${ab.backend}`);
    same(await ab.toArray(), xy, "the kept result");
    same(await gpu.matmul(ab, z, { n: 5, transpose_b: true }), product(xy, z, { m: 6, k: 7, n: 5, transpose_b: true }), "with one more");
    same(await gpu.matmul(ab, ab, { transpose_a: true }), product(xy, xy, { m: 7, k: 6, n: 7, transpose_a: true }), "with itself");
    same(
      await gpu.matmul(ab, ab, { transpose_b: true, beta: 1, c: integers(36) }),
      product(xy, xy, { m: 6, k: 7, n: 6, transpose_b: true, beta: 1, c: integers(36) }),
      "plus c",
    );
    same(await ab.toArray(), xy, "the kept result, later");
    await rejects("invalid_dimension", () => gpu.matmul(a, ab, {}), /\bk\b/, /\b10\b/);
    await rejects("invalid_dimension", () => gpu.matmul(a, y, { n: 7, m: 5 }), /\bm\b/, /\b5\b/, /\b6\b/);
    await rejects("invalid_dimension", () => gpu.matmul(a, y, {}), /\bn\b/);
    a.dispose();
    ab.dispose();
  },

  "batches of arrays, packed, shared and strided": async ({ gpu, lapidary }) => {
    const [m, k, n, batch] = [5, 7, 6, 3];
    const [a, b, c] = [integers(batch * m * k, 1), integers(batch * k * n, 2), integers(batch * m * n, 3)];
    const of = (options, item, [sa, sb, sc] = [m * k, k * n, m * n]) =>
      product(a.subarray(item * sa), b.subarray(item * sb), { m, k, n, ...options, c: c.subarray(item * sc) });
    const all = (options, strides) => Float32Array.from([0, 1, 2].flatMap((item) => [...of(options, item, strides)]));
    same(await gpu.matmul(a, b, { m, k, n, batch }), all({}), "packed");
    same(await gpu.matmul(a, b, { m, k, n, batch: [1, batch], beta: 2, c }), all({ beta: 2 }), "plus c");
    const shared = { m, k, n, batch, stride_b: 0 };
    same(await gpu.matmul(a, b.subarray(0, k * n), shared), all({}, [m * k, 0, 0]), "one b");
    same(await gpu.matmul(a, b, { m, k, n, batch, stride_a: 2, lda: k }), all({}, [2, k * n, 0]), "overlapping a");
    const turned = { m, k, n, batch, transpose_a: true, stride_a: 0, stride_c: 4, beta: -1, c };
    same(await gpu.matmul(a, b, turned), all({ transpose_a: true, beta: -1 }, [0, k * n, 4]), "one transposed a");
    same(await gpu.matmul(integers(0), integers(0), { m, k, n, batch: 0 }), integers(0), "none");
    const judge = await lapidary.reference(a, b, { m, k, n, batch, beta: 2, c });
    const [right, wrong] = [all({ beta: 2 }), all({ beta: 1 })];
    assert(judge.check(right).ok && !judge.check(wrong).ok && judge.check(right).elements === batch * m * n, "the reference");
    judge.free();
  },

  // With a workgroup for each, those that a CPU emulates took minutes.
  "a hundred thousand tiny products, and one with a hundred thousand rows": async ({ gpu }) => {
    for (const [m, k, n] of [[2, 3, 2], [4, 4, 1]]) {
      const batch = 100_000;
      const [a, b] = [integers(batch * m * k, 1), integers(batch * k * n, 2)];
      const expected = new Float32Array(batch * m * n);
      for (let item = 0; item < batch; item++) {
        expected.set(product(a.subarray(item * m * k), b.subarray(item * k * n), { m, k, n }), item * m * n);
      }
      same(await gpu.matmul(a, b, { m, k, n, batch }), expected, `${m}x${k}x${n}`);
    }
    const [a, b] = [integers(400_000, 1), integers(12, 2)];
    same(await gpu.matmul(a, b, { m: 100_000, k: 4, n: 3 }), product(a, b, { m: 100_000, k: 4, n: 3 }), "tall");
  },

  "batches of matrices that are read transposed": async ({ gpu }) => {
    for (const [m, lda, stride_a] of [[3, 3, 0], [3, 4, 4], [5, 8, 0], [6, 8, 8], [7, 12, 12], [9, 12, 24]]) {
      const [k, n, batch] = [1 + Math.floor(stride_a / lda / 2), 3, 2];
      const [a, b] = [integers(lda * k + stride_a), integers(batch * k * n, 2)];
      const expected = [0, 1].flatMap((item) => [
        ...product(a.subarray(item * stride_a), b.subarray(item * k * n), { m, k, n, lda, transpose_a: true }),
      ]);
      same(await gpu.matmul(a, b, { m, k, n, batch, lda, stride_a, transpose_a: true }), expected, `${m} rows, ${lda} apart, ${stride_a} to the next`);
    }
  },

  "batches of tensors, broadcast as NumPy does": async ({ gpu, backend }) => {
    const [x, y] = [integers(2 * 3 * 4 * 5, 1), integers(2 * 5 * 6, 2)];
    const [a, b] = [await gpu.tensor(x, [2, 3, 4, 5]), await gpu.tensor(y, [2, 1, 5, 6])];
    const expected = (i, j) => [...product(x.subarray((3 * i + j) * 20), y.subarray(i * 30), { m: 4, k: 5, n: 6 })];
    const all = Float32Array.from([0, 1].flatMap((i) => [0, 1, 2].flatMap((j) => expected(i, j))));
    const kept = await gpu.matmul(a, b, { keep: true });
    assert(`${kept.shape}` === "2,3,4,6" && kept.rows === 24 && kept.columns === 6 && kept.backend === backend, `${kept.shape}`);
    same(await kept.toArray(), all, "kept");
    same(await gpu.matmul(a, b, {}), all, "on the host");
    const { data } = await gpu.matmul(a, b, { keep: true, report: true });
    assert(`${data.shape}` === "2,3,4,6", `${data.shape}`);
    const flat = kept.reshape([24, 6]);
    kept.dispose();
    same(await flat.toArray(), all, "reshaped, and the other disposed of");
    const [row, column] = [await gpu.tensor(x.slice(0, 24), [24]), await gpu.tensor(y.slice(0, 6), [6])];
    const [left, right, dot] = await Promise.all([
      gpu.matmul(row, flat, { keep: true }),
      gpu.matmul(flat, column, { keep: true }),
      gpu.matmul(column, column, { keep: true }),
    ]);
    assert(`${left.shape}|${right.shape}|${dot.shape}` === "6|24|", `${left.shape}|${right.shape}|${dot.shape}`);
    same(await left.toArray(), product(x, all, { m: 1, k: 24, n: 6 }), "a vector from the left");
    same(await right.toArray(), product(all, y, { m: 24, k: 6, n: 1 }), "from the right");
    same(await dot.toArray(), product(y, y, { m: 1, k: 6, n: 1 }), "both");
    const of_vectors = row.reshape([4, 6]);
    same(await gpu.matmul(of_vectors, column, { transpose_a: false }), product(x, y, { m: 4, k: 6, n: 1 }), "a matrix and a vector");
    for (const tensor of [a, b, data, flat, row, column, left, right, dot, of_vectors]) tensor.dispose();
  },

  "a bias and an activation": async ({ gpu, lapidary }) => {
    const [m, k, n] = [6, 5, 9];
    const [a, b, bias, c] = [integers(m * k, 1), integers(k * n, 2), integers(n, 3), integers(m * n, 4)];
    const sum = product(a, b, { m, k, n, beta: 2, c }).map((x, i) => x + bias[i % n]);
    const options = { m, k, n, beta: 2, c, bias };
    same(await gpu.matmul(a, b, options), sum, "a bias");
    const relu = sum.map((x) => Math.max(x, 0));
    same(await gpu.matmul(a, b, { ...options, activation: "relu" }), relu, "and relu");
    for (const activation of ["none", "gelu", "sigmoid", "tanh", "silu"]) {
      const told = { ...options, alpha: 0.0625, beta: 0.125, activation };
      const judge = await lapidary.reference(a, b, told);
      const verdict = judge.check(await gpu.matmul(a, b, told));
      const other = judge.check(await gpu.matmul(a, b, { ...told, activation: "relu" }));
      assert(verdict.ok && !other.ok, `${activation}: ${JSON.stringify(verdict)}`);
      judge.free();
    }
    const [x, y, d, z] = await Promise.all([gpu.tensor(a, [m, k]), gpu.tensor(b, [k, n]), gpu.tensor(c, [m, n]), gpu.tensor(bias, [n])]);
    const kept = await gpu.matmul(x, y, { beta: 2, c: d, bias: z, activation: "relu", keep: true });
    same(await kept.toArray(), relu, "tensors");
    const summed = await gpu.matmul(x, y, { beta: 2, c: d, bias: z, keep: true, report: true });
    same(await summed.data.toArray(), sum, "with a report");
    for (const tensor of [x, y, d, z, kept, summed.data]) tensor.dispose();
  },

  "the same product has the same bits every time": async ({ gpu }) => {
    // Nothing to sum exactly: another order of summation would show.
    const values = (length, seed) => Float32Array.from({ length }, (_, i) => Math.sin(i * seed));
    for (const [m, k, n] of [
      [24, 5000, 20],
      [1, 9001, 3],
      [64, 4096, 64],
    ]) {
      const [a, b] = [values(m * k, 1.1), values(k * n, 1.3)];
      const [x, y] = [await gpu.tensor(a, [m, k]), await gpu.tensor(b, [k, n])];
      const first = await gpu.matmul(x, y, {});
      for (let turn = 0; turn < (is_slow(gpu) ? 1 : 4); turn++) {
        const kept = await Promise.all(Array.from({ length: 3 }, () => gpu.matmul(x, y, { keep: true })));
        for (const tensor of kept) {
          same(await tensor.toArray(), first, `${m} × ${k} × ${n}, queued`);
          tensor.dispose();
        }
        same(await gpu.matmul(a, b, { m, k, n }), await gpu.matmul(a, b, { m, k, n }), `${m} × ${k} × ${n}, of arrays`);
      }
      for (const tensor of [x, y]) tensor.dispose();
    }
  },

  "tensors without elements": async ({ gpu }) => {
    const [rows, columns] = [await gpu.tensor(integers(0), [0, 5]), await gpu.tensor(integers(0), [5, 0])];
    assert(rows.rows === 0 && rows.columns === 5, "0 × 5");
    same(await rows.toArray(), integers(0));
    same(await gpu.matmul(columns, rows, {}), new Float32Array(25));
    same(await gpu.matmul(rows, columns, {}), integers(0));
    const kept = await gpu.matmul(columns, rows, { keep: true });
    same(await kept.toArray(), new Float32Array(25), "kept");
    const none = await gpu.matmul(rows, columns, { keep: true });
    assert(none.rows === 0 && none.columns === 0, "0 × 0");
    same(await none.toArray(), integers(0), "kept, without elements");
    for (const tensor of [rows, columns, kept, none]) tensor.dispose();
  },
};
