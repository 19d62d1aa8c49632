/** Results to take along: every raw sample, the devices and the settings in one file. */
import { to_csv, to_json, type Results } from "../bench/export";
import { CopyButton } from "./CopyButton";

function download(text: string, type: string, ending: string): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = `lapidary-${new Date().toISOString().slice(0, 19).replaceAll(":", "")}.${ending}`;
  link.click();
  // The download reads the address after this task.
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

export function Exports({ results, disabled }: { results: Results; disabled: boolean }) {
  const json = () => to_json(results);
  const csv = () => to_csv(results.rows);
  return (
    <div className="actions" role="group" aria-label="Take the results along">
      <button type="button" className="quiet" disabled={disabled} onClick={() => download(json(), "application/json", "json")}>Download JSON</button>
      <button type="button" className="quiet" disabled={disabled} onClick={() => download(csv(), "text/csv", "csv")}>Download CSV</button>
      <CopyButton text={json} disabled={disabled}>Copy JSON</CopyButton>
      <CopyButton text={csv} disabled={disabled}>Copy CSV</CopyButton>
    </div>
  );
}
