/** The settings. Each change goes into the address at once, so that the link in the address bar is always the run. */
import { useState } from "react";
import { BACKENDS, BACKEND_LABELS, MAX_SIZE, PRESET_SIZES, SCALAR_MAX_SIZE, type Backend, type Settings } from "../bench/rows";
import { MAX_REPEATS, MAX_SEED, MAX_SIZES } from "../bench/url";
import { is_busy, type State } from "../state";
import { CopyButton } from "./CopyButton";
import { Choice, NumberField } from "./fields";
import { Progress } from "./Progress";

interface Props {
  settings: Settings;
  on_change: (settings: Settings) => void;
  state: State;
  on_run: () => void;
  on_stop: () => void;
}

export function Controls({ settings, on_change, state, on_run, on_stop }: Props) {
  const { phase } = state;
  const busy = is_busy(state);
  const missing = settings.sizes.length === 0 ? "Choose a size first." : settings.backends.length === 0 ? "Choose a backend first." : null;
  const can_run = phase === "idle" && !missing;

  // A size that is switched off stays to be switched on again, and the focus stays with it.
  const [offered, set_offered] = useState<readonly number[]>([...PRESET_SIZES, ...settings.sizes]);
  const toggle_size = (size: number, on: boolean) => {
    const others = settings.sizes.filter((other) => other !== size);
    on_change({ ...settings, sizes: on ? [...others, size].sort((x, y) => x - y) : others });
  };
  const toggle_backend = (backend: Backend, on: boolean) =>
    on_change({ ...settings, backends: BACKENDS.filter((other) => (other === backend ? on : settings.backends.includes(other))) });

  return (
    <form
      className="card controls"
      aria-labelledby="settings"
      onSubmit={(event) => {
        event.preventDefault();
        if (can_run) on_run();
      }}
    >
      <div className="card-head">
        <h2 id="settings">Settings</h2>
        <CopyButton text={() => location.href}>Copy link</CopyButton>
      </div>

      <fieldset>
        <legend>Sizes, n × n by n × n</legend>
        <div className="choices">
          {[...new Set(offered)]
            .sort((x, y) => x - y)
            .map((size) => (
              <Choice key={size} label={String(size)} checked={settings.sizes.includes(size)} disabled={busy} on_change={(on) => toggle_size(size, on)} />
            ))}
        </div>
        <CustomSize
          disabled={busy}
          full={settings.sizes.length >= MAX_SIZES}
          on_add={(size) => {
            set_offered([...offered, size]);
            toggle_size(size, true);
          }}
        />
      </fieldset>

      <fieldset>
        <legend>Backends to compare</legend>
        <div className="choices">
          {BACKENDS.map((backend) => (
            <Choice
              key={backend}
              label={BACKEND_LABELS[backend]}
              checked={settings.backends.includes(backend)}
              disabled={busy}
              on_change={(on) => toggle_backend(backend, on)}
            />
          ))}
        </div>
        {settings.backends.includes("scalar") && (
          <>
            <p className="muted">Scalar code is off above {SCALAR_MAX_SIZE}, where it takes seconds a product.</p>
            <Choice
              label={`Scalar above ${SCALAR_MAX_SIZE} too`}
              checked={settings.scalar_all}
              disabled={busy}
              on_change={(scalar_all) => on_change({ ...settings, scalar_all })}
            />
          </>
        )}
      </fieldset>

      <div className="fields">
        <NumberField label="Repeats" value={settings.repeats} min={1} max={MAX_REPEATS} disabled={busy} on_change={(repeats) => on_change({ ...settings, repeats })} />
        <NumberField label="Seed" value={settings.seed} min={0} max={MAX_SEED} disabled={busy} on_change={(seed) => on_change({ ...settings, seed })} />
      </div>

      {/* aria-disabled keeps the focus where it is; `disabled` would throw it away in the middle of a run. */}
      <div className="actions">
        <button type="submit" className="primary" aria-disabled={!can_run} aria-describedby="run-why">Run</button>
        <button type="button" onClick={() => phase === "running" && on_stop()} aria-disabled={phase !== "running"}>
          {phase === "stopping" ? "Stopping…" : "Stop"} <kbd>Esc</kbd>
        </button>
        <span id="run-why" className="muted">{missing ?? (phase === "loading" ? "Opening the device…" : "")}</span>
      </div>
      <Progress state={state} />
    </form>
  );
}

function CustomSize({ disabled, full, on_add }: { disabled: boolean; full: boolean; on_add: (size: number) => void }) {
  const [size, set_size] = useState(1000);
  return (
    <div className="custom">
      <input
        type="range"
        min={1}
        max={MAX_SIZE}
        value={size}
        disabled={disabled}
        aria-label="Custom size"
        onChange={({ target }) => set_size(Number(target.value))}
      />
      <NumberField label="Custom size" value={size} min={1} max={MAX_SIZE} disabled={disabled} on_change={set_size} />
      <button type="button" className="quiet" disabled={disabled || full} onClick={() => on_add(size)}>
        {full ? "No more sizes" : `Add ${size}`}
      </button>
    </div>
  );
}
