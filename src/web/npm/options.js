// Arguments and option objects, read strictly, before WebAssembly sees them. What JavaScript would coerce in silence (a number for an array,
// "12" for 12, −1 for 4294967295) is an error here, and what is not known is named.

/** An error as index.d.ts describes it. */
export function fault(code, message, cause) {
  const error = new Error(message, { cause });
  error.name = code === "aborted" ? "AbortError" : "LapidaryError";
  error.code = code;
  return error;
}

const invalid_type = (argument, expected, found) => fault("invalid_type", `${argument} must be ${expected}, but it is ${found}`);
const invalid_dimension = (name, value, expected) => fault("invalid_dimension", `${name} is ${value}, but it must be ${expected}`);
const invalid_option = (name, value, expected) => fault("invalid_option", `${name} is ${value}, but ${expected}`);

/** What a value is, for a message. */
function describe(value) {
  if (typeof value === "number") return `the number ${value}`;
  if (typeof value === "string") return `the string "${value.slice(0, 40)}"`;
  if (typeof value === "boolean" || value === null) return String(value);
  const name = typeof value === "object" && get(get(value, "constructor"), "name");
  return typeof name === "string" ? `of type ${name}` : typeof value;
}

/** An object's property; undefined if it has none, or a getter throws. */
function get(object, name) {
  try {
    return object[name];
  } catch {
    return undefined;
  }
}

/**
 * A `Float32Array` or a `Float16Array`, which older engines do not have; of whatever realm, not detached, and not longer than Rust can count.
 */
export function array(argument, value) {
  const expected = "a Float32Array or a Float16Array";
  if (!ArrayBuffer.isView(value) || !["Float32Array", "Float16Array"].includes(get(value, Symbol.toStringTag))) {
    throw invalid_type(argument, expected, describe(value));
  }
  try {
    // A detached array says that it is empty, but nothing can be made on its buffer any more.
    if (value.length === 0) new Float32Array(value.buffer, 0, 0);
  } catch {
    throw invalid_type(argument, expected, "detached: it was transferred elsewhere");
  }
  const max = 2 ** 32 - 1;
  if (value.length > max) {
    const advice = "split the work, or use another backend";
    throw fault("limit_exceeded", `the length of an array is ${value.length}, but at most ${max} can be done here; ${advice}`);
  }
  return value;
}

const is_whole = (value) => Number.isSafeInteger(value) && value >= 0;

/** A whole number from 0 to 2⁵³ − 1. */
export function whole(name, value) {
  if (!is_whole(value)) throw invalid_dimension(name, describe(value), "a whole number, 0 or more");
  return value;
}

/** An option object whose names are all known; undefined counts as empty. */
function known(options, names) {
  if (options === undefined) return;
  if (typeof options !== "object" || options === null || Array.isArray(options)) throw invalid_type("options", "an object", describe(options));
  for (const key of Object.keys(options)) {
    if (!names.includes(key)) throw invalid_option(key, "not an option", `the options are ${names.join(", ")}`);
  }
}

/** An option that is as `is_right` wants it, or `otherwise` if it is left out. */
function option(options, name, otherwise, is_right, expected) {
  const value = get(options, name);
  if (value === undefined) return otherwise;
  if (!is_right(value)) throw invalid_option(name, describe(value), `it must be ${expected}`);
  return value;
}

const number = (options, name, otherwise) => option(options, name, otherwise, (value) => typeof value === "number", "a number");
const flag = (options, name) => option(options, name, false, (value) => typeof value === "boolean", "true or false");
const one_of = (options, name, names, expected) => option(options, name, names[0], (value) => names.includes(value), expected);

/** The signal, if there is one; it must not be aborted yet. */
function signal(options) {
  const found = option(options, "signal", undefined, (value) => typeof get(value, "aborted") === "boolean", "an AbortSignal");
  if (found?.aborted) throw fault("aborted", "the call was aborted by its signal");
  return found;
}

/** How to open a device: backend, power preference, and bytes of the pool and threads if they are told. */
export function to_open(options) {
  known(options, ["backend", "power_preference", "pool_bytes", "threads", "signal"]);
  signal(options);
  const backends = ["auto", "webgpu", "webgl2", "simd", "scalar", "cpu"];
  return [
    one_of(options, "backend", backends, "auto, webgpu, webgl2, simd, scalar or cpu"),
    one_of(options, "power_preference", ["high-performance", "low-power"], "high-performance or low-power"),
    option(options, "pool_bytes", undefined, is_whole, "a whole number of bytes"),
    option(options, "threads", undefined, (value) => is_whole(value) && value > 0 && value <= 64, "a whole number from 1 to 64"),
  ];
}

/** A dimension from the options, or from the shapes of tensors, of which there may be two; all must agree. */
function dimension(options, name, told, also = told) {
  const of_tensor = told ?? also;
  const given = get(options, name);
  const value = given === undefined && of_tensor !== undefined ? of_tensor : whole(name, given);
  for (const size of [of_tensor, also]) {
    if (size !== undefined && size !== value) throw invalid_dimension(name, value, `${size}, as the tensor's shape says`);
  }
  return value;
}

/** Elements from one row to the next; Rust takes NaN for none. */
function stride(options, name) {
  const value = get(options, name);
  return value === undefined ? NaN : whole(name, value);
}

