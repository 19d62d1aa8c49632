/** What checks share. They run in pages and in Node alike, and throw when they fail. */

export function assert(condition, message) {
  if (!condition) throw new Error(message);
}

class Skip extends Error {}

/** Ends a check that cannot be made here, and says why. */
export function skip(reason) {
  throw new Skip(reason);
}

/** What became of a check that ended with an error: a fault, or the reason why it was not made. */
export const ended = (error) => (error instanceof Skip ? { fault: null, skipped: error.message } : { fault: `${error.message}` });

/** Small whole numbers: their products have one right result in every order of summation. */
export function integers(length, seed = 1) {
  const out = new Float32Array(length);
  let state = Math.imul(seed + 1, 0x9e3779b9);
  for (let i = 0; i < length; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) | 0;
    out[i] = ((state >>> 16) % 9) - 4;
  }
  return out;
}

/** The product as it is defined. */
export function product(a, b, { m, k, n, transpose_a, transpose_b, alpha = 1, beta = 0, c, lda, ldb, ldc = n }) {
  lda ??= transpose_a ? m : k;
  ldb ??= transpose_b ? k : n;
  const out = new Float32Array(m * n);
  for (let i = 0; i < m; i++) {
    for (let j = 0; j < n; j++) {
      let sum = 0;
      for (let p = 0; alpha !== 0 && p < k; p++)
        sum += a[transpose_a ? p * lda + i : i * lda + p] * b[transpose_b ? j * ldb + p : p * ldb + j];
      out[i * n + j] = alpha * sum + (beta === 0 ? 0 : beta * c[i * ldc + j]);
    }
  }
  return out;
}

/** A product to compute, with what must come out. Shaders for sizes of fours are others: with odd sizes little is compiled. */
export function problem(m, k, n, seed = 1, more = {}) {
  const [a, b] = [integers(m * k, seed), integers(k * n, seed + 1000)];
  const options = { m, k, n, ...more };
  return { a, b, options, expected: product(a, b, options) };
}

export function same(actual, expected, what = "result") {
  assert(Object.prototype.toString.call(actual) === "[object Float32Array]", `${what} is ${actual}, not a Float32Array`);
  assert(actual.length === expected.length, `${what} has ${actual.length} elements, not ${expected.length}`);
  for (let i = 0; i < actual.length; i++) {
    if (actual[i] !== expected[i] && !(Number.isNaN(actual[i]) && Number.isNaN(expected[i]))) {
      throw new Error(`${what}[${i}] of ${actual.length} is ${actual[i]}, not ${expected[i]}`);
    }
  }
}

/** Computes it and compares. */
export async function right(gpu, { a, b, options, expected }, what) {
  same(await gpu.matmul(a, b, options), expected, what);
}

export const settles = (promise) =>
  promise.then(
    (value) => ({ value }),
    (error) => ({ error }),
  );

/** An error as it is documented: one of the codes, and a text that has what the patterns say. */
export function is_fault(error, codes, ...patterns) {
  const text = `${error?.name} ${error?.code}: ${error?.message}`;
  assert(error instanceof Error, `not an Error: ${text}`);
  assert([codes].flat().includes(error.code), `code ${error.code} in place of ${codes} (${text})`);
  assert(error.name === (error.code === "aborted" ? "AbortError" : "LapidaryError"), `name: ${text}`);
  for (const pattern of patterns) assert(pattern.test(error.message), `${pattern} is not in: ${text}`);
}

/** The call must give a promise that rejects with one of the codes. */
export async function rejects(codes, call, ...patterns) {
  let promise;
  try {
    promise = call();
  } catch (error) {
    throw new Error(`thrown in place of a rejection: ${error}`);
  }
  assert(promise instanceof Promise, `${promise} is no promise`);
  const { value, error } = await settles(within(10_000, promise, "a rejection"));
  assert(error !== undefined, `no error ${codes}, but ${value}`);
  is_fault(error, codes, ...patterns);
}

export function throws(codes, call, ...patterns) {
  let value;
  try {
    value = call();
  } catch (error) {
    return is_fault(error, codes, ...patterns);
  }
  throw new Error(`no error ${codes}, but ${value}`);
}

/** All of it, each with a name for the message if it fails. */
export async function each(cases, check) {
  const faults = [];
  for (const [name, value] of Object.entries(cases)) {
    try {
      await check(value, name);
    } catch (error) {
      faults.push(`${name}: ${error.message}`);
    }
  }
  assert(faults.length === 0, faults.join("\n"));
}

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Nothing may wait for ever. */
export function within(ms, promise, what) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what ?? "it"} is still pending after ${ms} ms`)), ms);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** Whether a GPU is emulated, whose shaders take long to compile: fewer variants then. */
export const is_slow = (gpu) => gpu.info().backend === "webgpu" && gpu.info().software;

/**
 * Called before the package is loaded, nothing is freed that was only forgotten: whether a check that leaves something fails would
 * otherwise depend on when the collector runs.
 */
export function without_collector() {
  delete globalThis.FinalizationRegistry;
}

/** Until the handle holds no more memory than that; what was given up while it was computed may need a while. */
async function released(gpu, before) {
  for (let turn = 0; turn < 400 && gpu.memory().used_bytes > before; turn++) await sleep(5);
  const { used_bytes } = gpu.memory();
  assert(used_bytes <= before, `the check leaves ${used_bytes - before} bytes in use`);
}

/** How long a check may take before it counts as one that never ends. Tuning compiles kernels for a minute where GPU and machine are slow. */
export const PATIENCE_MS = 180_000;

/** Runs the checks of all subjects on one handle of the backend. After each, the next call must be right, and nothing may be left in use. */
export async function run(subjects, lapidary, backend) {
  const gpu = await lapidary.Gpu.open({ backend });
  const results = [];
  for (const [subject, checks] of Object.entries(subjects)) {
    for (const [name, check] of Object.entries(checks)) {
      const start = performance.now();
      const before = gpu.memory().used_bytes;
      let end = { fault: null };
      try {
        await within(PATIENCE_MS, check({ lapidary, gpu, backend }), "the check");
        await within(30_000, right(gpu, problem(3, 5, 7), "the next call"), "the next call");
        await released(gpu, before);
      } catch (error) {
        end = ended(error);
      }
      results.push({ name: `${subject}: ${name}`, ...end, ms: performance.now() - start });
    }
  }
  gpu.free();
  return results;
}
