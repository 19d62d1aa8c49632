// WebGL's commands, in the sequences in which they are used. In JavaScript, because WebAssembly would need a binding for each of
// fifty commands, several times as much to download as this. Nothing is decided here, and nothing remembered.
//
// A lost context takes every command and does nothing. So nothing is checked on the way; `fault` tells in the end.

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

/** Whether float textures can be drawn to, the longest side of one, the GPU's name, and its maker's. */
export function describe(gl) {
  const debug = gl.getExtension("WEBGL_debug_renderer_info");
  const text = (unmasked, plain) => (debug && gl.getParameter(unmasked)) || gl.getParameter(plain) || "";
  return [
    gl.getExtension("EXT_color_buffer_float") !== null,
    Math.min(gl.getParameter(gl.MAX_TEXTURE_SIZE), ...(gl.getParameter(gl.MAX_VIEWPORT_DIMS) ?? [0])),
    text(0x9246, gl.RENDERER),
    text(0x9245, gl.VENDOR),
  ];
}

/** The first error that WebGL has to tell, or 0. It has one flag for each of its few kinds, and this takes all down. */
export function fault(gl) {
  const first = gl.isContextLost() ? gl.CONTEXT_LOST_WEBGL : gl.getError();
  for (let flags = 8; first && flags && gl.getError(); flags--);
  return first;
}

/** A program and the place of its parameters, or the compiler's words on why not. */
export function compile(gl, vertices, fragments, samplers) {
  const program = gl.createProgram();
  const shaders = [gl.VERTEX_SHADER, gl.FRAGMENT_SHADER].map((stage) => gl.createShader(stage));
  if (!program || !shaders.every(Boolean)) return "";
  shaders.forEach((shader, index) => {
    gl.shaderSource(shader, index ? fragments : vertices);
    gl.compileShader(shader);
    gl.attachShader(program, shader);
    gl.deleteShader(shader); // with the program
  });
  gl.linkProgram(program);
  if (!gl.getProgramParameter(program, gl.LINK_STATUS)) {
    return [gl.getProgramInfoLog(program), ...shaders.map((shader) => gl.getShaderInfoLog(shader))].join(" ");
  }
  gl.useProgram(program);
  samplers.split(" ").forEach((name, unit) => gl.uniform1i(gl.getUniformLocation(program, name), unit));
  return [program, gl.getUniformLocation(program, "params")];
}

/** So many float textures. */
export function textures(gl, count, width, height) {
  return Array.from({ length: count }, () => {
    const texture = gl.createTexture();
    gl.bindTexture(gl.TEXTURE_2D, texture);
    gl.texStorage2D(gl.TEXTURE_2D, 1, gl.RGBA32F, width, height);
    // A float texture that would be filtered counts as incomplete, and reads as zero.
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.NEAREST);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, gl.NEAREST);
    return texture;
  });
}

/** Room for a result on its way to the host. */
export function staging(gl, bytes) {
  const buffer = gl.createBuffer();
  gl.bindBuffer(gl.PIXEL_PACK_BUFFER, buffer);
  gl.bufferData(gl.PIXEL_PACK_BUFFER, bytes, gl.STREAM_READ);
  gl.bindBuffer(gl.PIXEL_PACK_BUFFER, null);
  return buffer;
}

/** Deletes what `textures` or `staging` gave. */
export function release(gl, memory) {
  if (Array.isArray(memory)) memory.forEach((texture) => gl.deleteTexture(texture));
  else gl.deleteBuffer(memory);
}

/** Writes an array to the first texture, from where it is: whole lines, whole texels, and what is left of a texel. */
export function write(gl, [texture], width, values) {
  gl.bindTexture(gl.TEXTURE_2D, texture);
  const texels = Math.floor(values.length / 4);
  const lines = Math.floor(texels / width);
  put(gl, 0, 0, width, lines, values, 0);
  put(gl, 0, lines, texels % width, 1, values, lines * width * 4);
  const last = new Float32Array(4);
  last.set(values.subarray(texels * 4));
  put(gl, texels % width, lines, Math.min(values.length % 4, 1), 1, last, 0);
}

function put(gl, x, y, width, height, values, start) {
  if (!width || !height) return;
  const send = (line, lines, from, at) => gl.texSubImage2D(gl.TEXTURE_2D, 0, x, y + line, width, lines, gl.RGBA, gl.FLOAT, from, at);
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

function attach(gl, targets) {
  const framebuffer = gl.createFramebuffer();
  gl.bindFramebuffer(gl.FRAMEBUFFER, framebuffer);
  const attachments = targets.map((texture, index) => {
    gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.COLOR_ATTACHMENT0 + index, gl.TEXTURE_2D, texture, 0);
    return gl.COLOR_ATTACHMENT0 + index;
  });
  gl.drawBuffers(attachments);
  return framebuffer;
}

