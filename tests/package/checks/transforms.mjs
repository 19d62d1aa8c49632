/** Fourier transforms: the same list on every backend, against sums in double precision. */
import { assert, is_slow, rejects, throws } from "./tools.mjs";

/** Uniform in −1 to 1. */
function noise(length, seed = 1) {
  let state = seed * 2654435761;
  return Float32Array.from({ length }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) | 0;
    return (state >>> 8) / 2 ** 23 - 1;
  });
}

/** The transform of `[re, im]` pairs, as it is defined; a power of two by halves. */
function exact(line, inverse = false) {
  const n = line.length;
  const sign = inverse ? 1 : -1;
  const times = ([a, b], [c, d]) => [a * c - b * d, a * d + b * c];
  const root = (m) => [Math.cos((sign * 2 * Math.PI * (m % n)) / n), Math.sin((sign * 2 * Math.PI * (m % n)) / n)];
  const transform = (x, stride) => {
    if (x.length % 2 !== 0) {
      return x.map((_, k) => x.reduce(([re, im], value, i) => ((value = times(value, root(i * k * stride))), [re + value[0], im + value[1]]), [0, 0]));
    }
    const half = x.length / 2;
    const [even, odd] = [0, 1].map((first) => transform(x.filter((_, i) => i % 2 === first), stride * 2));
    return x.map((_, k) => {
      const [re, im] = times(odd[k % half], root(k * stride));
      return [even[k % half][0] + re, even[k % half][1] + im];
    });
  };
  return transform(line, 1).map(([re, im]) => (inverse ? [re / n, im / n] : [re, im]));
}

const pairs = (data) => Array.from({ length: data.length / 2 }, (_, i) => [data[2 * i], data[2 * i + 1]]);

async function value_of(gpu, expr, shape) {
  const tensor = await gpu.evaluate(expr);
  const data = await tensor.toArray();
  tensor.dispose();
  if (shape) assert(`${tensor.shape}` === `${shape}`, `a result of [${tensor.shape}], not of [${shape}]`);
  return data;
}

/** The length of the error against that of what is right, and what grows as log n. */
function near(got, right, n, what) {
  right = right.flat();
  assert(got.length === right.length, `${what} has ${got.length} elements, not ${right.length}`);
  const length = (list) => Math.sqrt(list.reduce((sum, value) => sum + value * value, 0));
  const error = length(right.map((value, i) => value - got[i]));
  const bound = 1e-7 * (2 + Math.log2(n)) * length(right);
  assert(error <= bound, `${what} is ${error} off, more than ${bound}`);
}

