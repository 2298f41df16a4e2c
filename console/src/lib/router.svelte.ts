// The current route. It is in the URL hash, so that the server needs no route for each page.

export interface Route {
  /** The decoded segments of the path; empty on the overview. */
  segments: string[];
  query: URLSearchParams;
}

function read(): Route {
  const [path = "", query = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
  const segments = path.split("/").filter(Boolean).map(decode);
  return { segments, query: new URLSearchParams(query) };
}

function decode(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    // An invalid escape sequence stays as it is.
    return segment;
  }
}

let current = $state.raw<Route>(read());
addEventListener("hashchange", () => {
  current = read();
});

export const route = {
  get segments(): string[] {
    return current.segments;
  },
  get query(): URLSearchParams {
    return current.query;
  },
};

export type Query = Record<string, string | number | null | undefined>;

/** The link to a page, for `href`. */
export function linkTo(segments: string[], query: Query = {}): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== "") parameters.set(name, String(value));
  }
  const text = parameters.toString();
  return `#/${segments.map(encodeURIComponent).join("/")}${text ? `?${text}` : ""}`;
}

export function navigate(segments: string[], query: Query = {}): void {
  location.hash = linkTo(segments, query);
}

/** Changes the query of the current route. `replace` adds no history entry, for changes while typing. */
export function setQuery(changes: Query, replace = false): void {
  const query: Query = Object.fromEntries(current.query);
  Object.assign(query, changes);
  const hash = linkTo(current.segments, query);
  if (hash === location.hash) return;
  if (replace) {
    history.replaceState(null, "", hash);
    current = read();
  } else {
    location.hash = hash;
  }
}
