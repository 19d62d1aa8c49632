/**
 * The page: runs frame after frame, shows each row as it comes, and in machine mode, `?headless=1`, posts each record to /result of the
 * same origin, the last one with `"done": true`. Nothing is posted without that parameter.
 */
import { NAMES } from "./libraries/index.js";
import { plan } from "./plan.js";
import { row_of } from "./rows.js";
import { LIBRARIES, parse, texts } from "./settings.js";
import { add_note, add_row, clear, set_progress } from "./table.js";

const query = parse(location.search);
const form = document.querySelector("#controls");
// Nobody looks at the page in machine mode, and there may be no font to lay it out with.
document.body.hidden = query.headless;

/** Records go in order, one after the other; what is lost is counted. */
const machine = {
  queue: Promise.resolve(),
  posted: 0,
  lost: 0,
  post(record) {
    if (!query.headless) return;
    this.queue = this.queue.then(async () => {
      try {
        const headers = { "content-type": "application/json" };
        const answer = await fetch("/result", { method: "POST", headers, body: JSON.stringify(record) });
        if (!answer.ok) throw new Error(`HTTP ${answer.status}`);
        this.posted += 1;
      } catch (error) {
        this.lost += 1;
        console.warn(`/result did not take a record: ${error}`);
      }
    });
  },
};

function note(text) {
  add_note(text);
  machine.post({ note: text });
}

/** Opens a frame and hands on what it tells, until its end. A frame tells something at least every few minutes, or is given up. */
function run_frame(frame, heard) {
  const SILENCE_MS = 300_000;
  const element = document.createElement("iframe");
  element.className = "unseen";
  element.title = "measures, shows nothing";
  element.src = `frame.html#${encodeURIComponent(JSON.stringify(frame))}`;
  return new Promise((resolve, reject) => {
    let timer;
    const settle = (then, value) => {
      clearTimeout(timer);
      removeEventListener("message", listen);
      element.remove();
      then(value);
    };
    const wait = () => {
      clearTimeout(timer);
      timer = setTimeout(() => settle(reject, new Error(`nothing was heard for ${SILENCE_MS / 1000} s`)), SILENCE_MS);
    };
    const listen = ({ source, data }) => {
      if (source !== element.contentWindow) return;
      wait();
      if (!data.end) heard(data);
      else if (data.error) settle(reject, new Error(data.error));
      else settle(resolve);
    };
    addEventListener("message", listen);
    document.body.append(element);
    wait();
  });
}

/** First results: each library in a fresh frame, in turns. The GPU's process is started before, since it is the browser's cost. */
async function run_first({ backend, libraries, jobs: [job], rounds }) {
  const adapter = await navigator.gpu?.requestAdapter();
  (await adapter?.requestDevice())?.destroy();
  const entrants = libraries.map((library) => ({ library, samples_ms: [], repeats: 1 }));
  for (let round = 1; round <= rounds; round++) {
    for (const entrant of entrants.filter(({ error }) => !error)) {
      set_progress(`first result, ${entrant.library}, ${round} of ${rounds}`);
      const take = ({ first }) => {
        if (!first) return;
        entrant.samples_ms.push(first.ms);
        if (!entrant.verdict || entrant.verdict.ok) entrant.verdict = first.verdict;
        entrant.note = `${first.device}, ${(first.bytes / 1e6).toFixed(1)} MB`;
      };
      await run_frame({ libraries: [entrant.library], jobs: [job], rounds: 1 }, take).catch((error) => (entrant.error = error));
    }
  }
  return row_of(job, backend, entrants);
}

async function run(settings, ignored) {
  const begun = performance.now();
  clear();
  let rows = 0;
  let faults = 0;
  const record = (found) => {
    machine.post(found);
    if (found.measure) {
      rows += 1;
      add_row(found);
    } else if (found.note) {
      add_note(found.note);
    } else if (found.error) {
      add_note(`${found.library} on ${found.backend}: ${found.error}`);
    }
  };
  const info = (await navigator.gpu?.requestAdapter())?.info;
  const environment = {
    versions: __VERSIONS__,
    user_agent: navigator.userAgent,
    cross_origin_isolated: globalThis.crossOriginIsolated === true,
    adapter: info ? [info.vendor, info.architecture, info.description].filter(Boolean).join(" ") : "",
    software: info?.isFallbackAdapter === true,
    settings,
  };
  machine.post({ environment });
  const { versions, adapter, software } = environment;
  const named = LIBRARIES.map((library) => `${NAMES[library]} ${versions[library]}`).join(", ");
  add_note(`${named}; ${adapter || "no WebGPU adapter"}`);
  if (software) note("This is a software adapter: a CPU emulates the GPU, so the figures on WebGPU and WebGL2 say nothing about GPUs.");
  if (!environment.cross_origin_isolated) note("This page is not cross-origin isolated: the browser's clock is coarse.");
  const { frames, notes } = plan(settings);
  for (const text of [...ignored, ...notes]) note(text);
  for (const frame of frames) {
    try {
      if (frame.rounds) record(await run_first(frame));
      else await run_frame(frame, ({ record: found, progress }) => (found ? record(found) : set_progress(progress)));
    } catch (error) {
      faults += 1;
      note(`${frame.backend} ended early: ${error.message}`);
      machine.post({ backend: frame.backend, fault: error.message });
    }
  }
  const seconds = (performance.now() - begun) / 1000;
  set_progress(`Done after ${seconds.toFixed(0)} s.`);
  await machine.queue;
  machine.post({ done: true, rows, faults, ignored, seconds, posted: machine.posted, lost: machine.lost });
}

for (const [name, value] of Object.entries(texts(query.settings))) form.elements[name].value = value;
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const address = `?${new URLSearchParams(new FormData(form))}`.replaceAll("%2C", ",");
  history.replaceState(null, "", address);
  const { settings, ignored } = parse(address);
  form.querySelector("button").disabled = true;
  await run(settings, ignored).finally(() => (form.querySelector("button").disabled = false));
});
if (query.headless) await run(query.settings, query.ignored);
