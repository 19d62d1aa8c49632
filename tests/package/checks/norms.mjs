/** Softmax and norms: the same list on every backend, against the same in double precision. */
import { assert, is_slow, rejects, skip, throws } from "./tools.mjs";

const values = (length) => Float32Array.from({ length }, (_, i) => (((i * 7919) % 1009) - 504) / 100);
const sum = (list) => list.reduce((sum, value) => sum + value, 0);
const mean = (list) => sum(list) / list.length;

/** What each makes of a row. */
const OF_ROW = {
  softmax: (row) => {
    const largest = Math.max(...row);
    const powers = row.map((value) => Math.exp(value - largest));
    const all = sum(powers);
    return powers.map((power) => power / all);
  },
  logSoftmax: (row) => {
    const largest = Math.max(...row);
    const rest = largest + Math.log(sum(row.map((value) => Math.exp(value - largest))));
    return row.map((value) => value - rest);
  },
  layerNorm: (row) => {
    const middle = mean(row);
    const deviation = Math.sqrt(mean(row.map((value) => (value - middle) ** 2)) + 1e-5);
    return row.map((value) => (value - middle) / deviation);
  },
  rmsNorm: (row) => {
    const root = Math.sqrt(mean(row.map((value) => value * value)) + 1e-5);
    return row.map((value) => value / root);
  },
};

/** Does something to each row along an axis. */
function along(data, shape, axis, f) {
  const [size, inner] = [shape[axis], shape.slice(axis + 1).reduce((product, size) => product * size, 1)];
  const out = new Float64Array(data.length);
  for (let start = 0; start < data.length; start++) {
    if (Math.floor(start / inner) % size !== 0) continue;
    const places = Array.from({ length: size }, (_, i) => start + i * inner);
    f(places.map((place) => data[place])).forEach((value, i) => (out[places[i]] = value));
  }
  return out;
}

async function near(gpu, expr, right, what, tolerance = 2e-5) {
  const tensor = await gpu.evaluate(expr);
  const data = await tensor.toArray();
  tensor.dispose();
  assert(data.length === right.length, `${what} has ${data.length} elements, not ${right.length}`);
  right.forEach((right, i) => {
    const is_same = Object.is(data[i], right) || Math.abs(data[i] - right) <= tolerance * Math.max(Math.abs(right), 0.01);
    assert(is_same, `${what}[${i}] is ${data[i]}, not ${right}`);
  });
  return tensor;
}

