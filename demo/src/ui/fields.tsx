/** Form parts that keep what is typed until it makes sense, so that a half-typed number neither jumps nor runs. */
import { useId, useState } from "react";
import { whole } from "../bench/url";

interface NumberProps {
  label: string;
  value: number;
  min: number;
  max: number;
  disabled: boolean;
  on_change: (value: number) => void;
}

export function NumberField({ label, value, min, max, disabled, on_change }: NumberProps) {
  const id = useId();
  const [typed, set_typed] = useState<string | null>(null);
  const text = typed ?? String(value);
  const wrong = whole(text, min, max) === null;
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      <input
        id={id}
        type="text"
        inputMode="numeric"
        autoComplete="off"
        size={Math.max(5, String(max).length)}
        value={text}
        disabled={disabled}
        aria-invalid={wrong}
        aria-describedby={wrong ? `${id}-wrong` : undefined}
        onChange={({ target }) => {
          set_typed(target.value);
          const number = whole(target.value, min, max);
          if (number !== null) on_change(number);
        }}
        onBlur={() => set_typed(null)}
      />
      {wrong && (
        <span id={`${id}-wrong`} className="field-wrong">
          A whole number from {min} to {max}
        </span>
      )}
    </div>
  );
}

interface ChoiceProps {
  label: string;
  checked: boolean;
  disabled: boolean;
  on_change: (checked: boolean) => void;
}

/** A checkbox with the look of a pill; the box stays visible, so that colour is not the only sign. */
export function Choice({ label, checked, disabled, on_change }: ChoiceProps) {
  return (
    <label className="choice">
      <input type="checkbox" checked={checked} disabled={disabled} onChange={({ target }) => on_change(target.checked)} />
      {label}
    </label>
  );
}
