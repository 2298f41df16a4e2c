//! Entries of a timeline: what happened according to an item, to which device, when, and a title. The timeline
//! makes entries of stored items and the live feed of changes, so both show the same.

use std::str::FromStr;

use homeport_item::schema::{StreamView, TableSchema};
use homeport_item::{Item, Value};
use homeport_store::{Change, ChangeKind};

use super::gather::{integer, moment, text};
use super::name::{self, SystemName};
use super::rows::Row;
use super::samples::samples;
use crate::chargers::Event;
use crate::records::{RecordIds, journal_of_record};
use crate::schema::TableNames;
use crate::sensors::InvalidField;
use crate::time::EpochMillis;
use crate::{alerts, chargers, plain_json, push, records, sensors, telemetry};

/// Values that a title shows.
const TITLE_VALUES_MAX: usize = 3;
/// Characters of a title.
const TITLE_CHARS_MAX: usize = 160;

/// The type of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EntryType {
    Telemetry,
    State,
    Ota,
    Scheduler,
    Alert,
    Notification,
    Command,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Unique, and the same in the timeline and in the live feed.
    pub id: String,
    pub at: EpochMillis,
    pub kind: EntryType,
    pub title: String,
    pub table: String,
    pub item: Item,
}

/// Something that just happened.
#[derive(Debug, Clone, PartialEq)]
pub struct LiveEntry {
    pub system: SystemName,
    /// All devices that the entry belongs to. A notification can go to several.
    pub devices: Vec<String>,
    pub change: ChangeKind,
    pub entry: Entry,
}

/// The tables whose changes are entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Followed {
    Readings,
    Sensors,
    ChargerEvents,
    ChargerStates,
    Telemetry,
    Records,
    Alerts,
    Notifications,
    Phones,
}

impl EntryType {
    pub const ALL: [Self; 7] = [
        Self::Telemetry,
        Self::State,
        Self::Ota,
        Self::Scheduler,
        Self::Alert,
        Self::Notification,
        Self::Command,
    ];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Telemetry => "telemetry",
            Self::State => "state",
            Self::Ota => "ota",
            Self::Scheduler => "scheduler",
            Self::Alert => "alert",
            Self::Notification => "notification",
            Self::Command => "command",
        }
    }

    /// The type that the words of a message or event type suggest.
    fn of_word(name: &str) -> Self {
        let name = name.to_ascii_lowercase();
        let mut kind = Self::Telemetry;
        for word in name.split(['_', '-', '.', '/', ' ']) {
            kind = match word {
                "ota" | "firmware" => return Self::Ota,
                "schedule" | "scheduler" => return Self::Scheduler,
                "command" | "commands" | "downlink" => return Self::Command,
                "alert" | "alerts" | "alarm" | "fault" => return Self::Alert,
                "state" | "status" | "sync" | "divergence" | "boot" | "online" | "offline" => {
                    Self::State
                }
                _ => kind,
            };
        }
        kind
    }
}

impl FromStr for EntryType {
    type Err = InvalidField;

    fn from_str(text: &str) -> Result<Self, InvalidField> {
        let mut all = Self::ALL.into_iter();
        all.find(|kind| kind.as_str() == text).ok_or(InvalidField {
            field: "types",
            expected: "a comma-separated list of telemetry, state, ota, scheduler, alert, notification and command",
        })
    }
}

impl Followed {
    pub const ALL: [Self; 9] = [
        Self::Readings,
        Self::Sensors,
        Self::ChargerEvents,
        Self::ChargerStates,
        Self::Telemetry,
        Self::Records,
        Self::Alerts,
        Self::Notifications,
        Self::Phones,
    ];

    /// The system whose devices it is about. Alerts name their system themselves.
    #[must_use]
    pub fn system(self) -> Option<SystemName> {
        match self {
            Self::Readings | Self::Sensors => Some(SystemName::Sensors),
            Self::ChargerEvents | Self::ChargerStates => Some(SystemName::Chargers),
            Self::Telemetry => Some(SystemName::Telemetry),
            Self::Records => Some(SystemName::Records),
            Self::Notifications | Self::Phones => Some(SystemName::Push),
            Self::Alerts => None,
        }
    }

