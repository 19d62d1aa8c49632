/** Every number of the run as text: what the chart shows, for eyes, screen readers and the clipboard alike. */
import { count, counted, digits, ms, times } from "../bench/format";
import {
  BACKEND_LABELS,
  in_reading_order,
  is_failed,
  is_skipped,
  type MeasuredRow,
  type Row,
  type Settings,
  type Verdict,
} from "../bench/rows";

export function Table({ rows, settings }: { rows: readonly Row[]; settings: Settings }) {
  const ordered = in_reading_order(rows);
  const sizes = [...new Set(ordered.map(({ size }) => size))];
  return (
    <div className="table-scroll" role="region" aria-label="Table of results, scrolls sideways" tabIndex={0}>
      <table>
        <caption>
          <span>Times of one product, {counted(settings.repeats, "repeat")} after a warm-up, seed {settings.seed}</span>
        </caption>
        <thead>
          <tr>
            <th scope="col">Size</th>
            <th scope="col">Backend</th>
            <th scope="col">Verdict</th>
            <th scope="col">Median ± MAD, range</th>
            <th scope="col">GFLOP/s</th>
            <th scope="col">Kernel alone, GFLOP/s</th>
            <th scope="col">Against CPU</th>
            <th scope="col">Upload, kernel, download</th>
            <th scope="col">Kernel</th>
          </tr>
        </thead>
        {sizes.map((size) => {
          const group = ordered.filter((row) => row.size === size);
          return (
            <tbody key={size}>
              {group.map((row, index) => (
                <tr key={row.backend} data-size={size} data-backend={row.backend}>
                  {index === 0 && <th scope="rowgroup" rowSpan={group.length}>{size}</th>}
                  <th scope="row">{BACKEND_LABELS[row.backend]}</th>
                  <Cells row={row} />
                </tr>
              ))}
            </tbody>
          );
        })}
      </table>
    </div>
  );
}

function Cells({ row }: { row: Row }) {
  if (is_skipped(row)) return <td colSpan={7} className="outcome">skipped: {row.skipped}</td>;
  if (is_failed(row)) {
    return (
      <td colSpan={7} className="outcome outcome-failed">
        ✗ error <code>{row.error.code}</code>: {row.error.message}
      </td>
    );
  }
  const own_baseline = row.speedup_over === row.backend;
  return (
    <>
      <td><Judged verdict={row.verdict} /></td>
      <td className="number">
        {digits(row.median_ms)} ± {ms(row.mad_ms)} <small>{digits(row.min_ms)} to {ms(row.max_ms)}</small>
      </td>
      <td className="number">{row.verdict.ok && row.gflops !== null ? digits(row.gflops) : "–"}</td>
      <td className="number">
        {row.verdict.ok && row.kernel_gflops !== null && row.kernel_resident_ms !== null ? (
          <>
            {digits(row.kernel_gflops)} <small>{ms(row.kernel_resident_ms)}</small>
          </>
        ) : "–"}
      </td>
      <td className="number">
        {row.speedup === null ? "–" : own_baseline ? "baseline" : <>{times(row.speedup)} <small>{row.speedup_over}</small></>}
      </td>
      <td><Split row={row} /></td>
      <td className="kernel">
        {row.kernel}
        {row.software && <small>software GPU</small>}
        {row.notes.map((note) => <small className="note" key={note}>{note}</small>)}
      </td>
    </>
  );
}

/** Nine digits tell any two 32-bit floats apart. */
const nine = (value: number): string => String(Number(value.toPrecision(9)));

function Judged({ verdict }: { verdict: Verdict }) {
  if (verdict.ok) {
    return (
      <span className="ok">
        ✓ correct <small>{counted(verdict.elements, "element")},</small> <small>error ≤ {digits(verdict.worst_ratio)} of bound</small>
      </span>
    );
  }
  return (
    <span className="wrong">
      ✗ wrong{" "}
      <small>
        {count(verdict.wrong)} of {counted(verdict.elements, "element")}; worst {digits(verdict.worst_ratio)} times its bound at row{" "}
        {verdict.row}, column {verdict.column}: {nine(verdict.value)}, expected {nine(verdict.expected)} ± {verdict.bound.toExponential(1)}
      </small>
    </span>
  );
}

const PARTS = ["upload", "kernel", "download"] as const;

function Split({ row }: { row: MeasuredRow }) {
  const times_ms = [row.upload_ms, row.kernel_ms, row.download_ms];
  const sum = times_ms.reduce((x, y) => x + y, 0);
  let from = 0;
  return (
    <span className="split">
      {sum > 0 && (
        <svg aria-hidden="true">
          {PARTS.map((part, index) => {
            const width = (100 * (times_ms[index] as number)) / sum;
            const x = from;
            from += width;
            return <rect key={part} className={`part-${part}`} x={`${x}%`} width={`${width}%`} height="100%" />;
          })}
        </svg>
      )}
      <small>{times_ms.map(digits).join(" + ")} ms{row.kernel_clock === "wall" ? "" : ", GPU clock"}</small>
    </span>
  );
}
