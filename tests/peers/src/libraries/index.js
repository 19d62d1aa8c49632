/**
 * The libraries, each behind the same few functions:
 *
 *   open(backend, threads)      gives { device, resident, multiply }; on the CPU with so many threads
 *     resident(job)             puts the operands where the library computes; gives { run(count), result(count), free() }, where `run`
 *                               queues products and resolves when the last is done, and `result` gives the last of so many, by default
 *                               of one; lapidary's has `alone` too, its kernel's figure, and `note`
 *     multiply(a, b, job)       Float32Arrays in, a Float32Array out
 *     operation(job)            the same of one of the operations of ../operations.js, by its inputs
 *   first(a, b, job)            the same from nothing, in as few steps as the library's documentation needs: gives { result, device }
 *
 * A job is { measure, m, k, n, batch, a, b }, or what `prepare` of ../operations.js makes. Each library is used as its documentation recommends for speed.
 */
export const load = {
  lapidary: () => import("./lapidary.js"),
  tfjs: () => import("./tfjs.js"),
  ort: () => import("./ort.js"),
  jax: () => import("./jax.js"),
};

export const NAMES = { lapidary: "lapidary", tfjs: "TensorFlow.js", ort: "onnxruntime-web", jax: "jax-js" };
