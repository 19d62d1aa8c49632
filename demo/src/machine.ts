/**
 * Machine mode: a script opens `?headless=1&…`, waits, and gets each device and each row as a POST to `/result` of the
 * same origin, in order, the last one with `"done": true`. Nothing is posted without that parameter.
 */
import { header } from "./bench/export";
import { is_failed, is_measured, is_skipped, type DeviceInfo, type Failure, type Row } from "./bench/rows";
import type { Query } from "./bench/url";
import { warnings } from "./bench/warnings";
import type { FromWorker } from "./compute/messages";

export class Machine {
  readonly #query: Query;
  readonly #rows: Row[] = [];
  readonly #devices: DeviceInfo[] = [];
  #queue: Promise<void> = Promise.resolve();
  #posted = 0;
  #lost = 0;
  #was_hidden = document.hidden;
  #done = false;

  constructor(query: Query) {
    this.#query = query;
    document.addEventListener("visibilitychange", () => (this.#was_hidden ||= document.hidden));
  }

  hear(message: FromWorker): void {
    if (this.#done) return;
    if (message.kind === "device") {
      this.#devices.push(message.device);
      this.#post({ device: message.device });
    } else if (message.kind === "row") {
      this.#rows.push(message.row);
      this.#post(message.row);
    } else if (message.kind === "failed") {
      this.#post({ stage: message.stage, error: message.error });
      this.#finish(true, null, message.error, { stage: message.stage, error: message.error });
    } else if (message.kind === "finished") {
      this.#finish(message.stopped, message.seconds, null, {});
    }
  }

  /** The last record counts the others, so that a reader knows whether all arrived. */
  #finish(stopped: boolean, seconds: number | null, failure: Failure | null, more: object): void {
    this.#done = true;
    const now = new Date();
    const rows = this.#rows;
    const measured = rows.filter(is_measured);
    const summary = {
      ...header({
        settings: this.#query.settings,
        devices: this.#devices,
        stopped,
        failure,
        ended: now.toISOString(),
        warnings: warnings(rows, this.#devices, this.#was_hidden, globalThis.crossOriginIsolated),
      }, now),
      ignored: this.#query.ignored,
      seconds,
      rows: rows.length,
      measured: measured.length,
      wrong: measured.filter((row) => !row.verdict.ok).length,
      skipped: rows.filter(is_skipped).length,
      errors: rows.filter(is_failed).length,
      ...more,
    };
    this.#queue = this.#queue.then(() => this.#send({ done: true, ...summary, posted: this.#posted, lost: this.#lost }));
  }

  #post(record: object): void {
    this.#queue = this.#queue.then(() => this.#send(record));
  }

  async #send(record: object): Promise<void> {
    const body = JSON.stringify(record);
    try {
      const answer = await fetch("/result", { method: "POST", headers: { "content-type": "application/json" }, body });
      if (!answer.ok) throw new Error(`HTTP ${answer.status}`);
      this.#posted += 1;
    } catch (error) {
      this.#lost += 1;
      console.warn(`/result did not take a record (${String(error)}): ${body}`);
    }
  }
}
