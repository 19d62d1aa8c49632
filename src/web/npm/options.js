// Arguments and option objects, read strictly, before WebAssembly sees them. What JavaScript would coerce in silence (a number for an array,
// "12" for 12, −1 for 4294967295) is an error here, and what is not known is named.

/** An error as index.d.ts describes it. */
export function fault(code, message, cause) {
  const error = new Error(message, { cause });
  error.name = code === "aborted" ? "AbortError" : "LapidaryError";
  error.code = code;
  return error;
}

/** What an array is refused with that the page has no room for. */
export const no_room = (cause) => fault("out_of_memory", "the page has no room for a copy of an operand; free what is not needed", cause);

const invalid_type = (argument, expected, found) => fault("invalid_type", `${argument} must be ${expected}, but it is ${found}`);
export const invalid_type_of = (argument, expected, value) => invalid_type(argument, expected, describe(value));
const invalid_dimension = (name, value, expected) => fault("invalid_dimension", `${name} is ${value}, but it must be ${expected}`);
const invalid_option = (name, value, expected) => fault("invalid_option", `${name} is ${value}, but ${expected}`);

/** What is refused because reading it threw. */
export const unreadable = (name, cause) => invalid_option(name, "unreadable", `it must have a value; reading it threw ${text_of(cause)}`);

/** What a value is, for a message. */
function describe(value) {
  if (typeof value === "number") return `the number ${value}`;
  if (typeof value === "string") return `the string "${value.slice(0, 40)}"`;
  if (typeof value === "boolean" || value === null) return String(value);
  const name = typeof value === "object" && get(get(value, "constructor"), "name");
  return typeof name === "string" ? `of type ${name}` : typeof value;
}

/** An object's property; undefined if it has none, or a getter throws. */
export function get(object, name) {
  try {
    return object[name];
  } catch {
    return undefined;
  }
}

/** What was thrown, as text: not everything can be made one. */
export function text_of(error) {
  try {
    return `${error}`;
  } catch {
    return typeof error;
  }
}

/**
 * A typed array as one of its engine's own class, over the same memory: a class made of that, such as Node's `Buffer`, may have its own way of
 * making parts and copies. Anything else is given back as it is.
 */
export function plain(value) {
  const own = globalThis[get(value, Symbol.toStringTag)];
  if (!ArrayBuffer.isView(value) || !own?.BYTES_PER_ELEMENT || Object.getPrototypeOf(value) === own.prototype) return value;
  return new own(value.buffer, value.byteOffset, value.length);
}

/** Of its class by name, whatever its realm, not detached, and not longer than Rust can count; as `plain` gives it. */
function typed_array(argument, value, classes, expected) {
  if (!ArrayBuffer.isView(value) || !classes.includes(get(value, Symbol.toStringTag))) throw invalid_type(argument, expected, describe(value));
  try {
    // One whose memory is gone says that it is empty, but refuses to be read.
    if (value.length === 0) Float32Array.prototype.at.call(value, 0);
  } catch {
    throw invalid_type(argument, expected, "detached: its memory was transferred elsewhere, or has shrunk");
  }
  check_bytes(value.byteLength);
  return plain(value);
}

function check_bytes(bytes) {
  const max = 2 ** 32 - 1;
  if (bytes <= max) return;
  const advice = "split the work, or use another backend";
  throw fault("limit_exceeded", `the size of an array in bytes is ${bytes}, but at most ${max} can be done here; ${advice}`);
}

/** An operand of a product, but for a `Float16Array` in older engines, which do not have it. */
export const array = (argument, value) =>
  typed_array(argument, value, ["Float32Array", "Float16Array", "Int8Array", "Uint8Array"], "a Float32Array, a Float16Array, an Int8Array or a Uint8Array");

/** One of floating-point numbers. */
export const floats = (argument, value) => typed_array(argument, value, ["Float32Array", "Float16Array"], "a Float32Array or a Float16Array");

/** Whether it is an array or a tensor of 8-bit integers. */
export const is_bytes = (value) => get(value, "BYTES_PER_ELEMENT") === 1 || ["i8", "u8"].includes(get(value, "dtype"));

/** Whether it is an array; a proxy that cannot be asked is none. */
export function is_list(value) {
  try {
    return Array.isArray(value);
  } catch {
    return false;
  }
}

