// The terms of an alert's definition in words.
import type { NewAlertDefinition } from "../api/types";
import { duration } from "./time";

export type Condition = NewAlertDefinition["condition"];
export type Devices = NewAlertDefinition["devices"];
export type Target = NonNullable<NewAlertDefinition["targets"]>[number];

export function describeCondition(condition: Condition): string {
  if ("threshold" in condition) {
    const { attribute, side, raise, clear, for_secs, count } = condition.threshold;
    let text = `${attribute} ${side} ${raise}`;
    if (for_secs) text += ` for ${duration(for_secs * 1000)}`;
    if (count) text += `, ${count} times`;
    if (clear !== null && clear !== undefined) text += `, until ${clear}`;
    return text;
  }
  if ("absence" in condition) return `silent for ${duration(condition.absence.after_secs * 1000)}`;
  const { attribute, direction, per_minute, window_secs } = condition.rate;
  const verb = direction === "either" ? "changes" : direction === "rise" ? "rises" : "falls";
  return `${attribute} ${verb} by ${per_minute} a minute over ${duration(window_secs * 1000)}`;
}

export function describeDevices(devices: Devices): string {
  if (!devices) return "all";
  return "listed" in devices ? devices.listed.join(", ") : `those that begin with ${devices.prefix}`;
}

export function describeTarget(target: Target): string {
  if ("push" in target) return `phones of ${target.push.user_id}`;
  if ("webhook" in target) return target.webhook.url;
  if ("email" in target) return target.email.to;
  return target.mqtt.topic ? `MQTT ${target.mqtt.topic}` : "MQTT";
}
