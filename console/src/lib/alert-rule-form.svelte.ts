// The fields of the alert rule form as text, and the request body that they make.
import type { AlertRule, NewAlertRule, Severity } from "../api/types";
import type { Target } from "./alert-rule-text";
import { zoneName } from "./time";

/** Labels of the numeric fields, which errors repeat. */
export const LABELS = {
  threshold: "Threshold",
  clear: "Clear when back at",
  forSecs: "Minimum duration in seconds",
  count: "Consecutive values",
  perMinute: "Change per minute",
  clearPerMinute: "Clear when back at, per minute",
  window: "Time window in seconds",
  silentFor: "Time without data in seconds",
  clearAfter: "Clear after seconds without a change",
  value: "Value",
  cooldown: "Cooldown per device in seconds",
} as const;

type TargetKind = "push" | "webhook" | "email" | "mqtt";

class TargetFields {
  kind = $state<TargetKind>("push");
  to = $state("");
  secret = $state("");

  constructor(target?: Target) {
    if (!target) return;
    if ("push" in target) this.to = target.push.user_id;
    else if ("webhook" in target) {
      this.kind = "webhook";
      this.to = target.webhook.url;
    } else if ("email" in target) {
      this.kind = "email";
      this.to = target.email.to;
    } else {
      this.kind = "mqtt";
      this.to = target.mqtt.topic ?? "";
    }
  }

  toTarget(): Target {
    const to = this.to.trim();
    switch (this.kind) {
      case "push":
        return { push: { user_id: to } };
      case "webhook":
        return { webhook: this.secret ? { url: to, secret: this.secret } : { url: to } };
      case "email":
        return { email: { to } };
      case "mqtt":
        return { mqtt: to ? { topic: to } : {} };
    }
  }
}

/** Parses a number; the error names the field. */
function parseNumber(text: string, field: string): number {
  const value = Number(text.trim().replace(",", "."));
  if (text.trim() === "" || !Number.isFinite(value)) throw new Error(`${field}: “${text}” is not a number.`);
  return value;
}

function parseOptionalNumber(text: string, field: string): number | null {
  return text.trim() === "" ? null : parseNumber(text, field);
}

export class AlertRuleForm {
  name = $state("");
  source = $state<NewAlertRule["source"]>("sensors");
  enabled = $state(true);
  severity = $state<Severity>("warning");
  kind = $state<"threshold" | "rate" | "absence" | "equality" | "change" | "fault">("threshold");
  attribute = $state("");
  side = $state<"below" | "above">("below");
  raise = $state("");
  clear = $state("");
  forSecs = $state("");
  count = $state("");
  direction = $state<"rise" | "fall" | "either">("rise");
  perMinute = $state("");
  clearPerMinute = $state("");
  windowSecs = $state("300");
  afterSecs = $state("600");
  operator = $state<"equals" | "differs">("equals");
  valueType = $state<"text" | "number" | "boolean">("text");
  value = $state("");
  clearAfterSecs = $state("");
  scope = $state<"all" | "listed" | "prefix">("all");
  devices = $state("");
  whereAttribute = $state("");
  whereEquals = $state("");
  targets = $state<TargetFields[]>([]);
  minIntervalSecs = $state("");
  quietFrom = $state("");
  quietTo = $state("");
  quietZone = $state(zoneName);

  addTarget(): void {
    this.targets.push(new TargetFields());
  }

  removeTarget(index: number): void {
    this.targets.splice(index, 1);
  }

