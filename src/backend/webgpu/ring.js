// Operands on their way to the device through buffers that stay with the page: each is filled while it is mapped, copied from by the device,
// and mapped again behind the page's back. What `writeBuffer` copies, and finds memory for, twice, is copied once, while the piece before it
// is on its way.

const BYTES = 2 ** 20;

/** A ring has buffers only from this write on: making one costs as much as writing to it saves twice. */
const WORTH = 3;

/** A device's ring of so many buffers at most, none of which is made yet. */
export const open_ring = (device, most) => ({ device, most, made: 0, free: [], writes: 0 });

/** Bytes of its buffers. */
export const ring_bytes = ({ made }) => made * BYTES;

function take(ring) {
  if (ring.free.length > 0 || ring.made >= ring.most) return ring.free.pop();
  const usage = GPUBufferUsage.MAP_WRITE | GPUBufferUsage.COPY_SRC;
  const stage = ring.device.createBuffer({ size: BYTES, usage, mappedAtCreation: true });
  ring.made += 1;
  return stage;
}

/** Writes to a buffer's start as many bytes as there is room for; gives their number. The rest is for `writeBuffer`. */
export function write_by(ring, to, bytes) {
  let at = 0;
  if (++ring.writes < WORTH) return at;
  const { device } = ring;
  try {
    for (let stage; at < bytes.length && (stage = take(ring)); ) {
      const piece = bytes.subarray(at, at + BYTES);
      new Uint8Array(stage.getMappedRange()).set(piece);
      stage.unmap();
      const encoder = device.createCommandEncoder();
      encoder.copyBufferToBuffer(stage, 0, to, at, piece.length);
      device.queue.submit([encoder.finish()]);
      // After a loss it is not mapped again, and there is no ring any more.
      stage.mapAsync(GPUMapMode.WRITE).then(() => ring.free.push(stage), () => Object.assign(ring, { made: 0, most: 0, free: [] }));
      at += piece.length;
    }
  } catch {
    // No room for a buffer, or the device is lost: what was not written is written as if there were no ring.
    ring.most = 0;
  }
  return at;
}

/** Gives up the buffers that lie idle. */
export function trim_ring(ring) {
  ring.made -= ring.free.length;
  for (const stage of ring.free.splice(0)) stage.destroy();
}
