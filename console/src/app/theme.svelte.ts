// Light, dark, or as the system has it. The choice stays in this browser.
import { recall, remember } from "./memory";

export type Theme = "system" | "light" | "dark";

const KEY = "theme";
const system = matchMedia("(prefers-color-scheme: dark)");

function stored(): Theme {
  const value = recall(KEY);
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
  /** What is shown; charts are drawn on canvas and have to know. */
  get isDark(): boolean {
    return chosen === "dark" || (chosen === "system" && systemIsDark);
  },
  choose(next: Theme): void {
    chosen = next;
    remember(KEY, next === "system" ? null : next);
    apply();
  },
};

export function apply(): void {
  if (chosen === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
}
