// What can be told from a rule's text without the server.

/** The topic filter of a statement, for lists; comments and strings before FROM do not count. */
export function topicOf(sql: string): string | null {
  const bare = sql.replace(/--[^\n]*/g, "").replace(/\/\*[\s\S]*?\*\//g, "");
  return /\bFROM\s+(?:'([^']*)'|"([^"]*)")/i.exec(bare)?.slice(1).find((topic) => topic !== undefined) ?? null;
}

/** A topic that the filter selects, to begin a test with. */
export function exampleTopic(sql: string): string {
  return (topicOf(sql) ?? "van/+/telemetry").replaceAll("+", "van-01").replace(/#$/, "example");
}

export function actionNames(actions: readonly object[]): string {
  return actions
    .map((action) => {
      const [kind = "", value = {}] = Object.entries(action)[0] ?? [];
      const terms = value as { tableName?: string; putItem?: { tableName?: string }; topic?: string; url?: string; userId?: string };
      const where = terms.putItem?.tableName ?? terms.tableName ?? terms.topic ?? terms.url ?? terms.userId;
      return where ? `${kind} → ${where}` : kind;
    })
    .join(", ");
}

export interface Place {
  line: number;
  column: number;
}

export interface TextProblem {
  /** Which part of the rule it is about: `sql`, `actions[0].republish.topic`. */
  part: string;
  place: Place | null;
  message: string;
}

/** Takes the place out of what the server says: `sql: line 1, column 10: expected …` and a drawing of it below. */
export function parseProblem(detail: string): TextProblem {
  const first = detail.split("\n", 1)[0] ?? detail;
  const found = /^(?:([^:]+): )?line (\d+), column (\d+): (.*)$/.exec(first);
  if (found) {
    return { part: found[1] ?? "sql", place: { line: Number(found[2]), column: Number(found[3]) }, message: found[4] ?? first };
  }
  const named = /^([A-Za-z][\w.[\]]*): (.*)$/.exec(first);
  return { part: named?.[1] ?? "", place: null, message: named?.[2] ?? detail };
}

/** The index of a place in a text; columns count characters, as the server does. */
export function offsetOf(text: string, place: Place): number {
  const lines = text.split("\n");
  let offset = 0;
  for (let index = 0; index < place.line - 1 && index < lines.length; index += 1) offset += lines[index]!.length + 1;
  const line = lines[place.line - 1] ?? "";
  return offset + [...line].slice(0, place.column - 1).join("").length;
}

/** What is wrong with a JSON text, and where: browsers word that differently, and not all name the place. */
export function jsonProblem(text: string, error: unknown): TextProblem {
  const message = error instanceof Error ? error.message : String(error);
  const before = text.slice(0, jsonErrorOffset(text)).split("\n");
  return { part: "", place: { line: before.length, column: [...(before.at(-1) ?? "")].length + 1 }, message };
}

const JSON_TOKEN = /\s+|"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null|[{}[\],:]/y;

/** Where a text stops being JSON. */
function jsonErrorOffset(text: string): number {
  // For each open bracket, what may come next: a value, the name of a member, a colon, or a comma and the end.
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
