/**
 * Whether results are right: against lapidary's reference, a product in double precision with the bound γ_k·(|A||B|) of each element. It
 * takes every element of small products; of large ones whole rows, the first, the last, and some between.
 */
import { reference } from "lapidary";

/** Multiplications up to which every element is checked: about a second in one thread. */
const AFFORDABLE = 2 ** 30;
const ROWS = 16;

/** Row numbers of a product of `batch` m × n results, one below the other. */
function rows_to_check(rows, every) {
  if (every || rows <= ROWS) return Array.from({ length: rows }, (_, row) => row);
  // An odd stride, so that rows of all residues of a tile's height come up.
  const stride = Math.floor((rows - 1) / (ROWS - 1)) | 1;
  return Array.from({ length: ROWS }, (_, i) => (i === ROWS - 1 ? rows - 1 : Math.min(i * stride, rows - 1)));
}

const gather = (matrix, rows, columns) => {
  const part = new Float32Array(rows.length * columns);
  rows.forEach((row, i) => part.set(matrix.subarray(row * columns, (row + 1) * columns), i * columns));
  return part;
};

/** A judge of the results of one job: results in, verdicts out. `free` it. */
export async function judge({ m, k, n, batch, dtype, precision }, a, b) {
  const checks = [];
  const every = m * k * n * batch <= AFFORDABLE;
  const products = every || batch === 1 ? batch : Math.min(batch, ROWS);
  for (let i = 0; i < products; i++) {
    const rows = rows_to_check(m, every);
    const part = gather(a.subarray(i * m * k, (i + 1) * m * k), rows, k);
    const exact = await reference(part, b.subarray(i * k * n, (i + 1) * k * n), { m: rows.length, k, n, precision: precision === "f16" ? precision : "f32" });
    checks.push({ exact, rows, start: i * m * n });
  }
  const checked = every ? "every element" : `${checks.length * checks[0].rows.length} rows`;
  return {
    verdict(result) {
      if (!(result instanceof Float32Array) || result.length !== batch * m * n) {
        return { ok: false, checked, reason: `${result?.length ?? typeof result} values in place of ${batch * m * n}` };
      }
      const found = checks.map(({ exact, rows, start }) => exact.check(gather(result.subarray(start, start + m * n), rows, n)));
      const worst = found.reduce((x, y) => (y.worst_ratio > x.worst_ratio ? y : x));
      const wrong = found.reduce((sum, { wrong }) => sum + wrong, 0);
      const max_abs_error = Math.max(...found.map((verdict) => verdict.max_abs_error));
      // Sums of small whole numbers are exact.
      return { ok: wrong === 0 && (dtype !== "i8" || max_abs_error === 0), checked, wrong, max_abs_error, worst_ratio: worst.worst_ratio };
    },
    free: () => checks.forEach(({ exact }) => exact.free()),
  };
}
