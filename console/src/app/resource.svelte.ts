// Something that is fetched: its value, whether it is on its way, and what went wrong. Only the newest request counts.
import { isAbort } from "../api/request";

export class Resource<T> {
  value = $state.raw<T | null>(null);
  error = $state.raw<unknown>(null);
  loading = $state(false);
  #controller: AbortController | null = null;

  /** Keeps the value that is there until the new one has come. */
  async load(fetch: (signal: AbortSignal) => Promise<T>): Promise<void> {
    this.#controller?.abort();
    const controller = new AbortController();
    this.#controller = controller;
    this.loading = true;
    try {
      const value = await fetch(controller.signal);
      if (this.#controller !== controller) return;
      this.value = value;
      this.error = null;
    } catch (error) {
      if (this.#controller !== controller || isAbort(error)) return;
      this.error = error;
    } finally {
      if (this.#controller === controller) this.loading = false;
    }
  }

  clear(): void {
    this.stop();
    this.value = null;
    this.error = null;
  }

  stop(): void {
    this.#controller?.abort();
    this.#controller = null;
    this.loading = false;
  }
}

/** A list that grows page by page. */
export class Pages<T> {
  items = $state.raw<T[]>([]);
  cursor = $state.raw<string | null>(null);
  error = $state.raw<unknown>(null);
  loading = $state(false);
  /** Whether the first page has come. */
  started = $state(false);
  #controller: AbortController | null = null;
  #pageCount = 0;
  #fetch: ((cursor: string | null, signal: AbortSignal) => Promise<Page<T>>) | null = null;

  async start(fetch: (cursor: string | null, signal: AbortSignal) => Promise<Page<T>>): Promise<void> {
    this.#fetch = fetch;
    await this.#take(null);
  }

  async more(): Promise<void> {
    if (this.loading || this.cursor === null) return;
    await this.#take(this.cursor);
  }

  async again(): Promise<void> {
    if (this.#fetch) await this.#take(this.started ? this.cursor : null);
  }

  async restart(): Promise<void> {
    if (this.#fetch) await this.#take(null);
  }

  /** Reads again what is shown, unless someone has gone on to later pages: those would be gone. */
  async refresh(): Promise<void> {
    if (this.#pageCount <= 1) await this.restart();
  }

  async #take(cursor: string | null): Promise<void> {
    this.#controller?.abort();
    const controller = new AbortController();
    this.#controller = controller;
    this.loading = true;
    try {
      const page = await this.#fetch!(cursor, controller.signal);
      if (this.#controller !== controller) return;
      this.items = cursor === null ? page.items : this.items.concat(page.items);
      this.#pageCount = cursor === null ? 1 : this.#pageCount + 1;
      this.cursor = page.cursor ?? null;
      this.error = null;
      this.started = true;
    } catch (error) {
      if (this.#controller !== controller || isAbort(error)) return;
      this.error = error;
    } finally {
      if (this.#controller === controller) this.loading = false;
    }
  }

  stop(): void {
    this.#controller?.abort();
    this.#controller = null;
  }
}

export interface Page<T> {
  items: T[];
  cursor?: string | null;
}
