// Questions that a value answers more briefly here than WebAssembly can put them.

/** What a value is, for a message. */
export function describe(value) {
  if (typeof value === "number") return `the number ${value}`;
  if (typeof value === "string") return `the string "${value.slice(0, 40)}"`;
  if (typeof value === "boolean" || value === null) return String(value);
  try {
    const { name } = value.constructor;
    if (typeof value === "object" && typeof name === "string") return `of type ${name}`;
  } catch {
    // It has none.
  }
  return typeof value;
}

/** Whether a value is a Float32Array, of whatever realm: 0 if not, 1 if so, 2 if its memory was transferred elsewhere. */
export function floats(value) {
  try {
    if (!ArrayBuffer.isView(value) || value[Symbol.toStringTag] !== "Float32Array") return 0;
  } catch {
    return 0;
  }
  try {
    // A detached array says that it is empty, but nothing can be made on its buffer any more.
    if (value.length === 0) new Float32Array(value.buffer, 0, 0);
  } catch {
    return 2;
  }
  return 1;
}

/** The first name of an object's own that is not in the list. */
export function stranger(object, names) {
  return Object.keys(object).find((key) => !names.split(", ").includes(key));
}
