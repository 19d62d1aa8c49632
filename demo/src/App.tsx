/** The page: settings and device above, results below. It only arranges; each part is in ui/. */
import { useEffect, useRef, useState } from "react";
import type { Settings } from "./bench/rows";
import { to_query, type Query } from "./bench/url";
import { warnings } from "./bench/warnings";
import { useLab } from "./compute/useLab";
import { is_busy } from "./state";
import { Chart } from "./ui/Chart";
import { Controls } from "./ui/Controls";
import { DeviceCard } from "./ui/DeviceCard";
import { Exports } from "./ui/Exports";
import { Fault } from "./ui/Fault";
import { Header } from "./ui/Header";
import { Method } from "./ui/Method";
import { IgnoredParameters, Warnings } from "./ui/Notices";
import { useTitle } from "./ui/Progress";
import { Table } from "./ui/Table";

export function App({ query }: { query: Query }) {
  const { state, run, stop, retry } = useLab(query);
  const [settings, set_settings] = useState(query.settings);
  const [ignored, set_ignored] = useState(query.ignored);
  const busy = is_busy(state);
  const running = state.phase === "running";
  useTitle(state);

  // Buttons that go away when they are pressed leave the focus here, where it was.
  const main = useRef<HTMLElement>(null);
  const leaving = (act: () => void) => () => {
    main.current?.focus({ preventScroll: true });
    act();
  };

  useEffect(() => {
    if (!running) return;
    const on_key = (event: KeyboardEvent) => {
      if (event.key === "Escape" && !event.defaultPrevented) stop();
    };
    document.addEventListener("keydown", on_key);
    return () => document.removeEventListener("keydown", on_key);
  }, [running, stop]);

  const change = (next: Settings) => {
    set_settings(next);
    history.replaceState(null, "", to_query(next));
  };

  const device = state.chosen ?? state.devices[0] ?? null;
  const found = warnings(state.rows, state.devices, state.was_hidden, globalThis.crossOriginIsolated);
  const results = state.ran && {
    settings: state.ran,
    devices: state.devices,
    rows: state.rows,
    warnings: found,
    stopped: state.outcome?.stopped ?? state.failure !== null,
    failure: state.failure,
    ended: state.ended,
  };
  const screen = state.fault && state.fault.stage !== "run" ? state.fault : null;

  return (
    <>
      <Header />
      <main ref={main} tabIndex={-1}>
        <IgnoredParameters ignored={ignored} on_dismiss={leaving(() => set_ignored([]))} />
        {screen ? (
          <Fault fault={screen} on_retry={leaving(retry)} />
        ) : (
          <>
            {state.fault && <Fault fault={state.fault} on_retry={leaving(retry)} />}
            <div className="top">
              <Controls
                settings={settings}
                on_change={change}
                state={state}
                on_run={() => run(settings)}
                on_stop={stop}
              />
              <DeviceCard device={device} opened={state.devices} asking={state.phase === "loading" || state.phase === "unanswered"} />
            </div>
            <Warnings warnings={busy ? [] : found} />
            {results && state.rows.length > 0 && (
              <section aria-labelledby="results" className="results">
                <h2 id="results">Results</h2>
                <Chart rows={state.rows} />
                <Table rows={state.rows} settings={results.settings} />
                <Exports results={results} disabled={busy} />
              </section>
            )}
            <Method />
          </>
        )}
      </main>
    </>
  );
}
