// What typed arrays can do and Rust's bindings do not know.

export const halves = (buffer, length) => new (globalThis.Float16Array ?? Uint16Array)(buffer, 0, length);

/** The number that bits of f16 stand for. */
function number_of(bits) {
  const [power, part] = [(bits >> 10) & 31, bits & 1023];
  const size = power > 30 ? (part ? NaN : Infinity) : power ? (1024 + part) * 2 ** (power - 25) : part * 2 ** -24;
  return bits >> 15 ? -size : size;
}

/** An array's bytes. Rust counts in 32 bits, and it may begin farther on in its buffer. One that was detached says that it is empty. */
export const bytes_of = (array) => (array.byteLength ? new Uint8Array(array.buffer, array.byteOffset, array.byteLength) : new Uint8Array());

/** The same as words of as many bytes as its elements have. */
export const bits_of = (array) => {
  const Words = [, Uint8Array, Uint16Array, , Uint32Array][array.BYTES_PER_ELEMENT];
  return array.byteLength ? new Words(array.buffer, array.byteOffset, array.length) : new Words();
};

/** Truths as JavaScript has them: bytes. */
export const truths = (words) => new Uint8Array(words);

export function put(from, to) {
  if (!(from instanceof Uint16Array && to instanceof Float32Array)) return to.set(from);
  for (let i = 0; i < from.length; i++) to[i] = number_of(from[i]);
}

/** The place of an operand's type among Rust's. */
export const place_of_type = (array) => [, 5 + array[Symbol.toStringTag].startsWith("Uint"), 1][array.BYTES_PER_ELEMENT] ?? 0;
