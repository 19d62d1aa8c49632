import { INPUTS, model } from "./onnx-model.js";

/** The operations that are measured: operator, attributes, axes. */
const OPERATIONS = {
  add: () => ["Add"],
  sum: () => ["ReduceSum", { keepdims: 0 }],
  "sum of rows": () => ["ReduceSum", { keepdims: 0 }, [1]],
  softmax: () => ["Softmax", { axis: 1 }],
  "layer norm": ({ epsilon }) => ["LayerNormalization", { axis: 1, epsilon }],
  conv: ({ kernel, stride, padding, groups }) => [
    "Conv",
    { kernel_shape: [kernel, kernel], strides: [stride, stride], pads: [padding, padding, padding, padding], group: groups },
  ],
  fft: () => ["DFT", { axis: 1 }],
};

/** What a model is made of: operator, shapes of inputs, shape of the result, and the rest. ONNX has transforms in batches. */
function node_of(job) {
  if (!job.operation) {
    const { a, b, c } = shapes(job);
    return ["MatMul", [a, b], c];
  }
  const [operator, ...rest] = OPERATIONS[job.operation](job);
  const batched = (shape) => (job.operation === "fft" ? [1, ...shape] : shape);
  return [operator, job.inputs.map(({ shape }) => batched(shape)), batched(job.result), ...rest];
}

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
  const session = (job, options) => ort.InferenceSession.create(model(...node_of(job)), { executionProviders: [provider], ...options });
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
async function resident_on_gpu(ort, session, inputs, shape) {
  const device = await ort.env.webgpu.device;
  const buffer = (length, values) => {
    const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
    const made = device.createBuffer({ size: 4 * length, usage });
    if (values) device.queue.writeBuffer(made, 0, values);
    return made;
  };
  device.pushErrorScope("out-of-memory");
  device.pushErrorScope("validation");
  const buffers = [...inputs.map(({ values }) => buffer(values.length, values)), buffer(shape.reduce((x, y) => x * y, 1))];
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
  const dims = [...inputs.map((input) => input.shape), shape];
  const tensors = buffers.map((made, i) => ort.Tensor.fromGpuBuffer(made, { dataType: "float32", dims: dims[i] }));
  const C = tensors.pop();
  const feeds = Object.fromEntries(tensors.map((tensor, i) => [INPUTS[i], tensor]));

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

  async function send(count) {
    for (let i = 0; i < count; i++) await session.run(feeds, { C });
  }

  async function run(count) {
    await send(count);
    await device.queue.onSubmittedWorkDone();
  }

  async function result(count = 1) {
    await send(count);
    return read(buffers.at(-1));
  }

  return { run, result, free };
}

async function resident_on_cpu(ort, session, inputs) {
  const feeds = Object.fromEntries(inputs.map(({ values, shape }, i) => [INPUTS[i], new ort.Tensor("float32", values, shape)]));
  async function result(count = 1) {
    let out;
    for (let i = 0; i < count; i++) out = await session.run(feeds);
    return out.C.data;
  }
  return { run: result, result, free: () => session.release() };
}

export async function open(backend, threads) {
  const { ort, session, multiply_by } = await start(backend, threads);
  const sessions = new Map();

  async function of_inputs(job, inputs) {
    const made = await session(job, backend === "webgpu" ? { preferredOutputLocation: "gpu-buffer" } : {});
    const [, dims, result] = node_of(job);
    const shaped = inputs.map((values, i) => ({ values, shape: dims[i] }));
    return (backend === "webgpu" ? resident_on_gpu : resident_on_cpu)(ort, made, shaped, result);
  }

  const resident = (job) => of_inputs(job, [job.a, job.b]);
  const operation = (job) => of_inputs(job, job.inputs.map(({ values }) => values));

  async function multiply(a, b, job) {
    const key = JSON.stringify(shapes(job));
    if (!sessions.has(key)) sessions.set(key, await session(job));
    return multiply_by(sessions.get(key), a, b, job);
  }

  // A session opens the device, so that what is missing is known now.
  await (await session({ m: 4, k: 4, n: 4, batch: 1 })).release();
  return { device: `${backend}${"Suspending" in WebAssembly ? ", jspi" : ", asyncify"}`, resident, operation, multiply };
}

export async function first(a, b, job) {
  const { session, multiply_by } = await start("webgpu");
  const one = { ...job, batch: 1 };
  return { result: await multiply_by(await session(one), a, b, one), device: "webgpu" };
}
