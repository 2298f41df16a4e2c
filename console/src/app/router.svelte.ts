// Where in the console we are: the part of the address behind `#`, so that the server needs to know no page.

export interface Place {
  /** The decoded parts of the path; empty on the overview. */
  parts: string[];
  query: URLSearchParams;
}

function read(): Place {
  const [path = "", query = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
  const parts = path.split("/").filter(Boolean).map(decode);
  return { parts, query: new URLSearchParams(query) };
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    // A broken escape that someone typed: shown as it stands.
    return part;
  }
}

let current = $state.raw<Place>(read());
addEventListener("hashchange", () => {
  current = read();
});

export const place = {
  get parts(): string[] {
    return current.parts;
  },
  get query(): URLSearchParams {
    return current.query;
  },
};

export type Query = Record<string, string | number | null | undefined>;

/** The address of a place, for `href`. */
export function to(parts: string[], query: Query = {}): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== "") parameters.set(name, String(value));
  }
  const text = parameters.toString();
  return `#/${parts.map(encodeURIComponent).join("/")}${text ? `?${text}` : ""}`;
}

export function go(parts: string[], query: Query = {}): void {
  location.hash = to(parts, query);
}

/** Changes the query of this place; `replace` leaves no step for the Back button, as while someone types. */
export function setQuery(changes: Query, replace = false): void {
  const query: Query = Object.fromEntries(current.query);
  Object.assign(query, changes);
  const hash = to(current.parts, query);
  if (hash === location.hash) return;
  if (replace) {
    history.replaceState(null, "", hash);
    current = read();
  } else {
    location.hash = hash;
  }
}
