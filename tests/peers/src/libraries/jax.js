import { blockUntilReady, defaultDevice, getWebGPUDevice, init, jit, lax, nn, numpy } from "@jax-js/jax";

const shapes = ({ m, k, n, batch }) => (batch > 1 ? [[batch, m, k], [batch, k, n]] : [[m, k], [k, n]]);

/** The operations that are measured. A complex number is a pair of arrays here. */
const OPERATIONS = {
  add: () => (a, b) => numpy.add(a, b),
  sum: () => (a) => numpy.sum(a),
  "sum of rows": () => (a) => numpy.sum(a, 1),
  softmax: () => (a) => nn.softmax(a, 1),
  "layer norm": ({ epsilon }) => (a, scale, bias) => nn.standardize(a, 1, { epsilon }).mul(scale).add(bias),
  conv: ({ stride, padding, groups }) => (x, filters) =>
    lax.convGeneralDilated(x, filters, [stride, stride], [[padding, padding], [padding, padding]], { featureGroupCount: groups }),
  fft: () => (real, imag) => {
    const { real: x, imag: y } = numpy.fft.fft({ real, imag });
    return numpy.stack([x, y], 1);
  },
};

/** The arrays of one input. */
function arrays_of({ operation }, { values, shape }) {
  if (operation !== "fft") return [numpy.array(values).reshape(shape)];
  return [0, 1].map((part) => numpy.array(values.filter((_, i) => i % 2 === part)));
}

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

  /** A function of arrays that stay. */
  async function of_arrays(compute, arrays) {
    const inputs = await blockUntilReady(arrays);
    const once = () => compute(...inputs.map(({ ref }) => ref));
    const queue = async (count, wait) => {
      for (let i = 1; i < count; i++) await send(once());
      return wait(once());
    };
    return {
      run: (count) => queue(count, done),
      result: (count = 1) => queue(count, (last) => last.data()),
      free: () => inputs.forEach((input) => input.dispose()),
    };
  }

  function resident(job) {
    const [shape_a, shape_b] = shapes(job);
    return of_arrays(matmul, [numpy.array(job.a).reshape(shape_a), numpy.array(job.b).reshape(shape_b)]);
  }

  function operation(job) {
    return of_arrays(jit(OPERATIONS[job.operation](job)), job.inputs.flatMap((input) => arrays_of(job, input)));
  }

  return { device, resident, operation, multiply: (a, b, job) => multiply(matmul, a, b, job) };
}

export async function first(a, b, job) {
  await start("webgpu");
  return { result: await multiply(numpy.matmul, a, b, { ...job, batch: 1 }), device: "webgpu" };
}
