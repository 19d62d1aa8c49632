/** Tuning: what it finds is used and kept, and whatever else storage holds or does is passed over. */
import { wrap } from "./faults.mjs";
import { assert, each, problem, rejects, right } from "./tools.mjs";

const [CACHE, PLACE] = ["lapidary", "https://lapidary.invalid/tuned"];

const kept_text = async () => (await caches.match(PLACE, { cacheName: CACHE }))?.text();
const keep = async (text) => (await caches.open(CACHE)).put(PLACE, new Response(text));

/** The name under which a device is kept. */
async function key_of(gpu) {
  const { version } = await (await fetch("/package/package.json")).json();
  const { backend, vendor, architecture, name } = gpu.info();
  return [2, version, backend, vendor, architecture, name].join("/");
}

const [a, b] = [new Float32Array(64 * 64), new Float32Array(64 * 64)];

/** The kernel for a result of the first class. */
const kernel_of = async (gpu) => (await gpu.benchmark(a, b, { m: 64, k: 64, n: 64, samples: 1, min_ms: 0 })).kernel;

/** What a fresh handle takes. */
async function fresh({ Gpu }, check) {
  const own = await Gpu.open({ backend: "webgpu" });
  try {
    return await check(own);
  } finally {
    own.free();
  }
}

const on_webgpu = (check) => async (context) => {
  if (context.backend === "webgpu") return check(context).finally(() => caches.delete(CACHE));
  await rejects("unavailable", () => context.gpu.tune(), /nothing to tune/);
};

export default {
  "what is found is told, and right": on_webgpu(async ({ gpu }) => {
    const { trials, kept } = await gpu.tune();
    assert(kept, "it is kept");
    const defaults = trials.filter(({ is_default }) => is_default);
    assert(defaults.length > 0 && trials.length > 3 * defaults.length, `${trials.length} trials`);
    for (const { size, kernel, ms, is_default, is_tuned } of trials) {
      assert(size >= 64 && /^matmul\//.test(kernel) && ms >= 0 && !(is_default && is_tuned), `${size} ${kernel} ${ms}`);
    }
    const tuned = trials.find(({ is_tuned, size }) => is_tuned && size === 64);
    const best = tuned ?? defaults.find(({ size }) => size === 64);
    const kernel = await kernel_of(gpu);
    assert(kernel === best.kernel, `${kernel} in place of ${best.kernel}`);
    const key = await key_of(gpu);
    assert(trials.some(({ is_tuned }) => is_tuned) === !!JSON.parse(await kept_text())[key], "what is kept");
    await right(gpu, problem(64, 64, 64));
    assert((await gpu.clear_tuning()) === true && !JSON.parse(await kept_text())[key], "it is forgotten");
    assert((await kernel_of(gpu)) === defaults.find(({ size }) => size === 64).kernel, "the default again");
  }),

  "what is kept is taken, and nothing else is": on_webgpu(async ({ gpu, lapidary }) => {
    const [key, usual] = [await key_of(gpu), await kernel_of(gpu)];
    const other = usual.includes("64x64x16") ? "32x32x16" : "64x64x16";
    const tiles = `${other},,,,,,,`;
    await keep(JSON.stringify({ [key]: tiles, another: tiles }));
    const kernel = await fresh(lapidary, kernel_of);
    assert(kernel.includes(other), `${kernel} in place of ${other}`);
    const texts = {
      "no JSON": "{",
      "no object": "null",
      "a number": "5",
      "an array": "[1]",
      "no text": JSON.stringify({ [key]: 7 }),
      "a getter's name": JSON.stringify({ [key]: { toString: 1 } }),
      "too few": JSON.stringify({ [key]: other }),
      "too many": JSON.stringify({ [key]: `${tiles},` }),
      "a tile that is not": JSON.stringify({ [key]: "1x1x1,,,,,,," }),
      "of another version": JSON.stringify({ [key.replace(/^2/, "1")]: tiles }),
      "of another adapter": JSON.stringify({ [`${key}!`]: tiles }),
    };
    // Software GPUs take seconds to compile a kernel: the name of the one that is taken is looked at in some cases only.
    const looked_at = ["no text", "too many", "of another adapter"];
    await each(texts, async (text, name) => {
      await keep(text);
      await fresh(lapidary, async (own) => {
        if (looked_at.includes(name)) assert((await kernel_of(own)) === usual, "the default");
        assert(await own.clear_tuning(), "it is written over");
        assert(!Object.hasOwn(JSON.parse(await kept_text()), key), "it is no more");
      });
    });
  }),

  "what is far too long is not taken into the module's memory": on_webgpu(async ({ gpu, lapidary }) => {
    // A text that is more than ASCII goes there by an encoder.
    await keep(JSON.stringify({ [await key_of(gpu)]: "é".repeat(1e6) }));
    let longest = 0;
    const undos = ["encode", "encodeInto"].map((name) =>
      wrap(
        TextEncoder.prototype,
        name,
        (original) =>
          function (text, ...more) {
            longest = Math.max(longest, text.length);
            return original.call(this, text, ...more);
          },
      ),
    );
    try {
      await fresh(lapidary, async (own) => own.info());
    } finally {
      undos.forEach((undo) => undo());
    }
    assert(longest < 1e5, `${longest} characters were taken over`);
  }),

  "storage that is denied, full, or never answers": on_webgpu(async ({ lapidary }) => {
    const denied = () => Promise.reject(new DOMException("denied", "SecurityError"));
    const full = () => Promise.reject(new DOMException("full", "QuotaExceededError"));
    const never = () => new Promise(() => {});
    const faults = {
      "reading is denied": [CacheStorage.prototype, "match", denied, true],
      "opening is denied": [CacheStorage.prototype, "open", denied, false],
      "there is no room": [Cache.prototype, "put", full, false],
      "reading throws": [CacheStorage.prototype, "match", () => { throw new Error("no"); }, true],
      "reading never ends": [CacheStorage.prototype, "match", never, false],
      "writing never ends": [Cache.prototype, "put", never, false],
    };
    await each(faults, async ([prototype, name, fault, keeps]) => {
      const undo = wrap(prototype, name, () => fault);
      try {
        await fresh(lapidary, async (own) => {
          const cleared = await own.clear_tuning();
          assert(cleared === keeps, `kept: ${cleared}`);
        });
      } finally {
        undo();
      }
    });
    const caches = Object.getOwnPropertyDescriptor(globalThis, "caches");
    Object.defineProperty(globalThis, "caches", { configurable: true, value: undefined });
    try {
      assert((await fresh(lapidary, (own) => own.clear_tuning())) === false, "there is no storage");
    } finally {
      Object.defineProperty(globalThis, "caches", caches);
    }
  }),

  "it can be stopped": on_webgpu(async ({ gpu }) => {
    await rejects("aborted", () => gpu.tune({ signal: AbortSignal.abort() }));
    const controller = new AbortController();
    const tuning = gpu.tune({ signal: controller.signal });
    controller.abort();
    await rejects("aborted", () => tuning);
    await rejects("invalid_option", () => gpu.tune({ samples: 3 }), /samples/);
  }),
};
