/** Arrays of every kind of memory, when they are read, and what is left of them. */
import { assert, each, integers, is_fault, problem, product, rejects, right, same, settles, skip, sleep, within } from "./tools.mjs";

/** The same values in memory of another kind. */
const KINDS = {
  "shared memory": (values) => into(new SharedArrayBuffer(values.byteLength), values),
  "growable shared memory": (values) => into(new SharedArrayBuffer(values.byteLength, { maxByteLength: values.byteLength * 2 }), values),
  "a resizable buffer": (values) => into(new ArrayBuffer(values.byteLength, { maxByteLength: values.byteLength * 2 }), values),
  "all of a resizable buffer": (values) => into(new ArrayBuffer(values.byteLength, { maxByteLength: values.byteLength * 2 }), values, []),
  "a window of a larger buffer": (values) => {
    const larger = new Float32Array(values.length + 11).fill(NaN);
    larger.set(values, 7);
    return larger.subarray(7, 7 + values.length);
  },
  "a window of shared memory": (values) => into(new SharedArrayBuffer(values.byteLength + 64), values, [20, values.length]),
  "a WebAssembly memory": (values) => into(new WebAssembly.Memory({ initial: 1 }).buffer, values, [64, values.length]),
  "a subclass": (values) => new (class Mine extends Float32Array {})(values),
  "a subclass that is constructed otherwise": (values) => {
    class Column extends Float32Array {
      constructor(rows, columns) {
        super(rows * columns);
      }
    }
    const column = new Column(values.length, 1);
    column.set(values);
    return column;
  },
  "a subclass whose parts are of another class": (values) => new (class extends Float32Array { static [Symbol.species] = Float64Array; })(values),
  "with properties of its own": (values) => Object.assign(values.slice(), { name: "A", shape: [1, 2] }),
};

function into(buffer, values, window = [0, values.length]) {
  const array = new Float32Array(buffer, ...window);
  array.set(values);
  return array;
}

/** Another realm's globals; pages only. */
async function realm() {
  const frame = document.body.appendChild(document.createElement("iframe"));
  return frame.contentWindow;
}

const in_page = typeof document === "object";

