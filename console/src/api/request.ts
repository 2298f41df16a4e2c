// One request to the server, and what can go wrong with it in words that people understand.

/** Longer than any answer should take; what streams (exports, live changes) does not come through here. */
const REQUEST_MS_MAX = 60_000;

/** An answer other than success, or none at all (`status` 0). */
export class RequestError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly requestId: string | null = null,
    readonly retryAfterSecs: number | null = null,
  ) {
    super(message);
  }
}

export interface RequestOptions {
  method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  query?: Record<string, string | number | boolean | null | undefined>;
  /** Sent as JSON. */
  body?: unknown;
  /** Sent as it is, where digits must stay as they were typed. */
  rawBody?: string;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

let onSessionEnd: () => void = () => {};

/** Who wants to know that the server does not accept the session (any more). */
export function whenSessionEnds(listener: () => void): void {
  onSessionEnd = listener;
}

export function address(path: string, query: RequestOptions["query"] = {}): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== "") parameters.set(name, String(value));
  }
  const text = parameters.toString();
  return text ? `${path}?${text}` : path;
}

/** Fills the placeholders of a path, so that an id with a slash or a `#` cannot become another path. */
export function path(strings: TemplateStringsArray, ...parts: string[]): string {
  return strings.reduce((whole, text, index) => whole + encodeURIComponent(parts[index - 1] ?? "") + text);
}

export async function request<T>(url: string, options: RequestOptions = {}): Promise<T> {
  const method = options.method ?? "GET";
  const headers: Record<string, string> = { accept: "application/json", ...options.headers };
  const body = options.rawBody ?? (options.body === undefined ? undefined : JSON.stringify(options.body));
  if (body !== undefined) headers["content-type"] = "application/json";
  // Another site cannot make a browser send this header here, which keeps the session's cookie from being used by it.
  if (method !== "GET") headers["x-homeport-console"] = "1";

  const timeout = AbortSignal.timeout(REQUEST_MS_MAX);
  let response: Response;
  try {
    response = await fetch(address(url, options.query), {
      method,
      headers,
      body,
      credentials: "same-origin",
      signal: options.signal ? AbortSignal.any([options.signal, timeout]) : timeout,
    });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    if (timeout.aborted) {
      throw new RequestError(0, "TIMEOUT", `The server did not answer within ${REQUEST_MS_MAX / 1000} seconds.`);
    }
    throw new RequestError(0, "UNREACHABLE", "The server cannot be reached. Is it running, and is there a network?");
  }
  if (!response.ok) throw await failure(response);
  if (response.status === 204) return undefined as T;
  try {
    return (await response.json()) as T;
  } catch {
    if (options.signal?.aborted) throw new DOMException("given up", "AbortError");
    throw new RequestError(response.status, "NOT_JSON", "The server's answer cannot be read: it is not JSON.");
  }
}

async function failure(response: Response): Promise<RequestError> {
  if (response.status === 401 && !response.url.endsWith("/v1/session")) onSessionEnd();
  const retryAfter = Number(response.headers.get("retry-after"));
  let code = `HTTP_${response.status}`;
  let message = `The server answered ${response.status} ${response.statusText}`.trimEnd() + ".";
  let requestId: string | null = null;
  try {
    const body: unknown = await response.json();
    if (body && typeof body === "object") {
      const problem = body as Record<string, unknown>;
      // Problems have `detail`, the record store has its own envelope.
      const detail = problem.detail ?? problem.errorMessage ?? problem.title;
      const name = problem.code ?? problem.errorCode;
      if (typeof detail === "string") message = detail;
      if (typeof name === "string") code = name;
      if (typeof problem.request_id === "string") requestId = problem.request_id;
    }
  } catch {
    // Not JSON: what the status line says has to do.
  }
  return new RequestError(response.status, code, message, requestId, Number.isFinite(retryAfter) && retryAfter > 0 ? retryAfter : null);
}

export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}

/** What to show for anything that was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
