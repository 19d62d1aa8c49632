import { Gpu, device_info, matmul } from "lapidary";

/** Results that are held at a time: few where products are queued, and so given at once; elsewhere as many as these bytes are. */
const QUEUED = 8;
const IN_FLIGHT_BYTES = 2 ** 28;

const named = ({ backend, name, software }) => `${backend}${name && `, ${name}`}${software ? " (software)" : ""}`;

export async function open(backend, threads) {
  const gpu = await Gpu.open({ backend: backend === "wasm" ? "simd" : backend, threads });
  const info = gpu.info();

  /** Why a job cannot be done here, if it cannot. */
  function lacks({ dtype, precision }) {
    if (dtype === "f16" && !globalThis.Float16Array) return "this browser has no Float16Array";
    return precision && !info.features.includes("subgroup-matrix") && "this device has no matrix units that lapidary can use";
  }

  async function resident({ a, b, m, k, n, batch, dtype, precision }) {
    const typed = (values) => (dtype === "f16" ? new Float16Array(values) : values);
    const put = (values, ...sides) => gpu.tensor(typed(values), batch > 1 ? [batch, ...sides] : sides);
    const [x, y] = [await put(a, m, k), await put(b, k, n)];
    const ones = await gpu.tensor(new Float32Array(m).fill(1), [1, m]);
    const most = backend === "webgpu" ? QUEUED : Math.max(2, Math.floor(IN_FLIGHT_BYTES / (4 * batch * m * n)));

    async function run(count) {
      const flying = [];
      for (let i = 0; i < count; i++) {
        if (flying.length === most) (await flying.shift()).dispose();
        flying.push(gpu.matmul(x, y, { precision, keep: true }));
      }
      const products = await Promise.all(flying);
      // A tensor is given before its product is done: what waits is a result on the host that needs the last of them.
      await gpu.matmul(ones, products.at(-1), {});
      for (const product of products) product.dispose();
    }

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

  return { device: named(info), lacks, resident, multiply: (a, b, { m, k, n }) => gpu.matmul(a, b, { m, k, n }) };
}

export async function first(a, b, { m, k, n }) {
  const result = await matmul(a, b, { m, k, n });
  return { result, device: named(await device_info()) };
}
