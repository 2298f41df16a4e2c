// Converts a series to the arrays that the chart library expects: time, minimum, maximum and mean.
import type { SeriesPoint } from "../api/types";

export type PlotData = [number[], (number | null)[], (number | null)[], (number | null)[]];

/** A pause this many times longer than the usual step between two points is drawn as a gap. */
const GAP_FACTOR = 4;

export function plotData(points: SeriesPoint[], bucketMs: number): PlotData {
  const step = Math.max(bucketMs, medianStep(points));
  const times: number[] = [];
  const min: (number | null)[] = [];
  const max: (number | null)[] = [];
  const mean: (number | null)[] = [];
  let before: number | null = null;
  for (const [at, low, high, middle] of points) {
    if (before !== null && at - before > step * GAP_FACTOR) {
      times.push(before + step);
      min.push(null);
      max.push(null);
      mean.push(null);
    }
    times.push(at);
    min.push(low);
    max.push(high);
    mean.push(middle);
    before = at;
  }
  return [times, min, max, mean];
}

function medianStep(points: SeriesPoint[]): number {
  if (points.length < 2) return 0;
  // A sample of the steps is enough.
  const stride = Math.max(1, Math.floor(points.length / 500));
  const steps: number[] = [];
  for (let index = 1; index < points.length; index += stride) steps.push(points[index]![0] - points[index - 1]![0]);
  steps.sort((a, b) => a - b);
  return steps[Math.floor(steps.length / 2)] ?? 0;
}

export interface Summary {
  min: number;
  max: number;
  mean: number;
  last: number;
  count: number;
}

export function summarise(points: SeriesPoint[]): Summary | null {
  if (points.length === 0) return null;
  let min = Number.POSITIVE_INFINITY;
  let max = Number.NEGATIVE_INFINITY;
  let sum = 0;
  let count = 0;
  for (const [, low, high, middle, values] of points) {
    min = Math.min(min, low);
    max = Math.max(max, high);
    sum += middle * values;
    count += values;
  }
  return { min, max, mean: count > 0 ? sum / count : Number.NaN, last: points.at(-1)![3], count };
}
