/** Warnings with what to do about them, and what the address asked for that the page does not know. */
import type { Warning } from "../bench/warnings";

/** What the address asked for in vain. */
export function IgnoredParameters({ ignored, on_dismiss }: { ignored: readonly string[]; on_dismiss: () => void }) {
  return (
    <div className="notices" role="status">
      {ignored.length > 0 && (
        <div className="notice" data-notice="parameters">
          <p>
            <strong>Parts of the address were ignored.</strong>
          </p>
          <ul>
            {ignored.map((what) => (
              <li key={what}>{what}</li>
            ))}
          </ul>
          <button type="button" className="quiet" onClick={on_dismiss}>Dismiss</button>
        </div>
      )}
    </div>
  );
}

/** Stays on the page while empty: a live region that appears together with its text is not read out. */
export function Warnings({ warnings }: { warnings: readonly Warning[] }) {
  return (
    <div className="notices" role="status">
      {warnings.map(({ id, what, remedy }) => (
        <div className="notice" key={id} data-notice={id}>
          <p>
            <strong>{what}</strong> {remedy}
          </p>
        </div>
      ))}
    </div>
  );
}
