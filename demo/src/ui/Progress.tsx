/** How far the run is: a native bar, a line for the eye, a slower line for screen readers, and the tab's title. */
import { useEffect } from "react";
import { BACKEND_LABELS, is_failed, is_measured, is_skipped } from "../bench/rows";
import { percent } from "../bench/format";
import { is_busy, type State } from "../state";

const TITLE = "lapidary · matrix products in this browser";

export function useTitle(state: State): void {
  const title = is_busy(state)
    ? `${percent(state.step?.fraction ?? 0)} · lapidary`
    : state.fault
      ? "Failed · lapidary"
      : state.outcome
        ? `${state.outcome.stopped ? "Stopped" : "Done"} · lapidary`
        : TITLE;
  useEffect(() => {
    document.title = title;
  }, [title]);
}

function summary({ rows, outcome }: State): string {
  if (!outcome) return "";
  const measured = rows.filter(is_measured);
  const wrong = measured.filter((row) => !row.verdict.ok).length;
  const skipped = rows.filter(is_skipped).length;
  const failed = rows.filter(is_failed).length;
  const said = [
    `${outcome.stopped ? "Stopped" : "Done"} after ${outcome.seconds.toFixed(1)} s: ${measured.length} measured`,
    wrong > 0 ? `${wrong} wrong` : measured.length > 0 ? "all correct" : "",
    skipped > 0 ? `${skipped} skipped` : "",
    failed > 0 ? `${failed} failed` : "",
  ];
  return `${said.filter(Boolean).join(", ")}.`;
}

export function Progress({ state }: { state: State }) {
  const { step } = state;
  const busy = is_busy(state);
  const where = step ? `${BACKEND_LABELS[step.backend]} at ${step.size}` : "Starting";
  return (
    <section className="progress" aria-label="Progress">
      {busy && (
        <>
          <progress value={step?.fraction ?? 0} max={1} aria-label="Share of the run that is done" />
          <p aria-hidden="true">
            {state.phase === "stopping" ? "Stopping: the product that is under way ends first. " : ""}
            {where}
            {step && ` · ${step.doing} · row ${step.done + 1} of ${step.total}`}
          </p>
        </>
      )}
      {/* Changes once a row, not once a sample: more would talk over the reader. */}
      <p aria-live="polite" className={busy ? "unseen" : undefined}>
        {busy ? `${where}${step ? `, row ${step.done + 1} of ${step.total}` : ""}` : summary(state)}
      </p>
    </section>
  );
}
