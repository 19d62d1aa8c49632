/**
 * The page in which one backend is measured, inside the bench. What to do comes in the address; what comes out goes to the page around it:
 * libraries as they open, rows, progress, and an end.
 */
import { copier } from "./copy.js";
import { operands } from "./data.js";
import { load } from "./libraries/index.js";
import { judge as judge_of_operation, prepare } from "./operations.js";
import { patiently, race } from "./race.js";
import { median, row_of, shape_of } from "./rows.js";

const tell = (message) => parent.postMessage(message, location.origin);
const message_of = (error) => String(error?.message ?? error).split("\n")[0].slice(0, 300);

/** What rows call a backend. */
const named = ({ backend, threads }) => (threads ? `${backend} on ${threads === 1 ? "one thread" : `${threads} threads`}` : backend);

/** Opens the libraries one by one. What does not open is told, and stays in the rows by its error. */
async function open_all(frame) {
  const [backend, libraries] = [named(frame), []];
  for (const library of frame.libraries) {
    tell({ progress: `${backend}: opening ${library}` });
    try {
      const opened = await patiently(load[library]().then(({ open }) => open(frame.backend, frame.threads)));
      libraries.push({ library, ...opened });
      tell({ record: { library, backend, device: opened.device } });
    } catch (error) {
      libraries.push({ library, error });
      tell({ record: { library, backend, error: message_of(error) } });
    }
  }
  return libraries;
}

/** The judge comes late, since it brings lapidary along, and a first result is to be one from nothing. */
async function referee_of(job) {
  if (job.operation) return judge_of_operation(job);
  const { judge: judge_of_product } = await import("./verdict.js");
  return judge_of_product(job, job.a, job.b);
}

/** Judges the last of `count` products that are queued as in the race. What was once wrong stays so. */
async function judge(entrant, referee, count) {
  if (entrant.error) return;
  try {
    const verdict = referee.verdict(await patiently(entrant.result(count)));
    if (entrant.verdict?.ok ?? true) entrant.verdict = verdict;
  } catch (error) {
    entrant.error = error;
  }
}

/** An entrant of the race: ready to run, its result judged. */
async function enter({ library, error, resident, multiply, operation }, job, referee) {
  if (error) return { library, error };
  const entrant = { library };
  try {
    if (job.measure === "end_to_end") {
      entrant.run = () => multiply(job.a, job.b, job);
      entrant.result = entrant.run;
    } else {
      Object.assign(entrant, await patiently((job.operation ? operation : resident)(job)));
    }
  } catch (error) {
    entrant.error = error;
  }
  await judge(entrant, referee);
  return entrant;
}

/** lapidary once more, by a job and a referee of its own. */
async function enter_beside(library, shape) {
  const job = { ...shape, ...operands(shape) };
  const referee = await referee_of(job);
  return { ...(await enter(library, job, referee)), library: "beside", job: shape, referee };
}

/** What lapidary's own benchmark says of the kernel alone, or null. */
async function kernel_gflops({ library, error, alone }) {
  if (library !== "lapidary" || error || !alone) return null;
  return patiently(alone()).catch(() => null);
}

/** The device's copy rate in GB/s, bytes read and bytes written, or null where there is no telling, which is told. */
async function copy_gb_s(settings) {
  try {
    const entrant = await copier();
    await race([entrant], settings, () => {});
    entrant.free();
    if (entrant.error) throw entrant.error;
    return (2 * entrant.bytes) / 1e6 / median(entrant.samples_ms);
  } catch (error) {
    tell({ record: { note: `the device's copy rate is not known: ${message_of(error)}` } });
    return null;
  }
}

async function measure(frame, libraries, { measure, beside, ...shape }) {
  const [backend, { samples, min_ms }] = [named(frame), frame];
  const where = `${backend}: ${measure.replaceAll("_", " ")} ${shape_of(shape)}`;
  tell({ progress: where });
  const lacking = libraries[0].lacks?.(shape);
  if (lacking) return tell({ record: { note: `${where} is left out: ${lacking}` } });
  const job = { measure, ...shape, ...(shape.operation ? prepare(shape) : operands(shape)) };
  const referee = await referee_of(job);
  const entrants = [];
  for (const library of beside ? libraries.slice(0, 1) : libraries) entrants.push(await enter(library, job, referee));
  if (beside?.what) entrants.push(await enter_beside(libraries[0], { measure, ...shape, ...beside.job }));
  const plain = entrants[0].plain && referee.verdict(await patiently(entrants[0].plain()));
  await race(entrants, { samples, min_ms, by_slope: job.count === undefined, count: job.count }, (library) =>
    tell({ progress: `${where}, ${library}` }),
  );
  // Once more, since those products count that were computed one after the other, by all that a library keeps of earlier ones.
  for (const entrant of entrants) await judge(entrant, entrant.referee ?? referee, job.count);
  for (const each of [referee, ...entrants.map((entrant) => entrant.referee)]) each?.free();
  const row = row_of(job, backend, entrants);
  if (beside) Object.assign(row, { beside: beside.what, least: beside.least });
  if (plain) row.plain_error = plain.max_abs_error;
  if (["resident", "f16", "f16x3"].includes(job.measure)) row.kernel_gflops = await kernel_gflops(entrants[0]);
  for (const entrant of entrants) await Promise.resolve(entrant.free?.()).catch(() => {});
  if (["vector", "operations"].includes(job.measure)) row.copy_gb_s = await copy_gb_s({ samples, min_ms, by_slope: true });
  tell({ record: row });
}

/** The first result of one library in a page where nothing was loaded before. */
async function first({ libraries: [library], jobs: [job] }) {
  const { a, b } = operands(job);
  const begun = performance.now();
  const { first } = await load[library]();
  const { result, device } = await first(a, b, job);
  const ms = performance.now() - begun;
  const bytes = performance.getEntriesByType("resource").reduce((sum, { decodedBodySize }) => sum + decodedBodySize, 0);
  const referee = await referee_of({ ...job, a, b });
  tell({ first: { ms, device, bytes, verdict: referee.verdict(result) } });
}

async function main(frame) {
  if (frame.rounds) return first(frame);
  // One thread for all, as in a page without cross-origin isolation: there is no shared memory to start others with.
  if (frame.threads === 1) delete globalThis.SharedArrayBuffer;
  // Libraries that cannot be told how many threads they are to have ask how many cores there are.
  if (frame.threads) Object.defineProperty(navigator, "hardwareConcurrency", { value: frame.threads });
  const libraries = await open_all(frame);
  if (libraries.every(({ error }) => error)) throw new Error(`nothing opens here; lapidary: ${message_of(libraries[0].error)}`);
  for (const job of frame.jobs) await measure(frame, libraries, job);
  await libraries[0].close?.();
}

main(JSON.parse(decodeURIComponent(location.hash.slice(1)))).then(
  () => tell({ end: true }),
  (error) => tell({ end: true, error: message_of(error) }),
);
