// Points of a series as the chart library takes them: one array for each of time, least, greatest and mean.
import type { SeriesPoint } from "../api/types";

export type PlotData = [number[], (number | null)[], (number | null)[], (number | null)[]];

/** A hole is drawn as one when it is this many times as long as what usually lies between two points. */
const GAP_FACTOR = 4;

export function plotData(points: SeriesPoint[], bucketMs: number): PlotData {
  const usual = Math.max(bucketMs, medianStep(points));
  const times: number[] = [];
  const least: (number | null)[] = [];
  const greatest: (number | null)[] = [];
  const mean: (number | null)[] = [];
  let before: number | null = null;
  for (const [at, low, high, middle] of points) {
    if (before !== null && at - before > usual * GAP_FACTOR) {
      times.push(before + usual);
      least.push(null);
      greatest.push(null);
      mean.push(null);
    }
    times.push(at);
    least.push(low);
    greatest.push(high);
    mean.push(middle);
    before = at;
  }
  return [times, least, greatest, mean];
}

function medianStep(points: SeriesPoint[]): number {
  if (points.length < 2) return 0;
  // Some steps of many tell enough.
  const stride = Math.max(1, Math.floor(points.length / 500));
  const steps: number[] = [];
  for (let index = 1; index < points.length; index += stride) steps.push(points[index]![0] - points[index - 1]![0]);
  steps.sort((a, b) => a - b);
  return steps[Math.floor(steps.length / 2)] ?? 0;
}

export interface Summary {
  least: number;
  greatest: number;
  mean: number;
  last: number;
  count: number;
}

export function summarise(points: SeriesPoint[]): Summary | null {
  if (points.length === 0) return null;
  let least = Number.POSITIVE_INFINITY;
  let greatest = Number.NEGATIVE_INFINITY;
  let sum = 0;
  let count = 0;
  for (const [, low, high, middle, many] of points) {
    least = Math.min(least, low);
    greatest = Math.max(greatest, high);
    sum += middle * many;
    count += many;
  }
  return { least, greatest, mean: count > 0 ? sum / count : Number.NaN, last: points.at(-1)![3], count };
}
