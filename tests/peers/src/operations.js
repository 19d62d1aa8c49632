/**
 * The operations round the product that are measured: their inputs, what they cost at least, and what is right. A job of one names it by
 * `operation` and has its sizes; `prepare` adds `inputs`, [{ values, shape }, …], and `result`, the shape of what comes out.
 */
import { random_matrix } from "./data.js";

const UNIT = 2 ** -24;
const EPSILON = 1e-5;

/** The bound of `count` roundings one after another, relative (Higham, "Accuracy and Stability of Numerical Algorithms", 3.1). */
const gamma = (count) => (count * UNIT) / (1 - count * UNIT);

/** Functions are allowed a few units in the last place, as WGSL allows them. */
const OF_FUNCTIONS = 32;

const size_of = (shape) => shape.reduce((x, y) => x * y, 1);

/** Places to look at: the first, the last, and some between, of which no two lie in the same column of a tile. */
function places(length, most = 4096) {
  if (length <= most) return Array.from({ length }, (_, i) => i);
  const stride = Math.floor((length - 1) / (most - 1)) | 1;
  return Array.from({ length: most }, (_, i) => (i === most - 1 ? length - 1 : Math.min(i * stride, length - 1)));
}

/** What is known of one row of x: what softmax and layer norm subtract and divide by. */
function rows_of({ values, shape: [, n] }, about) {
  const known = new Map();
  return (place) => {
    const row = Math.floor(place / n);
    if (!known.has(row)) known.set(row, about(values.subarray(row * n, (row + 1) * n)));
    return known.get(row);
  };
}

const sum_of = (values, of = (value) => value) => values.reduce((sum, value) => sum + of(value), 0);

/** As PyTorch counts: the windows of an edge that `padding` widens on both sides. */
export const windows = ({ side, kernel, stride, padding }) => Math.floor((side + 2 * padding - kernel) / stride) + 1;

/** The Fourier transform of interleaved complex numbers in double precision, of a power of two of them (Cooley and Tukey, 1965). */
function transform(values) {
  const n = values.length / 2;
  const [re, im] = [new Float64Array(n), new Float64Array(n)];
  for (let i = 0, j = 0; i < n; i++) {
    [re[j], im[j]] = [values[2 * i], values[2 * i + 1]];
    let bit = n >> 1;
    while (j & bit) {
      j ^= bit;
      bit >>= 1;
    }
    j ^= bit;
  }
  for (let half = 1; half < n; half *= 2) {
    for (let k = 0; k < half; k++) {
      const angle = (-Math.PI * k) / half;
      const [c, s] = [Math.cos(angle), Math.sin(angle)];
      for (let i = k; i < n; i += 2 * half) {
        const [x, y] = [re[i + half] * c - im[i + half] * s, re[i + half] * s + im[i + half] * c];
        [re[i + half], im[i + half]] = [re[i] - x, im[i] - y];
        [re[i], im[i]] = [re[i] + x, im[i] + y];
      }
    }
  }
  return (place) => (place % 2 ? im : re)[place >> 1];
}

/**
 * Each gives the shapes of its `inputs` and of its `result` for a job, and `exact`: what is right at a place of the result, as [value, bound
 * of the error].
 */
