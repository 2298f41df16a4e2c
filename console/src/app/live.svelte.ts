// Changes as the server stores them, over server-sent events.
//
// The browser takes up a broken stream by itself, from the last position that it has seen. Where that is not possible (the server
// refused, changes were lost, the tab was out of sight), `onGap` tells the page to read again what it shows.
import type { TimelineEntry } from "../api/types";

export interface Change extends TimelineEntry {
  system: string;
  device: string;
  kind: "insert" | "modify" | "remove";
}

export interface LiveFilter {
  system?: string;
  device?: string;
  types?: string;
}

export type LiveStatus = "connecting" | "open" | "waiting" | "off";

const RETRY_MS_MIN = 1_000;
const RETRY_MS_MAX = 30_000;
/** Pages that read a whole list again on a change do so at most this often. */
const SETTLE_MS = 1_000;

export class LiveStream {
  status = $state<LiveStatus>("off");
  #source: EventSource | null = null;
  #retryMs = RETRY_MS_MIN;
  #timer: ReturnType<typeof setTimeout> | null = null;
  #wanted = false;
  readonly #url: string;
  readonly #onChange: (change: Change) => void;
  readonly #onGap: () => void;

  constructor(filter: LiveFilter, onChange: (change: Change) => void, onGap: () => void) {
    const query = new URLSearchParams(Object.entries(filter).filter(([, value]) => value) as [string, string][]);
    this.#url = `/v1/live${query.size > 0 ? `?${query}` : ""}`;
    this.#onChange = onChange;
    this.#onGap = onGap;
  }

  start(): void {
    if (this.#wanted) return;
    this.#wanted = true;
    document.addEventListener("visibilitychange", this.#look);
    this.#open();
  }

  stop(): void {
    this.#wanted = false;
    document.removeEventListener("visibilitychange", this.#look);
    this.#close();
    this.status = "off";
  }

  /** Browsers allow few connections to one server: a tab that nobody sees gives its own back. */
  #look = (): void => {
    if (document.visibilityState === "hidden") this.#close();
    else if (this.#wanted && !this.#source && !this.#timer) this.#open(true);
  };

  #close(): void {
    this.#source?.close();
    this.#source = null;
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
  }

  #open(isAgain = false): void {
    this.status = "connecting";
    const source = new EventSource(this.#url);
    this.#source = source;
    source.onopen = () => {
      this.status = "open";
      this.#retryMs = RETRY_MS_MIN;
      if (isAgain) this.#onGap();
      isAgain = false;
    };
    source.onerror = () => {
      if (this.#source !== source) return;
      this.status = "waiting";
      // Not closed: the browser is trying again already.
      if (source.readyState !== EventSource.CLOSED) return;
      this.#source = null;
      this.#timer = setTimeout(() => {
        this.#timer = null;
        this.#open(true);
      }, this.#retryMs);
      this.#retryMs = Math.min(this.#retryMs * 2, RETRY_MS_MAX);
    };
    source.addEventListener("change", (event) => {
      try {
        this.#onChange(JSON.parse(event.data) as Change);
      } catch {
        // Cut off or not ours: what it said can be read again.
        this.#onGap();
      }
    });
    source.addEventListener("gap", () => this.#onGap());
  }
}

/** Calls `refresh` soon after each change that fits, but not for every single one of many. Answers how to stop. */
export function live(filter: LiveFilter, refresh: () => void): () => void {
  let timer: ReturnType<typeof setTimeout> | null = null;
  const soon = (): void => {
    timer ??= setTimeout(() => {
      timer = null;
      refresh();
    }, SETTLE_MS);
  };
  const stream = new LiveStream(filter, soon, soon);
  stream.start();
  return () => {
    stream.stop();
    if (timer) clearTimeout(timer);
  };
}
