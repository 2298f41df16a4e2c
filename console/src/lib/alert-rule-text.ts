// Describes an alert rule in words.
import type { NewAlertRule } from "../api/types";
import { formatDuration } from "./time";

export type Condition = NewAlertRule["condition"];
export type Devices = NewAlertRule["devices"];
export type Target = NonNullable<NewAlertRule["targets"]>[number];

function describeHold(secs: number | null | undefined, count: number | null | undefined): string {
  const time = secs ? ` for ${formatDuration(secs * 1000)}` : "";
  return time + (count && count > 1 ? `, ${count} consecutive values` : "");
}

export function describeCondition(condition: Condition): string {
  if ("threshold" in condition) {
    const { attribute, side, raise, clear, for_secs, count } = condition.threshold;
    let text = `${attribute} ${side} ${raise}${describeHold(for_secs, count)}`;
    if (clear !== null && clear !== undefined) text += `, clear at ${clear}`;
    return text;
  }
  if ("absence" in condition) return `silent for ${formatDuration(condition.absence.after_secs * 1000)}`;
  if ("equality" in condition) {
    const { attribute, operator, value, for_secs, count } = condition.equality;
    return `${attribute} ${operator === "equals" ? "equals" : "differs from"} ${JSON.stringify(value)}${describeHold(for_secs, count)}`;
  }
  if ("change" in condition) return `${condition.change.attribute} changes`;
  if ("fault" in condition) return `fault in ${condition.fault.attribute}${describeHold(condition.fault.for_secs, condition.fault.count)}`;
  const { attribute, direction, per_minute, window_secs } = condition.rate;
  const verb = direction === "either" ? "changes" : direction === "rise" ? "rises" : "falls";
  return `${attribute} ${verb} by ${per_minute} per minute over ${formatDuration(window_secs * 1000)}`;
}

export function describeDevices(devices: Devices): string {
  if (!devices) return "all";
  return "listed" in devices ? devices.listed.join(", ") : `ids that begin with ${devices.prefix}`;
}

export function describeTarget(target: Target): string {
  if ("push" in target) return `push to ${target.push.user_id}`;
  if ("webhook" in target) return target.webhook.url;
  if ("email" in target) return target.email.to;
  return target.mqtt.topic ? `MQTT ${target.mqtt.topic}` : "MQTT";
}
