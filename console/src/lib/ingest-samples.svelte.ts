// Samples of the server's counters over the last minutes, from which the overview computes rates and growth.
import type { Overview } from "../api/types";

const SAMPLES_MAX = 150;

interface Sample {
  at: number;
  stored: number;
  duplicates: number;
  rejected: number;
  bytes: number;
}

export class IngestSamples {
  all = $state.raw<Sample[]>([]);

  add(overview: Overview): void {
    const { stored, duplicates, rejected } = overview.ingest;
    const sample = { at: Date.now(), stored, duplicates, rejected, bytes: overview.storage.bytes ?? 0 };
    const last = this.all.at(-1);
    // Counters that decreased mean that the server restarted.
    const kept = last && last.stored > stored ? [] : this.all.slice(-SAMPLES_MAX + 1);
    this.all = [...kept, sample];
  }

  /** The rate per second over the last ten seconds. */
  rate(counter: "stored" | "duplicates" | "rejected"): number | null {
    const last = this.all.at(-1);
    if (!last) return null;
    const first = this.all.find((sample) => last.at - sample.at <= 10_500);
    if (!first || last.at - first.at < 500) return null;
    return ((last[counter] - first[counter]) * 1000) / (last.at - first.at);
  }

  /** Messages stored per second, from one sample to the next. */
  get rates(): number[] {
    return this.all.slice(1).map((sample, index) => {
      const before = this.all[index]!;
      return Math.max(0, ((sample.stored - before.stored) * 1000) / Math.max(1, sample.at - before.at));
    });
  }

  /** Bytes added since the first sample, and the time since then. */
  get growth(): { bytes: number; millis: number } | null {
    const first = this.all[0];
    const last = this.all.at(-1);
    return first && last && last.at > first.at ? { bytes: last.bytes - first.bytes, millis: last.at - first.at } : null;
  }
}
