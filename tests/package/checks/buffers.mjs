/** Buffers of the page's own: tensors from them and into them, and what cannot be one. */
import { limit_memory, run_out_at } from "./faults.mjs";
import { assert, each, integers, is_fault, product, rejects, same, settles, skip, sleep } from "./tools.mjs";

const SIZES = { m: 5, k: 7, n: 9 };

/** A buffer with such values, from a byte on. */
function buffer_of(device, values, { at = 0, usage = GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST, more = 0 } = {}) {
  const buffer = device.createBuffer({ size: at + Math.ceil(values.byteLength / 4) * 4 + more, usage });
  const words = new Uint8Array(Math.ceil(values.byteLength / 4) * 4);
  words.set(new Uint8Array(values.buffer, values.byteOffset, values.byteLength));
  device.queue.writeBuffer(buffer, at, words);
  return buffer;
}

/** What a buffer holds. */
async function read(device, buffer, make) {
  const to = device.createBuffer({ size: buffer.size, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST });
  const encoder = device.createCommandEncoder();
  encoder.copyBufferToBuffer(buffer, 0, to, 0, buffer.size);
  device.queue.submit([encoder.finish()]);
  await to.mapAsync(GPUMapMode.READ);
  return make(to.getMappedRange().slice(0));
}

const floats = (bytes) => new Float32Array(bytes);

/** Another backend has no device; there a buffer of some device is refused by its reason. */
async function elsewhere(gpu) {
  assert(gpu.device === undefined, "a device in spite of its backend");
  const adapter = await globalThis.navigator?.gpu?.requestAdapter();
  const device = await adapter?.requestDevice();
  if (!device) skip("there is no WebGPU whose buffer could be refused");
  const buffer = buffer_of(device, integers(4));
  await rejects("unavailable", () => gpu.tensor(buffer, [2, 2]), /GPUBuffer/);
  const tensor = await gpu.tensor(integers(4), [2, 2]);
  await rejects("unavailable", () => tensor.copyTo(buffer), /GPUBuffer/);
  tensor.dispose();
  device.destroy();
}

/** A check that is of WebGPU. */
const on_webgpu = (check) => (context) => (context.backend === "webgpu" ? check(context) : elsewhere(context.gpu));

