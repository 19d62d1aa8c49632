/**
 * Settings live in the address, so a link repeats a run. What is not understood is named and ignored, never guessed.
 */
import { BACKENDS, DEFAULTS, MAX_SIZE, type Backend, type Settings } from "./rows";

export const MAX_SEED = 0xffff_ffff;
export const MAX_REPEATS = 100;
export const MAX_SIZES = 16;

export interface Query {
  settings: Settings;
  /** Machine mode: run at once and post what comes out. */
  headless: boolean;
  /** One sentence for each thing that was ignored. */
  ignored: string[];
}

/** A whole number in range written in plain digits, else null. */
export function whole(text: string, min: number, max: number): number | null {
  if (!/^\d{1,10}$/.test(text.trim())) return null;
  const value = Number(text);
  return value >= min && value <= max ? value : null;
}

const quoted = (text: string) => `“${text.length > 40 ? `${text.slice(0, 40)}…` : text}”`;
const parts = (text: string) => text.split(",").map((part) => part.trim()).filter((part) => part !== "");

export function parse_query(search: string): Query {
  const settings: Settings = { ...DEFAULTS, sizes: [...DEFAULTS.sizes], backends: [...DEFAULTS.backends] };
  const ignored: string[] = [];
  let headless = false;

  const seen = new Set<string>();
  for (const [key, value] of new URLSearchParams(search)) {
    if (seen.has(key)) {
      ignored.push(`${quoted(key)} is given twice; the first counts.`);
      continue;
    }
    seen.add(key);
    switch (key) {
      case "sizes":
        settings.sizes = parse_sizes(value, ignored) ?? settings.sizes;
        break;
      case "seed":
        settings.seed = number("seed", value, 0, MAX_SEED, ignored) ?? settings.seed;
        break;
      case "repeats":
        settings.repeats = number("repeats", value, 1, MAX_REPEATS, ignored) ?? settings.repeats;
        break;
      case "backends":
        settings.backends = parse_backends(value, ignored) ?? settings.backends;
        break;
      case "scalar":
        if (value === "all") settings.scalar_all = true;
        else ignored.push(`scalar: ${quoted(value)} is not “all”.`);
        break;
      case "headless":
        if (value === "1") headless = true;
        else if (value !== "0") ignored.push(`headless: ${quoted(value)} is neither 1 nor 0.`);
        break;
      default:
        ignored.push(`${quoted(key)} is not a parameter of this page.`);
    }
  }
  // The same thing may be wrong twice.
  return { settings, headless, ignored: [...new Set(ignored)] };
}

function number(name: string, value: string, min: number, max: number, ignored: string[]): number | null {
  const parsed = whole(value, min, max);
  if (parsed === null) ignored.push(`${name}: ${quoted(value)} is not a whole number from ${min} to ${max}.`);
  return parsed;
}

function parse_sizes(value: string, ignored: string[]): number[] | null {
  const sizes = new Set<number>();
  for (const part of parts(value)) {
    const size = number("sizes", part, 1, MAX_SIZE, ignored);
    if (size === null) continue;
    if (sizes.size === MAX_SIZES && !sizes.has(size)) ignored.push(`sizes: ${size} is one more than ${MAX_SIZES} sizes.`);
    else sizes.add(size);
  }
  if (sizes.size > 0) return [...sizes].sort((x, y) => x - y);
  ignored.push("sizes: none is left; the usual ones are used.");
  return null;
}

function parse_backends(value: string, ignored: string[]): Backend[] | null {
  const named = new Set<string>();
  for (const part of parts(value)) {
    if ((BACKENDS as readonly string[]).includes(part)) named.add(part);
    else ignored.push(`backends: ${quoted(part)} is none of ${BACKENDS.join(", ")}.`);
  }
  if (named.size > 0) return BACKENDS.filter((backend) => named.has(backend));
  ignored.push("backends: none is left; the usual ones are used.");
  return null;
}

/** The query that gives these settings back. Commas stay commas: people read and edit it. */
export function to_query(settings: Settings): string {
  const query = [`seed=${settings.seed}`, `repeats=${settings.repeats}`];
  if (settings.backends.length > 0) query.push(`backends=${settings.backends.join(",")}`);
  if (settings.sizes.length > 0) query.unshift(`sizes=${settings.sizes.join(",")}`);
  if (settings.scalar_all) query.push("scalar=all");
  return `?${query.join("&")}`;
}