/** Runs a program for each texel of the targets, some lines at a time. Its samplers are the textures of a, b and c, as far as there are. */
export function draw(gl, [program, place], params, a, b, c, targets, width, height, lines) {
  const framebuffer = attach(gl, targets);
  gl.useProgram(program);
  gl.uniform1uiv(place, params);
  [a, b, c].flat().forEach((texture, unit) => {
    gl.activeTexture(gl.TEXTURE0 + unit);
    gl.bindTexture(gl.TEXTURE_2D, texture);
  });
  for (let line = 0; line < height; line += lines) {
    gl.viewport(0, line, width, Math.min(lines, height - line));
    gl.drawArrays(gl.TRIANGLES, 0, 3);
    // Each part is a piece of work of its own to the driver.
    if (lines < height) gl.flush();
  }
  gl.deleteFramebuffer(framebuffer);
}

/** Starts the copy of the first `count` textures into a staging buffer, one behind the other. */
export function pack(gl, targets, count, width, height, staging) {
  const framebuffer = attach(gl, targets);
  gl.bindBuffer(gl.PIXEL_PACK_BUFFER, staging);
  for (let index = 0; index < count; index++) {
    gl.readBuffer(gl.COLOR_ATTACHMENT0 + index);
    gl.readPixels(0, 0, width, height, gl.RGBA, gl.FLOAT, index * width * height * 16);
  }
  gl.bindBuffer(gl.PIXEL_PACK_BUFFER, null);
  gl.deleteFramebuffer(framebuffer);
}

/** Resolves when all commands so far are done or the context is lost, with the milliseconds that took. */
export async function settled(gl) {
  const begin = performance.now();
  const fence = gl.fenceSync(gl.SYNC_GPU_COMMANDS_COMPLETE, 0);
  gl.flush();
  let ms = 0;
  while (fence && !gl.isContextLost() && gl.clientWaitSync(fence, 0, 0) === gl.TIMEOUT_EXPIRED) {
    await pause(ms);
    ms = performance.now() - begin;
  }
  gl.deleteSync(fence);
  return ms;
}

/** Lets everything else run. Timers wait 4 ms once they are nested, and messages do not; longer waits grow with the work, so as to add little. */
function pause(ms) {
  return new Promise((resolve) => {
    if (ms > 4) return setTimeout(resolve, Math.min(ms / 8, 16));
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(0);
  });
}

/**
 * Reads from the staging buffer, and gives whether that came to pass. When the GPU's process has died, and until the page hears of it, WebGL
 * reports no error, its fences pass, and a read leaves its target as it was. So the target is marked first: by a NaN that no sum gives, and then by
 * another, in case one was handed in.
 */
function get(gl, start, to, at, length) {
  const last = new Uint32Array(to.buffer, to.byteOffset + (at + length - 1) * 4, 1);
  return [0x7fc5a7e1, 0x7fc5a7e2].some((mark) => {
    last[0] = mark;
    gl.getBufferSubData(gl.PIXEL_PACK_BUFFER, start * 4, to, at, length);
    return last[0] !== mark;
  });
}

/** Brings what `pack` copied into an array of rows * columns, where row i is in texture i mod `count`, padded to whole texels; gives whether it could. */
export function read(gl, staging, out, rows, columns, count, width, height) {
  gl.bindBuffer(gl.PIXEL_PACK_BUFFER, staging);
  let carried = true;
  const pitch = Math.ceil(columns / 4) * 4;
  if (count * rows === 1 || (count === 1 && pitch === columns)) {
    for (let start = 0; start < out.length; start += PIECE) carried &&= get(gl, start, out, start, Math.min(PIECE, out.length - start));
  } else {
    // Several rows a piece, or a row in several pieces.
    const [tall, wide] = [Math.max(Math.floor(PIECE / pitch), 1), Math.min(columns, PIECE)];
    const piece = new Float32Array(Math.min(PIECE, width * height * 4));
    for (let index = 0; index < Math.min(count, rows); index++) {
      const inTexture = Math.ceil((rows - index) / count);
      for (let row = 0; row < inTexture; row += tall) {
        for (let column = 0; column < columns; column += wide) {
          const [high, across] = [Math.min(tall, inTexture - row), Math.min(wide, columns - column)];
          carried &&= get(gl, index * width * height * 4 + row * pitch + column, piece, 0, (high - 1) * pitch + across);
          for (let i = 0; i < high; i++) {
            const [from, to] = [i * pitch, ((row + i) * count + index) * columns + column];
            // A view costs more than a few elements.
            if (across < 32) for (let j = 0; j < across; j++) out[to + j] = piece[from + j];
            else out.set(piece.subarray(from, from + across), to);
          }
        }
      }
    }
  }
  gl.bindBuffer(gl.PIXEL_PACK_BUFFER, null);
  return carried;
}