export default {
  "an error inside the driver that no scope is told stops nothing": on_webgpu(async ({ gpu }) => {
    const error = new GPUInternalError("of the driver");
    gpu.device.dispatchEvent(new GPUUncapturedErrorEvent("uncapturederror", { error }));
    const [x, y] = [integers(35, 1), integers(63, 2)];
    same(await gpu.matmul(x, y, { m: 5, k: 7, n: 9 }), product(x, y, SIZES), "a product after it");
  }),
  "a product of what buffers hold, into a buffer": on_webgpu(async ({ gpu }) => {
    const { device } = gpu;
    assert(device instanceof GPUDevice, "the device");
    const [x, y] = [integers(35, 1), integers(63, 2)];
    const [from, to] = [buffer_of(device, x, { at: 8, more: 12 }), buffer_of(device, new Float32Array(50).fill(3))];
    const [a, b] = await Promise.all([gpu.tensor(from, [5, 7], { offset_bytes: 8 }), gpu.tensor(buffer_of(device, y), [7, 9])]);
    assert(`${a.shape}` === "5,7" && a.dtype === "f32" && a.backend === "webgpu", "its description");
    const queued = await gpu.matmul(a, b, { keep: true });
    const copied = queued.copyTo(to, { offset_bytes: 12 });
    queued.dispose();
    const held = await read(device, to, floats);
    assert((await copied) === undefined, "a copy gives nothing");
    same(held.slice(3, 48), product(x, y, SIZES), "what was copied");
    assert(held[2] === 3 && held[48] === 3, "what is beside it stays");
    same(await gpu.matmul(a, y, { n: 9 }), product(x, y, SIZES), "a product with an array");
    // A tensor is a copy: what is written later does not reach it.
    device.queue.writeBuffer(from, 8, new Float32Array(35));
    from.destroy();
    same(await a.toArray(), x, "the tensor");
    for (const tensor of [a, b]) tensor.dispose();
  }),

  "each type, and none": on_webgpu(async ({ gpu }) => {
    const { device } = gpu;
    const bits = Uint16Array.of(0x3c00, 0xc000, 0x3555);
    const halves = await gpu.tensor(buffer_of(device, bits), [3], { dtype: "f16" });
    const to = buffer_of(device, new Uint16Array(4));
    await halves.copyTo(to);
    assert(`${await read(device, to, (bytes) => new Uint16Array(bytes, 0, 3))}` === `${bits}`, "halves");
    for (const [dtype, values] of Object.entries({ i32: Int32Array.of(-1, 2 ** 31 - 1), u32: Uint32Array.of(1, 2 ** 32 - 1) })) {
      const tensor = await gpu.tensor(buffer_of(device, values), [2], { dtype });
      assert(tensor.dtype === dtype && `${await tensor.toArray()}` === `${values}`, dtype);
      tensor.dispose();
    }
    const truths = await gpu.tensor([true, false], [2], { dtype: "bool" });
    const words = buffer_of(device, new Uint32Array(2));
    await truths.copyTo(words);
    assert(`${await read(device, words, (bytes) => new Uint32Array(bytes))}` === "1,0", "truths");
    const empty = await gpu.tensor(buffer_of(device, new Float32Array(1)), [0, 3]);
    await empty.copyTo(to);
    assert((await empty.toArray()).length === 0, "nothing");
    for (const tensor of [halves, truths, empty]) tensor.dispose();
  }),

  "memory goes back": on_webgpu(async ({ gpu }) => {
    const buffer = buffer_of(gpu.device, integers(64));
    const before = gpu.memory();
    for (let i = 0; i < 30; i++) (await gpu.tensor(buffer, [8, 8])).dispose();
    const after = gpu.memory();
    assert(after.used_bytes === before.used_bytes && after.buffers === before.buffers, "what is used");
  }),

  "what is wrong is told": on_webgpu(async ({ gpu, lapidary: { Gpu } }) => {
    const { device } = gpu;
    const all = GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
    const [good, foreign] = [buffer_of(device, integers(16)), await (await navigator.gpu.requestAdapter()).requestDevice()];
    const mapped = device.createBuffer({ size: 64, usage: GPUBufferUsage.MAP_WRITE | GPUBufferUsage.COPY_SRC, mappedAtCreation: true });
    const [gone, others] = [buffer_of(device, integers(16)), buffer_of(foreign, integers(16))];
    gone.destroy();
    const tensor = await gpu.tensor(integers(16), [4, 4]);
    const of = (buffer, shape = [4, 4], options = undefined) => () => gpu.tensor(buffer, shape, options);
    const into = (buffer, options) => () => tensor.copyTo(buffer, options);
    const usage = (usage) => device.createBuffer({ size: 64, usage });
    const cases = {
      "too small": ["length_mismatch", of(good, [4, 5]), /64 bytes/, /80/],
      "too small from there": ["length_mismatch", of(good, [4, 4], { offset_bytes: 4 })],
      "half a word": ["invalid_option", of(good, [2, 2], { offset_bytes: 2 }), /offset_bytes/],
      "before the first": ["invalid_option", of(good, [2, 2], { offset_bytes: -4 })],
      "a truth": ["invalid_option", of(good, [4, 4], { dtype: "bool" }), /dtype/],
      "an option": ["invalid_option", of(good, [4, 4], { offset: 0 })],
      "a shape": ["invalid_dimension", of(good, [4, -4])],
      "without its use": ["invalid_type", of(usage(GPUBufferUsage.COPY_DST)), /COPY_SRC/],
      "mapped": ["invalid_type", of(mapped), /mapped/],
      "of another device": ["invalid_type", of(others), /same device/],
      "destroyed": ["disposed", of(gone), /GPUBuffer/],
      "its class alone": ["invalid_type", of(Object.create(GPUBuffer.prototype))],
      "to: none": ["invalid_type", into(undefined), /GPUBuffer/],
      "to: an array": ["invalid_type", into(new Float32Array(16)), /GPUBuffer/],
      "to: too small": ["length_mismatch", into(usage(all), { offset_bytes: 8 })],
      "to: without its use": ["invalid_type", into(usage(GPUBufferUsage.COPY_SRC)), /COPY_DST/],
      "to: of another device": ["invalid_type", into(others), /same device/],
      "to: destroyed": ["disposed", into(gone)],
      "to: an option": ["invalid_option", into(good, { offset: 0 })],
    };
    await each(cases, ([code, call, ...patterns]) => rejects(code, call, ...patterns));
    const other = await Gpu.open({ backend: "webgpu" });
    const elsewhere = await other.tensor(integers(4), [2, 2]);
    await rejects("invalid_type", () => elsewhere.copyTo(good), /same device/);
    assert(other.device !== device, "handles share no device");
    other.free();
    tensor.dispose();
    await rejects("disposed", () => tensor.copyTo(good), /tensor/);
    foreign.destroy();
  }),

  "a device that the page asked for does not end with its handle": on_webgpu(async ({ lapidary: { Gpu } }) => {
    const own = await Gpu.open({ backend: "webgpu" });
    const { device } = own;
    const tensor = await own.tensor(integers(16), [4, 4]);
    const buffer = device.createBuffer({ size: 64, usage: GPUBufferUsage.COPY_DST | GPUBufferUsage.MAP_READ });
    const copied = tensor.copyTo(buffer);
    tensor.dispose();
    await copied;
    own.free();
    assert(!(await Promise.race([device.lost, sleep(200)])), "the device is lost");
    await buffer.mapAsync(GPUMapMode.READ);
    same(new Float32Array(buffer.getMappedRange().slice()), integers(16));
    device.destroy();
  }),

  "a large one finds the room that others lie idle in": on_webgpu(async ({ lapidary: { Gpu } }) => {
    // Enough for the page's buffer, the tensor and its way back, of 80 MB each, and not for what lies idle beside two of them.
    const stop = limit_memory(250 * 2 ** 20);
    try {
      const own = await Gpu.open({ backend: "webgpu", pool_bytes: 2 ** 30 });
      const count = 20_000_000;
      const usage = GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
      const buffer = own.device.createBuffer({ size: count * 4, usage });
      own.device.queue.writeBuffer(buffer, 4 * (count - 9), integers(9));
      (await own.tensor(new Float32Array(2 ** 25), [2 ** 25])).dispose();
      const tensor = await own.tensor(buffer, [count]);
      same((await tensor.toArray()).slice(-9), integers(9));
      own.free();
    } finally {
      stop();
    }
  }),

  "what is wrong is told after memory ran out too": on_webgpu(async ({ lapidary: { Gpu } }) => {
    const own = await Gpu.open({ backend: "webgpu" });
    const foreign = await (await navigator.gpu.requestAdapter()).requestDevice();
    const [good, gone, others] = [own.device, own.device, foreign].map((device) => buffer_of(device, integers(16)));
    gone.destroy();
    own.trim();
    const stop = run_out_at(1);
    const short = settles(own.tensor(good, [4, 4]));
    stop();
    is_fault((await short).error, "out_of_memory");
    await rejects("invalid_type", () => own.tensor(others, [4, 4]), /same device/);
    await rejects("disposed", () => own.tensor(gone, [4, 4]), /GPUBuffer/);
    const tensor = await own.tensor(good, [4, 4]);
    await rejects("invalid_type", () => tensor.copyTo(others), /same device/);
    same(await tensor.toArray(), integers(16));
    own.free();
    foreign.destroy();
  }),

  "a buffer of a device that is gone": on_webgpu(async ({ lapidary: { Gpu } }) => {
    const own = await Gpu.open({ backend: "webgpu" });
    const { device } = own;
    const buffer = buffer_of(device, integers(4));
    const tensor = await own.tensor(buffer, [2, 2]);
    device.destroy();
    await device.lost;
    await rejects("device_lost", () => tensor.copyTo(buffer));
    await rejects("device_lost", () => own.tensor(buffer, [2, 2]));
    own.free();
  }),
};
