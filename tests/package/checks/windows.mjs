/** Convolutions and pools, against the same by loops: whole numbers, of which there is one right result. */
import { assert, integers, is_slow, rejects, same, throws } from "./tools.mjs";

/** Elements of N × C × H × W around which there is nothing. */
const at = (data, [, c, h, w], n, k, y, x) => (y < 0 || x < 0 || y >= h || x >= w ? undefined : data[((n * c + k) * h + y) * w + x]);

/** What each window of a result sees: for each tap its place in it and the element, or nothing. */
function* taps(data, shape, n, k, [y, x], [h, w], { strides = [1, 1], dilations = [1, 1], pads = [[0, 0], [0, 0]] }) {
  for (let i = 0; i < h; i++) {
    for (let j = 0; j < w; j++) {
      const place = [y * strides[0] + i * dilations[0] - pads[0][0], x * strides[1] + j * dilations[1] - pads[1][0]];
      yield { i, j, place, value: at(data, shape, n, k, ...place) };
    }
  }
}

const sides = (shape, sizes, { strides = [1, 1], dilations = [1, 1], pads = [[0, 0], [0, 0]] }) =>
  [0, 1].map((i) => Math.floor((shape[2 + i] + pads[i][0] + pads[i][1] - (sizes[i] - 1) * dilations[i] - 1) / strides[i]) + 1);

/** Each element of a result of n × c windows. */
function each_window(n, c, [h, w], value) {
  const out = [];
  for (let i = 0; i < n; i++) for (let k = 0; k < c; k++) for (let y = 0; y < h; y++) for (let x = 0; x < w; x++) out.push(value(i, k, [y, x]));
  return Float32Array.from(out);
}

async function gives(gpu, expr, shape, expected, what) {
  const tensor = await gpu.evaluate(expr);
  assert(`${tensor.shape}` === `${shape}`, `${what} is [${tensor.shape}], not [${shape}]`);
  same(Float32Array.from(await tensor.toArray()), expected, what);
  tensor.dispose();
}

const CONVOLUTIONS = [
  [[1, 3, 8, 9], [4, 3, 3, 3], {}],
  [[2, 4, 7, 6], [6, 2, 3, 2], { strides: [2, 1], dilations: [1, 2], pads: [[1, 1], [0, 2]], groups: 2 }],
  [[1, 2, 5, 5], [3, 2, 5, 5], { pads: [[4, 0], [1, 1]], activation: "relu" }],
  // Rows of fours, and fours that go on in the next row.
  [[2, 2, 6, 8], [3, 2, 3, 3], { pads: [[1, 1], [1, 1]] }],
  [[2, 4, 7, 10], [6, 2, 3, 2], { strides: [2, 2], dilations: [1, 2], pads: [[1, 1], [0, 1]], groups: 2, activation: "relu" }],
];

