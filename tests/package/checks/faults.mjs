/** Ways to break a page's GPU. Each is called before the package opens a device. */

/** Watches what is opened: WebGPU's devices or WebGL2's contexts in order, and how often one was asked for. */
export function watch() {
  const seen = { devices: [], contexts: [], asked: 0 };
  wrap(
    GPUAdapter.prototype,
    "requestDevice",
    (original) =>
      async function (...args) {
        seen.asked++;
        const device = await original.apply(this, args);
        seen.devices.push(device);
        return device;
      },
  );
  for (const canvas of [globalThis.OffscreenCanvas, globalThis.HTMLCanvasElement]) {
    if (!canvas) continue;
    wrap(
      canvas.prototype,
      "getContext",
      (original) =>
        function (...args) {
          const context = original.apply(this, args);
          if (args[0] === "webgl2" && context && !seen.contexts.some((known) => known.context === context)) {
            // Asked for now, because a lost context gives no extensions.
            seen.contexts.push({ context, extension: context.getExtension("WEBGL_lose_context") });
            seen.asked++;
          }
          return context;
        },
    );
  }
  return seen;
}

/** Puts `make(original)` in a method's place; gives a function that undoes it. */
export function wrap(prototype, name, make) {
  const original = prototype[name];
  prototype[name] = make(original);
  return () => (prototype[name] = original);
}

/** Counts the calls of all methods until `undo`. */
export function every_call(prototype) {
  const calls = {};
  const names = Object.keys(Object.getOwnPropertyDescriptors(prototype)).filter(
    (name) => typeof Object.getOwnPropertyDescriptor(prototype, name).value === "function" && name !== "constructor",
  );
  const undos = names.map((name) =>
    wrap(
      prototype,
      name,
      (original) =>
        function (...args) {
          calls[name] = (calls[name] ?? 0) + 1;
          return original.apply(this, args);
        },
    ),
  );
  return { calls, undo: () => undos.forEach((undo) => undo()) };
}

/** Takes the last GPU away, as a driver would. */
export function lose(seen, backend) {
  if (backend === "webgpu") return seen.devices.at(-1).destroy();
  seen.contexts.at(-1).extension.loseContext();
}

/** The methods by which the package drives each kind of GPU, those of a product in their order. */
export const STEPS = {
  webgpu: () => [
    [GPUDevice.prototype, ["createBuffer", "popErrorScope"]],
    [GPUQueue.prototype, ["writeBuffer", "submit"]],
    [GPUBuffer.prototype, ["mapAsync", "getMappedRange"]],
  ],
  webgl2: () => [
    [
      WebGL2RenderingContext.prototype,
      [
        "bindTexture",
        "texSubImage2D",
        "framebufferTexture2D",
        "useProgram",
        "uniform1uiv",
        "drawArrays",
        "bindBuffer",
        "readPixels",
        "fenceSync",
        "flush",
        "clientWaitSync",
        "getBufferSubData",
        "getError",
      ],
    ],
  ],
};

/** Calls `act` at the call number `at` of a method. `fired` says whether it came to that; `stop` undoes it. */
export function at_call(prototype, name, at, act) {
  const state = { calls: 0, fired: false };
  state.stop = wrap(
    prototype,
    name,
    (original) =>
      function (...args) {
        if (++state.calls === at) {
          state.fired = true;
          act();
        }
        return original.apply(this, args);
      },
  );
  return state;
}

/** The same of WebGL2's textures, which stay empty, and of whose want an error tells once. */
function run_out_of_textures_at(at) {
  const { prototype } = WebGL2RenderingContext;
  let [calls, is_short] = [0, false];
  const undo = wrap(
    prototype,
    "texStorage2D",
    (original) =>
      function (...args) {
        if (++calls < at) original.apply(this, args);
        else is_short = true;
      },
  );
  wrap(
    prototype,
    "getError",
    (original) =>
      function () {
        const error = original.call(this);
        if (!is_short) return error;
        // What is drawn to such a texture is an error too, which may be told first.
        return error || ((is_short = false), this.OUT_OF_MEMORY);
      },
  );
  return undo;
}

/** From the given new buffer on there is no memory on the GPU: such a buffer is invalid, and an event says why. Gives what ends it. */
export function run_out_at(at, backend = "webgpu") {
  if (backend === "webgl2") return run_out_of_textures_at(at);
  let calls = 0;
  return refuse_buffers(() => ++calls >= at);
}

/** Tells of each buffer that is made from here on, and of each that is destroyed. Gives what ends it. */
export function watch_buffers(made, gone) {
  const undos = [
    wrap(
      GPUDevice.prototype,
      "createBuffer",
      (original) =>
        function (descriptor) {
          const buffer = original.call(this, descriptor);
          made(buffer, descriptor);
          return buffer;
        },
    ),
    wrap(
      GPUBuffer.prototype,
      "destroy",
      (original) =>
        function () {
          gone(this);
          return original.call(this);
        },
    ),
  ];
  return () => undos.forEach((undo) => undo());
}

/** The GPU has so many bytes for buffers that are made from here on. Gives what ends it. */
export function limit_memory(most) {
  let used = 0;
  const stop = refuse_buffers(({ size }) => used + size > most);
  // What was there before does not count, whenever it goes; nor does what was refused, which has no usage.
  const counted = new WeakSet();
  const made = (buffer) => {
    if (!buffer.usage) return;
    counted.add(buffer);
    used += buffer.size;
  };
  const gone = (buffer) => {
    if (counted.delete(buffer)) used -= buffer.size;
  };
  const unwatch = watch_buffers(made, gone);
  return () => (unwatch(), stop());
}

/** There is no memory on the GPU for new buffers that are to be refused. Gives what ends it. */
export function refuse_buffers(is_refused) {
  return wrap(
    GPUDevice.prototype,
    "createBuffer",
    (original) =>
      function (descriptor) {
        if (!is_refused(descriptor)) return original.call(this, descriptor);
        const event = new GPUUncapturedErrorEvent("uncapturederror", { error: new GPUOutOfMemoryError("no memory is left") });
        // The page may hear of it too.
        this.onuncapturederror = () => {};
        this.dispatchEvent(event);
        // No usage at all is no valid one.
        return original.call(this, { ...descriptor, usage: 0 });
      },
  );
}
