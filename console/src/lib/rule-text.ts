// Summaries of a rule's statement and actions.

/** The topic filter of a statement; comments are ignored. */
export function topicOf(sql: string): string | null {
  const withoutComments = sql.replace(/--[^\n]*/g, "").replace(/\/\*[\s\S]*?\*\//g, "");
  return /\bFROM\s+(?:'([^']*)'|"([^"]*)")/i.exec(withoutComments)?.slice(1).find((topic) => topic !== undefined) ?? null;
}

/** A topic that matches the filter, as the first value of a test. */
export function exampleTopic(sql: string): string {
  return (topicOf(sql) ?? "van/+/telemetry").replaceAll("+", "van-01").replace(/#$/, "example");
}

export function actionNames(actions: readonly object[]): string {
  return actions
    .map((action) => {
      const [kind = "", value = {}] = Object.entries(action)[0] ?? [];
      const parameters = value as { tableName?: string; putItem?: { tableName?: string }; topic?: string; url?: string; userId?: string };
      const target = parameters.putItem?.tableName ?? parameters.tableName ?? parameters.topic ?? parameters.url ?? parameters.userId;
      return target ? `${kind} → ${target}` : kind;
    })
    .join(", ");
}
