/** What makes a result less than it seems, each with what to do about it. Shown on the page and kept in its exports. */
import { digits, percent } from "./format";
import { BACKEND_LABELS, adapter_name, is_measured, type DeviceInfo, type Row } from "./rows";

/** Median absolute deviation over the median. */
const WIDE_SPREAD = 0.2;

export interface Warning {
  id: "hidden" | "software" | "spread" | "clock";
  what: string;
  remedy: string;
}

export function warnings(rows: readonly Row[], devices: readonly DeviceInfo[], was_hidden: boolean, isolated: boolean): Warning[] {
  const found: Warning[] = [];
  const measured = rows.filter(is_measured);

  if (was_hidden) {
    found.push({
      id: "hidden",
      what: "This tab was in the background during the run. Browsers slow such tabs down.",
      remedy: "Run again and keep the tab in front.",
    });
  }

  const software = devices.filter((device) => device.software);
  if (software.length > 0) {
    const names = software.map((device) => {
      const name = adapter_name(device);
      return `${BACKEND_LABELS[device.backend]}${name && ` (${name})`}`;
    });
    found.push({
      id: "software",
      what: `${names.join(" and ")}: a software GPU, emulated by the CPU. Its speed says nothing about a graphics card.`,
      remedy: "Turn on graphics acceleration in the browser's settings, update the graphics driver, and restart the browser.",
    });
  }

  const wide = measured.filter((row) => row.median_ms > 0 && row.mad_ms / row.median_ms > WIDE_SPREAD);
  if (wide.length > 0) {
    const worst = wide.reduce((x, y) => (y.mad_ms / y.median_ms > x.mad_ms / x.median_ms ? y : x));
    found.push({
      id: "spread",
      what: `${wide.length === 1 ? "One row spreads" : `${wide.length} rows spread`} by more than ${percent(WIDE_SPREAD)}; widest is ${BACKEND_LABELS[worst.backend]} at ${worst.size}: ${digits(worst.median_ms)} ± ${digits(worst.mad_ms)} ms.`,
      remedy: "Close other tabs and programs, plug the computer in, take more repeats, and run again.",
    });
  }

  if (!isolated && measured.some((row) => row.median_ms < 2)) {
    found.push({
      id: "clock",
      what: "This page is not cross-origin isolated, so the browser's clock ticks coarsely (0.1 ms or more). Short times are rough.",
      remedy: "Serve it with Cross-Origin-Opener-Policy: same-origin and Cross-Origin-Embedder-Policy: require-corp, or read the larger sizes.",
    });
  }
  return found;
}
