// What wgpu does not do with a device: copies between its buffers and the page's own, on the GPU and in the order of the queue, and listening to
// all its errors.

/**
 * Copies bytes between buffers. A promise of what kept that from being done: 0 for nothing, 1 for a buffer of another device, 2 for one that is
 * destroyed.
 */
export async function copy_between(device, from, from_bytes, to, to_bytes, bytes) {
  // What else could be wrong was looked at before: the first thing shows in the encoding, the second only at the submission.
  device.pushErrorScope("validation");
  const encoder = device.createCommandEncoder();
  encoder.copyBufferToBuffer(from, from_bytes, to, to_bytes, bytes);
  const commands = encoder.finish();
  const encoded = device.popErrorScope();
  device.pushErrorScope("validation");
  device.queue.submit([commands]);
  const submitted = device.popErrorScope();
  // Of a lost device both may be refused; that it is lost it says itself.
  const [foreign, gone] = await Promise.all([encoded, submitted]).catch(() => []);
  return foreign ? 1 : gone ? 2 : 0;
}

/** Calls `note` whenever the device lacks memory and no error scope is told. Any other fault shows in the call that it is of. */
export function on_shortage(device, note) {
  // Not by its attribute, which is the page's to set.
  device.addEventListener("uncapturederror", ({ error }) => {
    if (error instanceof GPUOutOfMemoryError) note();
  });
}
