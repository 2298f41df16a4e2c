// Names for the shapes of answers. All but the loose ones come from the server's OpenAPI document, through `schema.d.ts`.
import type { components } from "./schema";

type Schemas = components["schemas"];

export type Alert = Schemas["Alert"];
export type AlertWithTrace = Schemas["AlertWithTrace"];
export type AlertList = Schemas["AlertList"];
export type AlertDefinition = Schemas["AlertDefinition"];
export type AlertDefinitionList = Schemas["AlertDefinitionList"];
export type NewAlertDefinition = Schemas["NewAlertDefinition"];
export type ApiKey = Schemas["ApiKeyBody"];
export type ApiKeyList = Schemas["ApiKeyList"];
export type CreateApiKey = Schemas["CreateApiKey"];
export type CreatedApiKey = Schemas["CreatedApiKey"];
export type ChargerEventList = Schemas["ChargerEventList"];
export type TelemetryMessageList = Schemas["TelemetryMessageList"];
export type Rule = Schemas["Rule"];
export type RuleList = Schemas["RuleList"];
export type RuleVersion = Schemas["RuleVersion"];
export type RuleVersionList = Schemas["RuleVersionList"];
export type RuleErrorList = Schemas["RuleErrorList"];
export type StatementTestResult = Schemas["StatementTestResult"];
export type PushDevice = Schemas["PushDevice"];
export type PushDeviceList = Schemas["PushDeviceList"];
export type PushCheck = Schemas["PushCheck"];
export type PushNotification = Schemas["Notification"];
export type PushNotificationList = Schemas["NotificationList"];
export type Group = Schemas["Group"];
export type GroupList = Schemas["GroupList"];
export type GroupDevice = Schemas["GroupDevice"];
export type GroupDeviceList = Schemas["GroupDeviceList"];
export type Journal = Schemas["Journal"];
export type JournalList = Schemas["JournalList"];
export type JournalRecord = Schemas["Record"];
export type RecordList = Schemas["RecordList"];

export type System = "sensors" | "chargers" | "telemetry" | "records" | "push";
export type Health = "online" | "late" | "silent";

/** An attribute value as DynamoDB writes it: `{"S": "text"}`. */
export type AttributeValue =
  | { S: string }
  | { N: string }
  | { B: string }
  | { BOOL: boolean }
  | { NULL: true }
  | { SS: string[] }
  | { NS: string[] }
  | { BS: string[] }
  | { L: AttributeValue[] }
  | { M: Record<string, AttributeValue> };
export type Item = Record<string, AttributeValue>;

/** One thing that happened to a device. */
export interface TimelineEntry {
  id: string;
  at: string;
  type: string;
  title: string;
  table: string;
  item: Item;
}

export interface Overview {
  version: string;
  startedAt: string;
  systems: { system: System; devices: number; online: number; late: number; silent: number }[];
  ingest: { stored: number; duplicates: number; rejected: number };
  alerts: { open: number; unacknowledged: number };
  storage: { bytes: number; tables: { name: string; items: number; bytes: number }[] };
  commit: { count: number; meanMs: number; p50Ms: number; p99Ms: number };
}

export interface DeviceRow {
  system: System;
  id: string;
  name?: string | null;
  kind?: string | null;
  lastSeenAt?: string | null;
  health: Health;
  group?: string | null;
}

export interface DevicePage {
  devices: DeviceRow[];
  cursor?: string | null;
}

export interface DeviceDetail {
  system: System;
  id: string;
  identity: Record<string, unknown>;
  state: Record<string, unknown>;
  latest: { name: string; value: unknown; unit?: string | null; at: string }[];
  health: Health;
  lastSeenAt?: string | null;
}

/** Time in milliseconds, least, greatest, mean, and how many values they stand for. */
export type SeriesPoint = [number, number, number, number, number];

export interface Series {
  name: string;
  unit?: string | null;
  points: SeriesPoint[];
}

export interface SeriesAnswer {
  from: string;
  to: string;
  bucketMs: number;
  series: Series[];
}

export interface TimelinePage {
  entries: TimelineEntry[];
  cursor?: string | null;
}

export interface KeyAttribute {
  name: string;
  type: "S" | "N" | "B";
}

export interface TableKeys {
  partition: KeyAttribute;
  sort?: KeyAttribute | null;
}

export interface TableDescription {
  name: string;
  status: string;
  items: number;
  bytes: number;
  keys: TableKeys;
  indexes: { name: string; keys: TableKeys; projection?: string }[];
}

export interface ItemPage {
  items: Item[];
  cursor?: string | null;
  scanned: number;
}
