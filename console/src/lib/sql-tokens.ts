// Splits AWS IoT SQL into tokens for syntax highlighting. Only the server validates statements.

export type TokenKind = "keyword" | "string" | "number" | "comment" | "plain";

export interface Token {
  kind: TokenKind;
  text: string;
}

const PATTERN =
  /(?<comment>--[^\n]*|\/\*[\s\S]*?\*\/)|(?<string>'(?:[^']|'')*'|"(?:[^"]|"")*")|(?<number>\b\d+(?:\.\d+)?\b)|(?<keyword>\b(?:SELECT|VALUE|AS|FROM|WHERE|SET|AND|OR|NOT|IN|EXISTS|CASE|WHEN|THEN|ELSE|END|NULL|TRUE|FALSE|UNDEFINED|IS)\b)/gi;

export function tokens(sql: string): Token[] {
  const found: Token[] = [];
  let at = 0;
  for (const match of sql.matchAll(PATTERN)) {
    if (match.index > at) found.push({ kind: "plain", text: sql.slice(at, match.index) });
    const kind = Object.entries(match.groups ?? {}).find(([, text]) => text !== undefined)?.[0] as TokenKind;
    found.push({ kind, text: match[0] });
    at = match.index + match[0].length;
  }
  if (at < sql.length) found.push({ kind: "plain", text: sql.slice(at) });
  return found;
}
