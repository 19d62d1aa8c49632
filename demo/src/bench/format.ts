/** Numbers for people: three digits that count, the unit beside them. Files hold the full numbers. */

const whole_number = new Intl.NumberFormat("en");
const three_digits = new Intl.NumberFormat("en", { minimumSignificantDigits: 3, maximumSignificantDigits: 3 });

/** Less than this is what a clock's rounding leaves. */
const LEAST = 1e-8;

/** Three significant digits or the whole number, never in powers of ten. */
export function digits(value: number): string {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size < LEAST) return "0";
  return size >= 1000 ? whole_number.format(Math.round(value)) : three_digits.format(value);
}

export const count = (value: number): string => whole_number.format(value);
/** A count of things by their name, which takes an s where there are more or fewer than one. */
export const counted = (value: number, thing: string): string => `${count(value)} ${thing}${value === 1 ? "" : "s"}`;
export const ms = (value: number): string => `${digits(value)} ms`;
export const times = (value: number): string => `${digits(value)}×`;
export const percent = (share: number): string => `${Math.round(share * 100)} %`;

/** Powers of two, as limits of devices are. */
export function bytes(value: number): string {
  const units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${Number.isInteger(value) ? value : value.toFixed(1)} ${units[unit]}`;
}
