import { backend as current, env, matMul, ready, setBackend, slice, tensor } from "@tensorflow/tfjs-core";

const shapes = ({ m, k, n, batch }) => (batch > 1 ? [[batch, m, k], [batch, k, n]] : [[m, k], [k, n]]);

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
  async function wait_for(product) {
    const one = slice(product, product.shape.map(() => 0), product.shape.map(() => 1));
    if (name === "webgpu") await one.data();
    else one.dataSync();
    one.dispose();
  }

  async function resident(job) {
    const [shape_a, shape_b] = shapes(job);
    const [a, b] = [tensor(job.a, shape_a), tensor(job.b, shape_b)];

    async function run(count) {
      let product;
      for (let i = 0; i < count; i++) {
        product?.dispose();
        product = matMul(a, b);
      }
      await wait_for(product);
      product.dispose();
    }

    async function result() {
      const product = matMul(a, b);
      const values = await product.data();
      product.dispose();
      return values;
    }

    const free = () => {
      a.dispose();
      b.dispose();
    };
    return { run, result, free };
  }

  const device = name === "webgpu" ? (current().adapterInfo?.gpuVendor ?? "") : "";
  return { device: `${name}${device && `, ${device}`}`, resident, multiply };
}

export async function first(a, b, job) {
  await start("webgpu");
  return { result: await multiply(a, b, { ...job, batch: 1 }), device: "webgpu" };
}
