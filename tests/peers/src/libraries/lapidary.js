import { Gpu, device_info, lazy, matmul } from "lapidary";

/** Results that are held at a time: few of products, and of what GPUs queue, which are given at once; elsewhere as many as these bytes are. */
const QUEUED = 8;
const IN_FLIGHT_BYTES = 2 ** 28;

const named = ({ backend, name, software }) => `${backend}${name && `, ${name}`}${software ? " (software)" : ""}`;

/** The operations that are measured, of expressions. */
const OPERATIONS = {
  add: ([a, b]) => a.add(b),
  sum: ([a]) => a.sum(),
  "sum of rows": ([a]) => a.sum(1),
  softmax: ([a]) => a.softmax(1),
  "layer norm": ([a, scale, bias], { epsilon }) => a.layerNorm([1], { scale, bias, epsilon }),
  conv: ([x, filters], { stride, padding }) => x.conv(filters, { strides: [stride, stride], pads: [[padding, padding], [padding, padding]] }),
  fft: ([x]) => x.fft(0),
};

/** A run: tensors are asked for by `send`, a few at a time; `wait` for the last of them waits for all. */
function runner(most, send, wait) {
  return async (count) => {
    const flying = [];
    for (let i = 0; i < count; i++) {
      if (flying.length === most) (await flying.shift()).dispose();
      flying.push(send());
    }
    const sent = await Promise.all(flying);
    // A tensor is given before it is computed: what waits is a result on the host that needs the last of them.
    await wait(sent.at(-1));
    for (const tensor of sent) tensor.dispose();
  };
}

export async function open(backend, threads) {
  const gpu = await Gpu.open({ backend: backend === "wasm" ? "simd" : backend, threads });
  const info = gpu.info();

  /** Why a job cannot be done here, if it cannot. */
  function lacks({ dtype, precision }) {
    if (dtype === "f16" && !globalThis.Float16Array) return "this browser has no Float16Array";
    return precision && !info.features.includes("subgroup-matrix") && "this device has no matrix units that lapidary can use";
  }

  const most_in_flight = (elements) => (backend.startsWith("webg") ? QUEUED : Math.max(2, Math.floor(IN_FLIGHT_BYTES / (4 * elements))));

  async function operation(job) {
    const tensors = [];
    for (const { values, shape } of job.inputs) tensors.push(await gpu.tensor(values, shape));
    const expr = OPERATIONS[job.operation](tensors.map(lazy), job);
    const read = async (value) => {
      const tensor = await gpu.evaluate(value);
      const values = await tensor.toArray();
      tensor.dispose();
      return values;
    };
    const elements = job.result.reduce((x, y) => x * y, 1);
    const run = runner(most_in_flight(elements), () => gpu.evaluate(expr), (tensor) => read(lazy(tensor).reshape([-1]).slice(0, 0, 1)));
    const free = () => {
      for (const tensor of tensors) tensor.dispose();
      gpu.trim();
    };
    return { run, result: () => read(expr), free };
  }

  async function resident({ a, b, m, k, n, batch, dtype, precision }) {
    const typed = (values) => (dtype === "f16" ? new Float16Array(values) : values);
    const put = (values, ...sides) => gpu.tensor(typed(values), batch > 1 ? [batch, ...sides] : sides);
    const [x, y] = [await put(a, m, k), await put(b, k, n)];
    const ones = await gpu.tensor(new Float32Array(m).fill(1), [1, m]);
    const send = () => gpu.matmul(x, y, { precision, keep: true });
    const run = runner(QUEUED, send, (product) => gpu.matmul(ones, product, {}));

    async function result(options = { precision }) {
      const product = await gpu.matmul(x, y, { ...options, keep: true });
      const values = await product.toArray();
      product.dispose();
      return values;
    }

    const free = () => {
      for (const tensor of [x, y, ones]) tensor.dispose();
      gpu.trim();
    };
    const alone = async () => (await gpu.benchmark(x, y, { precision, samples: 3 })).gflops;
    return { run, result, free, alone, plain: precision && (() => result({})) };
  }

  return { device: named(info), lacks, resident, operation, multiply: (a, b, { m, k, n }) => gpu.matmul(a, b, { m, k, n }) };
}

export async function first(a, b, { m, k, n }) {
  const result = await matmul(a, b, { m, k, n });
  return { result, device: named(await device_info()) };
}
