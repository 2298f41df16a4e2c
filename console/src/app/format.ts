// Numbers as people read them.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

/** What a store does not tell is a dash. */
export function count(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  return whole.format(value).replaceAll(",", "\u202f");
}

export function plural(value: number | null | undefined, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}

export function bytes(value: number | null | undefined): string {
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

/** At most four digits that matter, and no exponent where people do not expect one. */
export function figure(value: number | null | undefined): string {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 0.0001 || size >= 1e12)) return value.toPrecision(4);
  return String(Number(value.toPrecision(size >= 1000 ? 7 : 4)));
}

export function rate(perSecond: number): string {
  return perSecond >= 100 ? count(perSecond) : figure(Number(perSecond.toFixed(1)));
}
