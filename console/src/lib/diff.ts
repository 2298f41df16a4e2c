// Compares two texts line by line.

export interface DiffLine {
  kind: "same" | "old" | "new";
  text: string;
}

/** The comparison needs lines × lines cells; longer texts are shown one after the other. */
const LINES_MAX = 1_000;

export function diffLines(before: string, after: string): DiffLine[] {
  const old = before.split("\n");
  const fresh = after.split("\n");
  if (old.length > LINES_MAX || fresh.length > LINES_MAX) {
    return [...old.map((text) => ({ kind: "old" as const, text })), ...fresh.map((text) => ({ kind: "new" as const, text }))];
  }
  const width = fresh.length + 1;
  const common = new Uint16Array((old.length + 1) * width);
  for (let i = old.length - 1; i >= 0; i -= 1) {
    for (let j = fresh.length - 1; j >= 0; j -= 1) {
      common[i * width + j] =
        old[i] === fresh[j]
          ? common[(i + 1) * width + j + 1]! + 1
          : Math.max(common[(i + 1) * width + j]!, common[i * width + j + 1]!);
    }
  }
  const lines: DiffLine[] = [];
  let i = 0;
  let j = 0;
  while (i < old.length || j < fresh.length) {
    if (i < old.length && j < fresh.length && old[i] === fresh[j]) {
      lines.push({ kind: "same", text: old[i]! });
      i += 1;
      j += 1;
    } else if (j >= fresh.length || (i < old.length && common[(i + 1) * width + j]! >= common[i * width + j + 1]!)) {
      lines.push({ kind: "old", text: old[i]! });
      i += 1;
    } else {
      lines.push({ kind: "new", text: fresh[j]! });
      j += 1;
    }
  }
  return lines;
}
