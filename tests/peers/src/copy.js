/** How fast the device copies, without any library: what a product that reads its matrix once can be measured by. */

const BYTES = 2 ** 28;
const SOFTWARE_BYTES = 2 ** 24;

/** An entrant of the race whose `run` copies one buffer to another; `bytes` are read and as many are written. */
export async function copier() {
  const adapter = await navigator.gpu.requestAdapter({ powerPreference: "high-performance" });
  const bytes = adapter.info.isFallbackAdapter ? SOFTWARE_BYTES : BYTES;
  const device = await adapter.requestDevice({ requiredLimits: { maxBufferSize: bytes } });
  const [from, to] = [0, 1].map(() => device.createBuffer({ size: bytes, usage: GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST }));
  const run = (count) => {
    const encoder = device.createCommandEncoder();
    for (let i = 0; i < count; i++) encoder.copyBufferToBuffer(from, 0, to, 0, bytes);
    device.queue.submit([encoder.finish()]);
    return device.queue.onSubmittedWorkDone();
  };
  return { library: "copy", bytes, run, free: () => device.destroy() };
}
