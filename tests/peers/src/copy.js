/** How fast the device copies, without any library: what reads its operands once and writes its result once can be measured by it. */

const BYTES = 2 ** 28;
const SOFTWARE_BYTES = 2 ** 24;

/** Some browsers copy buffers by an engine of its own, slower than a kernel does. */
const SHADER = `
  @group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
  @group(0) @binding(1) var<storage, read_write> y: array<vec4<f32>>;
  @compute @workgroup_size(256)
  fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = id.y * groups.x * 256u + id.x;
    y[i] = x[i];
  }`;
const BYTES_A_GROUP = 16 * 256;

/** An entrant of the race whose `run` copies one buffer to another; `bytes` are read and as many are written. */
export async function copier() {
  const adapter = await navigator.gpu.requestAdapter({ powerPreference: "high-performance" });
  const bytes = adapter.info.isFallbackAdapter ? SOFTWARE_BYTES : BYTES;
  const device = await adapter.requestDevice({ requiredLimits: { maxBufferSize: bytes, maxStorageBufferBindingSize: bytes } });
  const buffers = [0, 1].map(() => device.createBuffer({ size: bytes, usage: GPUBufferUsage.STORAGE }));
  const module = device.createShaderModule({ code: SHADER });
  const pipeline = await device.createComputePipelineAsync({ layout: "auto", compute: { module } });
  const entries = buffers.map((buffer, binding) => ({ binding, resource: { buffer } }));
  const group = device.createBindGroup({ layout: pipeline.getBindGroupLayout(0), entries });
  const columns = 2 ** Math.floor(Math.log2(bytes / BYTES_A_GROUP) / 2);
  const run = (count) => {
    const encoder = device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    pass.setPipeline(pipeline);
    pass.setBindGroup(0, group);
    for (let i = 0; i < count; i++) pass.dispatchWorkgroups(columns, bytes / BYTES_A_GROUP / columns);
    pass.end();
    device.queue.submit([encoder.finish()]);
    return device.queue.onSubmittedWorkDone();
  };
  return { library: "copy", bytes, run, free: () => device.destroy() };
}
