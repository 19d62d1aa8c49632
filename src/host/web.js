// What typed arrays can do and Rust's bindings do not know.

export const halves = (buffer, length) => new (globalThis.Float16Array ?? Uint16Array)(buffer, 0, length);

export const put = (from, to) => to.set(from);

export const bytes_per_element = (array) => array.BYTES_PER_ELEMENT;