const is_whole = (value) => Number.isSafeInteger(value) && value >= 0;

/** A whole number from 0 to 2⁵³ − 1, or a negative one if it is signed. */
export function whole(name, value, is_signed = false) {
  if (!(is_signed ? Number.isSafeInteger(value) : is_whole(value))) {
    throw invalid_dimension(name, describe(value), `a whole number${is_signed ? "" : ", 0 or more"}`);
  }
  return value;
}

/** Far more than anyone has: longer lists would not fit the stack as arguments. */
const MOST_DIMENSIONS = 256;

/** An array of them, one or two for each dimension. */
export function wholes(name, value, is_signed) {
  if (!is_list(value)) throw invalid_type(name, "an array of whole numbers", describe(value));
  let sizes;
  try {
    sizes = Array.from({ length: Math.min(value.length, MOST_DIMENSIONS + 1) }, (_, i) => value[i]);
  } catch (cause) {
    throw unreadable(name, cause);
  }
  if (sizes.length > MOST_DIMENSIONS) throw invalid_dimension(name, `of length ${value.length}`, `of at most ${MOST_DIMENSIONS}`);
  for (const size of sizes) whole(name, size, is_signed);
  return sizes;
}

const NONE = Object.freeze({});

const is_plain = (object) => [Object.prototype, null].includes(Object.getPrototypeOf(object));

/** Whether it may be an object of options: a signal, a map or a promise in their place would count as one of none. */
export function is_options(value) {
  if (typeof value !== "object" || value === null || is_list(value)) return false;
  return is_plain(value) || Object.prototype.toString.call(value) === "[object Object]";
}

/** An option object whose names are all known; undefined counts as empty. */
export function known(options, names) {
  if (options === undefined) return NONE;
  let name = "the object of options";
  try {
    if (!is_options(options)) throw invalid_type("options", "an object", describe(options));
    const keys = Object.keys(options);
    const unknown = keys.find((key) => !names.includes(key));
    if (unknown !== undefined) throw invalid_option(unknown, "not an option", `the options are ${names.join(", ")}`);
    // Those of a class are not its own.
    for (name of is_plain(options) ? keys : names) options[name];
  } catch (cause) {
    throw get(cause, "name") === "LapidaryError" ? cause : unreadable(name, cause);
  }
  return options;
}

/** An option's value if it is as `is_right` wants it, or `otherwise` if it is left out. */
function option(name, value, otherwise, is_right, expected) {
  if (value === undefined) return otherwise;
  let right;
  try {
    right = is_right(value);
  } catch (cause) {
    throw unreadable(name, cause);
  }
  if (!right) throw invalid_option(name, describe(value), `it must be ${expected}`);
  return value;
}

const is_number = (value) => typeof value === "number";
const is_flag = (value) => typeof value === "boolean";
const is_signal = (value) =>
  typeof get(value, "aborted") === "boolean" && typeof get(value, "addEventListener") === typeof get(value, "removeEventListener");
export const number = (name, value, otherwise) => option(name, value, otherwise, is_number, "a number");
export const flag = (name, value) => option(name, value, false, is_flag, "true or false");
export const one_of = (name, value, names, expected) => option(name, value, names[0], (value) => names.includes(value), expected);

/** The signal, if there is one; it must not be aborted yet. */
function signal(value) {
  const found = option("signal", value, undefined, is_signal, "an AbortSignal");
  if (found?.aborted) throw fault("aborted", "the call was aborted by its signal");
  return found;
}

const OPEN = ["backend", "power_preference", "pool_bytes", "threads", "signal"];

/** How to open a device: backend, power preference, and bytes of the pool and threads if they are told. */
export function to_open(options) {
  const told = known(options, OPEN);
  signal(told.signal);
  const backends = ["auto", ...BACKENDS, "cpu"];
  return [
    one_of("backend", told.backend, backends, "auto, webgpu, webgl2, simd, scalar or cpu"),
    one_of("power_preference", told.power_preference, ["high-performance", "low-power"], "high-performance or low-power"),
    option("pool_bytes", told.pool_bytes, undefined, is_whole, "a whole number of bytes"),
    option("threads", told.threads, undefined, (value) => is_whole(value) && value > 0 && value <= 64, "a whole number from 1 to 64"),
  ];
}