    /// The table with the stream that entries need.
    #[must_use]
    pub fn schema(self, names: &TableNames) -> TableSchema {
        let mut schema = match self {
            Self::Readings => sensors::schema::device_readings(),
            Self::Sensors => sensors::schema::devices(),
            Self::ChargerEvents => chargers::schema::events(),
            Self::ChargerStates => chargers::schema::device_state(),
            Self::Telemetry => telemetry::schema::telemetry(&names.telemetry),
            Self::Records => records::schema::table(&names.records),
            Self::Alerts => alerts::schema::alerts(),
            Self::Notifications => push::schema::notifications(),
            Self::Phones => push::schema::device_tokens(&names.device_tokens),
        };
        schema.stream.get_or_insert(match self {
            // Only a comparison with the old state shows what has changed.
            Self::ChargerStates => StreamView::NewAndOldImages,
            _ => StreamView::NewImage,
        });
        schema
    }

    /// The entry of a change; `None` for changes that people do not need to see.
    pub(crate) fn entry(
        self,
        names: &TableNames,
        ids: Option<&RecordIds>,
        change: &Change,
    ) -> Option<LiveEntry> {
        let item = change.new.as_ref().or(change.old.as_ref());
        let item = item.unwrap_or(&change.key);
        let (system, devices, mut entry) = match self {
            Self::Readings => {
                let device = text(item, sensors::schema::HARDWARE_ID)?;
                (SystemName::Sensors, vec![device.to_owned()], reading(item)?)
            }
            Self::Sensors => {
                let device = text(item, sensors::schema::HARDWARE_ID)?;
                let entry = sensor_change(device, item, change)?;
                (SystemName::Sensors, vec![device.to_owned()], entry)
            }
            Self::ChargerEvents => {
                let device = text(item, chargers::schema::DEVICE_ID)?;
                (SystemName::Chargers, vec![device.to_owned()], event(item)?)
            }
            Self::ChargerStates => {
                let device = text(item, chargers::schema::DEVICE_ID)?;
                let entry = state_change(device, change)?;
                (SystemName::Chargers, vec![device.to_owned()], entry)
            }
            Self::Telemetry => {
                let device = text(item, telemetry::schema::THING_NAME)?;
                let entry = message(&names.telemetry, item)?;
                (SystemName::Telemetry, vec![device.to_owned()], entry)
            }
            Self::Records => {
                let (group, device, _) = journal_of_record(item)?;
                let device = name::record_device(ids?, group, device);
                let entry = record(&names.records, None, item)?;
                (SystemName::Records, vec![device], entry)
            }
            Self::Alerts => {
                let (system, device) = alerted(item)?;
                let entries = alert(item).into_iter();
                (system, vec![device], entries.max_by_key(|entry| entry.at)?)
            }
            Self::Notifications => {
                let (devices, entry) = notification(item)?;
                (SystemName::Push, devices, entry)
            }
            Self::Phones => {
                let user = text(item, push::schema::USER_ID)?;
                let device = text(item, push::schema::DEVICE_ID)?;
                let entry = phone_change(names, item, change);
                (SystemName::Push, vec![name::join(user, device)], entry)
            }
        };
        if change.kind == ChangeKind::Remove {
            let why = if change.by_expiry {
                "Expired"
            } else {
                "Removed"
            };
            entry.title = shortened(&format!("{why}: {}", entry.title));
            entry.at = EpochMillis(change.at_ms);
        }
        Some(LiveEntry {
            system,
            devices,
            change: change.kind,
            entry,
        })
    }
}

/// A reading of a sensor.
pub(super) fn reading(item: &Item) -> Option<Entry> {
    use sensors::schema;
    let sort = text(item, schema::TS_BATCH)?;
    let at = integer(item, schema::TIMESTAMP_MS);
    // Of a removed reading only the key is left.
    let at = at.or_else(|| sort.split('#').next()?.parse().ok())?;
    let at = EpochMillis(at);
    Some(Entry {
        id: format!(
            "{}/{}/{sort}",
            schema::DEVICE_READINGS,
            text(item, schema::HARDWARE_ID)?
        ),
        at,
        kind: EntryType::Telemetry,
        title: title(SystemName::Sensors, at, item, "Reading"),
        table: schema::DEVICE_READINGS.to_owned(),
        item: item.clone(),
    })
}

