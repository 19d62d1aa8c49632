/**
 * Form parts that keep what is typed until it makes sense, so that a half-typed number neither jumps nor runs. What is disabled during a run
 * is so by aria-disabled, since Enter in any of these starts one: `disabled` would throw the focus away.
 */
import { useId, useState, type KeyboardEvent } from "react";
import { whole } from "../bench/url";

interface InputProps {
  label: string;
  text: string;
  min: number;
  max: number;
  disabled: boolean;
  on_type: (text: string) => void;
  on_enter: (event: KeyboardEvent) => void;
  on_leave?: () => void;
}

/** While the text is no number in range the browser does not submit the form, so nothing runs, and points here. */
export function NumberInput({ label, text, min, max, disabled, on_type, on_enter, on_leave }: InputProps) {
  const id = useId();
  const wrong = whole(text, min, max) === null;
  const hint = `A whole number from ${min} to ${max}`;
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      <input
        ref={(input) => input?.setCustomValidity(wrong ? hint : "")}
        id={id}
        type="text"
        inputMode="numeric"
        autoComplete="off"
        size={Math.max(5, String(max).length)}
        value={text}
        readOnly={disabled}
        aria-disabled={disabled}
        aria-invalid={wrong}
        aria-describedby={wrong ? `${id}-wrong` : undefined}
        onChange={({ target }) => on_type(target.value)}
        onKeyDown={(event) => event.key === "Enter" && on_enter(event)}
        onBlur={on_leave}
      />
      {wrong && <span id={`${id}-wrong`} className="field-wrong">{hint}</span>}
    </div>
  );
}

interface NumberProps {
  label: string;
  value: number;
  min: number;
  max: number;
  disabled: boolean;
  on_change: (value: number) => void;
}

/**
 * The number counts once Enter is pressed or the field is left: 50 on the way to 500 was never meant. What is wrong
 * then stays to be put right, for with the old number back in its place a click on Run would run what was not asked for.
 */
export function NumberField({ value, on_change, ...about }: NumberProps) {
  const [typed, set_typed] = useState<string | null>(null);
  const commit = () => {
    const number = typed === null ? null : whole(typed, about.min, about.max);
    if (number === null) return;
    set_typed(null);
    on_change(number);
  };
  return <NumberInput {...about} text={typed ?? String(value)} on_type={set_typed} on_enter={commit} on_leave={commit} />;
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
      <input type="checkbox" checked={checked} aria-disabled={disabled} onChange={({ target }) => !disabled && on_change(target.checked)} />
      {label}
    </label>
  );
}