const general = {
  "large ones, over and over": async ({ gpu }) => {
    for (let round = 0; round < 6; round++) {
      const values = Float32Array.from({ length: 700_001 }, (_, i) => (i + round) % 8191);
      const tensor = await gpu.tensor(values, [700_001]);
      const copy = values.slice();
      values.fill(NaN);
      same(await tensor.toArray(), copy);
      tensor.dispose();
    }
  },

  "results that come back in pieces": async ({ gpu, backend }) => {
    // On WebGPU, where each comes whole, one is enough.
    const shapes = [[1030, 3, 1027], [1050001, 2, 1], [3, 2, 500001]].slice(0, backend === "webgpu" ? 1 : 3);
    for (const shape of shapes) await right(gpu, problem(...shape), `${shape}`);
  },

  "the same bits every time, whichever kernel is compiled by then": async ({ gpu }) => {
    const [a, b] = [70 * 33, 33 * 66].map((length) => Float32Array.from({ length }, (_, i) => Math.sin(i)));
    const bits = async () => `${new Uint32Array((await gpu.matmul(a, b, { m: 70, k: 33, n: 66 })).buffer)}`;
    const first = await bits();
    for (let i = 0; i < 8; i++) {
      await sleep(50);
      assert((await bits()) === first, `product ${i + 2} has other bits`);
    }
  },

  "memory of every kind": ({ gpu }) =>
    each(KINDS, async (make) => {
      const { a, b, options, expected } = problem(9, 13, 6, 2, { beta: 2, c: integers(54) });
      const c = make(options.c);
      same(await gpu.matmul(make(a), make(b), { ...options, c }), expected);
      const behind = (values, offset) => make(Float32Array.from({ length: offset + values.length }, (_, i) => values[i - offset] ?? NaN));
      const sizes = { m: 9, k: 13, n: 6 };
      const windows = { ...sizes, lda: 13, ldb: 6, offset_a: 5, offset_b: 7 };
      same(await gpu.matmul(behind(a, 5), behind(b, 7), windows), product(a, b, sizes), "windows");
      // What a page writes on an array of its own is none of the product's.
      const own = Object.assign(behind(options.c, 3), { shape: [5, 20] });
      same(await gpu.matmul(make(a), make(b), { ...options, c: own, offset_c: 3 }), expected, "a window of what is added");
      const tensor = await gpu.tensor(make(a), [9, 13]);
      same(await tensor.toArray(), a, "the tensor");
      tensor.dispose();
    }),

  "a resizable buffer that shrank is too short": async ({ gpu }) => {
    const buffer = new ArrayBuffer(48, { maxByteLength: 96 });
    const [whole, fixed] = [new Float32Array(buffer), new Float32Array(buffer, 0, 12)];
    buffer.resize(20);
    await rejects("length_mismatch", () => gpu.matmul(whole, integers(4), { m: 3, k: 4, n: 1 }), /\b5\b/, /\b12\b/);
    await rejects(["length_mismatch", "invalid_type"], () => gpu.matmul(fixed, integers(4), { m: 3, k: 4, n: 1 }));
  },

  "operands may be changed, resized or transferred right after the call": async ({ gpu }) => {
    const { a, b, options, expected } = problem(40, 30, 50, 3, { beta: -1, c: integers(2000) });
    const pending = gpu.matmul(a, b, options);
    for (const array of [a, b, options.c]) array.fill(NaN);
    same(await pending, expected);

    const other = problem(8, 8, 8, 4);
    const buffer = new ArrayBuffer(256, { maxByteLength: 512 });
    const resizable = into(buffer, other.a);
    const resized = gpu.matmul(resizable, other.b.slice(), other.options);
    buffer.resize(4);
    const moved = other.b.slice();
    const transferred = gpu.matmul(other.a, moved, other.options);
    structuredClone(moved.buffer, { transfer: [moved.buffer] });
    same(await resized, other.expected, "with a resized operand");
    same(await transferred, other.expected, "with a transferred operand");
  },

  "bytes of a class whose slices are views may be changed right after the call": async ({ gpu }) => {
    class Views extends Uint8Array {
      slice(...range) {
        return this.subarray(...range);
      }
    }
    const [a, b] = [Views.of(1, 2, 3, 4), Views.of(5, 6, 7, 8)];
    const pending = gpu.matmul(a, b, { m: 2, k: 2, n: 2 });
    for (const bytes of [a, b]) bytes.fill(0);
    assert(`${await pending}` === "19,22,43,50", "what was changed later was multiplied");
  },

  "a tensor has the values of the call": async ({ gpu }) => {
    const a = integers(600);
    const before = a.slice();
    const pending = gpu.tensor(a, [20, 30]);
    a.fill(NaN);
    const tensor = await pending;
    same(await tensor.toArray(), before);
    tensor.dispose();
  },

  "options may be changed right after the call": async ({ gpu }) => {
    const { a, b, options, expected } = problem(8, 8, 8);
    const pending = gpu.matmul(a, b, options);
    Object.assign(options, { m: -1, transpose_a: true, report: true, keep: true });
    same(await pending, expected);
  },

  "operands stay as they are, also as both operands": async ({ gpu }) => {
    const a = integers(36);
    const before = a.slice();
    const options = { m: 6, k: 6, n: 6, transpose_b: true, beta: 1, c: a };
    same(await gpu.matmul(a, a, options), product(before, before, { ...options, c: before }));
    same(a, before, "the operand");
  },

  "the result has memory of its own": async ({ gpu }) => {
    const { a, b, options, expected } = problem(5, 4, 3);
    const [x, y] = await Promise.all([gpu.matmul(a, b, options), gpu.matmul(a, b, options)]);
    assert(x.constructor === Float32Array && x.buffer instanceof ArrayBuffer, "a plain Float32Array");
    assert(x.byteOffset === 0 && x.buffer.byteLength === 60, `${x.byteOffset} and ${x.buffer.byteLength} bytes in place of 0 and 60`);
    x.fill(0);
    same(y, expected);
    structuredClone(x.buffer, { transfer: [x.buffer] });
    await right(gpu, problem(5, 4, 3));
  },

  "an array of each length up to 40": async ({ gpu }) => {
    const results = [];
    for (let k = 1; k <= 40; k++) results.push(right(gpu, problem(1, k, 3, k), `k = ${k}`));
    await Promise.all(results);
  },

  "a signal that is aborted before": async ({ gpu, lapidary: { Gpu }, backend }) => {
    const reason = { why: "enough" };
    const signal = AbortSignal.abort(reason);
    const { a, b, options } = problem(4, 4, 4);
    const calls = {
      matmul: () => gpu.matmul(a, b, { ...options, signal }),
      benchmark: () => gpu.benchmark(a, b, { ...options, signal }),
      open: () => Gpu.open({ backend, signal }),
    };
    await each(calls, async (call) => {
      const { error } = await settles(call());
      is_fault(error, "aborted");
      assert(error.cause === reason, `cause is ${error.cause}`);
    });
  },

  "half a signal is none": async ({ gpu }) => {
    const { a, b, options } = problem(4, 5, 6);
    for (const signal of [{ aborted: false, addEventListener() {} }, { aborted: false, removeEventListener() {} }, {}, 1, "aborted"])
      is_fault((await settles(gpu.matmul(a, b, { ...options, signal }))).error, ["invalid_option"]);
  },

  "a signal that throws keeps no call from its end": async ({ gpu }) => {
    const { a, b, options, expected } = problem(4, 5, 6);
    const refuse = () => {
      throw new Error("mine");
    };
    const signal = { aborted: false, addEventListener() {}, removeEventListener: refuse };
    same(await within(5_000, gpu.matmul(a, b, { ...options, signal }), "a result"), expected);
    await rejects("length_mismatch", () => gpu.matmul(a, a, { ...options, signal }));
    let abort;
    const sudden = { ...signal, addEventListener: (_, listener) => (abort = listener), get reason() { return refuse(); } };
    const pending = settles(gpu.matmul(a, b, { ...options, signal: sudden }));
    abort();
    is_fault((await within(5_000, pending, "an end")).error, "aborted");
  },

  "a signal that is aborted during the call rejects at once": async ({ gpu }) => {
    const { a, b, options } = problem(150, 150, 150);
    for (const more of [{}, { keep: true }, { report: true }]) {
      const controller = new AbortController();
      const pending = settles(gpu.matmul(a, b, { ...options, ...more, signal: controller.signal }));
      const reason = new Error("mine");
      controller.abort(reason);
      const late = sleep(20).then(() => ({ error: new Error("not within 20 ms") }));
      const { error } = await Promise.race([pending, late]);
      is_fault(error, "aborted");
      assert(error.cause === reason, `cause is ${error.cause}`);
    }
  },

  "a kept product of tensors that is aborted at once": async ({ gpu }) => {
    const one = await gpu.tensor(Float32Array.of(2), [1, 1]);
    const before = gpu.memory();
    const controller = new AbortController();
    const pending = settles(gpu.matmul(one, one, { keep: true, signal: controller.signal }));
    controller.abort();
    is_fault((await pending).error, "aborted");
    const after = gpu.memory();
    assert(after.used_bytes === before.used_bytes, `${after.used_bytes} bytes are used, not ${before.used_bytes}`);
    one.dispose();
  },

  "a signal aborted after the result, and one without a reason": async ({ gpu }) => {
    const { a, b, options, expected } = problem(4, 4, 4);
    const controller = new AbortController();
    same(await gpu.matmul(a, b, { ...options, signal: controller.signal }), expected);
    controller.abort();
    const { error } = await settles(gpu.matmul(a, b, { ...options, signal: controller.signal }));
    is_fault(error, "aborted");
    assert(error.cause.name === "AbortError", `cause is ${error.cause}`);
  },

  "operands that begin far into their buffer": async ({ gpu, backend }) => {
    let buffer;
    try {
      buffer = new ArrayBuffer(2 ** 32 + 8192);
    } catch {
      skip("this engine has no buffers of more than 4 GiB");
    }
    const far = (Type, values, at) => {
      const view = new Type(buffer, 2 ** 32 + at, values.length);
      view.set(values);
      return view;
    };
    const { a, b, options, expected } = problem(6, 7, 8);
    const [x, y] = [far(Float32Array, a, 0), far(Float32Array, b, 1024)];
    same(await gpu.matmul(x, y, options), expected);
    const tensor = await gpu.tensor(x, [6, 7]);
    same(await tensor.toArray(), a);
    tensor.dispose();
    const bytes = far(Int8Array, [1, -2, 3, 4, 5], 4096);
    const sums = await gpu.matmul(bytes, bytes, { m: 1, k: 5, n: 1 });
    assert(`${sums}` === "55", `${sums} on ${backend}`);
  },

  "opening that is aborted on the way": async ({ lapidary: { Gpu }, backend }) => {
    const controller = new AbortController();
    const pending = settles(Gpu.open({ backend, signal: controller.signal }));
    await sleep(0);
    controller.abort("stop");
    const { error, value } = await pending;
    if (error) is_fault(error, "aborted");
    value?.free();
  },
};

