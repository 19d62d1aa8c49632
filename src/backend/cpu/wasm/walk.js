// One thread's way through a product: blocks of the page's arrays are copied into the kernel's memory, multiplied, and copied out. In
// JavaScript, because a call for each row from WebAssembly costs more than the copy.

/**
 * The thread of a started kernel, whose exports `kernel.rs` declares; `sizes` are the elements of its blocks. All of it is in this one
 * function, since a worker is started from its text.
 *
 * A job is `{ a, b, c, out, m, k, n, lda, … }`: C = op(A)·op(B), and how many columns, steps of k and rows a block has. `starts` are empty, or
 * three numbers for each product of a batch: where its A, B and C start.
 */
export function walker(exports, sizes) {
  // Up to so many rows of A, B is not packed: each element of it is read too few times.
  const UNPACKED_ROWS = 16;
  // Up to so many elements of B it is not packed either: it stays in the first cache as it is.
  const UNPACKED_ELEMENTS = 8192;
  const block = (which, Type) => new Type(exports.memory.buffer, exports.block(which), sizes[which]);
  const [A, B, C, STAGED] = [0, 1, 2, 3].map((which) => block(which, Float32Array));
  const EXACT = block(4, Float64Array);
  // What B's memory holds.
  let brought = {};

  function copy_rows(from, from_start, from_stride, to, to_start, to_stride, rows, columns) {
    if (columns === from_stride && columns === to_stride) {
      columns *= rows;
      rows = 1;
    }
    for (let row = 0; row < rows; row++) {
      const start = from_start + row * from_stride;
      // A view costs more than a few elements.
      if (columns < 32) for (let i = 0, at = to_start + row * to_stride; i < columns; i++) to[at + i] = from[start + i];
      else to.set(columns === from.length ? from : from.subarray(start, start + columns), to_start + row * to_stride);
    }
  }

  const bring = (from, stride, row, column, rows, columns, to) => copy_rows(from, row * stride + column, stride, to, 0, columns, rows, columns);
  const take = (from, to, stride, i, j, m, n) => copy_rows(from, 0, n, to, i * stride + j, stride, m, n);

  function bring_a({ a, lda, transpose_a }, i, p, m, k) {
    bring(a, lda, ...(transpose_a ? [p, i, k, m, STAGED] : [i, p, m, k, A]));
    if (transpose_a) exports.transpose_a(m, k);
  }

  /** Gives whether it is packed. */
  function bring_b({ b, ldb, transpose_b, m }, p, j, k, n) {
    if (brought.b === b && brought.p === p && brought.j === j) return brought.packed;
    const packed = transpose_b || (m > UNPACKED_ROWS && k * n > UNPACKED_ELEMENTS);
    brought = { b, p, j, packed };
    if (!packed) bring(b, ldb, p, j, k, n, B);
    else if (transpose_b) {
      // Whole panels, but one at least.
      const part = Math.max(Math.floor(STAGED.length / Math.max(k, 1) / 8), 1) * 8;
      for (let first = 0; first < n; first += part) {
        const count = Math.min(part, n - first);
        bring(b, ldb, j + first, p, count, k, STAGED);
        exports.pack_b(first, count, k, n, true);
      }
    } else {
      const part = Math.floor(STAGED.length / n);
      for (let first = 0; first < k; first += part) {
        const count = Math.min(part, k - first);
        bring(b, ldb, p + first, j, count, n, STAGED);
        exports.pack_b(first, count, k, n, false);
      }
    }
    return packed;
  }

  function multiply(job) {
    const { m, k, n, c, ldc, out, ldo, alpha, beta, reads_c } = job;
    for (let j = 0; j < n; j += job.columns) {
      const width = Math.min(job.columns, n - j);
      // A sum of no terms still has to be written.
      for (let p = 0; p === 0 || p < k; p += job.depth) {
        const depth = Math.min(job.depth, k - p);
        const packed = bring_b(job, p, j, depth, width);
        for (let i = 0; i < m; i += job.rows) {
          const rows = Math.min(job.rows, m - i);
          bring_a(job, i, p, rows, depth);
          if (p > 0) bring(out, ldo, i, j, rows, width, C);
          exports.multiply(rows, depth, width, packed, p > 0, false);
          if (p + depth === k && (alpha !== 1 || reads_c)) {
            if (reads_c) bring(c, ldc, i, j, rows, width, STAGED);
            exports.scale(rows * width, alpha, beta, reads_c);
          }
          take(C, out, ldo, i, j, rows, width);
        }
      }
    }
  }

  /** Some of the rows or columns of a product, in place. */
  function part(job, by_columns, at, count) {
    const { a, b, c, out, lda, ldb, ldc, ldo, transpose_a, transpose_b } = job;
    const along = (array, stride) => array?.subarray(at * (by_columns ? 1 : stride));
    const added = { c: along(c, ldc), out: along(out, ldo) };
    if (by_columns) return { ...job, ...added, n: count, b: b.subarray(transpose_b ? at * ldb : at) };
    return { ...job, ...added, m: count, a: a.subarray(transpose_a ? at : at * lda) };
  }

  /** The same product as a job of its own, its operands packed, and their buffers. */
  function pack({ a, b, c, lda, ldb, ldc, ...job }) {
    const { m, k, n, transpose_a, transpose_b, reads_c } = job;
    const buffers = [];
    const copy = (from, stride, rows, columns) => {
      const to = new Float32Array(rows * columns);
      bring(from, stride, 0, 0, rows, columns, to);
      buffers.push(to.buffer);
      return to;
    };
    const packed = { ...job, out: undefined, lda: transpose_a ? m : k, ldb: transpose_b ? k : n, ldc: n, ldo: n };
    packed.a = transpose_a ? copy(a, lda, k, m) : copy(a, lda, m, k);
    packed.b = transpose_b ? copy(b, ldb, n, k) : copy(b, ldb, k, n);
    if (reads_c) packed.c = copy(c, ldc, m, n);
    return { packed, buffers };
  }

  /** One product of a batch, in place. */
  function item(job, at) {
    const from = (array, which) => array?.subarray(job.starts[3 * at + which]);
    return { ...job, a: from(job.a, 0), b: from(job.b, 1), c: from(job.c, 2), out: job.out.subarray(at * job.m * job.n) };
  }

  /** Some products of a batch as a job of its own, with copies of all that they lie in, and the copies' buffers. */
  function pack_items({ a, b, c, lda, ldb, ldc, ...job }, first, count) {
    const { m, k, n, transpose_a, transpose_b, reads_c } = job;
    const starts = job.starts.slice(3 * first, 3 * (first + count));
    const buffers = [];
    const copy = (from, which, stride, rows, columns) => {
      const own = starts.filter((_, i) => i % 3 === which);
      const [least, most] = own.reduce(([least, most], start) => [Math.min(least, start), Math.max(most, start)], [Infinity, 0]);
      for (let i = which; i < starts.length; i += 3) starts[i] -= least;
      const to = from.slice(least, most + (rows - 1) * stride + columns);
      buffers.push(to.buffer);
      return to;
    };
    const packed = { ...job, out: undefined, starts, lda, ldb, ldc };
    packed.a = copy(a, 0, lda, ...(transpose_a ? [k, m] : [m, k]));
    packed.b = copy(b, 1, ldb, ...(transpose_b ? [n, k] : [k, n]));
    if (reads_c) packed.c = copy(c, 2, ldc, m, n);
    return { packed, buffers };
  }

  function multiply_items(job, first, end) {
    for (let at = first; at < end; at++) multiply(item(job, at));
  }

  /** Computes a product or a batch: all of it, or unit by unit as much as the other threads that count with `counter` leave. */
  function run(job, { counter, by_columns, firsts } = {}) {
    forget();
    const items = job.starts.length / 3;
    if (!counter) {
      if (items) multiply_items(job, 0, items);
      else multiply(job);
      return forget();
    }
    for (let unit; (unit = Atomics.add(counter, 0, 1)) < firsts.length - 1; ) {
      const [at, end] = firsts.slice(unit, unit + 2);
      if (items) multiply_items(job, at, end);
      else multiply(part(job, by_columns, at, end - at));
    }
    forget();
  }

  /** B may be another by the next call, and its memory is not to be kept until then. */
  function forget() {
    brought = {};
  }

  /** One block of op(A)·op(B) in double precision and of |op(A)|·|op(B)|, into packed arrays of the whole. */
  function exact(job, i, j, m, n, sums, magnitudes) {
    // The latter in single precision, which is quick; once more where they are beyond it.
    for (const again of [false, true]) {
      if (again && !C.subarray(0, m * n).includes(Infinity)) break;
      for (let p = 0; p === 0 || p < job.k; p += job.depth) {
        const k = Math.min(job.depth, job.k - p);
        forget();
        const packed = bring_b(job, p, j, k, n);
        bring_a(job, i, p, m, k);
        if (!again) exports.multiply(m, k, n, packed, p > 0, true);
        exports.absolute();
        exports.multiply(m, k, n, packed, p > 0, again);
      }
      if (!again) take(EXACT, sums, job.n, i, j, m, n);
      take(again ? EXACT : C, magnitudes, job.n, i, j, m, n);
    }
    forget();
  }

  return { run, part, pack, pack_items, multiply_items, exact, copy_rows };
}

