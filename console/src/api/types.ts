// Names for the types of requests and responses. They come from the server's OpenAPI document, through `schema.d.ts`.
import type { components } from "./schema";

type Schemas = components["schemas"];

export type Alert = Schemas["Alert"];
export type AlertWithTrace = Schemas["AlertWithTrace"];
export type AlertList = Schemas["AlertList"];
export type AlertNotification = Schemas["AlertNotification"];
export type AlertTest = Schemas["AlertTest"];
export type AcknowledgedAlerts = Schemas["AcknowledgedAlerts"];
// The API calls an alert rule an alert definition.
export type AlertRule = Schemas["AlertDefinition"];
export type AlertRuleList = Schemas["AlertDefinitionList"];
export type NewAlertRule = Schemas["NewAlertDefinition"];
export type AlertPreview = Schemas["AlertPreview"];
export type Severity = Schemas["Severity"];
export type ApiKey = Schemas["ApiKeyBody"];
export type ApiKeyList = Schemas["ApiKeyList"];
export type CreateApiKey = Schemas["CreateApiKey"];
export type CreatedApiKey = Schemas["CreatedApiKey"];
export type CurrentSession = Schemas["CurrentSession"];
export type Me = Schemas["Me"];
export type Role = Schemas["Role"];
export type Person = Schemas["Person"];
export type PersonList = Schemas["PersonList"];
export type CreatedPerson = Schemas["CreatedPerson"];
export type Session = Schemas["Session"];
export type SessionList = Schemas["SessionList"];
export type PersonalToken = Schemas["PersonalToken"];
export type TokenList = Schemas["TokenList"];
export type CreatedToken = Schemas["CreatedToken"];
export type SecondFactorSecret = Schemas["SecondFactorSecret"];
export type RecoveryCodeList = Schemas["RecoveryCodeList"];
export type ChargerEventList = Schemas["ChargerEventList"];
export type DailyList = Schemas["DailyList"];
export type TelemetryMessageList = Schemas["TelemetryMessageList"];
export type Rule = Schemas["Rule"];
export type RuleList = Schemas["RuleList"];
export type RuleVersion = Schemas["RuleVersion"];
export type RuleVersionList = Schemas["RuleVersionList"];
export type RuleErrorList = Schemas["RuleErrorList"];
export type RuleReplay = Schemas["RuleReplay"];
export type ReplayedMessage = Schemas["ReplayedMessage"];
export type ReplayedWrite = Schemas["ReplayedWrite"];
export type StatementTestResult = Schemas["StatementTestResult"];
export type PushDevice = Schemas["PushDevice"];
export type PushDeviceList = Schemas["PushDeviceList"];
export type PushCheck = Schemas["PushCheck"];
export type Broadcast = Schemas["Broadcast"];
export type BroadcastList = Schemas["BroadcastList"];
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

export type System = Schemas["DeviceSystem"];
export type Health = Schemas["DeviceHealth"];
export type Overview = Schemas["Overview"];
export type DeviceRow = Schemas["FleetDevice"];
export type DevicePage = Schemas["FleetDeviceList"];
export type DeviceDetail = Schemas["FleetDeviceView"];
export type TimelineType = Schemas["TimelineEntryType"];

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

// The OpenAPI document describes items as any object and points as lists of numbers. These types are more precise.
export type TimelineEntry = Omit<Schemas["TimelineEntry"], "item"> & { item: Item };
export type LiveChange = TimelineEntry & Omit<Schemas["LiveChange"], keyof Schemas["TimelineEntry"]>;
export type TimelinePage = Omit<Schemas["Timeline"], "entries"> & { entries: TimelineEntry[] };
export type ItemPage = Omit<Schemas["TableItemList"], "items"> & { items: Item[] };

/** Time in milliseconds, minimum, maximum, mean and number of values of one bucket. */
export type SeriesPoint = [number, number, number, number, number];
export type Series = Omit<Schemas["Series"], "points"> & { points: SeriesPoint[] };
export type SeriesResponse = Omit<Schemas["DeviceSeries"], "series"> & { series: Series[] };

export type KeyType = "S" | "N" | "B";
export interface KeyAttribute {
  name: string;
  type: KeyType;
}
export interface TableKeys {
  partition: KeyAttribute;
  sort?: KeyAttribute | null;
}
export type TableIndex = Omit<Schemas["TableIndex"], "keys"> & { keys: TableKeys };
export type TableDescription = Omit<Schemas["Table"], "keys" | "indexes"> & { keys: TableKeys; indexes: TableIndex[] };