export default {
  "of any length, there and back": async ({ gpu, lapidary: { lazy } }) => {
    for (const n of is_slow(gpu) ? [8, 37] : [1, 2, 3, 4, 5, 8, 11, 12, 37, 105, 243, 1000, 1024]) {
      const data = noise(3 * n * 2, n);
      const x = await gpu.tensor(data, [3, n, 2]);
      const lines = [0, 1, 2].map((line) => pairs(data).slice(line * n, (line + 1) * n));
      near(await value_of(gpu, lazy(x).fft()), lines.flatMap((line) => exact(line)).flat(), n, `fft of ${n}`);
      near(await value_of(gpu, lazy(x).ifft(-1)), lines.flatMap((line) => exact(line, true)).flat(), n, `ifft of ${n}`);
      x.dispose();
    }
  },

  "of real numbers": async ({ gpu, lapidary: { lazy } }) => {
    for (const n of is_slow(gpu) ? [12] : [1, 2, 9, 12, 74, 128]) {
      const data = noise(2 * n, n);
      const x = await gpu.tensor(data, [2, n]);
      const whole = [0, 1].map((line) => exact(Array.from(data.slice(line * n, (line + 1) * n), (value) => [value, 0])));
      const half = Math.floor(n / 2) + 1;
      near(await value_of(gpu, lazy(x).rfft(), [2, half, 2]), whole.flatMap((line) => line.slice(0, half)).flat(), n, `rfft of ${n}`);
      near(await value_of(gpu, lazy(x).rfft().irfft(-1, n), [2, n]), Array.from(data), 4 * n * n, `irfft of ${n}`);
      near(await value_of(gpu, lazy(x).fftOfReal(), [2, n, 2]), whole.flat(2), n, `fftOfReal of ${n}`);
      x.dispose();
    }
  },

  "along another axis, and of a part": async ({ gpu, lapidary: { lazy } }) => {
    const [outer, n, inner] = [2, 12, 5];
    const data = noise(outer * n * inner * 2);
    const x = await gpu.tensor(data, [outer, n, inner, 2]);
    const numbers = pairs(data);
    for (const length of is_slow(gpu) ? [15] : [12, 15, 6, 41]) {
      const got = pairs(await value_of(gpu, lazy(x).fft(1, length), [outer, length, inner, 2]));
      for (let o = 0; o < outer; o++) {
        for (let i = 0; i < inner; i++) {
          const line = Array.from({ length }, (_, at) => (at < n ? numbers[(o * n + at) * inner + i] : [0, 0]));
          near(Array.from({ length }, (_, at) => got[(o * length + at) * inner + i]).flat(), exact(line), length, `fft of ${length} of 12`);
        }
      }
    }
    x.dispose();
  },

  "in two dimensions": async ({ gpu, lapidary: { lazy } }) => {
    const data = noise(6 * 10 * 2);
    const x = await gpu.tensor(data, [6, 10, 2]);
    const rows = Array.from({ length: 6 }, (_, row) => exact(pairs(data).slice(row * 10, (row + 1) * 10)));
    const columns = Array.from({ length: 10 }, (_, column) => exact(rows.map((row) => row[column])));
    near(await value_of(gpu, lazy(x).fft2()), rows.flatMap((_, row) => columns.flatMap((column) => column[row])), 60, "fft2");
    near(await value_of(gpu, lazy(x).fft2().ifft2()), Array.from(data), 60 * 60, "there and back");
    const image = noise(5 * 7);
    const y = await gpu.tensor(image, [5, 7]);
    near(await value_of(gpu, lazy(y).rfft2(), [5, 4, 2]).then((half) => half.slice(0, 2)), [image.reduce((sum, value) => sum + value, 0), 0], 5000, "the sum");
    near(await value_of(gpu, lazy(y).rfft2().irfft2(7), [5, 7]), Array.from(image), 35 * 35, "an image there and back");
    for (const tensor of [x, y]) tensor.dispose();
  },

  "long ones": async ({ gpu, lapidary: { lazy } }) => {
    for (const n of is_slow(gpu) ? [2048] : [4096, 1009, 2 ** 16]) {
      const data = noise(2 * n);
      const x = await gpu.tensor(data, [n, 2]);
      near(await value_of(gpu, lazy(x).fft()), exact(pairs(data)).flat(), n, `fft of ${n}`);
      x.dispose();
    }
  },

  "of nothing, and what is wrong is told": async ({ gpu, lapidary: { lazy } }) => {
    const a = await gpu.tensor(noise(24), [3, 4, 2]);
    const x = lazy(a);
    await value_of(gpu, x.slice(0, 0, 0).fft(), [0, 4, 2]);
    near(await value_of(gpu, x.slice(1, 0, 0).mul(2).fft(1, 3), [3, 3, 2]), Array(18).fill(0), 1, "of no numbers");
    // More than there is room for, or than is told in 32 bits.
    const too_much = ["limit_exceeded", "out_of_memory"];
    await rejects(too_much, () => gpu.evaluate(lazy(1).broadcastTo([4]).rfft(-1, 2 ** 28)), /\d{9}/);
    await rejects(too_much, () => gpu.evaluate(lazy(1).broadcastTo([2 ** 30])), /\d{9}/);
    await rejects("invalid_dimension", () => gpu.evaluate(x.fft(2)), /\b2\b/, /-2 to 1/);
    await rejects("invalid_dimension", () => gpu.evaluate(x.reshape([6, 4]).fft()), /\[6, 4\]/, /last dimension is 2/);
    await rejects("invalid_dimension", () => gpu.evaluate(x.fft(0, 0)), /length of a transform is 0/);
    await rejects("invalid_type", () => gpu.evaluate(x.cast("f16").fft()), /f32/, /f16/);
    throws("invalid_dimension", () => x.fft(0.5), /\baxis is the number 0.5/);
    throws("invalid_dimension", () => x.rfft(0, -1), /\blength is the number -1/);
    a.dispose();
  },
};
