// Sends requests to the server and turns failures into readable errors.

/** Longer than any response should take. Exports and live changes stream and do not use this function. */
const REQUEST_MS_MAX = 60_000;

/** A response that is not a success, or no response at all (`status` 0). */
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
  /** Sent unchanged, so that numbers keep every digit that was typed. */
  rawBody?: string;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

let sessionEnded: () => void = () => {};

/** Registers the function to call when the server rejects the session. */
export function listenForSessionEnd(listener: () => void): void {
  sessionEnded = listener;
}

export function withQuery(path: string, query: RequestOptions["query"] = {}): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== "") parameters.set(name, String(value));
  }
  const text = parameters.toString();
  return text ? `${path}?${text}` : path;
}

/** Escapes the placeholders of a path, so that an id with a slash or a `#` cannot change the path. */
export function path(strings: TemplateStringsArray, ...parts: string[]): string {
  return strings.reduce((whole, text, index) => whole + encodeURIComponent(parts[index - 1] ?? "") + text);
}

export async function request<T>(url: string, options: RequestOptions = {}): Promise<T> {
  const method = options.method ?? "GET";
  const headers: Record<string, string> = { accept: "application/json", ...options.headers };
  const body = options.rawBody ?? (options.body === undefined ? undefined : JSON.stringify(options.body));
  if (body !== undefined) headers["content-type"] = "application/json";
  // Other sites cannot send this header, so they cannot use the session cookie.
  if (method !== "GET") headers["x-homeport-console"] = "1";

  const timeout = AbortSignal.timeout(REQUEST_MS_MAX);
  let response: Response;
  try {
    response = await fetch(withQuery(url, options.query), {
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
    throw new RequestError(0, "UNREACHABLE", "Cannot reach the server. Check that it is running and that you are connected to the network.");
  }
  if (!response.ok) throw await failure(response);
  if (response.status === 204) return undefined as T;
  try {
    return (await response.json()) as T;
  } catch {
    if (options.signal?.aborted) throw new DOMException("aborted", "AbortError");
    throw new RequestError(response.status, "NOT_JSON", "The server's response is not valid JSON.");
  }
}

async function failure(response: Response): Promise<RequestError> {
  if (response.status === 401 && !response.url.endsWith("/v1/session")) sessionEnded();
  const retryAfter = Number(response.headers.get("retry-after"));
  let code = `HTTP_${response.status}`;
  let message = `The server answered ${response.status} ${response.statusText}`.trimEnd() + ".";
  let requestId: string | null = null;
  try {
    const body: unknown = await response.json();
    if (body && typeof body === "object") {
      const problem = body as Record<string, unknown>;
      // Problem documents have `detail`; the record store has its own envelope.
      const detail = problem.detail ?? problem.errorMessage ?? problem.title;
      const name = problem.code ?? problem.errorCode;
      if (typeof detail === "string") message = detail;
      if (typeof name === "string") code = name;
      if (typeof problem.request_id === "string") requestId = problem.request_id;
    }
  } catch {
    // Not JSON: keep the text of the status line.
  }
  return new RequestError(response.status, code, message, requestId, Number.isFinite(retryAfter) && retryAfter > 0 ? retryAfter : null);
}

export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}

/** The message to show for anything that was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
