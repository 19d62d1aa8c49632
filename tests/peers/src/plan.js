/**
 * What a run consists of: frames, one after the other, each with one backend, its libraries and its jobs. A frame is a page of its own, so
 * that nothing of one backend is left when the next begins.
 */
import { LIBRARIES, MEASURES } from "./settings.js";

/** What each backend is measured with, and up to which size its products take no minutes. */
const ON = {
  webgpu: { libraries: LIBRARIES, measures: MEASURES.filter((measure) => measure !== "first"), largest: Infinity },
  webgl2: { libraries: ["lapidary", "tfjs", "jax"], measures: ["resident"], largest: 2048 },
  wasm: { libraries: LIBRARIES, measures: ["resident", "operations", "conv", "fft"], largest: 1024 },
};

/** The CPU is measured on one thread, as in a page without cross-origin isolation, and on two, as many as every machine has. */
const THREADS = { wasm: [1, 2] };

const FIRST_SIZE = 512;
const FIRST_ROUNDS = 7;
const BATCH = { count: 64, size: 256 };
const QUEUE = { count: 1000, size: 64 };
/** A matrix of 1 GiB for a vector is far larger than what GPUs cache; beside smaller products it is smaller. */
const VECTOR = { most: 16384, times: 4 };
/** Sizes that are near no power of two. */
const BETWEEN = [1000, 1536, 3000];

const OPERATIONS = ["add", "sum", "sum of rows", "softmax", "layer norm"];
/** Of ResNet-50 (He et al., 2015), the layers that differ: channels, side, filters, kernel, stride, and groups if there are more than one. */
const RESNET_50 = [
  [3, 224, 64, 7, 2],
  [64, 56, 64, 1, 1],
  [64, 56, 64, 3, 1],
  [64, 56, 256, 1, 1],
  [128, 56, 128, 3, 2],
  [128, 28, 128, 3, 1],
  [512, 28, 128, 1, 1],
  [256, 14, 256, 3, 1],
  [1024, 14, 256, 1, 1],
  [512, 7, 512, 3, 1],
  [2048, 7, 512, 1, 1],
];
/** Of MobileNetV2 (Sandler et al., 2018) those that have a filter for each channel. */
const MOBILENET_V2 = [[96, 112, 96, 3, 2, 96], [144, 56, 144, 3, 1, 144], [384, 14, 384, 3, 1, 384], [960, 7, 960, 3, 1, 960]];
/** Below this size a CPU is at work, for which the layers of a network take minutes: these are for it, and so short a transform. */
const LEAST_ON_GPU = 512;
const SMALL_LAYERS = [[3, 24, 8, 7, 2], [16, 14, 16, 3, 1], [32, 14, 8, 1, 1], [16, 14, 16, 3, 1, 16]];
const TRANSFORM = 2 ** 20;
const SMALL_TRANSFORM = 2 ** 10;

const square = (size) => ({ m: size, k: size, n: size });
const is_vector = ({ m, n }) => m === 1 || n === 1;
const vector_of = (sizes) => Math.min(VECTOR.most, VECTOR.times * Math.max(...sizes));
const apart = (x, y) => Math.abs(Math.log(x / y));

/** Each size, one less and one more, and those between. What is none of the sizes is measured beside the nearest of them. */
function neighbours({ sizes }) {
  const others = [...sizes.flatMap((size) => [size - 1, size + 1]), ...BETWEEN.filter((size) => size < Math.max(...sizes))];
  const all = [...new Set([...sizes, ...others])].filter((size) => size > 0).sort((x, y) => x - y);
  return all.map((size) => {
    const nearest = sizes.reduce((x, y) => (apart(size, y) < apart(size, x) ? y : x));
    return { ...square(size), beside: size === nearest ? {} : { what: `at ${nearest}`, least: 0.85, job: square(nearest) } };
  });
}

/**
 * The jobs of one measure. `count` products make one run of a measure that is not timed by slope. With `beside` lapidary is measured alone, or
 * beside itself where the job differs by that, and the ratio is to be `least`.
 */
const JOBS = {
  resident: ({ sizes, shapes }) => [...sizes.map(square), ...shapes.filter((shape) => !is_vector(shape))],
  end_to_end: ({ sizes }) => sizes.map((size) => ({ ...square(size), count: 1 })),
  batch: ({ sizes }) => [{ ...square(Math.min(BATCH.size, Math.max(...sizes))), batch: BATCH.count }],
  vector: ({ sizes, shapes }) => [{ m: vector_of(sizes), k: vector_of(sizes), n: 1 }, ...shapes.filter(is_vector)],
  queue: ({ sizes }) => [{ ...square(Math.min(QUEUE.size, Math.max(...sizes))), count: QUEUE.count }],
  operations: ({ sizes }) => OPERATIONS.map((operation) => ({ operation, m: Math.max(...sizes), n: Math.max(...sizes) })),
  conv: ({ sizes }) =>
    (Math.max(...sizes) < LEAST_ON_GPU ? SMALL_LAYERS : [...RESNET_50, ...MOBILENET_V2]).map(
      ([channels, side, filters, kernel, stride, groups = 1]) => ({
        operation: "conv", channels, side, filters, kernel, stride, groups, padding: kernel >> 1,
      }),
    ),
  fft: ({ sizes }) => [{ operation: "fft", n: Math.max(...sizes) < LEAST_ON_GPU ? SMALL_TRANSFORM : TRANSFORM }],
  f16: (settings) => JOBS.resident(settings).map((shape) => ({ ...shape, dtype: "f16" })),
  f16x3: (settings) => JOBS.resident(settings).map((shape) => ({ ...shape, precision: "f16x3" })),
  neighbours,
  tuned: ({ sizes }) => sizes.map((size) => ({ ...square(size), beside: { what: "tuned", least: 0.9, job: { handle: "tuned" } } })),
  f16_computed: ({ sizes }) =>
    sizes.map((size) => ({
      ...square(size), dtype: "f16", precision: "f16", handle: "without_units", beside: { what: "in f32", job: { dtype: "f32", precision: "f32" } },
    })),
  int8: ({ sizes }) => sizes.map((size) => ({ ...square(size), dtype: "i8", beside: { what: "in f32", job: { dtype: "f32" } } })),
};

/** The frames of a run, and a sentence for each thing left out. */
export function plan(settings) {
  const frames = [];
  const notes = [];
  if (settings.sizes.length === 0) return { frames, notes: ["no size is left: nothing is measured"] };
  if (settings.only.includes("first") && settings.backends.includes("webgpu")) {
    const job = { measure: "first", ...square(Math.min(FIRST_SIZE, Math.max(...settings.sizes))), batch: 1 };
    frames.push({ backend: "webgpu", libraries: LIBRARIES, jobs: [job], rounds: FIRST_ROUNDS });
  }
  for (const backend of settings.backends) {
    const { libraries, measures, largest } = ON[backend];
    const asked = measures.filter((measure) => settings.only.includes(measure));
    const all = asked.flatMap((measure) => JOBS[measure](settings).map((job) => ({ measure, batch: 1, ...job })));
    const jobs = all.filter(({ operation, m, k, n }) => operation || Math.max(m, k, n) <= largest);
    if (jobs.length < all.length) notes.push(`${backend}: products with a side above ${largest} are left out, they would take minutes`);
    if (jobs.length === 0) continue;
    for (const threads of THREADS[backend] ?? [undefined]) {
      frames.push({ backend, threads, libraries, jobs, samples: settings.samples, min_ms: settings.min_ms });
    }
  }
  return { frames, notes };
}
