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
