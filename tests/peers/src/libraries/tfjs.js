import * as tf from "@tensorflow/tfjs-core";

const { backend: current, env, matMul, ready, setBackend, slice, tensor } = tf;

const shapes = ({ m, k, n, batch }) => (batch > 1 ? [[batch, m, k], [batch, k, n]] : [[m, k], [k, n]]);

/** The operations that are measured. Images lie with their channels last, as the library has it. */
const OPERATIONS = {
  add: ([a, b]) => tf.add(a, b),
  sum: ([a]) => tf.sum(a),
  "sum of rows": ([a]) => tf.sum(a, 1),
  softmax: ([a]) => tf.softmax(a, 1),
  "layer norm": ([a, scale, bias], { epsilon }) => {
    const { mean, variance } = tf.moments(a, 1, true);
    return tf.add(tf.mul(tf.mul(tf.sub(a, mean), tf.rsqrt(tf.add(variance, epsilon))), scale), bias);
  },
  // Of groups it knows those of one channel each.
  conv: ([x, filters], { stride, padding, groups }) =>
    (groups > 1 ? tf.depthwiseConv2d : tf.conv2d)(x, filters, stride, padding, "NHWC", 1, "floor"),
  fft: ([x]) => tf.fft(x),
};

/** The inputs of an operation as it takes them, in their order. */
function inputs_of({ operation, inputs, groups }) {
  const given = inputs.map(({ values, shape }) => tensor(values, shape));
  if (operation === "conv") return [tf.transpose(given[0], [0, 2, 3, 1]), tf.transpose(given[1], groups > 1 ? [2, 3, 0, 1] : [2, 3, 1, 0])];
  if (operation === "fft") return [tf.complex(...tf.unstack(given[0], 1))];
  return given;
}

/** What an operation gives, as others give it. */
function as_others({ operation }, out) {
  if (operation === "conv") return tf.transpose(out, [0, 3, 1, 2]);
  if (operation === "fft") return tf.stack([tf.real(out), tf.imag(out)], 1);
  return out;
}

async function start(backend, threads = 1) {
  if (backend === "webgpu") await import("@tensorflow/tfjs-backend-webgpu");
  else if (backend === "webgl2") await import("@tensorflow/tfjs-backend-webgl");
  else {
    const [{ setThreadsCount, setWasmPaths }, { default: simd }, { default: threaded }] = await Promise.all([
      import("@tensorflow/tfjs-backend-wasm"),
      import("@tensorflow/tfjs-backend-wasm/dist/tfjs-backend-wasm-simd.wasm?url"),
      import("@tensorflow/tfjs-backend-wasm/dist/tfjs-backend-wasm-threaded-simd.wasm?url"),
    ]);
    env().set("WASM_HAS_MULTITHREAD_SUPPORT", threads > 1);
    if (threads > 1) setThreadsCount(threads);
    // It wants an address for each of its files, and takes one of those with SIMD.
    const used = { "tfjs-backend-wasm-simd.wasm": simd, "tfjs-backend-wasm-threaded-simd.wasm": threaded };
    setWasmPaths({ ...used, "tfjs-backend-wasm.wasm": simd });
  }
  const name = backend === "webgl2" ? "webgl" : backend;
  if (!(await setBackend(name))) throw new Error(`setBackend("${name}") gave false`);
  await ready();
  return name;
}

async function multiply(a, b, job) {
  const [shape_a, shape_b] = shapes(job);
  const [x, y] = [tensor(a, shape_a), tensor(b, shape_b)];
  const product = matMul(x, y);
  const result = await product.data();
  for (const part of [x, y, product]) part.dispose();
  return result;
}

export async function open(backend, threads) {
  const name = await start(backend, threads);

  /** Reads one element, which waits for all that was queued before. WebGL's data() polls a fence now and then, so it waits by dataSync. */
  async function wait_for(out) {
    const one = tf.tidy(() => {
      const floats = out.dtype === "complex64" ? tf.real(out) : out;
      return floats.rank === 0 ? tf.clone(floats) : slice(floats, floats.shape.map(() => 0), floats.shape.map(() => 1));
    });
    if (name === "webgpu") await one.data();
    else one.dataSync();
    one.dispose();
  }

  /** A function of tensors that stay; `for_host` makes of its result what is compared. */
  function of_tensors(compute, tensors, for_host = (out) => out) {
    const once = () => tf.tidy(compute);

    async function queue(count, wait) {
      let out;
      for (let i = 0; i < count; i++) {
        out?.dispose();
        out = once();
      }
      const last = await wait(out);
      out.dispose();
      return last;
    }

    async function values_of(out) {
      const given = tf.tidy(() => for_host(out));
      const values = await given.data();
      if (given !== out) given.dispose();
      return values;
    }

    const run = (count) => queue(count, wait_for);
    const result = (count = 1) => queue(count, values_of);
    return { run, result, free: () => tf.dispose(tensors) };
  }

  async function resident(job) {
    const [shape_a, shape_b] = shapes(job);
    const [a, b] = [tensor(job.a, shape_a), tensor(job.b, shape_b)];
    return of_tensors(() => matMul(a, b), [a, b]);
  }

  async function operation(job) {
    const inputs = tf.tidy(() => inputs_of(job));
    return of_tensors(() => OPERATIONS[job.operation](inputs, job), inputs, (out) => as_others(job, out));
  }

  const device = name === "webgpu" ? (current().adapterInfo?.gpuVendor ?? "") : "";
  return { device: `${name}${device && `, ${device}`}`, resident, operation, multiply };
}

export async function first(a, b, job) {
  await start("webgpu");
  return { result: await multiply(a, b, { ...job, batch: 1 }), device: "webgpu" };
}
