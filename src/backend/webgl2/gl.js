// What WebGL needs of a page and `glow` has no command for: a canvas, the page's own arrays read and written where they are, and its event
// loop. The texture or the buffer that is meant is bound. Nothing is decided here, and nothing remembered.

/** Elements of the largest piece in which an array is copied on the host. */
const PIECE = 1 << 20;

/** A fresh context with nothing to show, in a page or a worker; undefined where there is none. */
export function context(powerPreference) {
  const options = { alpha: false, antialias: false, depth: false, powerPreference };
  for (const canvas of [() => new OffscreenCanvas(1, 1), () => document.createElement("canvas")]) {
    try {
      const gl = canvas().getContext("webgl2", options);
      if (gl) return gl;
    } catch {
      // There is no such canvas here.
    }
  }
}

/** Gives a context up at once: browsers allow some sixteen, and take the oldest away for one more. */
export function close(gl) {
  gl.getExtension("WEBGL_lose_context")?.loseContext();
}

/**
 * Writes an array of words, of the bits of f16 or of bytes to the texture, from where it is: whole lines, whole texels, and what is left of a texel.
 * `form` is a place in `Form` of buffer.rs.
 */
export function write(gl, width, words, form) {
  const Values = [Float32Array, Uint16Array, Uint32Array, Uint8Array][form];
  const values = new Values(words.buffer, words.byteOffset, words.length);
  const texels = Math.floor(values.length / 4);
  const lines = Math.floor(texels / width);
  put(gl, 0, 0, width, lines, values, 0);
  put(gl, 0, lines, texels % width, 1, values, lines * width * 4);
  const last = new Values(4);
  last.set(values.subarray(texels * 4));
  put(gl, texels % width, lines, Math.min(values.length % 4, 1), 1, last, 0);
}

function put(gl, x, y, width, height, values, start) {
  if (!width || !height) return;
  const format = {
    Float32Array: [gl.RGBA, gl.FLOAT],
    Uint16Array: [gl.RGBA, gl.HALF_FLOAT],
    Uint32Array: [gl.RGBA_INTEGER, gl.UNSIGNED_INT],
    Uint8Array: [gl.RGBA_INTEGER, gl.UNSIGNED_BYTE],
  }[values.constructor.name];
  const send = (line, lines, from, at) => gl.texSubImage2D(gl.TEXTURE_2D, 0, x, y + line, width, lines, ...format, from, at);
  try {
    send(0, height, values, start);
  } catch {
    // Some browsers take no array whose memory is shared or can be resized: a copy then, of some lines at a time.
    const most = Math.ceil(PIECE / 4 / width);
    for (let line = 0; line < height; line += most) {
      const lines = Math.min(most, height - line);
      const begin = start + line * width * 4;
      send(line, lines, values.slice(begin, begin + lines * width * 4), 0);
    }
  }
}

/**
 * Lets everything else run. Timers wait 4 ms once they are nested, those of a hidden page a second or a minute, and messages do not; longer waits
 * grow with the work, so as to add little.
 */
export function pause(ms) {
  return new Promise((resolve) => {
    if (ms > 4 && !globalThis.document?.hidden) return setTimeout(resolve, Math.min(ms / 8, 16));
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(0);
  });
}

/**
 * Reads the staging buffer, and gives whether that came to pass. When the GPU's process has died, and until the page hears of it, WebGL
 * reports no error, its fences pass, and a read leaves its target as it was. So the target is marked first: by a NaN that no sum gives, and then by
 * another, in case one was handed in.
 */
function get(gl, to, at, length) {
  const last = new Uint32Array(to.buffer, to.byteOffset + (at + length - 1) * 4, 1);
  return [0x7fc5a7e1, 0x7fc5a7e2].some((mark) => {
    last[0] = mark;
    gl.getBufferSubData(gl.PIXEL_PACK_BUFFER, 0, to, at, length);
    return last[0] !== mark;
  });
}

/**
 * Brings what was packed into the staging buffer into an array of rows * columns, where row i is in texture i mod `count`, padded to `pitch` elements, and
 * a texture holds `size`: so many elements, from element `first` of all textures on. Gives whether it could.
 */
export function read(gl, floats, rows, columns, count, pitch, size, first, length) {
  // As words, of which none is a NaN that a copy might change.
  const out = new Uint32Array(floats.buffer, floats.byteOffset, floats.length);
  if (rows === 1 || (count === 1 && pitch === columns)) {
    const left = Math.min(length, out.length - first);
    return left === 0 || get(gl, out, first, left);
  }
  const piece = new Uint32Array(length);
  if (!get(gl, piece, 0, length)) return false;
  for (let at = 0, next; at < length; at = next) {
    const index = Math.floor((first + at) / size);
    const start = (first + at) % size;
    const row = Math.floor(start / pitch) * count + index;
    const column = start % pitch;
    // Up to the row's end, the texture's or the piece's.
    next = Math.min(at + pitch - column, at + size - start, length);
    const across = row < rows ? Math.min(next - at, columns - column) : 0;
    const to = row * columns + column;
    // A view costs more than a few elements.
    if (across < 32) for (let i = 0; i < across; i++) out[to + i] = piece[at + i];
    else out.set(piece.subarray(at, at + across), to);
  }
  return true;
}
