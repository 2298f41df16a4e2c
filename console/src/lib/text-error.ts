// Errors in rules and JSON texts, with their position.

export interface TextPosition {
  line: number;
  column: number;
}

export interface TextError {
  /** The part of the rule with the error: `sql`, `actions[0].republish.topic`. */
  part: string;
  position: TextPosition | null;
  message: string;
}

/** Parses the server's message: `sql: line 1, column 10: expected …`, with an excerpt on the next lines. */
export function parseTextError(detail: string): TextError {
  const first = detail.split("\n", 1)[0] ?? detail;
  const found = /^(?:([^:]+): )?line (\d+), column (\d+): (.*)$/.exec(first);
  if (found) {
    return { part: found[1] ?? "sql", position: { line: Number(found[2]), column: Number(found[3]) }, message: found[4] ?? first };
  }
  const named = /^([A-Za-z][\w.[\]]*): (.*)$/.exec(first);
  return { part: named?.[1] ?? "", position: null, message: named?.[2] ?? detail };
}

/** The offset of a position in a text; columns count characters, as the server does. */
export function offsetOf(text: string, position: TextPosition): number {
  const lines = text.split("\n");
  let offset = 0;
  for (let index = 0; index < position.line - 1 && index < lines.length; index += 1) offset += lines[index]!.length + 1;
  const line = lines[position.line - 1] ?? "";
  return offset + [...line].slice(0, position.column - 1).join("").length;
}

/** The error of an invalid JSON text. Browsers report its position differently or not at all, so it is computed here. */
export function jsonError(text: string, error: unknown): TextError {
  const message = error instanceof Error ? error.message : String(error);
  const before = text.slice(0, jsonErrorOffset(text)).split("\n");
  return { part: "", position: { line: before.length, column: [...(before.at(-1) ?? "")].length + 1 }, message };
}

const JSON_TOKEN = /\s+|"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null|[{}[\],:]/y;

/** The offset at which a text stops being valid JSON. */
function jsonErrorOffset(text: string): number {
  // What the grammar allows next: a value, a member's name, a colon, or a comma or closing bracket (`more`).
  type Expected = "value" | "first value" | "name" | "first name" | "colon" | "more";
  const open: ("{" | "[")[] = [];
  let expected: Expected = "value";
  let at = 0;
  while (at < text.length) {
    JSON_TOKEN.lastIndex = at;
    const token = JSON_TOKEN.exec(text)?.[0];
    if (token === undefined) return at;
    const isBlank = token.trim() === "";
    const isName = token.startsWith('"');
    const isValue = isName || !"{}[],:".includes(token);
    const closes = token === "}" || token === "]";
    if (!isBlank) {
      const bracket = open.at(-1);
      const mayClose: boolean = expected === "more" || expected === "first value" || expected === "first name";
      if (closes && mayClose && bracket === (token === "}" ? "{" : "[")) {
        open.pop();
        expected = "more";
      } else if (token === "," && expected === "more" && bracket) expected = bracket === "{" ? "name" : "value";
      else if (token === ":" && expected === "colon") expected = "value";
      else if (isName && (expected === "name" || expected === "first name")) expected = "colon";
      else if (isValue && (expected === "value" || expected === "first value")) expected = "more";
      else if ((token === "{" || token === "[") && (expected === "value" || expected === "first value")) {
        open.push(token);
        expected = token === "{" ? "first name" : "first value";
      } else return at;
    }
    at += token.length;
  }
  return at;
}
