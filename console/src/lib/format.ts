// Formats numbers for people.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

/** A whole number with thin spaces between thousands; a dash if unknown. */
export function formatCount(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  return whole.format(value).replaceAll(",", "\u202f");
}

export function plural(value: number | null | undefined, one: string, many = `${one}s`): string {
  return `${formatCount(value)} ${value === 1 ? one : many}`;
}

export function formatBytes(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  const units = ["B", "kB", "MB", "GB", "TB"];
  let rest = value;
  let index = 0;
  while (rest >= 1000 && index < units.length - 1) {
    rest /= 1000;
    index += 1;
  }
  return `${index === 0 || rest >= 100 ? Math.round(rest) : rest.toFixed(1)} ${units[index]}`;
}

/** Four significant digits (seven from 1000 on), with an exponent only for very small and very large numbers. */
export function formatNumber(value: number | null | undefined): string {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 0.0001 || size >= 1e12)) return value.toPrecision(4);
  return String(Number(value.toPrecision(size >= 1000 ? 7 : 4)));
}

export function formatRate(perSecond: number): string {
  return perSecond >= 100 ? formatCount(perSecond) : formatNumber(Number(perSecond.toFixed(1)));
}