/// An event of a charger.
pub(super) fn event(item: &Item) -> Option<Entry> {
    use chargers::schema;
    let event = Event::from_item(item).ok()?;
    let word = event.event_type.as_str();
    Some(Entry {
        id: format!(
            "{}/{}/{}",
            schema::EVENTS,
            event.device_id,
            event.timestamp_mt
        ),
        at: event.timestamp_utc,
        kind: EntryType::of_word(word),
        title: title(SystemName::Chargers, event.timestamp_utc, item, word),
        table: schema::EVENTS.to_owned(),
        item: item.clone(),
    })
}

/// A message of a thing.
pub(super) fn message(table: &str, item: &Item) -> Option<Entry> {
    use telemetry::schema;
    let at = integer(item, schema::TIMESTAMP)?;
    let word = text(item, schema::MESSAGE_TYPE).unwrap_or("message");
    Some(Entry {
        // Thirteen digits, so that the ids of one thing sort by time.
        id: format!("{table}/{}/{at:013}", text(item, schema::THING_NAME)?),
        at: EpochMillis(at),
        kind: EntryType::of_word(word),
        title: title(SystemName::Telemetry, EpochMillis(at), item, word),
        table: table.to_owned(),
        item: item.clone(),
    })
}

/// A record under the name of its journal, if known.
pub(super) fn record(table: &str, journal: Option<&str>, item: &Item) -> Option<Entry> {
    use records::schema;
    let (partition, sort) = (text(item, schema::PK)?, text(item, schema::SK)?);
    let at = integer(item, schema::TIMESTAMP);
    let at = at.or_else(|| sort.split('#').nth(3)?.parse().ok())?;
    let value = item.get(schema::VALUE).map(plain_json::value);
    let unit = text(item, schema::UNIT).unwrap_or_default();
    let what = journal
        .or_else(|| text(item, schema::TYPE))
        .unwrap_or("Record");
    Some(Entry {
        id: format!("{table}/{partition}/{sort}"),
        at: EpochMillis(at),
        kind: EntryType::Telemetry,
        title: shortened(format!("{what}: {} {unit}", value.unwrap_or_default()).trim_end()),
        table: table.to_owned(),
        item: item.clone(),
    })
}

