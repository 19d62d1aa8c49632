// Rows between a page's array and the kernel's memory. In JavaScript, because a call for each row from WebAssembly costs more than the copy.

/** Copies `rows` rows of `columns` elements from `from` to `to`; `*_start` and `*_stride` are in elements. */
export function copy_rows(from, from_start, from_stride, to, to_start, to_stride, rows, columns) {
  if (columns === from_stride && columns === to_stride) {
    to.set(from.subarray(from_start, from_start + rows * columns), to_start);
    return;
  }
  for (let row = 0; row < rows; row++) {
    const start = from_start + row * from_stride;
    // A view costs more than a few elements.
    if (columns < 32) for (let i = 0, at = to_start + row * to_stride; i < columns; i++) to[at + i] = from[start + i];
    else to.set(from.subarray(start, start + columns), to_start + row * to_stride);
  }
}

/** Adds to each row its bias, which may be empty, and applies the activation of that number in src/ops/matmul/activation.rs. */
export function finish(values, columns, bias, activation) {
  if (bias.length) for (let i = 0; i < values.length; i++) values[i] += bias[i % columns];
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
