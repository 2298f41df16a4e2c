//! Entries of a timeline: what happened according to an item, when, and a title. The timeline makes entries of
//! stored items and the live feed of changes, so both show the same.

use std::str::FromStr;

use homeport_item::{Item, Value};
use homeport_store::{Change, ChangeKind};

use super::history::Row;
use super::name::SystemName;
use super::source::DeviceSource;
use crate::plain_json;
use crate::sensors::InvalidField;
use crate::time::EpochMillis;

/// Values that a title shows.
pub(crate) const TITLE_VALUES_MAX: usize = 3;
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
    pub(crate) fn of_word(name: &str) -> Self {
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

impl LiveEntry {
    /// The entry of a change. A removal happened when the item was removed.
    pub(crate) fn new(
        system: &SystemName,
        devices: Vec<String>,
        mut entry: Entry,
        change: &Change,
    ) -> Self {
        if change.kind == ChangeKind::Remove {
            let why = if change.by_expiry {
                "Expired"
            } else {
                "Removed"
            };
            entry.title = shortened(&format!("{why}: {}", entry.title));
            entry.at = EpochMillis(change.at_ms);
        }
        Self {
            system: system.clone(),
            devices,
            change: change.kind,
            entry,
        }
    }
}

/// The item of a change: the new one, or else what is known of the old one.
pub(crate) fn item_of(change: &Change) -> &Item {
    let item = change.new.as_ref().or(change.old.as_ref());
    item.unwrap_or(&change.key)
}

/// A title that shows a word and the first values of an item.
pub(crate) fn title(source: &dyn DeviceSource, row: &Row, word: &str) -> String {
    let mut values = Vec::new();
    source.samples(row, &mut |sample| {
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

pub(crate) fn shortened(text: &str) -> String {
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
    fn long_titles_are_cut_between_characters() {
        let cut = shortened(&"é".repeat(1000));
        assert_eq!(cut.chars().count(), TITLE_CHARS_MAX + 1);
        assert!(cut.ends_with('…'));
    }
}