/// The steps of an alert: raised, perhaps acknowledged, perhaps cleared.
pub(super) fn alert(item: &Item) -> Vec<Entry> {
    use alerts::schema;
    let Some(id) = text(item, schema::ALERT_ID) else {
        return Vec::new();
    };
    let name = text(item, schema::DEFINITION_NAME).unwrap_or(id);
    let words = |attribute: &str| text(item, attribute).unwrap_or_default();
    let step = |word: &str, at: &str, what: String| {
        Some(Entry {
            id: format!("{}/{id}/{word}", schema::ALERTS),
            at: EpochMillis(integer(item, at)?),
            kind: EntryType::Alert,
            title: shortened(&format!("Alert {word}: {name}{what}")),
            table: schema::ALERTS.to_owned(),
            item: item.clone(),
        })
    };
    [
        step(
            "raised",
            schema::RAISED_AT,
            format!(", {}", words(schema::REASON)),
        ),
        step(
            "acknowledged",
            schema::ACKNOWLEDGED_AT,
            format!(" by {}", words(schema::ACKNOWLEDGED_BY)),
        ),
        step(
            "cleared",
            schema::CLEARED_AT,
            format!(", {}", words(schema::CLEAR_REASON)),
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The system and the device of an alert.
fn alerted(item: &Item) -> Option<(SystemName, String)> {
    let system: SystemName = text(item, alerts::schema::SOURCE)?.parse().ok()?;
    let device = text(item, alerts::schema::DEVICE)?;
    Some(match system {
        // Alerts watch journals: the part before the last slash is the device.
        SystemName::Records => (system, device.rsplit_once('/')?.0.to_owned()),
        _ => (system, device.to_owned()),
    })
}

/// A notification about an alert.
pub(super) fn told(item: &Item) -> Option<Entry> {
    use alerts::schema;
    let alert_id = text(item, schema::ALERT_ID)?;
    let sort = text(item, schema::NOTIFICATION)?;
    let steps = item.get(schema::STEPS)?.as_list()?;
    let first = steps.first()?.as_map()?;
    let last = steps.last()?.as_map()?.get(schema::STEP)?.as_str()?;
    let state = text(item, schema::STATE).unwrap_or_default();
    Some(Entry {
        id: format!("{}/{alert_id}/{sort}", schema::OUTBOX),
        at: moment(first.get(schema::STEP_AT)?.as_str()?)?,
        kind: EntryType::Notification,
        title: shortened(&format!("Notification {state}: {last}")),
        table: schema::OUTBOX.to_owned(),
        item: item.clone(),
    })
}

/// A notification of a user, and the devices that it was sent to.
pub(super) fn notification(item: &Item) -> Option<(Vec<String>, Entry)> {
    use push::schema;
    let sort = text(item, schema::SK)?;
    let id = sort.strip_prefix(schema::NOTIFICATION)?;
    let user = text(item, schema::PK)?.strip_prefix(schema::USER)?;
    let at = integer(item, schema::CREATED_AT);
    let at = at.or_else(|| id.split('-').next()?.parse().ok())?;
    let fates = item
        .get(schema::DEVICES)
        .and_then(Value::as_list)
        .unwrap_or_default();
    let of = |fate: &Value, name: &str| Some(fate.as_map()?.get(name)?.as_str()?.to_owned());
    let devices = fates
        .iter()
        .filter_map(|fate| of(fate, schema::NOTIFIED_DEVICE_ID));
    let states: Vec<String> = fates
        .iter()
        .filter_map(|fate| of(fate, schema::STATE))
        .collect();
    let message: Option<serde_json::Value> =
        text(item, schema::MESSAGE).and_then(|json| serde_json::from_str(json).ok());
    let words = message
        .as_ref()
        .and_then(|message| message.get("title")?.as_str());
    Some((
        devices.map(|device| name::join(user, &device)).collect(),
        Entry {
            id: format!("{}/{user}/{sort}", schema::NOTIFICATIONS),
            at: EpochMillis(at),
            kind: EntryType::Notification,
            title: shortened(&format!(
                "Notification: {} ({})",
                words.unwrap_or("without a title"),
                states.join(", ")
            )),
            table: schema::NOTIFICATIONS.to_owned(),
            item: item.clone(),
        },
    ))
}

/// A sensor that registered. Later changes of its item only repeat what its readings show.
fn sensor_change(device: &str, item: &Item, change: &Change) -> Option<Entry> {
    use sensors::schema;
    if change.kind == ChangeKind::Modify {
        return None;
    }
    Some(Entry {
        id: format!("{}/{device}/{}", schema::DEVICES, change.at_ms),
        at: EpochMillis(change.at_ms),
        kind: EntryType::State,
        title: "Registered".to_owned(),
        table: schema::DEVICES.to_owned(),
        item: item.clone(),
    })
}

/// A state that something other than an uplink has changed.
fn state_change(device: &str, change: &Change) -> Option<Entry> {
    use chargers::schema;
    let new = change.new.as_ref()?;
    let old = change.old.as_ref();
    let changed = new.iter().filter(|(name, value)| {
        let is_operators = schema::STATE_PREFIXES
            .iter()
            .any(|prefix| name.starts_with(prefix));
        is_operators && old.and_then(|old| old.get(name)) != Some(value)
    });
    let changed: Vec<(&str, &Value)> = changed.collect();
    let (first, _) = changed.first()?;
    let kind = match first {
        name if name.starts_with(schema::OTA) => EntryType::Ota,
        name if name.starts_with(schema::SCHEDULER) => EntryType::Scheduler,
        _ => EntryType::State,
    };
    let words = changed.iter().take(TITLE_VALUES_MAX);
    let words: Vec<String> = words
        .map(|(name, value)| format!("{name} {}", plain_json::value(value)))
        .collect();
    Some(Entry {
        id: format!("{}/{device}/{}", schema::DEVICE_STATE, change.at_ms),
        at: EpochMillis(change.at_ms),
        kind,
        title: shortened(&words.join(", ")),
        table: schema::DEVICE_STATE.to_owned(),
        item: new.clone(),
    })
}

fn phone_change(names: &TableNames, item: &Item, change: &Change) -> Entry {
    use push::schema;
    let is_active = item.get(schema::IS_ACTIVE).and_then(Value::as_bool);
    let title = match (change.kind, is_active) {
        (ChangeKind::Insert, _) => "Registered",
        (_, Some(false)) => "Deactivated",
        _ => "Refreshed",
    };
    // The push token is a credential and must not be shown.
    let mut item = item.clone();
    item.remove(schema::EXPO_PUSH_TOKEN);
    let of = |name: &str| text(&item, name).unwrap_or_default().to_owned();
    Entry {
        id: format!(
            "{}/{}/{}/{}",
            names.device_tokens,
            of(schema::USER_ID),
            of(schema::DEVICE_ID),
            change.at_ms
        ),
        at: EpochMillis(change.at_ms),
        kind: EntryType::State,
        title: title.to_owned(),
        table: names.device_tokens.clone(),
        item,
    }
}

/// A title that shows a word and the first values of an item.
fn title(system: SystemName, at: EpochMillis, item: &Item, word: &str) -> String {
    let mut values = Vec::new();
    let row = Row::new(at, item.clone());
    samples(system, &row, &mut |sample| {
        if values.len() < TITLE_VALUES_MAX {
            let value = match sample.value {
                Value::S(text) => text.clone(),
                value => plain_json::value(value),
            };
            let unit = sample
                .unit()
                .map_or_else(String::new, |unit| format!(" {unit}"));
            values.push(format!("{} {value}{unit}", sample.name));
        }
    });
    match values.is_empty() {
        true => shortened(word),
        false => shortened(&format!("{word}: {}", values.join(", "))),
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(TITLE_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_follows_from_words_of_name() {
        for (name, kind) in [
            ("telemetry", EntryType::Telemetry),
            ("ota_progress", EntryType::Ota),
            ("scheduler-window", EntryType::Scheduler),
            ("time_sync", EntryType::State),
            ("status", EntryType::State),
            ("alert", EntryType::Alert),
            ("command", EntryType::Command),
            // Only whole words count.
            ("total_rotations", EntryType::Telemetry),
        ] {
            assert_eq!(EntryType::of_word(name), kind, "{name}");
        }
    }

    #[test]
    fn each_step_of_an_alert_is_an_entry() {
        let raised = Item::new()
            .with("alert_id", "1")
            .with("definition_name", "low battery")
            .with("reason", "11.2 is below 11.5")
            .with("raised_at", 1000);
        let titles = |item: &Item| -> Vec<String> {
            alert(item).into_iter().map(|entry| entry.title).collect()
        };
        assert_eq!(
            titles(&raised),
            ["Alert raised: low battery, 11.2 is below 11.5"]
        );
        let over = raised
            .with("acknowledged_at", 2000)
            .with("acknowledged_by", "Ada")
            .with("cleared_at", 3000)
            .with("clear_reason", "12.0 is above 11.8");
        assert_eq!(
            titles(&over)[1..],
            [
                "Alert acknowledged: low battery by Ada",
                "Alert cleared: low battery, 12.0 is above 11.8"
            ]
        );
    }

    #[test]
    fn only_operator_changes_of_state_are_entries() {
        let old = Item::new()
            .with("device_id", "SC-A1B2C3D4")
            .with("current_ma", 1);
        let change = |new: Item| Change {
            at_ms: 5,
            kind: ChangeKind::Modify,
            by_expiry: false,
            key: Item::new().with("device_id", "SC-A1B2C3D4"),
            old: Some(old.clone()),
            new: Some(new),
        };
        let names = TableNames::default();
        let uplink = change(old.clone().with("current_ma", 2));
        assert_eq!(Followed::ChargerStates.entry(&names, None, &uplink), None);
        let ota = change(old.clone().with("ota_version", "2.0"));
        let entry = Followed::ChargerStates
            .entry(&names, None, &ota)
            .expect("an entry");
        assert_eq!(entry.entry.kind, EntryType::Ota);
        assert_eq!(entry.entry.title, "ota_version \"2.0\"");
        assert_eq!(entry.devices, ["SC-A1B2C3D4"]);
    }

    #[test]
    fn long_titles_are_cut_between_characters() {
        let cut = shortened(&"é".repeat(1000));
        assert_eq!(cut.chars().count(), TITLE_CHARS_MAX + 1);
        assert!(cut.ends_with('…'));
    }
}