const across_realms = {
  "arrays, options and signals of another realm": async ({ gpu }) => {
    const other = await realm();
    const { a, b, options, expected } = problem(6, 7, 8, 5, { beta: 1, c: integers(48) });
    const [x, y, z] = [a, b, options.c].map((values) => other.Float32Array.from(values));
    assert(!(x instanceof Float32Array), "the array is of another realm");
    await each(
      {
        "arrays": async () => same(await gpu.matmul(x, y, { ...options, c: z }), expected),
        "options": async () => same(await gpu.matmul(a, b, Object.assign(new other.Object(), options)), expected),
        "a shape": async () => (await gpu.tensor(x, other.Array.of(6, 7))).dispose(),
        "an array of another kind": () => rejects("invalid_type", () => gpu.matmul(new other.Float64Array(42), b, options), /Float64Array/),
        "a signal": async () => {
          const controller = new other.AbortController();
          const pending = settles(gpu.matmul(a, b, { ...options, signal: controller.signal }));
          controller.abort("stop");
          is_fault((await pending).error, "aborted");
        },
      },
      (check) => check(),
    );
    other.frameElement.remove();
    same(await gpu.matmul(x, y, { ...options, c: z }), expected, "after the realm is gone");
  },
};

export default { ...general, ...(in_page && across_realms) };
