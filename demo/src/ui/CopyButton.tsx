/** A button that says whether the copy succeeded: in its own text for the eye, in a status for screen readers. */
import { useEffect, useState, type ReactNode } from "react";

type Outcome = "none" | "copied" | "refused";

const SAID: Record<Outcome, string> = {
  none: "",
  copied: "Copied",
  refused: "The browser refused to copy",
};

interface Props {
  text: () => string;
  disabled?: boolean;
  children: ReactNode;
}

export function CopyButton({ text, disabled = false, children }: Props) {
  const [outcome, set_outcome] = useState<Outcome>("none");

  useEffect(() => {
    if (outcome === "none") return;
    const timer = setTimeout(() => set_outcome("none"), 2500);
    return () => clearTimeout(timer);
  }, [outcome]);

  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text());
      set_outcome("copied");
    } catch {
      // No permission, or a page that is not served over https.
      set_outcome("refused");
    }
  };

  return (
    <>
      <button type="button" className="quiet" onClick={copy} disabled={disabled}>
        {outcome === "none" ? children : SAID[outcome]}
      </button>
      <span className="unseen" role="status">{SAID[outcome]}</span>
    </>
  );
}
