/** From samples to a row: figures with their spread, and the ratio to the best peer whose result is right. */

import { bytes_of, flops_of } from "./operations.js";

export function median(values) {
  const sorted = [...values].sort((x, y) => x - y);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** What a product of each measure counts, so that count / ms is in `unit`, or the time itself. */
const FIGURES = {
  first: { unit: "ms" },
  resident: { unit: "GFLOP/s", work: flops },
  end_to_end: { unit: "GFLOP/s", work: flops },
  batch: { unit: "GFLOP/s", work: flops },
  vector: { unit: "GB/s", work: ({ m, k, n }) => (4 * (m * k + k * n + m * n)) / 1e6 },
  queue: { unit: "products/s", work: () => 1000 },
  f16: { unit: "GFLOP/s", work: flops },
  f16x3: { unit: "GFLOP/s", work: flops },
  operations: { unit: "GB/s", work: (job) => bytes_of(job) / 1e6 },
  conv: { unit: "GFLOP/s", work: (job) => flops_of(job) / 1e6 },
  fft: { unit: "GFLOP/s", work: (job) => flops_of(job) / 1e6 },
  neighbours: { unit: "GFLOP/s", work: flops },
  tuned: { unit: "GFLOP/s", work: flops },
  f16_computed: { unit: "GFLOP/s", work: flops },
  int8: { unit: "GOP/s", work: flops },
};

function flops({ m, k, n, batch }) {
  return (2 * m * k * n * batch) / 1e6;
}

export function shape_of({ operation, m, k, n, batch, channels, side, filters, kernel, stride, groups }) {
  if (operation === "conv") return `${channels}·${side} ${kernel}x${kernel}${stride > 1 ? `/${stride}` : ""} ${groups > 1 ? "each" : filters}`;
  if (operation) return operation;
  return `${batch > 1 ? `${batch}·` : ""}${m === k && k === n ? m : `${m}x${k}x${n}`}`;
}

const message_of = (error) => String(error?.message ?? error).split("\n")[0].slice(0, 300);

/** One library's part of a row. */
function result_of({ library, samples_ms = [], repeats, verdict, note, error }, figure) {
  if (error) return { library, error: `${error.code ? `${error.code}: ` : ""}${message_of(error)}` };
  const figures = samples_ms.map(figure);
  return { library, figure: median(figures), min: Math.min(...figures), max: Math.max(...figures), samples_ms, repeats, verdict, note };
}

/** How many times as fast the first is, by two of the same figure. */
const times = (unit, ours, theirs) => (unit === "ms" ? theirs / ours : ours / theirs);

/** An entrant that has a job of its own is lapidary beside itself, and counts as a peer. */
export function row_of(job, backend, entrants) {
  const { unit, work } = FIGURES[job.measure];
  const figure = (ms, own = job) => (work ? work(own) / ms : ms);
  const results = entrants.map((entrant) => result_of(entrant, (ms) => figure(ms, entrant.job)));
  const counts = ({ verdict, figure }) => verdict?.ok && Number.isFinite(figure);
  const ours = results.find((result) => result.library === "lapidary" && counts(result));
  const peers = results.filter((result) => result.library !== "lapidary" && counts(result));
  const best = peers.reduce((x, y) => (x && times(unit, x.figure, y.figure) >= 1 ? x : y), null);
  const { a: _a, b: _b, inputs: _inputs, ...sizes } = job;
  const row = { ...sizes, backend, shape: shape_of(job), unit, results };
  if (!ours || !best) return row;
  const by_round = ours.samples_ms
    .slice(0, best.samples_ms.length)
    .map((ms, round) => times(unit, figure(ms), figure(best.samples_ms[round], entrants.find(({ library }) => library === best.library).job)));
  const ratio = times(unit, ours.figure, best.figure);
  return { ...row, best_peer: best.library, ratio, ratio_min: Math.min(...by_round), ratio_max: Math.max(...by_round) };
}
