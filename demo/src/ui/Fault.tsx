/** When a part of the page itself fails: what happened, in words, and what to do, most likely cause first. */
import { useEffect, useRef } from "react";
import type { State } from "../state";
import { CopyButton } from "./CopyButton";

type Shown = NonNullable<State["fault"]>;

const SCREENS: Record<Shown["stage"], { title: string; steps: string[]; retry?: string }> = {
  worker: {
    title: "The compute worker did not start",
    steps: [
      "Reload the page: it may have been updated while it was open.",
      "Open it over http or https. Browsers start no worker from a file on disk.",
      "If you host it: deliver the files in assets/ unchanged, as JavaScript, and allow worker-src 'self' blob: in the content security policy.",
    ],
  },
  wasm: {
    title: "The WebAssembly module could not be loaded",
    steps: [
      "Check the connection and any content blocker, then try again.",
      "If you host it: the .wasm file in assets/ must be there (no 404) and be delivered as application/wasm.",
      "If you host it with a content security policy: script-src needs 'wasm-unsafe-eval', for the page and for the worker.",
      "Otherwise update the browser: one that is older than WebAssembly cannot run this.",
    ],
  },
  device: {
    title: "No device could be opened",
    steps: [
      "Try again: a graphics driver that has just restarted refuses for some seconds.",
      "Update the browser, and turn on graphics acceleration in its settings.",
      "Open chrome://gpu or about:support and look for what is disabled.",
    ],
  },
  run: {
    title: "The run failed",
    steps: [
      "Start afresh and run again. If it fails at a large size, leave that size out: the page may have run out of memory.",
      "If it fails again, report it with these details.",
    ],
    retry: "Start afresh",
  },
};

export function Fault({ fault, on_retry }: { fault: Shown; on_retry: () => void }) {
  const { title, steps, retry = "Try again" } = SCREENS[fault.stage];
  const heading = useRef<HTMLHeadingElement>(null);
  const details = `${fault.stage}: ${fault.error.code}: ${fault.error.message}`;

  // The part of the page that had the focus may be gone.
  useEffect(() => heading.current?.focus(), [fault]);

  return (
    <section className="card fault" aria-labelledby="fault" data-stage={fault.stage}>
      <h2 id="fault" ref={heading} tabIndex={-1}>{title}</h2>
      <p className="details"><code>{details}</code></p>
      <h3>What to do</h3>
      <ul>
        {steps.map((step) => (
          <li key={step}>{step}</li>
        ))}
      </ul>
      <div className="actions">
        <button type="button" className="primary" onClick={on_retry}>{retry}</button>
        <CopyButton text={() => `${details}\n${navigator.userAgent}`}>Copy details</CopyButton>
      </div>
    </section>
  );
}