const STRIDES = ["lda", "ldb", "ldc", "stride_a", "stride_b", "stride_c"];
const PRODUCT = [
  ...["m", "k", "n", "batch", "transpose_a", "transpose_b", "alpha", "beta", "c", "bias", "activation", "result", "precision"],
  ...STRIDES,
  "signal",
];
/** In the order of the numbers by which Rust knows them. */
const ACTIVATIONS = ["none", "relu", "gelu", "sigmoid", "tanh", "silu"];
const DTYPES = ["f32", "f16"];
const PRECISIONS = ["f32", "f16x3"];

/** The place of a named option's value among those that it may have. */
const place = (options, name, names) => names.indexOf(one_of(options, name, names, names.join(", ")));

/** Values of f16 are given in a `Float16Array`. */
export function can_give(dtype) {
  if (dtype === "f16" && !globalThis.Float16Array) {
    throw fault("unavailable", "this engine has no Float16Array to give values of f16 in; keep them on the device, have results in f32, or use " +
      "Chrome or Edge 135, Safari 18.2, Firefox 129 or Node 24");
  }
}

/** A tensor's matrices as they are stored, [rows, columns]; a vector is a row as A and a column as B. */
function matrix(shape, transposed, is_a) {
  if (!shape || shape.length > 1) return shape?.slice(-2);
  if (shape.length === 0) throw invalid_dimension("the shape of a tensor", "[]", "of one dimension or more");
  return is_a === transposed ? [shape[0], 1] : [1, shape[0]];
}

/** Two batch shapes in one, by NumPy's rules; Rust refuses those that do not go together. */
function broadcast(a, b) {
  const rank = Math.max(a.length, b.length);
  const size = (shape, i) => shape[i - rank + shape.length] ?? 1;
  return Array.from({ length: rank }, (_, i) => (size(a, i) === 1 ? size(b, i) : size(a, i)));
}

/**
 * A product as Rust takes it: numbers in the order of `product` in src/web/mod.rs, what is added, and the signal; and its result's shape.
 * `shapes` are those of A and B, undefined for one that is no tensor. `operand` makes of an array or a tensor what Rust takes. Queues call this ten thousand times a second: it makes few objects.
 */
export function product(options, shapes, operand, names = PRODUCT) {
  known(options, names);
  const stop = signal(options);
  const transpose_a = flag(options, "transpose_a");
  const transpose_b = flag(options, "transpose_b");
  const [a, b] = [matrix(shapes[0], transpose_a, true), matrix(shapes[1], transpose_b, false)];
  const m = dimension(options, "m", a?.[+transpose_a]);
  const k = dimension(options, "k", a?.[+!transpose_a], b?.[+transpose_b]);
  const n = dimension(options, "n", b?.[+!transpose_b]);
  const alpha = number(options, "alpha", 1);
  const beta = number(options, "beta", 0);
  const [c, bias] = ["c", "bias"].map((name) => {
    const added = get(options, name);
    return added === undefined ? added : operand(name, added);
  });
  const activation = place(options, "activation", ACTIVATIONS);
  const result = place(options, "result", DTYPES);
  const precision = place(options, "precision", PRECISIONS);
  const told = get(options, "batch");
  const of_arrays = told === undefined ? [] : (Array.isArray(told) ? told : [told]).map((size) => whole("batch", size));
  const batches = [0, 1].map((i) => shapes[i]?.slice(0, -2) ?? of_arrays);
  const batch = broadcast(...batches);
  if (told !== undefined && `${batch}` !== `${of_arrays}`) throw invalid_dimension("batch", `${of_arrays}`, `[${batch}], as the tensors' shapes say`);
  const shape = [...batch, ...(shapes[0]?.length === 1 ? [] : [m]), ...(shapes[1]?.length === 1 ? [] : [n])];
  const strides = STRIDES.map((name) => stride(options, name));
  const numbers = [m, k, n, +transpose_a, +transpose_b, alpha, beta, ...strides, activation, result, precision, batches[0].length, ...batches.flat()];
  return { numbers, c, bias, signal: stop, shape, dtype: DTYPES[result] };
}

const MULTIPLY = [...PRODUCT, "report", "keep"];

/** A product, and how its result is wanted. */
export function to_multiply(options, shapes, operand) {
  const { numbers, c, bias, shape, dtype } = product(options, shapes, operand, MULTIPLY);
  return { numbers, c, bias, shape, dtype, report: flag(options, "report"), keep: flag(options, "keep") };
}

const BENCHMARK = [...PRODUCT, "samples", "min_ms"];

/** A product, the number of samples, and the shortest time. */
export function to_benchmark(options, shapes, operand) {
  const samples = number(options, "samples", 5);
  if (!(Number.isInteger(samples) && samples >= 1 && samples <= 1000)) {
    throw invalid_option("samples", describe(samples), "it must be a whole number from 1 to 1000");
  }
  const min_ms = number(options, "min_ms", 50);
  if (!(min_ms >= 0 && min_ms <= 10_000)) throw invalid_option("min_ms", describe(min_ms), "it must be from 0 to 10000");
  return { ...product(options, shapes, operand, BENCHMARK), samples, min_ms };
}

/** The sizes of a tensor's dimensions. */
export function shape(value) {
  if (!Array.isArray(value)) throw invalid_type("shape", "an array of sizes, as [rows, columns]", describe(value));
  return Array.from(value, (size) => whole("shape", size));
}
