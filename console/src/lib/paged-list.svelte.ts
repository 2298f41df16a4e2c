// A list that is loaded page by page. Only the newest request counts.
import { isAbort } from "../api/request";

export class PagedList<T> {
  items = $state.raw<T[]>([]);
  cursor = $state.raw<string | null>(null);
  error = $state.raw<unknown>(null);
  loading = $state(false);
  /** Whether the first page has arrived. */
  loaded = $state(false);
  #controller: AbortController | null = null;
  #pageCount = 0;
  #fetch: ((cursor: string | null, signal: AbortSignal) => Promise<ListPage<T>>) | null = null;

  async start(fetch: (cursor: string | null, signal: AbortSignal) => Promise<ListPage<T>>): Promise<void> {
    this.#fetch = fetch;
    await this.#load(null);
  }

  async loadMore(): Promise<void> {
    if (this.loading || this.cursor === null) return;
    await this.#load(this.cursor);
  }

  async retry(): Promise<void> {
    if (this.#fetch) await this.#load(this.loaded ? this.cursor : null);
  }

  async restart(): Promise<void> {
    if (this.#fetch) await this.#load(null);
  }

  /** Reloads the first page, unless later pages are loaded: they would disappear. */
  async refresh(): Promise<void> {
    if (this.#pageCount <= 1) await this.restart();
  }

  async #load(cursor: string | null): Promise<void> {
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
      this.loaded = true;
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

export interface ListPage<T> {
  items: T[];
  cursor?: string | null;
}