/** A dimension as it is told, or from the shapes of tensors, of which there may be two; all must agree. */
function dimension(name, given, told, also = told) {
  const of_tensor = told ?? also;
  const value = given === undefined && of_tensor !== undefined ? of_tensor : whole(name, given);
  if ((told ?? value) !== value || (also ?? value) !== value) {
    throw invalid_dimension(name, value, `${told !== undefined && told !== value ? told : also}, as the tensor's shape says`);
  }
  return value;
}

/** Elements from one row or matrix to the next, or before the first; Rust takes NaN for none. */
const stride = (name, value) => (value === undefined ? NaN : whole(name, value));

const STRIDES = ["lda", "ldb", "ldc", "stride_a", "stride_b", "stride_c", "offset_a", "offset_b", "offset_c"];
const PRODUCT = [
  ...["m", "k", "n", "batch", "transpose_a", "transpose_b", "alpha", "beta", "c", "bias", "activation", "result", "precision"],
  ...STRIDES,
  "zero_points",
  "signal",
];
/** In the order of the numbers by which Rust knows them. */
export const ACTIVATIONS = ["none", "relu", "gelu", "sigmoid", "tanh", "silu"];
export const BACKENDS = ["webgpu", "webgl2", "simd", "scalar"];
export const DTYPES = ["f32", "f16", "i32", "u32", "bool", "i8", "u8"];
const RESULTS = DTYPES.slice(0, 3);
/** What anything but a product is computed of. */
export const COMPUTED = DTYPES.slice(0, 5);
const PRECISIONS = ["f32", "f16x3", "f16"];

/** The place of a named option's value among those that it may have, of which the first is meant if it is left out. */
export const place = (name, value, names) => (value === undefined ? 0 : names.indexOf(one_of(name, value, names, names.join(", "))));

/** Values of f16 are given in a `Float16Array`. */
export function can_give(dtype) {
  if (dtype === "f16" && !globalThis.Float16Array) {
    throw fault("unavailable", "this engine has no Float16Array to give values of f16 in; keep them on the device, have results in f32, or use " +
      "Chrome or Edge 135, Safari 18.2, Firefox 129 or Node 24");
  }
}

/** A side of a tensor's matrices as they are stored, 0 for rows and 1 for columns; a vector is a row as A and a column as B. */
function side(shape, which, is_row) {
  if (shape === undefined || shape.length > 1) return shape?.[shape.length - 2 + which];
  if (shape.length === 0) throw invalid_dimension("the shape of a tensor", "[]", "of one dimension or more");
  return is_row === (which === 1) ? shape[0] : 1;
}

const NO_ZEROS = Object.freeze([0, 0]);
const are_zeros = (value) => Array.isArray(value) && value.length === 2 && [...value].every((zero) => Number.isInteger(zero) && Math.abs(zero) < 256);

const NO_BATCH = Object.freeze([]);
const batch_of = (shape) => (shape.length > 2 ? shape.slice(0, -2) : NO_BATCH);

/** Two batch shapes in one, by NumPy's rules; Rust refuses those that do not go together. */
function broadcast(a, b) {
  if (b.length === 0) return a;
  const rank = Math.max(a.length, b.length);
  const size = (shape, i) => shape[i - rank + shape.length] ?? 1;
  return Array.from({ length: rank }, (_, i) => (size(a, i) === 1 ? size(b, i) : size(a, i)));
}

/**
 * A product as Rust takes it: numbers in the order of `product` in src/web/mod.rs, what is added, and the signal; and its result's shape.
 * `shape_a` and `shape_b` are undefined for what is no tensor, as what `shape_of` gives is. `operand` makes of an array or a tensor what Rust
 * takes. Queues call this a hundred thousand times a second: it makes few objects, and reads each option by its name, which engines do fastest.
 */
