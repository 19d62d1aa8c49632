// What typed arrays can do and Rust's bindings do not know.

export const halves = (buffer, length) => new (globalThis.Float16Array ?? Uint16Array)(buffer, 0, length);

/** The number that bits of f16 stand for. */
function number_of(bits) {
  const [power, part] = [(bits >> 10) & 31, bits & 1023];
  const size = power > 30 ? (part ? NaN : Infinity) : power ? (1024 + part) * 2 ** (power - 25) : part * 2 ** -24;
  return bits >> 15 ? -size : size;
}

export const put = (from, to) =>
  to.set(from instanceof Uint16Array && to instanceof Float32Array ? Float32Array.from(from, number_of) : from);

/** The place of an operand's type among Rust's. */
export const place_of_type = (array) => [, 5 + array[Symbol.toStringTag].startsWith("Uint"), 1][array.BYTES_PER_ELEMENT] ?? 0;