export default {
  "convolutions": async ({ gpu, lapidary: { lazy } }) => {
    const [images, filters] = [await gpu.tensor(integers(48), [1, 3, 4, 4]), await gpu.tensor(integers(27), [1, 3, 3, 3])];
    for (const [shape, of, options] of is_slow(gpu) ? CONVOLUTIONS.slice(1, 2) : CONVOLUTIONS) {
      const count = (sizes) => sizes.reduce((product, size) => product * size, 1);
      const [data, weights, bias] = [integers(count(shape), 3), integers(count(of), 5), integers(of[0], 7)];
      const { groups = 1, activation } = options;
      const size = sides(shape, of.slice(2), options);
      const expected = each_window(shape[0], of[0], size, (n, f, window) => {
        let sum = bias[f];
        for (let c = 0; c < of[1]; c++) {
          const channel = Math.floor(f / (of[0] / groups)) * of[1] + c;
          for (const { i, j, value = 0 } of taps(data, shape, n, channel, window, of.slice(2), options)) {
            sum += value * weights[((f * of[1] + c) * of[2] + i) * of[3] + j];
          }
        }
        return activation ? Math.max(sum, 0) : sum;
      });
      const [x, y, z] = [await gpu.tensor(data, shape), await gpu.tensor(weights, of), await gpu.tensor(bias, [of[0]])];
      await gives(gpu, lazy(x).conv(y, { ...options, bias: z }), [shape[0], of[0], ...size], expected, `a convolution of [${shape}]`);
      for (const tensor of [x, y, z]) tensor.dispose();
    }
    await gives(gpu, lazy(images).conv(filters, { pads: "same_upper", strides: [2, 2] }).mul(0), [1, 1, 2, 2], new Float32Array(4), "the same");
    for (const tensor of [images, filters]) tensor.dispose();
  },

  "pools": async ({ gpu, lapidary: { lazy } }) => {
    const shape = [2, 3, 6, 7];
    const data = integers(2 * 3 * 6 * 7, 11);
    const x = await gpu.tensor(data, shape);
    const options = { strides: [2, 3], pads: [[1, 0], [1, 1]] };
    const sizes = [2, 4];
    const size = sides(shape, sizes, options);
    const of = (f) => each_window(2, 3, size, (n, c, window) => f([...taps(data, shape, n, c, window, sizes, options)].filter(({ value }) => value !== undefined), n, c));
    const values = (seen) => seen.map(({ value }) => value);
    const largest = of((seen) => Math.max(...values(seen)));
    await gives(gpu, lazy(x).maxPool(sizes, options), [2, 3, ...size], largest, "the largest");
    const places = of((seen, n, c) => {
      const { place } = seen.find(({ value }) => value === Math.max(...values(seen)));
      return ((n * 3 + c) * 6 + place[0]) * 7 + place[1];
    });
    await gives(gpu, lazy(x).maxPoolIndices(sizes, options), [2, 3, ...size], places, "their places");
    const sums = of((seen) => values(seen).reduce((sum, value) => sum + value, 0));
    const padded = lazy(x).averagePool(sizes, { ...options, count_include_pad: true });
    await gives(gpu, padded.mul(8), [2, 3, ...size], sums, "the means with the padding");
    const top = each_window(2, 3, [1, 1], (n, c) => Math.max(...data.slice((n * 3 + c) * 42, (n * 3 + c + 1) * 42)));
    const nothing = lazy(x).slice(2, 0, 3).slice(3, 0, 1).maxPoolIndices([2, 1], { dilations: [4, 1], pads: [[4, 4], [0, 0]] });
    const seen = each_window(2, 3, [7, 1], (n, c, [y]) => (n * 3 + c) * 3 + [0, 1, 2, 0, 0, 1, 2][y]);
    await gives(gpu, nothing, [2, 3, 7, 1], seen, "where a window sees nothing");
    await gives(gpu, lazy(x).globalMaxPool(), [2, 3, 1, 1], top, "the largest of all");
    x.dispose();
  },

  "what is wrong is told": async ({ gpu, lapidary: { lazy } }) => {
    const tensors = [await gpu.tensor(integers(48), [1, 3, 4, 4]), await gpu.tensor(integers(27), [1, 3, 3, 3])];
    const [x, f] = tensors.map((tensor) => lazy(tensor));
    await rejects("invalid_dimension", () => gpu.evaluate(x.conv(f, { groups: 2 })), /\b2\b/);
    await rejects("invalid_dimension", () => gpu.evaluate(x.conv(f, { dilations: [2, 2] })), /\b5\b/, /\b4\b/);
    await rejects("invalid_type", () => gpu.evaluate(x.conv(f.cast("f16"))), /f16/);
    await rejects("invalid_dimension", () => gpu.evaluate(x.maxPool([5, 5])), /\b5\b/);
    for (const name of ["maxPool", "averagePool"]) await rejects("invalid_dimension", () => gpu.evaluate(x[name]([])), /\b0\b/, /\b2\b/);
    throws("invalid_type", () => x.conv(), /\bfilters\b/);
    throws("invalid_option", () => x.conv(f, { stride: 2 }), /stride/, /strides/);
    throws("invalid_type", () => x.conv(f, { strides: 2 }), /\bstrides\b/);
    for (const name of ["strides", "dilations", "pads"]) throws("invalid_type", () => x.conv(f, { [name]: null }), new RegExp(`\\b${name}\\b`));
    throws("invalid_type", () => x.conv(f, { pads: [1, 1] }), /\bpads\b/, /same_upper/);
    throws("invalid_option", () => x.conv(f, { activation: "Relu" }), /relu/);
    throws("invalid_type", () => x.maxPool(2), /\bsizes\b/);
    throws("invalid_option", () => x.maxPool([2, 2], { ceil_mode: 1 }), /ceil_mode/);
    for (const tensor of tensors) tensor.dispose();
  },
};
