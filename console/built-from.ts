// Writes a digest of the sources of `dist`. It is committed with `dist`, so that the tests, which have no Node, notice when the
// sources changed without a build.
import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Plugin } from "vite";

const FILES = ["index.html", "package-lock.json", "svelte.config.js", "tsconfig.json", "vite.config.ts"];
const DIGEST = "built-from.sha256";

/** SHA-256 over the name, a line feed and the content of every file, sorted by name. */
export function digestOfSources(root: string): string {
  const entries = readdirSync(join(root, "src"), { recursive: true, withFileTypes: true });
  const sources = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name).slice(root.length + 1));
  const hash = createHash("sha256");
  for (const name of [...FILES, ...sources.map((name) => name.replaceAll("\\", "/"))].sort()) {
    hash.update(`${name}\n`).update(readFileSync(join(root, name)));
  }
  return hash.digest("hex");
}

export function builtFrom(): Plugin {
  let root = "";
  return {
    name: "built-from",
    apply: "build",
    configResolved: (config) => {
      root = config.root;
    },
    closeBundle: () => writeFileSync(join(root, DIGEST), `${digestOfSources(root)}\n`),
  };
}
