// Compiles what wgpu has no words for: a kernel that is wanted soon, beside all else that the device does.

const KINDS = ["uniform", "read-only-storage", "storage"];

/**
 * Compiles a kernel with these bindings, each a number and a kind; gives what has to be kept until wgpu asks for the same, which the
 * browser then knows by its source and its layout.
 */
export function compile(device, code, bindings) {
  const entries = [];
  for (let i = 0; i < bindings.length; i += 2) {
    entries.push({ binding: bindings[i], visibility: GPUShaderStage.COMPUTE, buffer: { type: KINDS[bindings[i + 1]] } });
  }
  const layout = device.createPipelineLayout({ bindGroupLayouts: [device.createBindGroupLayout({ entries })] });
  const module = device.createShaderModule({ code });
  return device.createComputePipelineAsync({ layout, compute: { module, entryPoint: "main" } });
}
