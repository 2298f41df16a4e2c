// Ranges of time that charts show.

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

export const RANGES = [
  { name: "hour", label: "Hour", millis: HOUR_MS },
  { name: "day", label: "Day", millis: DAY_MS },
  { name: "week", label: "Week", millis: 7 * DAY_MS },
  { name: "month", label: "Month", millis: 31 * DAY_MS },
  { name: "year", label: "Year", millis: 366 * DAY_MS },
] as const;

export type RangeName = (typeof RANGES)[number]["name"];

export interface Span {
  from: number;
  to: number;
}

/** Closer than this there is nothing to see. */
const SPAN_MS_MIN = 10_000;
const SPAN_MS_MAX = 10 * 366 * DAY_MS;

export function clamp({ from, to }: Span): Span {
  const middle = (from + to) / 2;
  const half = Math.min(Math.max(to - from, SPAN_MS_MIN), SPAN_MS_MAX) / 2;
  return { from: Math.round(middle - half), to: Math.round(middle + half) };
}

/** Nearer (below 1) or farther (above 1), around the middle. */
export function zoom({ from, to }: Span, factor: number): Span {
  const middle = (from + to) / 2;
  const half = ((to - from) / 2) * factor;
  return clamp({ from: middle - half, to: middle + half });
}

/** A share of the span to the left (below 0) or to the right. */
export function pan({ from, to }: Span, share: number): Span {
  const by = (to - from) * share;
  return { from: Math.round(from + by), to: Math.round(to + by) };
}
