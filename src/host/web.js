// What typed arrays can do and Rust's bindings do not know.

export const halves = (buffer, length) => new (globalThis.Float16Array ?? Uint16Array)(buffer, 0, length);

export const put = (from, to) => to.set(from);

/** The place of an operand's type among Rust's. */
export const place_of_type = (array) => [, 5 + array[Symbol.toStringTag].startsWith("Uint"), 1][array.BYTES_PER_ELEMENT] ?? 0;
