// Preferences that this browser stores: the theme and the user's name for acknowledging alerts. Never a secret.

const PREFIX = "homeport.";

export function readStored(key: string): string | null {
  try {
    return localStorage.getItem(PREFIX + key);
  } catch {
    // Storage may be disabled; the console works without it.
    return null;
  }
}

export function writeStored(key: string, value: string | null): void {
  try {
    if (value === null) localStorage.removeItem(PREFIX + key);
    else localStorage.setItem(PREFIX + key, value);
  } catch {
    // See above.
  }
}