export default {
  "along every axis, short and long": async ({ gpu, lapidary: { lazy } }) => {
    const cases = is_slow(gpu) ? [[[5, 7], 0], [[9, 64], 1]] : [[[1], 0], [[5, 7], 0], [[5, 7], 1], [[2, 3, 20], 1], [[3, 5000], 1], [[700, 33], 0], [[2, 16_384], 1]];
    for (const [shape, axis] of cases) {
      const data = values(shape.reduce((product, size) => product * size, 1));
      const x = await gpu.tensor(data, shape);
      for (const [name, f] of Object.entries(OF_ROW)) {
        // Differences from the mean that are nearly nothing are as far off as the mean is.
        const tolerance = name === "layerNorm" ? 2e-4 : undefined;
        await near(gpu, lazy(x)[name](axis), along(data, shape, axis, f), `${name} of [${shape}] along ${axis}`, tolerance);
      }
      x.dispose();
    }
  },

  "scales, biases and what is around them": async ({ gpu, lapidary: { lazy } }) => {
    const data = values(6 * 24);
    const [x, scale, bias] = [await gpu.tensor(data, [6, 24]), await gpu.tensor(values(24), [24]), await gpu.tensor(values(24).reverse(), [24])];
    const [s, b] = [values(24), values(24).reverse()];
    const normal = along(data, [6, 24], 1, OF_ROW.layerNorm);
    const each = (f) => Array.from(normal, (value, i) => f(value, i % 24));
    const tolerance = 2e-4;
    await near(gpu, lazy(x).layerNorm(-1, { scale, bias }), each((value, c) => value * s[c] + b[c]), "both", tolerance);
    await near(gpu, lazy(x).layerNorm([1], { bias }), each((value, c) => value + b[c]), "bias", tolerance);
    await near(gpu, lazy(x).layerNorm([1], { scale: 2 }).relu().add(1), each((value) => Math.max(2 * value, 0) + 1), "number", tolerance);
    const rms = along(data, [6, 24], 1, OF_ROW.rmsNorm);
    await near(gpu, lazy(x).rmsNorm(1, { scale }), Array.from(rms, (value, i) => value * s[i % 24]), "rms", tolerance);
    const twice = data.map((value) => 2 * value);
    await near(gpu, lazy(x).mul(2).transpose().softmax(0).transpose(), along(twice, [6, 24], 1, OF_ROW.softmax), "columns");
    const wide = Array.from({ length: 6 * 28 }, (_, i) => (i % 28 < 24 ? data[Math.floor(i / 28) * 24 + (i % 28)] : 0));
    await near(gpu, lazy(x).pad([[0, 0], [0, 4]]).softmax(), along(wide, [6, 28], 1, OF_ROW.softmax), "padded");
    const plane = along(data, [1, 144], 1, OF_ROW.layerNorm);
    await near(gpu, lazy(x).layerNorm([0, 1], { epsilon: 1e-5 }), plane, "both axes", tolerance);
    for (const tensor of [x, scale, bias]) tensor.dispose();
  },

  "what was found of each channel": async ({ gpu, lapidary: { lazy } }) => {
    const data = values(2 * 3 * 8);
    const [scale, bias, average, variance] = [[1, 2, 3], [0.5, 0, -1], [1, 2, 4], [0.25, 1, 9]];
    const tensors = [await gpu.tensor(data, [2, 3, 2, 4])];
    for (const list of [scale, bias, average, variance]) tensors.push(await gpu.tensor(Float32Array.from(list), [3]));
    const [x, ...told] = tensors;
    const right = Array.from(data, (value, i) => {
      const c = Math.floor(i / 8) % 3;
      return ((value - average[c]) / Math.sqrt(variance[c])) * scale[c] + bias[c];
    });
    await near(gpu, lazy(x).batchNorm(...told, 0), right, "batchNorm", 1e-3);
    for (const tensor of tensors) tensor.dispose();
  },

  "numbers that are none, and large ones": async ({ gpu, lapidary: { lazy } }) => {
    const rows = [[1, NaN, 0, 2], [-Infinity, -Infinity, -Infinity, -Infinity], [Infinity, 1, 2, -Infinity], [-Infinity, 0, 0, -Infinity], [1e30, 1e30, -1e30, 0]];
    const x = await gpu.tensor(Float32Array.from(rows.flat()), [5, 4]);
    const none = [NaN, NaN, NaN, NaN];
    const right = [none, none, none, [0, 0.5, 0.5, 0], [0.5, 0.5, 0, 0]].flat();
    await near(gpu, lazy(x).softmax(), right, "softmax", 1e-4);
    await near(gpu, lazy(x).slice(0, 0, 4).logSoftmax(), right.slice(0, 16).map(Math.log), "logSoftmax", 1e-4);
    const far = await gpu.tensor(Float32Array.from({ length: 64 }, (_, i) => 1e6 + (i % 2)), [64]);
    await near(gpu, lazy(far).layerNorm(0, { epsilon: 0 }), Array.from({ length: 64 }, (_, i) => (i % 2) * 2 - 1), "far from zero", 1e-5);
    await near(gpu, lazy(x).slice(0, 4, 5).rmsNorm(1), [1e30, 1e30, -1e30, 0].map((value) => value / (1e30 * Math.sqrt(3 / 4))), "large", 1e-5);
    for (const count of is_slow(gpu) ? [1000] : [1000, 20000]) {
      const row = await gpu.tensor(new Float32Array(count).fill(3e38), [count]);
      await near(gpu, lazy(row).rmsNorm(0), new Array(count).fill(1), `${count} whose norm is none`, 1e-5);
      row.dispose();
    }
    for (const tensor of [x, far]) tensor.dispose();
  },

  "of nothing": async ({ gpu, lapidary: { lazy } }) => {
    const x = await gpu.tensor(new Float32Array(0), [3, 0]);
    await near(gpu, lazy(x).softmax(), [], "softmax");
    await near(gpu, lazy(x).transpose().layerNorm(1), [], "layerNorm");
    x.dispose();
  },

  "halves": async ({ gpu, lapidary: { lazy } }) => {
    if (!globalThis.Float16Array) skip("this engine has no Float16Array");
    for (const columns of is_slow(gpu) ? [7] : [8, 7]) {
      const data = Float16Array.from({ length: 6 * columns }, (_, i) => ((i * 5) % 11) - 4);
      const x = await gpu.tensor(data, [6, columns]);
      for (const axis of [0, 1]) {
        const tensor = await near(gpu, lazy(x).softmax(axis), along(data, [6, columns], axis, OF_ROW.softmax), `of ${columns} along ${axis}`, 1e-3);
        assert(tensor.dtype === "f16", `a result of ${tensor.dtype}`);
      }
      x.dispose();
    }
  },

  "what is wrong is told": async ({ gpu, lapidary: { lazy } }) => {
    const [a, two] = [await gpu.tensor(values(6), [2, 3]), await gpu.tensor(values(2), [2])];
    const x = lazy(a);
    await rejects("invalid_dimension", () => gpu.evaluate(x.softmax(2)), /\b2\b/, /-2 to 1/);
    await rejects("invalid_dimension", () => gpu.evaluate(x.layerNorm([1, -1])), /each axis once/);
    await rejects("invalid_type", () => gpu.evaluate(x.cast("i32").softmax(1)), /of f32 or f16/);
    await rejects("invalid_dimension", () => gpu.evaluate(x.layerNorm(1, { scale: two })), /\[2\]/, /\[2, 3\]/);
    await rejects("invalid_type", () => gpu.evaluate(x.rmsNorm(1, { scale: lazy(two).cast("f16") })), /f16 beside f32/);
    await rejects("invalid_option", () => gpu.evaluate(x.rmsNorm(1, { epsilon: -1 })), /epsilon is -1/);
    await rejects("invalid_dimension", () => gpu.evaluate(x.batchNorm(two, two, two, two)), /\[2\]/, /\[3\]/);
    throws("invalid_dimension", () => x.softmax("1"), /\baxis is the string/);
    throws("invalid_type", () => x.layerNorm(), /\baxes\b/);
    throws("invalid_option", () => x.layerNorm(1, { gain: 1 }), /\bgain\b/, /scale, bias, epsilon/);
    throws("invalid_option", () => x.rmsNorm(1, { bias: 1 }), /\bbias\b/);
    throws("invalid_option", () => x.rmsNorm(1, { epsilon: "0" }), /\bepsilon\b/);
    throws("invalid_type", () => x.batchNorm(two, two, two), /\bvariance must be/);
    for (const tensor of [a, two]) tensor.dispose();
  },
};
