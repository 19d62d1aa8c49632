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

/** Has a buffer serve once it is mapped. After a loss, and where there was no memory for it, it is not, and there is no ring any more. */
function map(ring, stage) {
  const serve = () => (ring.most > 0 ? ring.free.push(stage) : stage.destroy());
  stage.mapAsync(GPUMapMode.WRITE).then(serve, () => {
    ring.most = ring.made = 0;
    for (const other of [stage, ...ring.free.splice(0)]) other.destroy();
  });
}

/**
 * Makes as many buffers as are missing, for later writes: what is copied from one that there is no memory for is lost, and nobody hears of it. Nor
 * is that a shortage of those whose uploads are under way: by `map` the ring knows.
 */
function grow(ring, count) {
  const { device, free, most } = ring;
  if (count <= free.length || ring.made >= most) return;
  const usage = GPUBufferUsage.MAP_WRITE | GPUBufferUsage.COPY_SRC;
  device.pushErrorScope("out-of-memory");
  for (; count > free.length && ring.made < most; count--, ring.made++) map(ring, device.createBuffer({ size: BYTES, usage }));
  device.popErrorScope().catch(() => {});
}

/** Writes to a buffer's start as many bytes as there is room for; gives their number. The rest is for `writeBuffer`. */
export function write_by(ring, to, bytes) {
  let at = 0;
  if (++ring.writes < WORTH) return at;
  const { device } = ring;
  try {
    grow(ring, Math.ceil(bytes.length / BYTES));
    for (let stage; at < bytes.length && (stage = ring.free.pop()); ) {
      const piece = bytes.subarray(at, at + BYTES);
      new Uint8Array(stage.getMappedRange()).set(piece);
      stage.unmap();
      const encoder = device.createCommandEncoder();
      encoder.copyBufferToBuffer(stage, 0, to, at, piece.length);
      device.queue.submit([encoder.finish()]);
      map(ring, stage);
      at += piece.length;
    }
  } catch {
    // The device is lost: what was not written is written as if there were no ring.
    ring.most = 0;
  }
  return at;
}

/** Gives up the buffers that lie idle. */
export function trim_ring(ring) {
  ring.made -= ring.free.length;
  for (const stage of ring.free.splice(0)) stage.destroy();
}