  fill(rule: AlertRule): void {
    const text = (value: number | null | undefined): string => (value === null || value === undefined ? "" : String(value));
    this.name = rule.name;
    this.source = rule.source;
    this.enabled = rule.enabled;
    this.severity = rule.severity;
    const condition = rule.condition;
    if ("threshold" in condition) {
      this.kind = "threshold";
      this.attribute = condition.threshold.attribute;
      this.side = condition.threshold.side;
      this.raise = text(condition.threshold.raise);
      this.clear = text(condition.threshold.clear);
      this.forSecs = text(condition.threshold.for_secs);
      this.count = text(condition.threshold.count);
    } else if ("rate" in condition) {
      this.kind = "rate";
      this.attribute = condition.rate.attribute;
      this.direction = condition.rate.direction;
      this.perMinute = text(condition.rate.per_minute);
      this.clearPerMinute = text(condition.rate.clear_per_minute);
      this.windowSecs = text(condition.rate.window_secs);
    } else if ("equality" in condition) {
      const { attribute, operator, value, for_secs, count } = condition.equality;
      this.kind = "equality";
      this.attribute = attribute;
      this.operator = operator;
      this.valueType = typeof value === "number" ? "number" : typeof value === "boolean" ? "boolean" : "text";
      this.value = String(value);
      this.forSecs = text(for_secs);
      this.count = text(count);
    } else if ("change" in condition) {
      this.kind = "change";
      this.attribute = condition.change.attribute;
      this.clearAfterSecs = text(condition.change.clear_after_secs);
    } else if ("fault" in condition) {
      this.kind = "fault";
      this.attribute = condition.fault.attribute;
      this.forSecs = text(condition.fault.for_secs);
      this.count = text(condition.fault.count);
    } else {
      this.kind = "absence";
      this.afterSecs = text(condition.absence.after_secs);
    }
    const devices = rule.devices;
    this.scope = !devices ? "all" : "listed" in devices ? "listed" : "prefix";
    this.devices = !devices ? "" : "listed" in devices ? devices.listed.join(" ") : devices.prefix;
    this.whereAttribute = rule.where?.attribute ?? "";
    this.whereEquals = rule.where?.equals ?? "";
    this.targets = (rule.targets ?? []).map((target) => new TargetFields(target));
    this.minIntervalSecs = rule.min_interval_secs ? String(rule.min_interval_secs) : "";
    this.quietFrom = rule.quiet?.from ?? "";
    this.quietTo = rule.quiet?.to ?? "";
    this.quietZone = rule.quiet?.zone ?? zoneName;
  }

  toRequest(): NewAlertRule {
    return {
      name: this.name.trim(),
      source: this.source,
      enabled: this.enabled,
      severity: this.severity,
      condition: this.#condition(),
      devices:
        this.scope === "all"
          ? null
          : this.scope === "listed"
            ? { listed: this.devices.split(/[\s,]+/).filter(Boolean) }
            : { prefix: this.devices.trim() },
      where: this.whereAttribute.trim() ? { attribute: this.whereAttribute.trim(), equals: this.whereEquals } : null,
      targets: this.targets.map((target) => target.toTarget()),
      min_interval_secs: parseOptionalNumber(this.minIntervalSecs, LABELS.cooldown),
      quiet: this.quietFrom ? { from: this.quietFrom, to: this.quietTo, zone: this.quietZone.trim() } : null,
    };
  }

  #condition(): NewAlertRule["condition"] {
    const attribute = this.attribute.trim();
    if (this.kind === "absence") return { absence: { after_secs: parseNumber(this.afterSecs, LABELS.silentFor) } };
    if (this.kind === "rate") {
      return {
        rate: {
          attribute,
          direction: this.direction,
          per_minute: parseNumber(this.perMinute, LABELS.perMinute),
          clear_per_minute: parseOptionalNumber(this.clearPerMinute, LABELS.clearPerMinute),
          window_secs: parseNumber(this.windowSecs, LABELS.window),
        },
      };
    }
    if (this.kind === "change") {
      return { change: { attribute, clear_after_secs: parseOptionalNumber(this.clearAfterSecs, LABELS.clearAfter) } };
    }
    const for_secs = parseOptionalNumber(this.forSecs, LABELS.forSecs);
    const count = parseOptionalNumber(this.count, LABELS.count);
    if (this.kind === "fault") return { fault: { attribute, for_secs, count } };
    if (this.kind === "equality") return { equality: { attribute, operator: this.operator, value: this.#value(), for_secs, count } };
    return {
      threshold: {
        attribute,
        side: this.side,
        raise: parseNumber(this.raise, LABELS.threshold),
        clear: parseOptionalNumber(this.clear, LABELS.clear),
        for_secs,
        count,
      },
    };
  }

  #value(): string | number | boolean {
    if (this.valueType === "number") return parseNumber(this.value, LABELS.value);
    if (this.valueType === "text") return this.value;
    if (this.value !== "true" && this.value !== "false") throw new Error(`${LABELS.value}: choose true or false.`);
    return this.value === "true";
  }
}
