import { Gpu, device_info, lazy, matmul } from "lapidary";

/**
 * Results that are held at a time: few, as what is queued is given at once, and no more than these bytes are: new memory is not measured. The CPU
 * is done with one when the next is asked for, and others write each result where the last one was.
 */
const QUEUED = 8;
const QUEUED_ON_CPU = 2;
const IN_FLIGHT_BYTES = 2 ** 28;

const named = ({ backend, name, software }) => `${backend}${name && `, ${name}`}${software ? " (software)" : ""}`;

/** The operations that are measured, of expressions. */
const OPERATIONS = {
  add: ([a, b]) => a.add(b),
  sum: ([a]) => a.sum(),
  "sum of rows": ([a]) => a.sum(1),
  softmax: ([a]) => a.softmax(1),
  "layer norm": ([a, scale, bias], { epsilon }) => a.layerNorm([1], { scale, bias, epsilon }),
  conv: ([x, filters], { stride, padding, groups }) =>
    x.conv(filters, { strides: [stride, stride], pads: [[padding, padding], [padding, padding]], groups }),
  fft: ([x]) => x.fft(0),
};

/** A run: tensors are asked for by `send`, a few at a time; `wait` for the last of them waits for all, and what it gives is given. */
function runner(most, send, wait) {
  return async (count = 1) => {
    const flying = [];
    for (let i = 0; i < count; i++) {
      if (flying.length === most) (await flying.shift()).dispose();
      flying.push(send());
    }
    const sent = await Promise.all(flying);
    // A tensor is given before it is computed: what waits is a result on the host that needs the last of them.
    const last = await wait(sent.at(-1));
    for (const tensor of sent) tensor.dispose();
    return last;
  };
}

/** Handles beside the first, by what jobs call them. */
const HANDLES = {
  /** The browser hides the matrix units while it is opened. */
  async without_units(options) {
    const { prototype } = GPUSupportedFeatures;
    const { has } = prototype;
    prototype.has = function (name) {
      return name !== "chromium-experimental-subgroup-matrix" && has.call(this, name);
    };
    return Gpu.open(options).finally(() => (prototype.has = has));
  },
  async tuned(options) {
    const gpu = await Gpu.open(options);
    await gpu.tune();
    return gpu;
  },
};

export async function open(backend, threads) {
  const options = { backend: backend === "wasm" ? "simd" : backend, threads };
  const first = await Gpu.open(options);
  const info = first.info();
  const others = {};

  /** Why a job cannot be done here, if it cannot. */
  function lacks({ dtype, precision }) {
    if (dtype === "f16" && !globalThis.Float16Array) return "this browser has no Float16Array";
    if (precision === "f16" && !info.features.includes("shader-f16")) return "this device does not compute in f16";
    return precision === "f16x3" && !info.features.includes("subgroup-matrix") && "this device has no matrix units that lapidary can use";
  }

  /** The handle of a job. What an earlier visit tuned is forgotten where that is measured. */
  async function handle_of({ measure, handle }) {
    if (measure === "tuned" && !others.tuned) await first.clear_tuning();
    return handle ? (others[handle] ??= await HANDLES[handle](options)) : first;
  }

  /** Of results of so many elements. */
  function most_in_flight(elements) {
    return Math.min(backend === "wasm" ? QUEUED_ON_CPU : QUEUED, Math.max(2, Math.floor(IN_FLIGHT_BYTES / (4 * elements))));
  }

  async function read(gpu, value) {
    const tensor = await gpu.evaluate(value);
    const values = await tensor.toArray();
    tensor.dispose();
    return values;
  }

  const read_one = (gpu, tensor) => read(gpu, lazy(tensor).reshape([-1]).slice(0, 0, 1));

  async function operation(job) {
    const gpu = first;
    const tensors = [];
    for (const { values, shape } of job.inputs) tensors.push(await gpu.tensor(values, shape));
    const expr = OPERATIONS[job.operation](tensors.map(lazy), job);
    const elements = job.result.reduce((x, y) => x * y, 1);
    const runs = (wait) => runner(most_in_flight(elements), () => gpu.evaluate(expr), wait);
    const run = runs((tensor) => read_one(gpu, tensor));
    const result = runs((tensor) => tensor.toArray());
    const free = () => {
      for (const tensor of tensors) tensor.dispose();
      gpu.trim();
    };
    return { run, result, free };
  }

  async function resident(job) {
    const { a, b, m, k, n, batch, dtype, precision } = job;
    const gpu = await handle_of(job);
    const typed = (values) => ({ f16: () => new Float16Array(values), i8: () => new Int8Array(values) })[dtype]?.() ?? values;
    const put = (values, ...sides) => gpu.tensor(typed(values), batch > 1 ? [batch, ...sides] : sides);
    const [x, y] = [await put(a, m, k), await put(b, k, n)];
    const ones = await gpu.tensor(new Float32Array(m).fill(1), [1, m]);
    const runs = (options, wait) => runner(most_in_flight(batch * m * n), () => gpu.matmul(x, y, { ...options, keep: true }), wait);
    const run = runs({ precision }, (product) => (dtype === "i8" ? read_one(gpu, product) : gpu.matmul(ones, product, {})));

    async function values_of(product) {
      const values = await product.toArray();
      return dtype === "i8" ? new Float32Array(values) : values;
    }
    const result = runs({ precision }, values_of);

    const free = () => {
      for (const tensor of [x, y, ones]) tensor.dispose();
      gpu.trim();
    };
    const alone = async () => (await gpu.benchmark(x, y, { precision, samples: 3 })).gflops;
    return { run, result, free, alone, plain: precision === "f16x3" && runs({}, values_of) };
  }

  const close = () => others.tuned?.clear_tuning();
  return { device: named(info), lacks, resident, operation, close, multiply: (a, b, { m, k, n }) => first.matmul(a, b, { m, k, n }) };
}

export async function first(a, b, { m, k, n }) {
  const result = await matmul(a, b, { m, k, n });
  return { result, device: named(await device_info()) };
}
