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

/** The place of a JSON error in its text, which browsers word differently. */
export function jsonProblem(text: string, error: unknown): TextProblem {
  const message = error instanceof Error ? error.message : String(error);
  const lineAndColumn = /line (\d+) column (\d+)/.exec(message);
  if (lineAndColumn) return { part: "", place: { line: Number(lineAndColumn[1]), column: Number(lineAndColumn[2]) }, message };
  const position = /position (\d+)/.exec(message);
  if (!position) return { part: "", place: null, message };
  const before = text.slice(0, Number(position[1])).split("\n");
  return { part: "", place: { line: before.length, column: (before.at(-1)?.length ?? 0) + 1 }, message };
}
