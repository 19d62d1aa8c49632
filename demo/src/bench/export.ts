/** Results as files: JSON with every raw sample, CSV for spreadsheets, and the device as Markdown for bug reports. */
import { bytes, count } from "./format";
import { BACKEND_LABELS, in_reading_order, is_failed, is_skipped, type DeviceInfo, type Failure, type Row, type Settings } from "./rows";
import type { Warning } from "./warnings";

/** Raised when a field changes its meaning or goes; a new field does not raise it. */
export const SCHEMA = 1;

export interface Results {
  settings: Settings;
  devices: DeviceInfo[];
  rows: Row[];
  warnings: Warning[];
  /** The run did not come to its end, since somebody stopped it or since it failed. */
  stopped: boolean;
  /** What ended the run, if that was a failure. */
  failure: Failure | null;
  /** When the run ended, in ISO 8601; a file may be made of it much later. */
  ended: string | null;
}

/** The part that is the same in the exported file and at the end of machine mode. */
export function header(results: Omit<Results, "rows">, now: Date = new Date()) {
  return {
    schema: SCHEMA,
    lapidary: __LAPIDARY_VERSION__,
    created: now.toISOString(),
    ended: results.ended,
    user_agent: navigator.userAgent,
    cross_origin_isolated: globalThis.crossOriginIsolated === true,
    settings: results.settings,
    stopped: results.stopped,
    failure: results.failure,
    warnings: results.warnings,
    devices: results.devices,
  };
}

export function to_json(results: Results): string {
  return `${JSON.stringify({ ...header(results), rows: in_reading_order(results.rows) }, null, 2)}\n`;
}

const COLUMNS = [
  "size", "m", "k", "n", "backend", "adapter", "software", "kernel", "repeats",
  "median_ms", "mad_ms", "min_ms", "max_ms", "gflops",
  "upload_ms", "kernel_ms", "download_ms", "kernel_clock", "kernel_resident_ms", "kernel_gflops",
  "speedup", "speedup_over", "verdict", "wrong", "max_abs_error", "worst_ratio", "samples_ms", "notes",
] as const;

type Cell = string | number | boolean | null | undefined;

function cells(row: Row): Partial<Record<(typeof COLUMNS)[number], Cell>> {
  if (is_skipped(row)) return { size: row.size, backend: row.backend, verdict: "skipped", notes: row.skipped };
  if (is_failed(row)) return { size: row.size, backend: row.backend, verdict: "error", notes: `${row.error.code}: ${row.error.message}` };
  const { verdict, samples_ms, notes, ...plain } = row;
  return {
    ...plain,
    verdict: verdict.ok ? "ok" : "wrong",
    wrong: verdict.wrong,
    max_abs_error: verdict.max_abs_error,
    worst_ratio: verdict.worst_ratio,
    samples_ms: samples_ms.join(" "),
    notes: notes.join(" "),
  };
}

/** RFC 4180: quotes only where they are needed, and doubled within. */
function field(value: Cell): string {
  const text = value === null || value === undefined ? "" : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function to_csv(rows: readonly Row[]): string {
  const lines = in_reading_order(rows).map((row) => {
    const values = cells(row);
    return COLUMNS.map((column) => field(values[column])).join(",");
  });
  return [COLUMNS.join(","), ...lines, ""].join("\r\n");
}

export const KIND_LABELS: Record<DeviceInfo["kind"], string> = {
  discrete: "Discrete GPU",
  integrated: "Integrated GPU",
  gpu: "GPU",
  software: "Software GPU, emulated by the CPU",
  cpu: "CPU",
};

export const UNDISCLOSED = "not disclosed by this browser";

/** The limits that this backend has, for people. */
export function limit_lines(limits: DeviceInfo["limits"]): [name: string, value: string][] {
  return Object.entries(limits)
    .filter((entry): entry is [string, number] => typeof entry[1] === "number")
    .map(([name, value]) => [
      name.replace(/_bytes$/, "").replaceAll("_", " "),
      name.endsWith("_bytes") ? bytes(value) : count(value),
    ]);
}

export function device_markdown(device: DeviceInfo): string {
  const lines = [
    `### ${BACKEND_LABELS[device.backend]}: ${device.name || UNDISCLOSED}`,
    "",
    `- lapidary: ${__LAPIDARY_VERSION__}`,
    `- Kind: ${KIND_LABELS[device.kind]}`,
    `- Vendor, architecture: ${device.vendor || UNDISCLOSED}, ${device.architecture || UNDISCLOSED}`,
    `- Why: ${device.reason}`,
    `- Features: ${device.features.join(", ") || "none"}`,
    ...limit_lines(device.limits).map(([name, value]) => `- Limit, ${name}: ${value}`),
    `- Browser: ${navigator.userAgent}`,
    "",
    "| Other backend | State | Why | What would turn it on |",
    "|---|---|---|---|",
    ...device.others.map((other) =>
      `| ${[BACKEND_LABELS[other.backend], other.state, other.reason, other.remedy || "–"].map(cell).join(" | ")} |`),
  ];
  return `${lines.join("\n")}\n`;
}

const cell = (text: string) => text.replaceAll("|", "\\|").replaceAll(/\s+/g, " ");
