/** The settings. Each change goes into the address at once, so that the link in the address bar is always the run. */
import { useState, type KeyboardEvent } from "react";
import { BACKENDS, BACKEND_LABELS, MAX_SIZE, PRESET_SIZES, SCALAR_MAX_SIZE, type Backend, type Settings } from "../bench/rows";
import { MAX_REPEATS, MAX_SEED, MAX_SIZES, whole } from "../bench/url";
import { is_busy, type State } from "../state";
import { CopyButton } from "./CopyButton";
import { Choice, NumberField, NumberInput } from "./fields";
import { Progress } from "./Progress";

/** What is said beside Run while the page asks for a device. */
const WAITS: Partial<Record<State["phase"], string>> = {
  loading: "Opening the device…",
  unanswered: "The device has not answered. Run opens devices of its own, and may work all the same.",
};

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
  const can_run = (phase === "idle" || phase === "unanswered") && !missing;

  // A size that is switched off stays to be switched on again, and the focus stays with it.
  const [offered, set_offered] = useState<readonly number[]>([...PRESET_SIZES, ...settings.sizes]);
  const full = settings.sizes.length >= MAX_SIZES;
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

      <fieldset aria-describedby={full ? "sizes-full" : undefined}>
        <legend>Sizes, n × n by n × n</legend>
        <div className="choices">
          {[...new Set(offered)]
            .sort((x, y) => x - y)
            .map((size) => {
              const checked = settings.sizes.includes(size);
              const disabled = busy || (full && !checked);
              return <Choice key={size} label={String(size)} checked={checked} disabled={disabled} on_change={(on) => toggle_size(size, on)} />;
            })}
        </div>
        <CustomSize
          disabled={busy}
          full={full}
          on_add={(size) => {
            set_offered([...offered, size]);
            toggle_size(size, true);
          }}
        />
        {full && <p id="sizes-full" className="muted">A run takes {MAX_SIZES} sizes at most. Switch one off to choose another.</p>}
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
        <span id="run-why" className="muted">{missing ?? WAITS[phase] ?? ""}</span>
      </div>
      <Progress state={state} />
    </form>
  );
}

function CustomSize({ disabled, full, on_add }: { disabled: boolean; full: boolean; on_add: (size: number) => void }) {
  const [text, set_text] = useState("1000");
  // The slider stays where it is while the text is no size.
  const [slid, set_slid] = useState(1000);
  const size = whole(text, 1, MAX_SIZE);
  const type = (next: string) => {
    set_text(next);
    set_slid(whole(next, 1, MAX_SIZE) ?? slid);
  };
  const can_add = size !== null && !full && !disabled;
  const add = () => can_add && on_add(size);
  // Enter would submit the form, which runs without this size.
  const on_enter = (event: KeyboardEvent) => {
    event.preventDefault();
    add();
  };
  return (
    <div className="custom">
      <input
        type="range"
        min={1}
        max={MAX_SIZE}
        value={slid}
        disabled={disabled}
        aria-label="Custom size"
        onChange={({ target }) => type(target.value)}
        onKeyDown={(event) => event.key === "Enter" && on_enter(event)}
      />
      <NumberInput label="Custom size" text={text} min={1} max={MAX_SIZE} disabled={disabled} on_type={type} on_enter={on_enter} />
      <button type="button" className="quiet" aria-disabled={!can_add} onClick={add}>
        {full ? "No more sizes" : `Add ${size ?? ""}`}
      </button>
    </div>
  );
}
