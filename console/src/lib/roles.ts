// Roles as text, and back from what is typed.
import type { Role, System } from "../api/types";

export const ROLES = ["viewer", "operator", "administrator"] as const;

/** The limits of a role in one line: systems, groups and devices. */
export function describeRole(role: Role): string {
  const limits = [...(role.systems ?? []), ...(role.groups ?? []), ...(role.devices ?? [])];
  return limits.length === 0 ? role.role : `${role.role} of ${limits.join(", ")}`;
}

const SYSTEMS: readonly string[] = ["sensors", "chargers", "telemetry", "records", "push"];

/** Sorts limits: a system, a device as `system/device`, or a group of records. */
export function roleOf(role: string, limits: string): Role {
  const entries = limits.split(/[\s,]+/).filter(Boolean);
  return {
    role: role as Role["role"],
    systems: entries.filter((entry): entry is System => SYSTEMS.includes(entry)),
    devices: entries.filter((entry) => entry.includes("/")),
    groups: entries.filter((entry) => !SYSTEMS.includes(entry) && !entry.includes("/")),
  };
}
