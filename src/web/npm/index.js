// The package's entry: starts the WebAssembly module once, and gives its functions their classes. What they mean is in index.d.ts;
// what they do is in Rust, which gets arguments that options.js has checked.

import start, * as core from "./lapidary_core.js";
import { ask_early, device_for, forget_early } from "./early.js";
import { encode, set_tensor_number } from "./encode.js";
import { BACKENDS, DTYPES, OPTIONS, array, can_give, fault, floats, get, is_buffer, is_bytes, is_list, no_room, plain, product, shape as sides } from "./options.js";
import { is_options, text_of, to_benchmark, to_data, to_multiply, to_open, to_source, to_stop, to_target, unreadable, whole } from "./options.js";
import { load_part, prepare_for_loss, set_core } from "./parts.js";
import { read_file, workers } from "./source.js";

let started;

function load() {
  started ??= (async () => {
    try {
      set_core(await start(read_file && { module_or_path: await read_file("lapidary_core_bg.wasm") }));
    } catch (cause) {
      started = undefined;
      throw fault("unavailable", `the WebAssembly module of lapidary could not be started (${cause}); check that lapidary_core_bg.wasm is served ` +
        "beside lapidary_core.js, and that a content security policy allows 'wasm-unsafe-eval'", cause);
    }
    core.set_loader(load_part);
    core.set_maker(device_for);
    if (workers) core.set_worker(...workers);
    core.set_panic_handler(end_all);
    // What is no panic, such as a stack that overflows, is heard of once whatever called the module has ended too.
    globalThis.addEventListener?.("error", ({ message }) => queueMicrotask(() => core.was_left() && end_all(message)));
  })();
  return started;
}

/** Has the browser look for its GPU, and make a device of it, while the module loads. Gives whether these options may take that. */
function look_for_gpu(options) {
  const backend = get(options, "backend") ?? "auto";
  const may_take = globalThis.navigator?.gpu && (backend === "auto" || backend === "webgpu");
  if (may_take && !started) ask_early(get(options, "power_preference") ?? "high-performance");
  return may_take;
}

/** Openings under way that may take it. */
let takers = 0;

/** A promise of a failure, which the caller hears of unless another one comes before it. */
function failed(error) {
  const promise = Promise.reject(error);
  promise.catch(() => {});
  return promise;
}

/** Rejections of the calls under way, for the day that the module fails. */
const waiting = new Set();

/** Ends them: nothing else would, once the module was left in its midst. */
function end_all(message) {
  for (const reject of waiting) reject(internal(message));
}

const internal = (message, cause) => fault("internal", `internal fault of lapidary, please report it: ${message}`, cause);

/**
 * What `call` gives. It is called at once, so that it reads its arguments before the caller goes on; an abort rejects at once too, and
 * what is under way then ends unheard, its result given to `discard`.
 */
function guarded(call, signal, discard) {
  return new Promise((resolve, reject) => {
    // By what it can do, not by its class: it may come from another realm.
    const listens = ["addEventListener", "removeEventListener"].every((name) => typeof get(signal, name) === "function");
    let aborted = false;
    const abort = () => {
      aborted = true;
      reject(fault("aborted", "the call was aborted by its signal", get(signal, "reason")));
    };
    const settle = (then) => (value) => {
      waiting.delete(reject);
      try {
        if (listens) signal.removeEventListener("abort", abort);
      } catch {
        // The call has come to its end all the same.
      }
      then(value);
    };
    const fail = settle((error) => {
      if (get(error, "code") === "aborted") abort();
      else if (get(error, "name") === "LapidaryError") reject(error);
      else reject(internal(text_of(error), error));
    });
    waiting.add(reject);
    try {
      // Of what was aborted before no event tells.
      if (listens && signal.aborted) return fail({ code: "aborted" });
      if (listens) signal.addEventListener("abort", abort);
    } catch (error) {
      return fail(unreadable("signal", error));
    }
    try {
      const succeed = settle((value) => (aborted ? discard?.(value) : resolve(value)));
      Promise.resolve(call()).then(succeed, fail);
    } catch (error) {
      fail(error);
    }
  });
}

/** Frees what was forgotten. */
const forgotten = globalThis.FinalizationRegistry && new FinalizationRegistry((free) => free());

/** Only this module makes the classes below. */
const ours = Symbol();

function only_ours(key, name) {
  if (key !== ours) throw fault("invalid_type", `a ${name} is not made by its constructor; see the package's documentation`);
}

export class Tensor {
  #tensor;
  #shape;
  #is_free = false;

  /** Those that were made in this task. */
  static #young = [];