export function product(options, shape_a, shape_b, operand, shape_of, names = PRODUCT) {
  const told = known(options, names);
  const stop = signal(told.signal);
  // A window of a tensor is told as one of an array would be, but its rows are as far apart as the tensor's.
  let { lda, ldb, ldc } = told;
  if (told.offset_a !== undefined) [lda, shape_a] = [lda ?? shape_a?.at(-1), undefined];
  if (told.offset_b !== undefined) [ldb, shape_b] = [ldb ?? shape_b?.at(-1), undefined];
  const transpose_a = flag("transpose_a", told.transpose_a);
  const transpose_b = flag("transpose_b", told.transpose_b);
  const m = dimension("m", told.m, side(shape_a, +transpose_a, !transpose_a));
  const k = dimension("k", told.k, side(shape_a, +!transpose_a, !transpose_a), side(shape_b, +transpose_b, transpose_b));
  const n = dimension("n", told.n, side(shape_b, +!transpose_b, transpose_b));
  const alpha = number("alpha", told.alpha, 1);
  const beta = number("beta", told.beta, 0);
  const c = told.c === undefined ? undefined : operand("c", told.c);
  const bias = told.bias === undefined ? undefined : operand("bias", told.bias);
  const activation = place("activation", told.activation, ACTIVATIONS);
  const result = told.result === undefined ? -1 : place("result", told.result, RESULTS);
  const precision = place("precision", told.precision, PRECISIONS);
  const [a_zero, b_zero] = option("zero_points", told.zero_points, NO_ZEROS, are_zeros, "two whole numbers");
  let of_arrays = NO_BATCH;
  if (told.batch !== undefined) of_arrays = wholes("batch", is_list(told.batch) ? told.batch : [told.batch]);
  const batch_a = shape_a === undefined ? of_arrays : batch_of(shape_a);
  const batch_b = shape_b === undefined ? of_arrays : batch_of(shape_b);
  const batch = broadcast(batch_a, batch_b);
  if (told.batch !== undefined && `${batch}` !== `${of_arrays}`) throw invalid_dimension("batch", `${of_arrays}`, `[${batch}], as the tensors' shapes say`);
  const shape = batch.length === 0 ? [m, n] : [...batch, m, n];
  const [is_row, is_column] = [shape_a?.length === 1, shape_b?.length === 1];
  if (is_column) shape.pop();
  if (is_row) shape.splice(batch.length, 1);
  lda = stride("lda", lda);
  ldb = stride("ldb", ldb);
  if (told.offset_c !== undefined) ldc ??= shape_of(told.c)?.at(-1);
  ldc = stride("ldc", ldc);
  const stride_a = stride("stride_a", told.stride_a);
  const stride_b = stride("stride_b", told.stride_b);
  const stride_c = stride("stride_c", told.stride_c);
  const offset_a = stride("offset_a", told.offset_a);
  const offset_b = stride("offset_b", told.offset_b);
  const offset_c = stride("offset_c", told.offset_c);
  const numbers = [
    m, k, n, +transpose_a, +transpose_b, alpha, beta,
    lda, ldb, ldc, stride_a, stride_b, stride_c, offset_a, offset_b, offset_c,
    activation, result, precision, a_zero, b_zero, +is_row, +is_column, batch_a.length,
  ];
  if (batch.length > 0) numbers.push(...batch_a, ...batch_b);
  return { numbers, c, bias, signal: stop, shape, dtype: told.result };
}

const MULTIPLY = [...PRODUCT, "report", "keep"];

/** A product, and how its result is wanted. */
export function to_multiply(options, shape_a, shape_b, operand, shape_of) {
  const { numbers, c, bias, shape, dtype } = product(options, shape_a, shape_b, operand, shape_of, MULTIPLY);
  return { numbers, c, bias, shape, dtype, report: flag("report", options?.report), keep: flag("keep", options?.keep) };
}

const BENCHMARK = [...PRODUCT, "samples", "min_ms"];

/** All that any call may be told. */
export const OPTIONS = [...OPEN, ...MULTIPLY, ...BENCHMARK, "dtype", "offset_bytes"];

/** A product, the number of samples, and the shortest time. */
export function to_benchmark(options, shape_a, shape_b, operand, shape_of) {
  const told = product(options, shape_a, shape_b, operand, shape_of, BENCHMARK);
  const samples = number("samples", options?.samples, 5);
  if (!(Number.isInteger(samples) && samples >= 1 && samples <= 1000)) {
    throw invalid_option("samples", describe(samples), "it must be a whole number from 1 to 1000");
  }
  const min_ms = number("min_ms", options?.min_ms, 50);
  if (!(min_ms >= 0 && min_ms <= 10_000)) throw invalid_option("min_ms", describe(min_ms), "it must be from 0 to 10000");
  return { ...told, samples, min_ms };
}

