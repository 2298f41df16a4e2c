// Changes as the server stores them, over server-sent events.
//
// A stream that broke goes on from the last position that was seen; what comes twice has the same `id`. Where that is not possible
// (changes were lost, or the tab was out of sight before anything had come), `onGap` tells the page to read again what it shows.
import type { LiveChange } from "../api/types";

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
  /** The last position that the server has told. */
  #position = "";
  readonly #query: URLSearchParams;
  readonly #onChange: (change: LiveChange) => void;
  readonly #onGap: () => void;

  constructor(filter: LiveFilter, onChange: (change: LiveChange) => void, onGap: () => void) {
    this.#query = new URLSearchParams(Object.entries(filter).filter(([, value]) => value) as [string, string][]);
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
    const query = new URLSearchParams(this.#query);
    if (this.#position) query.set("last_event_id", this.#position);
    const source = new EventSource(`/v1/live${query.size > 0 ? `?${query}` : ""}`);
    this.#source = source;
    source.onopen = () => {
      this.status = "open";
      this.#retryMs = RETRY_MS_MIN;
      if (isAgain && !this.#position) this.#onGap();
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
      if (event.lastEventId) this.#position = event.lastEventId;
      try {
        this.#onChange(JSON.parse(event.data) as LiveChange);
      } catch {
        // Cut off or not ours: what it said can be read again.
        this.#onGap();
      }
    });
    source.addEventListener("gap", (event) => {
      if (event.lastEventId) this.#position = event.lastEventId;
      this.#onGap();
    });
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
