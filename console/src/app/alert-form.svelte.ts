// The fields of an alert's definition as text, and the terms that they make.
import type { AlertDefinition, NewAlertDefinition } from "../api/types";
import type { Target } from "./alert-terms";
import { zoneName } from "./time";

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

  terms(): Target {
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

/** A field that must hold a number: what is wrong is said with the field's name. */
function number(text: string, field: string): number {
  const value = Number(text.trim().replace(",", "."));
  if (text.trim() === "" || !Number.isFinite(value)) throw new Error(`${field}: “${text}” is not a number.`);
  return value;
}

function optional(text: string, field: string): number | null {
  return text.trim() === "" ? null : number(text, field);
}

export class AlertForm {
  name = $state("");
  source = $state<NewAlertDefinition["source"]>("sensors");
  enabled = $state(true);
  kind = $state<"threshold" | "rate" | "absence">("threshold");
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

  fill(definition: AlertDefinition): void {
    const text = (value: number | null | undefined): string => (value === null || value === undefined ? "" : String(value));
    this.name = definition.name;
    this.source = definition.source;
    this.enabled = definition.enabled;
    const condition = definition.condition;
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
    } else {
      this.kind = "absence";
      this.afterSecs = text(condition.absence.after_secs);
    }
    const devices = definition.devices;
    this.scope = !devices ? "all" : "listed" in devices ? "listed" : "prefix";
    this.devices = !devices ? "" : "listed" in devices ? devices.listed.join(" ") : devices.prefix;
    this.whereAttribute = definition.where?.attribute ?? "";
    this.whereEquals = definition.where?.equals ?? "";
    this.targets = (definition.targets ?? []).map((target) => new TargetFields(target));
    this.minIntervalSecs = definition.min_interval_secs ? String(definition.min_interval_secs) : "";
    this.quietFrom = definition.quiet?.from ?? "";
    this.quietTo = definition.quiet?.to ?? "";
    this.quietZone = definition.quiet?.zone ?? zoneName;
  }

  terms(): NewAlertDefinition {
    return {
      name: this.name.trim(),
      source: this.source,
      enabled: this.enabled,
      condition: this.#condition(),
      devices:
        this.scope === "all"
          ? null
          : this.scope === "listed"
            ? { listed: this.devices.split(/[\s,]+/).filter(Boolean) }
            : { prefix: this.devices.trim() },
      where: this.whereAttribute.trim() ? { attribute: this.whereAttribute.trim(), equals: this.whereEquals } : null,
      targets: this.targets.map((target) => target.terms()),
      min_interval_secs: optional(this.minIntervalSecs, "At most once in seconds"),
      quiet: this.quietFrom ? { from: this.quietFrom, to: this.quietTo, zone: this.quietZone.trim() } : null,
    };
  }

  #condition(): NewAlertDefinition["condition"] {
    const attribute = this.attribute.trim();
    if (this.kind === "absence") return { absence: { after_secs: number(this.afterSecs, "Silent for seconds") } };
    if (this.kind === "rate") {
      return {
        rate: {
          attribute,
          direction: this.direction,
          per_minute: number(this.perMinute, "By more than, a minute"),
          clear_per_minute: optional(this.clearPerMinute, "Over again at"),
          window_secs: number(this.windowSecs, "Compared over seconds"),
        },
      };
    }
    return {
      threshold: {
        attribute,
        side: this.side,
        raise: number(this.raise, "Limit"),
        clear: optional(this.clear, "Over again at"),
        for_secs: optional(this.forSecs, "For seconds"),
        count: optional(this.count, "Values in a row"),
      },
    };
  }
}