/** What can stop a call that has no other option. */
export const to_stop = (options) => signal(known(options, ["signal"]).signal);

/** The sizes of a tensor's dimensions. */
export function shape(value) {
  return wholes("shape", value);
}

/** Whether it is a buffer of the page's own. */
export const is_buffer = (value) => Boolean(globalThis.GPUBuffer && value instanceof GPUBuffer);

/** Where in a buffer so many elements of a size in bytes begin, if it can be used so. */
function place_in(argument, buffer, told, usage, elements, size) {
  const [has, length] = [get(buffer, "usage"), get(buffer, "size")];
  if (!is_buffer(buffer) || !(has & GPUBufferUsage[usage])) {
    throw invalid_type(argument, `a GPUBuffer with the usage ${usage}`, is_buffer(buffer) ? "one without" : describe(buffer));
  }
  if (get(buffer, "mapState") !== "unmapped") throw invalid_type(argument, "a GPUBuffer that is not mapped", "mapped, or about to be");
  const at = option("offset_bytes", told, 0, (value) => is_whole(value) && value % 4 === 0, "a whole number of bytes and a multiple of 4");
  // Copies are of whole words.
  const needed = at + Math.ceil((elements * size) / 4) * 4;
  if (needed > length) {
    throw fault("length_mismatch", `${argument} has ${length} bytes, but offset_bytes + ${elements} · ${size}, in whole words = ${needed} are needed`);
  }
  return at;
}

const count_of = (shape) => shape.reduce((product, size) => product * size, 1);
const bytes_of = (dtype) => ({ f16: 2, i8: 1, u8: 1 })[dtype] ?? 4;

/** What a tensor is made of where that is a buffer: where it begins there, and the place of its type. */
export function to_source(buffer, options, sizes) {
  const told = known(options, ["dtype", "offset_bytes"]);
  const dtype = one_of("dtype", told.dtype, DTYPES.filter((name) => name !== "bool"), "f32, f16, i32, u32, i8 or u8");
  return [place_in("data", buffer, told.offset_bytes, "COPY_SRC", count_of(sizes), bytes_of(dtype)), DTYPES.indexOf(dtype)];
}

/** Where in a buffer a tensor is to go. */
export function to_target(buffer, options, sizes, dtype) {
  return place_in("buffer", buffer, known(options, ["offset_bytes"]).offset_bytes, "COPY_DST", count_of(sizes), bytes_of(dtype));
}

/** The classes of arrays that hold a type, the first of which needs no word on it. */
const CLASSES = [
  ["Float32Array"], ["Float16Array", "Uint16Array"], ["Int32Array"], ["Uint32Array"], [undefined, "Uint8Array"], ["Int8Array"], ["Uint8Array"],
];

/** What a tensor is made of: an array as Rust takes it, and the place of its type. */
export function to_data(data, options) {
  const told = known(options, ["dtype"]).dtype;
  const found = CLASSES.findIndex(([name]) => name !== undefined && ArrayBuffer.isView(data) && get(data, Symbol.toStringTag) === name);
  const type = told === undefined ? Math.max(found, 0) : place("dtype", told, DTYPES);
  if (type === 4) {
    // Holes are not passed over.
    const are_flags = is_list(data) && Array.from(data).every(is_flag);
    const truths = are_flags ? data : typed_array("data", data, ["Uint8Array"], "a Uint8Array or an array of true and false");
    check_bytes(truths.length * Uint32Array.BYTES_PER_ELEMENT);
    try {
      // By `from` with a function, engines make a list first, which they may not have the room for.
      const words = new Uint32Array(truths.length);
      for (let i = 0; i < words.length; i++) words[i] = +Boolean(truths[i]);
      return [words, type];
    } catch (error) {
      throw no_room(error);
    }
  }
  const [first, second] = CLASSES[type];
  const expected = told === undefined ? "a Float32Array, a Float16Array, an Int32Array, a Uint32Array, an Int8Array, a Uint8Array or a GPUBuffer, or have a dtype" : `a ${first} for ${told}`;
  const values = typed_array("data", data, [first, second], expected);
  if (found >= 0 || type !== 1) return [values, type];
  return [new (globalThis.Float16Array ?? Uint16Array)(values.buffer, values.byteOffset, values.length), type];
}
