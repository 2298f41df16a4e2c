// Time ranges of charts: presets, zoom and pan.

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

export const RANGE_PRESETS = [
  { name: "hour", label: "Hour", millis: HOUR_MS },
  { name: "day", label: "Day", millis: DAY_MS },
  { name: "week", label: "Week", millis: 7 * DAY_MS },
  { name: "month", label: "Month", millis: 31 * DAY_MS },
  { name: "year", label: "Year", millis: 366 * DAY_MS },
] as const;

export type PresetName = (typeof RANGE_PRESETS)[number]["name"];

export interface TimeRange {
  from: number;
  to: number;
}

/** The smallest range that a zoom can reach. */
const RANGE_MS_MIN = 10_000;
const RANGE_MS_MAX = 10 * 366 * DAY_MS;

export function clamp({ from, to }: TimeRange): TimeRange {
  const middle = (from + to) / 2;
  const half = Math.min(Math.max(to - from, RANGE_MS_MIN), RANGE_MS_MAX) / 2;
  return { from: Math.round(middle - half), to: Math.round(middle + half) };
}

/** Zooms in (factor below 1) or out (above 1) around the middle. */
export function zoom({ from, to }: TimeRange, factor: number): TimeRange {
  const middle = (from + to) / 2;
  const half = ((to - from) / 2) * factor;
  return clamp({ from: middle - half, to: middle + half });
}

/** Moves by a share of the range: to the left if negative, else to the right. */
export function pan({ from, to }: TimeRange, share: number): TimeRange {
  const offset = (to - from) * share;
  return { from: Math.round(from + offset), to: Math.round(to + offset) };
}
