// A value loaded from the server, with its loading state and error. Only the newest request counts.
import { isAbort } from "../api/request";

export class Resource<T> {
  value = $state.raw<T | null>(null);
  error = $state.raw<unknown>(null);
  loading = $state(false);
  #controller: AbortController | null = null;

  /** Keeps the old value until the new one arrives. */
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
