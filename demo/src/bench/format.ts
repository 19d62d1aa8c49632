/** Numbers for people: three digits that count, the unit beside them. Files hold the full numbers. */

const whole_number = new Intl.NumberFormat("en");

/** Three significant digits, never in powers of ten. */
export function digits(value: number): string {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size >= 1000) return whole_number.format(Math.round(value));
  if (size >= 100) return value.toFixed(0);
  if (size >= 10) return value.toFixed(1);
  if (size >= 1) return value.toFixed(2);
  if (size >= 0.001 || size === 0) return value.toFixed(size === 0 ? 0 : 3);
  return value.toExponential(1);
}

export const count = (value: number): string => whole_number.format(value);
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