  constructor(key, tensor, shape, dtype, backend) {
    only_ours(key, "Tensor");
    this.#tensor = tensor;
    this.#shape = Object.freeze(shape);
    this.shape = shape;
    this.dtype = dtype;
    this.backend = backend;
    // To be told of what is forgotten costs as much as a product in a queue, of which most are freed in the same task.
    const count = Tensor.#young.push(this);
    if (count === 1) setTimeout(Tensor.#watch);
    else if (count === 1024) Tensor.#watch();
  }

  static #watch() {
    for (const value of Tensor.#young) {
      const tensor = value.#tensor;
      if (!value.#is_free) forgotten?.register(value, () => core.free_tensor(tensor));
    }
    Tensor.#young = [];
  }

  /** The number by which Rust knows a tensor; undefined for what is none. */
  static number_of(key, value) {
    only_ours(key, "Tensor");
    return typeof value === "object" && value !== null && #tensor in value ? value.#tensor : undefined;
  }

  /** A tensor's shape; undefined for what is none. */
  static shape_of(key, value) {
    only_ours(key, "Tensor");
    return typeof value === "object" && value !== null && #tensor in value ? value.#shape : undefined;
  }

  get rows() {
    return this.#shape.slice(0, -1).reduce((product, size) => product * size, 1);
  }

  get columns() {
    return this.#shape.at(-1) ?? 1;
  }

  reshape(to) {
    const shape = sides(to);
    return new Tensor(ours, core.reshape(this.#tensor, shape), shape, this.dtype, this.backend);
  }

  toArray() {
    const call = () => {
      can_give(this.dtype);
      return core.tensor_to_array(this.#tensor);
    };
    return guarded(call);
  }

  copyTo(buffer, options) {
    const call = () => core.tensor_to_buffer(this.#tensor, buffer, to_target(buffer, options, this.#shape, this.dtype));
    return guarded(call);
  }

  dispose() {
    this.#is_free = true;
    core.free_tensor(this.#tensor);
  }
}

/** A tensor as Rust gives it. */
const made = ({ tensor, shape, dtype, backend }) => new Tensor(ours, tensor, shape, DTYPES[dtype], BACKENDS[backend]);

/** The same, once what multiplies it is there. */
async function usable(tensor) {
  try {
    if (is_bytes(tensor)) await load_part("int8");
  } catch (error) {
    tensor.dispose();
    throw error;
  }
  return tensor;
}

set_tensor_number((value) => Tensor.number_of(ours, value));

export { Expr, lazy } from "./expr.js";

/** An array in f32, which holds every f16. */
const wide = (name, value) => {
  const own = floats(name, value);
  try {
    return own.BYTES_PER_ELEMENT < 4 ? new Float32Array(own) : own;
  } catch (error) {
    throw no_room(error);
  }
};

export class Reference {
  #reference;

  constructor(key, reference) {
    only_ours(key, "Reference");
    this.#reference = reference;
    forgotten?.register(this, () => core.free_reference(reference));
  }

  check(result) {
    return core.check(this.#reference, wide("result", result));
  }

  free() {
    core.free_reference(this.#reference);
  }
}

/** An operand as Rust takes it: an array, or the number of a tensor. */
const operand = (name, value) => Tensor.number_of(ours, value) ?? array(name, value);

/** Loads what products of 8-bit integers take, if these are such: a promise, or nothing where it is there. */
const load_for = (a, b) => (is_bytes(a) && is_bytes(b) ? load_part("int8") : undefined);

/** Loads what tunes. */
const operations = () => [load_part("operations")];

const shape_of = (value) => Tensor.shape_of(ours, value);

/** What `call` gives, which begins later than the caller goes on: of tensors `hold` gives others, which nobody disposes of before it is done. */
async function holding(call) {
  const held = [];
  const hold = (value) => {
    const shape = shape_of(value);
    if (shape === undefined) return value;
    const own = Tensor.prototype.reshape.call(value, shape);
    held.push(own);
    return own;
  };
  try {
    return await call(hold);
  } finally {
    for (const tensor of held) tensor.dispose();
  }
}

/** Expressions that were encoded when they were told. */
const codes = new WeakMap();

/** Whether an operand as Rust takes it is a tensor, or left out. */
const is_tensor = (value) => typeof value === "number" || value === undefined;

export class Gpu {
  #gpu;

  constructor(key, gpu) {
    only_ours(key, "Gpu");
    this.#gpu = gpu;
    forgotten?.register(this, () => core.free_gpu(gpu));
  }

  static async open(options) {
    const signal = get(options, "signal");
    const reading = guarded(() => to_open(options), signal);
    const may_take = look_for_gpu(options);
    if (may_take) takers++;
    try {
      const [own] = await Promise.all([reading, guarded(load, signal)]);
      const call = () => (to_stop({ signal }), core.open(...own));
      const gpu = new Gpu(ours, await guarded(call, signal, core.free_gpu));
      if (gpu.info().backend.startsWith("web")) setTimeout(prepare_for_loss, 2000); // the page's first results come first
      return gpu;
    } finally {
      if (may_take && --takers === 0) forget_early();
    }
  }

  /** What `call` gives on this handle once what `load` begins is there; the handle may be freed meanwhile. */
  async #after(load, call) {
    const gpu = core.hold_gpu(this.#gpu);
    try {
      await Promise.all(load());
      return call(gpu);
    } finally {
      core.free_gpu(gpu);
    }
  }

  info() {
    return core.info(this.#gpu);
  }

  get device() {
    return core.device(this.#gpu);
  }

  async matmul(a, b, options) {
    const signal = get(options, "signal");
    let gpu, queued, begun, shape, dtype;
    try {
      gpu = this.#gpu;
      const loading = load_for(a, b);
      if (loading) {
        // Whatever else is wrong is told in its place.
        loading.catch(() => {});
        [a, b, options] = [copy(a), copy(b), told(options)];
        gpu = core.hold_gpu(gpu);
        await guarded(() => loading, signal);
      }
      const [x, y] = [operand("a", a), operand("b", b)];
      const found = to_multiply(options, shape_of(a), shape_of(b), operand, shape_of);
      const { numbers, c, bias, report, keep } = found;
      ({ shape, dtype = is_bytes(a) ? "i32" : "f32" } = found);
      if (!keep) can_give(dtype);
      if (keep && !report && is_tensor(x) && is_tensor(y) && is_tensor(c) && is_tensor(bias)) {
        const tensor = core.queue(gpu, x, y, numbers, c, bias);
        // Its result is where its operands are.
        if (tensor !== 0) queued = new Tensor(ours, tensor, shape, dtype, a.backend);
      }
      begun = queued ?? core.matmul(gpu, x, y, numbers, c, bias, report, keep);
    } catch (error) {
      begun = failed(error);
    } finally {
      if (#gpu in Object(this) && gpu !== this.#gpu) core.free_gpu(gpu);
    }
    const discard = ({ data }) => (queued ? queued.dispose() : data.tensor && core.free_tensor(data.tensor));
    // What is there already can still be aborted, until the caller hears of it.
    const waits = signal !== undefined || begun instanceof Promise;
    const result = waits ? await guarded(() => begun, signal, discard) : begun;
    if (queued) return queued;
    if (result.data.tensor) result.data = new Tensor(ours, result.data.tensor, shape, dtype, BACKENDS[result.data.backend]);
    return result.backend ? result : result.data;
  }

  tensor(data, shape, options) {
    const call = () => {
      const sizes = sides(shape);
      if (is_buffer(data)) return core.tensor_of_buffer(this.#gpu, data, ...to_source(data, options, sizes), sizes);
      return core.tensor(this.#gpu, ...to_data(data, options), sizes);
    };
    return guarded(call).then(made).then(usable);
  }

  async evaluate(expr) {
    let begun;
    try {
      begun = core.evaluate(this.#gpu, codes.get(expr) ?? encode(expr));
    } catch (error) {
      begun = failed(error);
    }
    return made(begun instanceof Promise ? await guarded(() => begun) : begun);
  }

  benchmark(a, b, options) {
    const call = (hold) => {
      const own = (name, value) => operand(name, hold(copy(value)));
      const [x, y] = [own("a", a), own("b", b)];
      const { numbers, c, bias, signal, samples, min_ms } = to_benchmark(options, shape_of(a), shape_of(b), own, shape_of);
      const load = () => [load_for(a, b), load_part("measure")];
      return this.#after(load, (gpu) => core.benchmark(gpu, x, y, numbers, c, bias, samples, min_ms, signal));
    };
    return guarded(() => holding(call), get(options, "signal"));
  }

  tune(options) {
    const call = async () => {
      const stop = to_stop(options);
      return this.#after(operations, (gpu) => core.tune(gpu, stop));
    };
    return guarded(call, get(options, "signal"));
  }

  clear_tuning() {
    return guarded(() => this.#after(operations, core.clear_tuning));
  }

  memory() {
    return core.memory_stats(this.#gpu);
  }

  trim() {
    core.trim(this.#gpu);
  }

  free() {
    core.free_gpu(this.#gpu);
  }
}

if (Symbol.dispose) {
  Tensor.prototype[Symbol.dispose] = Tensor.prototype.dispose;
  Reference.prototype[Symbol.dispose] = Reference.prototype.free;
  Gpu.prototype[Symbol.dispose] = Gpu.prototype.free;
}

/** The handle that the page shares: a promise while it opens. */
let shared;
/** The same once it is open, so that calls start before they return. */
let ready;

/** What is being opened, in the order of the calls. */
const openings = new Set();

function use(options) {
  const before = [...openings];
  const own = told(options);
  const signal = get(own, "signal");
  const opening = (async () => {
    // One after another: of two calls the later has the last word. An abort waits for none.
    await guarded(() => (to_stop({ signal }), Promise.allSettled(before)), signal);
    const gpu = await Gpu.open(own);
    ready?.free();
    return (ready = gpu);
  })();
  shared = opening;
  openings.add(opening);
  const over = () => openings.delete(opening);
  opening.then(over, () => {
    over();
    // The next call goes on with what is being opened still, or with what was open before, or tries anew.
    if (shared === opening) shared = [...openings].at(-1) ?? (ready && Promise.resolve(ready));
  });
  return opening;
}

/** The shared handle. What cannot be opened is told to whoever asked for it; others go on with what is open, or is being opened since. */
function opened() {
  return (shared ?? use()).catch((error) => {
    if (shared) return opened();
    throw error;
  });
}

/** Calls on the shared handle: at once if it is open. */
function on_shared(call) {
  return ready && !pending() ? call(ready) : opened().then(call);
}

let opening_count = 0;
const pending = () => opening_count > 0;

export async function init_gpu(options) {
  if (options === undefined && shared) return (await opened()).info();
  opening_count++;
  try {
    return (await use(options)).info();
  } finally {
    opening_count--;
  }
}

export const device_info = async () => on_shared((gpu) => gpu.info());

export const gpu_device = async () => on_shared((gpu) => gpu.device);

/** The caller may change an operand before the device is open. What cannot be copied is left to the checks to refuse. */
function copy(value) {
  try {
    return ArrayBuffer.isView(value) || is_list(value) ? plain(value).slice() : value;
  } catch (error) {
    if (error instanceof RangeError) throw no_room(error);
    return value;
  }
}

/** The same of options, of whose values `own` is what stays. Those that a class has are found by their names alone, and stay inherited. */
function told(options, own = copy) {
  try {
    if (!is_options(options)) return options;
    const own_names = Object.keys(options);
    const of = (names) => Object.fromEntries(names.map((name) => [name, own(options[name])]));
    const inherited = OPTIONS.filter((name) => !own_names.includes(name) && name in options);
    // One of the names may be that by which `assign` would set the prototype.
    return Object.setPrototypeOf(of(own_names), of(inherited));
  } catch (error) {
    if (error?.code === "out_of_memory") throw error;
    return options;
  }
}

/** A call of that name on the shared handle, of operands as they are now; an abort does not wait for it to be open. */
function of_operands(name, a, b, options) {
  const call = (hold) => {
    const own = (value) => hold(copy(value));
    const [x, y, z] = [own(a), own(b), told(options, own)];
    return on_shared((gpu) => gpu[name](x, y, z));
  };
  return guarded(() => holding(call), get(options, "signal"));
}

export async function matmul(a, b, options) {
  if (ready && !pending()) return ready.matmul(a, b, options);
  // While operands are copied.
  if (!shared) look_for_gpu();
  return of_operands("matmul", a, b, options);
}

export async function tensor(data, shape, options) {
  if (ready && !pending()) return ready.tensor(data, shape, options);
  if (!shared) look_for_gpu();
  const [values, sizes, own] = [copy(data), copy(shape), told(options)];
  return on_shared((gpu) => gpu.tensor(values, sizes, own));
}

export async function evaluate(expr) {
  if (ready && !pending()) return ready.evaluate(expr);
  return holding((hold) => {
    const own = {};
    codes.set(own, encode(expr, hold));
    return on_shared((gpu) => gpu.evaluate(own));
  });
}

export const benchmark = async (a, b, options) => of_operands("benchmark", a, b, options);

export async function tune(options) {
  const own = told(options);
  return guarded(() => on_shared((gpu) => gpu.tune(own)), get(own, "signal"));
}

export const clear_tuning = async () => on_shared((gpu) => gpu.clear_tuning());

export const memory = async () => on_shared((gpu) => gpu.memory());

export async function reference(a, b, options) {
  const call = async () => {
    // It reads them in pieces, and C with each check.
    const values = [wide("a", copy(a)), wide("b", copy(b))];
    const { numbers, c, bias, signal } = product(told(options), undefined, undefined, wide, shape_of);
    await load();
    await load_part("measure");
    return core.reference(...values, numbers, c, bias, signal);
  };
  return new Reference(ours, await guarded(call, get(options, "signal"), core.free_reference));
}

export async function random_matrix(length, seed) {
  await load();
  const numbers = [whole("length", length), whole("seed", seed)];
  await load_part("measure");
  return core.random_matrix(...numbers);
}
