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