/** A job for the whole of a product or a batch, which is packed. */
export function job(a, b, c, out, m, k, n, lda, ldb, ldc, ldo, alpha, beta, transpose_a, transpose_b, reads_c, columns, depth, rows, starts = []) {
  return { a, b, c, out, m, k, n, lda, ldb, ldc, ldo, alpha, beta, transpose_a, transpose_b, reads_c, columns, depth, rows, starts };
}

/** Bytes less their zero point, as numbers. */
export function counted_from(zero_point, values) {
  const wide = new Float32Array(values);
  if (zero_point) for (let i = 0; i < wide.length; i++) wide[i] -= zero_point;
  return wide;
}

/** Adds whole numbers to a result from an element on, modulo 2³². */
export function add(to, start, from) {
  for (let i = 0; i < from.length; i++) to[start + i] += from[i];
}

/** Adds to each row its bias, if there is one, and applies the activation of that number in src/ops/matmul/activation.rs. */
export function finish(values, columns, bias, activation) {
  if (bias) for (let i = 0; i < values.length; i++) values[i] += bias[i % columns];
  const { exp, tanh } = Math;
  const gated = (x, gate) => x / (1 + exp(-gate));
  const apply = [
    ,
    (x) => (x < 0 ? 0 : x),
    (x) => gated(x, x * (1.5957691216057307 + 0.07135481627260025 * x * x)),
    (x) => gated(1, x),
    tanh,
    (x) => gated(x, x),
  ][activation];
  if (apply) for (let i = 0; i < values.length; i++) values[i] = apply(values[i]);
}
