import { matmul_model } from "./onnx-model.js";

function shapes({ m, k, n, batch }) {
  const of = (...sides) => (batch > 1 ? [batch, ...sides] : sides);
  return { a: of(m, k), b: of(k, n), c: of(m, n) };
}

/** The build for JavaScript Promise Integration is the faster one, by calls and on the CPU; the other is for browsers without it. */
const load = () => ("Suspending" in WebAssembly ? import("onnxruntime-web/jspi") : import("onnxruntime-web/webgpu"));

async function start(backend, threads = 1) {
  const ort = await load();
  ort.env.wasm.numThreads = threads;
  ort.env.logLevel = "error";
  const provider = backend === "wasm" ? "wasm" : "webgpu";
  const session = (job, options) => {
    const { a, b, c } = shapes(job);
    return ort.InferenceSession.create(matmul_model(a, b, c), { executionProviders: [provider], ...options });
  };
  const multiply_by = async (session, a, b, job) => {
    const dims = shapes(job);
    const { C } = await session.run({ A: new ort.Tensor("float32", a, dims.a), B: new ort.Tensor("float32", b, dims.b) });
    return C.data;
  };
  return { ort, session, multiply_by };
}

/**
 * On the GPU with operands and result bound to buffers of its device. Graph capture, which would spare more of each call, is off: in 1.30
 * the first replay of this model ends in an abort.
 */
async function resident_on_gpu(ort, session, { a, b, c }, job) {
  const device = await ort.env.webgpu.device;
  const buffer = (length, values) => {
    const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
    const made = device.createBuffer({ size: 4 * length, usage });
    if (values) device.queue.writeBuffer(made, 0, values);
    return made;
  };
  device.pushErrorScope("out-of-memory");
  device.pushErrorScope("validation");
  const buffers = [buffer(job.a.length, job.a), buffer(job.b.length, job.b), buffer(job.batch * job.m * job.n)];
  const faults = [await device.popErrorScope(), await device.popErrorScope()];
  const free = () => {
    for (const made of buffers) made.destroy();
    return session.release();
  };
  const fault = faults.find(Boolean);
  if (fault) {
    await free();
    throw fault;
  }
  const [A, B, C] = buffers.map((made, i) => ort.Tensor.fromGpuBuffer(made, { dataType: "float32", dims: [a, b, c][i] }));

  async function read(from) {
    const to = device.createBuffer({ size: from.size, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST });
    const encoder = device.createCommandEncoder();
    encoder.copyBufferToBuffer(from, 0, to, 0, from.size);
    device.queue.submit([encoder.finish()]);
    await to.mapAsync(GPUMapMode.READ);
    const values = new Float32Array(to.getMappedRange().slice(0));
    to.destroy();
    return values;
  }

  async function run(count) {
    for (let i = 0; i < count; i++) await session.run({ A, B }, { C });
    await device.queue.onSubmittedWorkDone();
  }

  async function result() {
    await session.run({ A, B }, { C });
    return read(buffers[2]);
  }

  return { run, result, free };
}

async function resident_on_cpu(ort, session, { a, b }, job) {
  const feeds = { A: new ort.Tensor("float32", job.a, a), B: new ort.Tensor("float32", job.b, b) };
  return {
    run: async (count) => {
      for (let i = 0; i < count; i++) await session.run(feeds);
    },
    result: async () => (await session.run(feeds)).C.data,
    free: () => session.release(),
  };
}

export async function open(backend, threads) {
  const { ort, session, multiply_by } = await start(backend, threads);
  const sessions = new Map();

  async function resident(job) {
    const made = await session(job, backend === "webgpu" ? { preferredOutputLocation: "gpu-buffer" } : {});
    return (backend === "webgpu" ? resident_on_gpu : resident_on_cpu)(ort, made, shapes(job), job);
  }

  async function multiply(a, b, job) {
    const key = JSON.stringify(shapes(job));
    if (!sessions.has(key)) sessions.set(key, await session(job));
    return multiply_by(sessions.get(key), a, b, job);
  }

  // A session opens the device, so that what is missing is known now.
  await (await session({ m: 4, k: 4, n: 4, batch: 1 })).release();
  return { device: `${backend}${"Suspending" in WebAssembly ? ", jspi" : ", asyncify"}`, resident, multiply };
}

export async function first(a, b, job) {
  const { session, multiply_by } = await start("webgpu");
  const one = { ...job, batch: 1 };
  return { result: await multiply_by(await session(one), a, b, one), device: "webgpu" };
}
