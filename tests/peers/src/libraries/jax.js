import { blockUntilReady, defaultDevice, getWebGPUDevice, init, jit, numpy } from "@jax-js/jax";

const shapes = ({ m, k, n, batch }) => (batch > 1 ? [[batch, m, k], [batch, k, n]] : [[m, k], [k, n]]);

async function start(backend) {
  const device = backend === "webgl2" ? "webgl" : backend;
  if (!(await init(device)).includes(device)) throw new Error(`init("${device}") did not start it`);
  defaultDevice(device);
  return device;
}

async function multiply(matmul, a, b, job) {
  const [shape_a, shape_b] = shapes(job);
  return matmul(numpy.array(a).reshape(shape_a), numpy.array(b).reshape(shape_b)).data();
}

export async function open(backend) {
  const device = await start(backend);
  const matmul = jit((a, b) => numpy.matmul(a, b));

  /** Sends a product off, as lazy as it is, and lets go of it. Only WebGPU can do so without a wait. */
  async function send(product) {
    if (device === "webgpu") return void (await product.gpuBuffer());
    await product.blockUntilReady();
    product.dispose();
  }

  /** All that was sent is done. */
  async function done(product) {
    if (device === "webgpu") {
      await send(product);
      await getWebGPUDevice().queue.onSubmittedWorkDone();
    } else {
      await product.slice(...product.shape.map(() => [0, 1])).data();
    }
  }

  async function resident(job) {
    const [shape_a, shape_b] = shapes(job);
    const [a, b] = await blockUntilReady([numpy.array(job.a).reshape(shape_a), numpy.array(job.b).reshape(shape_b)]);
    return {
      run: async (count) => {
        for (let i = 1; i < count; i++) await send(matmul(a.ref, b.ref));
        await done(matmul(a.ref, b.ref));
      },
      result: () => matmul(a.ref, b.ref).data(),
      free: () => {
        a.dispose();
        b.dispose();
      },
    };
  }

  return { device, resident, multiply: (a, b, job) => multiply(matmul, a, b, job) };
}

export async function first(a, b, job) {
  await start("webgpu");
  return { result: await multiply(numpy.matmul, a, b, { ...job, batch: 1 }), device: "webgpu" };
}
