// Formats times for people. Every time is shown with its zone.

const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;

/** The name of the browser's time zone: `Europe/Berlin`. */
export const zoneName = zone;

const localFormat = new Intl.DateTimeFormat(undefined, {
  year: "numeric",
  month: "2-digit",
  day: "2-digit",
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  hourCycle: "h23",
  timeZoneName: "short",
});

const pad = (value: number, digits = 2): string => String(value).padStart(digits, "0");

export type Instant = string | number | Date;

export function toDate(at: Instant): Date {
  return at instanceof Date ? at : new Date(at);
}

export function isValidInstant(at: Instant): boolean {
  return !Number.isNaN(toDate(at).getTime());
}

/** `2026-11-16 12:24:17 CET`, in the browser's time zone. */
export function formatLocal(at: Instant): string {
  const date = toDate(at);
  if (Number.isNaN(date.getTime())) return String(at);
  const parts = Object.fromEntries(localFormat.formatToParts(date).map((part) => [part.type, part.value]));
  return `${parts.year}-${parts.month}-${parts.day} ${parts.hour}:${parts.minute}:${parts.second} ${parts.timeZoneName}`;
}

/** `2026-11-16 11:24:17.101 UTC`. */
export function formatUtc(at: Instant): string {
  const date = toDate(at);
  if (Number.isNaN(date.getTime())) return String(at);
  const day = `${date.getUTCFullYear()}-${pad(date.getUTCMonth() + 1)}-${pad(date.getUTCDate())}`;
  const millis = date.getUTCMilliseconds();
  const time = `${pad(date.getUTCHours())}:${pad(date.getUTCMinutes())}:${pad(date.getUTCSeconds())}`;
  return `${day} ${time}${millis ? `.${pad(millis, 3)}` : ""} UTC`;
}

const STEPS: [number, string][] = [
  [60, "s"],
  [60, "min"],
  [24, "h"],
  [Number.POSITIVE_INFINITY, "d"],
];

/** `12 s`, `5 min`, `3 h`, `40 d`. */
export function formatDuration(millis: number): string {
  let value = Math.max(0, millis) / 1000;
  for (const [size, unit] of STEPS) {
    if (value < size) return `${Math.floor(value)} ${unit}`;
    value /= size;
  }
  return "";
}

export function formatAgo(at: Instant, now: number): string {
  const millis = now - toDate(at).getTime();
  if (Number.isNaN(millis)) return String(at);
  if (millis < -1500) return `in ${formatDuration(-millis)}`;
  return millis < 1500 ? "just now" : `${formatDuration(millis)} ago`;
}

/** The value of an `<input type="datetime-local">`, in the browser's time zone. */
export function toLocalInput(at: Instant): string {
  const date = toDate(at);
  const day = `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}`;
  return `${day}T${pad(date.getHours())}:${pad(date.getMinutes())}`;
}

/** Milliseconds of such a value; null if it is empty or invalid. */
export function fromLocalInput(text: string): number | null {
  const millis = new Date(text).getTime();
  return text === "" || Number.isNaN(millis) ? null : millis;
}
