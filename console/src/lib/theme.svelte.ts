// The colour theme: light, dark or the system's. This browser stores the choice.
import { readStored, writeStored } from "./browser-storage";

export type Theme = "system" | "light" | "dark";

const KEY = "theme";
const system = matchMedia("(prefers-color-scheme: dark)");

function stored(): Theme {
  const value = readStored(KEY);
  return value === "light" || value === "dark" ? value : "system";
}

let chosen = $state<Theme>(stored());
let systemIsDark = $state(system.matches);
system.addEventListener("change", (event) => {
  systemIsDark = event.matches;
});

export const theme = {
  get chosen(): Theme {
    return chosen;
  },
  /** Whether the dark theme is shown; charts need it because they are drawn on a canvas. */
  get isDark(): boolean {
    return chosen === "dark" || (chosen === "system" && systemIsDark);
  },
  choose(next: Theme): void {
    chosen = next;
    writeStored(KEY, next === "system" ? null : next);
    applyTheme();
  },
};

export function applyTheme(): void {
  if (chosen === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
}
