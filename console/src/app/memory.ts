// Small choices that this browser keeps: theme, the name that alerts are acknowledged with. Never a secret.

const PREFIX = "homeport.";

export function recall(key: string): string | null {
  try {
    return localStorage.getItem(PREFIX + key);
  } catch {
    // Storage may be switched off; the console works without it.
    return null;
  }
}

export function remember(key: string, value: string | null): void {
  try {
    if (value === null) localStorage.removeItem(PREFIX + key);
    else localStorage.setItem(PREFIX + key, value);
  } catch {
    // See above.
  }
}