const OPERATIONS = {
  add: {
    inputs: ({ m, n }) => [[m, n], [m, n]],
    result: ({ m, n }) => [m, n],
    exact: ([a, b]) => (place) => [a.values[place] + b.values[place], UNIT * 2],
  },
  sum: {
    inputs: ({ m, n }) => [[m, n]],
    result: () => [],
    // Sums are taken by blocks, and those by blocks: far fewer roundings follow one another than there are elements.
    exact: ([a]) => () => [sum_of(a.values), gamma(64) * sum_of(a.values, Math.abs)],
  },
  "sum of rows": {
    inputs: ({ m, n }) => [[m, n]],
    result: ({ m }) => [m],
    exact: ([a], { n }) => {
      const row_of = rows_of(a, (row) => [sum_of(row), gamma(64) * sum_of(row, Math.abs)]);
      return (place) => row_of(place * n);
    },
  },
  softmax: {
    inputs: ({ m, n }) => [[m, n]],
    result: ({ m, n }) => [m, n],
    exact: ([a], { n }) => {
      const sum = rows_of(a, (row) => sum_of(row, Math.exp));
      return (place) => {
        const value = Math.exp(a.values[place]) / sum(place);
        return [value, gamma(n + OF_FUNCTIONS) * value];
      };
    },
  },
  "layer norm": {
    inputs: ({ m, n }) => [[m, n], [n], [n]],
    result: ({ m, n }) => [m, n],
    exact: ([a, scale, bias], { n }) => {
      const moments = rows_of(a, (row) => {
        const mean = sum_of(row) / n;
        return [mean, 1 / Math.sqrt(sum_of(row, (value) => (value - mean) ** 2) / n + EPSILON)];
      });
      return (place) => {
        const [mean, factor] = moments(place);
        const [normal, by, plus] = [(a.values[place] - mean) * factor, scale.values[place % n], bias.values[place % n]];
        return [normal * by + plus, gamma(n + OF_FUNCTIONS) * ((Math.abs(normal) + 1) * Math.abs(by) + Math.abs(plus))];
      };
    },
  },
  conv: {
    inputs: ({ batch, channels, side, filters, kernel, groups }) => [[batch, channels, side, side], [filters, channels / groups, kernel, kernel]],
    result: (job) => [job.batch, job.filters, windows(job), windows(job)],
    exact: ([x, w], { channels, side, filters, kernel, stride, padding, groups }, [, , out]) => (place) => {
      const seen = channels / groups;
      const [column, row, plane] = [place % out, Math.floor(place / out) % out, Math.floor(place / out ** 2)];
      const [filter, image] = [plane % filters, Math.floor(plane / filters)];
      const first = image * channels + Math.floor(filter / (filters / groups)) * seen;
      let [sum, size] = [0, 0];
      for (let c = 0; c < seen; c++) {
        for (let i = 0; i < kernel; i++) {
          for (let j = 0; j < kernel; j++) {
            const [y, z] = [row * stride + i - padding, column * stride + j - padding];
            if (y < 0 || z < 0 || y >= side || z >= side) continue;
            const product = x.values[((first + c) * side + y) * side + z] * w.values[((filter * seen + c) * kernel + i) * kernel + j];
            sum += product;
            size += Math.abs(product);
          }
        }
      }
      return [sum, gamma(seen * kernel * kernel) * size];
    },
  },
  fft: {
    inputs: ({ n }) => [[n, 2]],
    result: ({ n }) => [n, 2],
    exact: ([x], { n }) => {
      const at = transform(x.values);
      // That of the sum by which it is defined; what is quick is more exact too.
      const bound = gamma(2 * n) * sum_of(x.values, Math.abs);
      return (place) => [at(place), bound];
    },
  },
};

/** A job with its operands. */
export function prepare(job) {
  const { inputs, result } = OPERATIONS[job.operation];
  const made = inputs(job).map((shape, i) => ({ values: random_matrix(size_of(shape), i + 1, 23), shape }));
  return { ...job, inputs: made, result: result(job), epsilon: EPSILON };
}

/** What has to be read and written, in bytes. */
export function bytes_of(job) {
  const { inputs, result } = OPERATIONS[job.operation];
  return 4 * [result(job), ...inputs(job)].reduce((sum, shape) => sum + size_of(shape), 0);
}

/** Multiplications and additions: of a convolution those of its definition, of a transform 5 n log₂ n, as is usual. */
export function flops_of(job) {
  if (job.operation === "fft") return 5 * job.n * Math.log2(job.n);
  const { batch, channels, filters, kernel, groups } = job;
  return (2 * batch * filters * windows(job) ** 2 * channels * kernel ** 2) / groups;
}

/** A judge of the results of one job, as that of products is in verdict.js. */
export function judge(job) {
  const length = size_of(job.result);
  const exact = OPERATIONS[job.operation].exact(job.inputs, job, job.result);
  const looked_at = places(length).map((place) => [place, ...exact(place)]);
  const checked = looked_at.length === length ? "every element" : `${looked_at.length} elements`;
  return {
    verdict(result) {
      if (!(result instanceof Float32Array) || result.length !== length) {
        return { ok: false, checked, reason: `${result?.length ?? typeof result} values in place of ${length}` };
      }
      let [wrong, max_abs_error, worst_ratio] = [0, 0, 0];
      for (const [place, value, bound] of looked_at) {
        const error = Math.abs(result[place] - value);
        if (!(error <= bound)) wrong += 1;
        max_abs_error = Math.max(max_abs_error, error);
        worst_ratio = Math.max(worst_ratio, error / bound);
      }
      return { ok: wrong === 0, checked, wrong, max_abs_error, worst_ratio };
    },
    free() {},
  };
}
