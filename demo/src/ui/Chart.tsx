/** Bars by size. The table below holds the same numbers as text; a result that is wrong has no bar, as it has no speed. */
import { useState } from "react";
import { digits, times } from "../bench/format";
import { BACKEND_LABELS, in_reading_order, is_measured, type MeasuredRow, type Row } from "../bench/rows";

const METRICS = {
  whole: { label: "Arrays in, array out", of: (row: MeasuredRow) => row.gflops },
  kernel: { label: "Kernel alone", of: (row: MeasuredRow) => row.kernel_gflops },
} as const;

type Metric = keyof typeof METRICS;

export function Chart({ rows }: { rows: readonly Row[] }) {
  const [metric, set_metric] = useState<Metric>("whole");
  const { of } = METRICS[metric];
  const measured = in_reading_order(rows).filter(is_measured);
  const longest = Math.max(...measured.map((row) => (row.verdict.ok ? (of(row) ?? 0) : 0)), Number.MIN_VALUE);
  const sizes = [...new Set(measured.map(({ size }) => size))];
  if (measured.length === 0) return null;

  return (
    <figure className="chart">
      <figcaption>Speed in GFLOP/s, longer is faster</figcaption>
      <fieldset className="choices">
        <legend className="unseen">What the bars show</legend>
        {(Object.keys(METRICS) as Metric[]).map((key) => (
          <label className="choice" key={key}>
            <input type="radio" name="metric" checked={metric === key} onChange={() => set_metric(key)} />
            {METRICS[key].label}
          </label>
        ))}
      </fieldset>
      {sizes.map((size) => (
        <div className="bars" key={size}>
          <h3>{size}</h3>
          <ul>
            {measured
              .filter((row) => row.size === size)
              .map((row) => (
                <Bar key={row.backend} row={row} value={of(row)} longest={longest} with_speedup={metric === "whole"} />
              ))}
          </ul>
        </div>
      ))}
    </figure>
  );
}

interface BarProps {
  row: MeasuredRow;
  value: number | null;
  longest: number;
  with_speedup: boolean;
}

function Bar({ row, value, longest, with_speedup }: BarProps) {
  const shown = row.verdict.ok && value !== null;
  return (
    <li>
      <span className="bar-name">{BACKEND_LABELS[row.backend]}</span>
      <svg className="bar" aria-hidden="true">
        {shown && <rect className={`fill-${row.backend}`} width={`${Math.max(0.4, (100 * value) / longest)}%`} height="100%" rx="2" />}
      </svg>
      <span className="bar-value">
        {!row.verdict.ok ? "✗ wrong, no speed" : value === null ? "not measured" : digits(value)}
        {shown && with_speedup && row.speedup !== null && row.speedup_over !== row.backend && <small> {times(row.speedup)} CPU</small>}
      </span>
    </li>
  );
}
