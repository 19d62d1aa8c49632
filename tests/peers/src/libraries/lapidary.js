import { Gpu, device_info, matmul } from "lapidary";

/** Results that are held at a time: few where products are queued, and so given at once; elsewhere as many as these bytes are. */
const QUEUED = 8;
const IN_FLIGHT_BYTES = 2 ** 28;

/** What its users do where it has no call of its own for what is measured. */
const notes = {
  batch: "one call a product: it has no call for batches",
};

const named = ({ backend, name, software }) => `${backend}${name && `, ${name}`}${software ? " (software)" : ""}`;

export async function open(backend, threads) {
  const gpu = await Gpu.open({ backend: backend === "wasm" ? "simd" : backend, threads });
  const info = gpu.info();

  async function resident({ measure, a, b, m, k, n, batch }) {
    const put = (values, rows, columns) => {
      const part = (i) => values.subarray(i * rows * columns, (i + 1) * rows * columns);
      return Promise.all(Array.from({ length: batch }, (_, i) => gpu.tensor(part(i), [rows, columns])));
    };
    const [as, bs] = [await put(a, m, k), await put(b, k, n)];
    const ones = await gpu.tensor(new Float32Array(m).fill(1), [1, m]);
    const most = backend === "webgpu" ? QUEUED : Math.max(2, Math.floor(IN_FLIGHT_BYTES / (4 * m * n)));

    async function run(count) {
      const flying = [];
      for (let i = 0; i < count * batch; i++) {
        if (flying.length === most) (await flying.shift()).dispose();
        flying.push(gpu.matmul(as[i % batch], bs[i % batch], { keep: true }));
      }
      const products = await Promise.all(flying);
      // A tensor is given before its product is done: what waits is a result on the host that needs the last of them.
      await gpu.matmul(ones, products.at(-1), {});
      for (const product of products) product.dispose();
    }

    async function result() {
      const all = new Float32Array(batch * m * n);
      for (let i = 0; i < batch; i++) {
        const product = await gpu.matmul(as[i], bs[i], { keep: true });
        all.set(await product.toArray(), i * m * n);
        product.dispose();
      }
      return all;
    }

    const free = () => {
      for (const tensor of [...as, ...bs, ones]) tensor.dispose();
      gpu.trim();
    };
    const alone = async () => (await gpu.benchmark(as[0], bs[0], { samples: 3 })).gflops;
    return { run, result, free, alone, note: notes[measure] };
  }

  return { device: named(info), resident, multiply: (a, b, { m, k, n }) => gpu.matmul(a, b, { m, k, n }) };
}

export async function first(a, b, { m, k, n }) {
  const result = await matmul(a, b, { m, k, n });
  return { result, device: named(await device_info()) };
}
