// Receives changes as the server stores them, as server-sent events.
//
// A broken stream resumes from the last position seen; a repeated change has the same `id`. If it cannot resume (changes were lost,
// or the tab was hidden before the first change), `onGap` makes the page reload its data.
import type { LiveChange } from "../api/types";

export interface LiveFilter {
  system?: string;
  device?: string;
  types?: string;
}

export type LiveStatus = "connecting" | "open" | "waiting" | "off";

const RETRY_MS_MIN = 1_000;
const RETRY_MS_MAX = 30_000;
/** The minimum time between two reloads of a whole list. */
const RELOAD_MS_MIN = 1_000;

export class LiveStream {
  status = $state<LiveStatus>("off");
  #source: EventSource | null = null;
  #retryMs = RETRY_MS_MIN;
  #timer: ReturnType<typeof setTimeout> | null = null;
  #isStarted = false;
  /** The last position that the server sent. */
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
    if (this.#isStarted) return;
    this.#isStarted = true;
    document.addEventListener("visibilitychange", this.#onVisibilityChange);
    this.#open();
  }

  stop(): void {
    this.#isStarted = false;
    document.removeEventListener("visibilitychange", this.#onVisibilityChange);
    this.#close();
    this.status = "off";
  }

  /** Browsers allow few connections to one server, so a hidden tab closes its own. */
  #onVisibilityChange = (): void => {
    if (document.visibilityState === "hidden") this.#close();
    else if (this.#isStarted && !this.#source && !this.#timer) this.#open(true);
  };

  #close(): void {
    this.#source?.close();
    this.#source = null;
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
  }

  #open(isReconnect = false): void {
    this.status = "connecting";
    const query = new URLSearchParams(this.#query);
    if (this.#position) query.set("last_event_id", this.#position);
    const source = new EventSource(`/v1/live${query.size > 0 ? `?${query}` : ""}`);
    this.#source = source;
    source.onopen = () => {
      this.status = "open";
      this.#retryMs = RETRY_MS_MIN;
      if (isReconnect && !this.#position) this.#onGap();
      isReconnect = false;
    };
    source.onerror = () => {
      if (this.#source !== source) return;
      this.status = "waiting";
      // While it is not closed, the browser reconnects by itself.
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
        // The event is truncated or not JSON: reload instead.
        this.#onGap();
      }
    });
    source.addEventListener("gap", (event) => {
      if (event.lastEventId) this.#position = event.lastEventId;
      this.#onGap();
    });
  }
}

/** Calls `refresh` after matching changes, at most once per `RELOAD_MS_MIN`. Returns a function that stops it. */
export function refreshOnChange(filter: LiveFilter, refresh: () => void): () => void {
  let timer: ReturnType<typeof setTimeout> | null = null;
  const scheduleRefresh = (): void => {
    timer ??= setTimeout(() => {
      timer = null;
      refresh();
    }, RELOAD_MS_MIN);
  };
  const stream = new LiveStream(filter, scheduleRefresh, scheduleRefresh);
  stream.start();
  return () => {
    stream.stop();
    if (timer) clearTimeout(timer);
  };
}
