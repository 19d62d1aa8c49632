/** What is checked on every backend, and where. */
import { without_collector } from "./checks/tools.mjs";

/** What Chrome says of a buffer whose copy for the host was made for nothing, or had to be waited for. */
const READBACK = /READ-usage buffer/;

/** The files in `checks`. */
const SUBJECTS = [
  ...["input", "options", "arrays", "numbers", "reports", "lifetime", "memory", "queue", "halves", "int8", "expressions", "later", "fused"],
  ...["reductions", "norms", "transforms", "windows", "buffers", "tuning"],
];

/** Which of them a backend computes without which parts of the package: they are checked in pages that cannot load those. */
export const SPARING = [
  ["webgpu", ["operations", "webgl2"], ["numbers", "queue", "lifetime"]],
  ["webgl2", ["operations", "matrix"], ["numbers", "queue"]],
  ["simd", ["operations", "matrix", "webgl2"], ["numbers", "queue"]],
  ["webgpu", ["operations_cpu", "operations_webgl2", "webgl2"], ["norms"]],
  ["webgl2", ["operations_cpu", "matrix"], ["expressions", "reductions", "norms", "transforms", "windows"]],
  ["simd", ["operations_webgl2", "matrix", "webgl2"], ["expressions", "reductions", "norms", "transforms", "windows"]],
];

/** Those that are checked on a backend in a page that can load all parts. */
export function others_on(backend) {
  const sparing = SPARING.filter(([name]) => name === backend).flatMap(([, , subjects]) => subjects);
  return SUBJECTS.filter((subject) => !sparing.includes(subject));
}

/** The checks of all subjects, by subject. */
export async function all_checks() {
  const checks = await Promise.all(SUBJECTS.map((subject) => import(`./checks/${subject}.mjs`)));
  return Object.fromEntries(SUBJECTS.map((subject, i) => [subject, checks[i].default]));
}

/** Runs the checks of some subjects on a backend in a page that `visit` opens. */
export function check(visit, subjects, backend, options) {
  const body = async ({ lapidary, run }, [subjects, backend]) => {
    const checks = await Promise.all(subjects.map((subject) => import(`/checks/${subject}.mjs`)));
    return run(Object.fromEntries(subjects.map((subject, i) => [subject, checks[i].default])), lapidary, backend);
  };
  return visit(body, { argument: [subjects, backend], prepare: without_collector, refused: READBACK, ...options });
}
