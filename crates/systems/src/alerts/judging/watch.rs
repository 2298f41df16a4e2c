//! The state of one device that a definition watches, and its stored form.

use std::collections::BTreeSet;

use homeport_item::expression::{Condition as Expression, Path};
use homeport_item::{Item, Number, Value};
use homeport_store::{Delete, Put};

use crate::alerts::definitions::condition::Condition;
use crate::alerts::definitions::definition::Definition;
use crate::alerts::types::{AlertId, DefinitionId, DeviceName};
use crate::alerts::{AlertsError, schema};
use crate::time::EpochMillis;

/// The order of a value among those of its device: by its own time, and by its key within one
/// millisecond.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::alerts) struct Mark {
    pub(in crate::alerts) at: EpochMillis,
    pub(in crate::alerts) tie: String,
}

/// Consecutive wrong values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::alerts) struct Streak {
    pub(in crate::alerts) since: EpochMillis,
    pub(in crate::alerts) count: u32,
}

/// An earlier value, for rates of change.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::alerts) struct Sample {
    pub(in crate::alerts) at: EpochMillis,
    pub(in crate::alerts) value: Number,
}

/// The last value of an attribute, and since when it has this value.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::alerts) struct LastValue {
    pub(in crate::alerts) value: Value,
    pub(in crate::alerts) since: EpochMillis,
}

#[derive(Debug, Clone, PartialEq)]
pub(in crate::alerts) struct Watch {
    pub(in crate::alerts) definition_id: DefinitionId,
    pub(in crate::alerts) device: DeviceName,
    /// The epoch of the definition when the watch began.
    pub(in crate::alerts) epoch: i64,
    /// Counts the writes, so that processes never overwrite each other; 0 before the first write.
    pub(in crate::alerts) version: i64,
    /// The newest judged value. Values that are not newer are ignored.
    pub(in crate::alerts) judged: Option<Mark>,
    /// The last sign of life.
    pub(in crate::alerts) seen_at: Option<EpochMillis>,
    pub(in crate::alerts) streak: Option<Streak>,
    pub(in crate::alerts) samples: Vec<Sample>,
    pub(in crate::alerts) last: Option<LastValue>,
    /// The attributes that report a fault.
    pub(in crate::alerts) faults: BTreeSet<String>,
    pub(in crate::alerts) open: Option<AlertId>,
    /// The planned time of the last notification of a raised alert.
    pub(in crate::alerts) notified_at: Option<EpochMillis>,
}

impl Watch {
    pub(in crate::alerts) fn new(definition: &Definition, device: DeviceName) -> Self {
        Self {
            definition_id: definition.id.clone(),
            device,
            epoch: definition.epoch,
            version: 0,
            judged: None,
            seen_at: None,
            streak: None,
            samples: Vec::new(),
            last: None,
            faults: BTreeSet::new(),
            open: None,
            notified_at: None,
        }
    }

    pub(in crate::alerts) fn key(&self) -> Item {
        schema::watch_key(&self.definition_id, &self.device)
    }

    /// When silence becomes an alert, if the condition is a silence.
    pub(in crate::alerts) fn due_at(&self, condition: &Condition) -> Option<EpochMillis> {
        let (Condition::Absence(absence), Some(seen_at), None) =
            (condition, self.seen_at, &self.open)
        else {
            return None;
        };
        Some(EpochMillis(seen_at.0.saturating_add(absence.deadline_ms())))
    }

    /// The write that stores it, unless another process has changed it. The version advances.
    pub(in crate::alerts) fn save(&mut self, condition: &Condition) -> Put {
        let unchanged = self.unchanged();
        self.version += 1;
        Put::new(schema::WATCHES, self.to_item(condition)).when(unchanged)
    }

    /// The write that deletes it, unless another process has changed it.
    pub(in crate::alerts) fn remove(&self) -> Delete {
        Delete::new(schema::WATCHES, self.key()).when(self.unchanged())
    }

    fn unchanged(&self) -> Expression {
        match self.version {
            0 => Expression::not_exists(schema::DEFINITION_ID),
            version => Path::from(schema::VERSION).equals(version),
        }
    }

    fn to_item(&self, condition: &Condition) -> Item {
        let mut item = self
            .key()
            .with(schema::EPOCH, self.epoch)
            .with(schema::VERSION, self.version);
        if let Some(mark) = &self.judged {
            item.insert(schema::JUDGED_AT_MS, mark.at.0);
            item.insert(schema::JUDGED_TIE, mark.tie.as_str());
        }
        if let Some(seen_at) = self.seen_at {
            item.insert(schema::SEEN_AT_MS, seen_at.0);
        }
        if let Some(streak) = self.streak {
            item.insert(schema::STREAK_SINCE_MS, streak.since.0);
            item.insert(schema::STREAK_COUNT, streak.count);
        }
        if !self.samples.is_empty() {
            let samples = self
                .samples
                .iter()
                .map(|sample| Value::L(vec![Value::from(sample.at.0), Value::from(sample.value)]));
            item.insert(schema::SAMPLES, Value::L(samples.collect()));
        }
        if let Some(last) = &self.last {
            item.insert(schema::LAST_VALUE, last.value.clone());
            item.insert(schema::LAST_SINCE_MS, last.since.0);
        }
        if !self.faults.is_empty() {
            let faults = self.faults.iter().map(|name| Value::from(name.as_str()));
            item.insert(schema::FAULTS, Value::L(faults.collect()));
        }
        if let Some(open) = &self.open {
            item.insert(schema::OPEN_ALERT, open);
        }
        if let Some(notified_at) = self.notified_at {
            item.insert(schema::NOTIFIED_AT_MS, notified_at.0);
        }
        if let Some(due_at) = self.due_at(condition) {
            item.insert(schema::WAITS, schema::SILENCE);
            item.insert(schema::DUE_AT_MS, due_at.0);
        }
        item
    }

    pub(in crate::alerts) fn from_item(item: &Item) -> Result<Self, AlertsError> {
        Self::parse(item)
            .ok_or_else(|| AlertsError::Malformed("a watch has an unknown form".to_owned()))
    }

    fn parse(item: &Item) -> Option<Self> {
        let text = |name: &str| item.get(name).and_then(Value::as_str);
        let whole = |name: &str| item.get(name)?.as_number()?.to_i64();
        let millis = |name: &str| whole(name).map(EpochMillis);
        let judged = match millis(schema::JUDGED_AT_MS) {
            Some(at) => Some(Mark {
                at,
                tie: text(schema::JUDGED_TIE)?.to_owned(),
            }),
            None => None,
        };
        let streak = match millis(schema::STREAK_SINCE_MS) {
            Some(since) => Some(Streak {
                since,
                count: u32::try_from(whole(schema::STREAK_COUNT)?).ok()?,
            }),
            None => None,
        };
        let sample = |value: &Value| match value.as_list()? {
            [at, value] => Some(Sample {
                at: EpochMillis(at.as_number()?.to_i64()?),
                value: *value.as_number()?,
            }),
            _ => None,
        };
        let samples = item.get(schema::SAMPLES).and_then(Value::as_list);
        let faults = item.get(schema::FAULTS).and_then(Value::as_list);
        let fault = |name: &Value| name.as_str().map(str::to_owned);
        let last = match item.get(schema::LAST_VALUE) {
            Some(value) => Some(LastValue {
                value: value.clone(),
                since: millis(schema::LAST_SINCE_MS)?,
            }),
            None => None,
        };
        Some(Self {
            definition_id: text(schema::DEFINITION_ID)?.parse().ok()?,
            device: DeviceName::stored(text(schema::DEVICE)?.to_owned()),
            epoch: whole(schema::EPOCH)?,
            version: whole(schema::VERSION)?,
            judged,
            seen_at: millis(schema::SEEN_AT_MS),
            streak,
            samples: samples
                .unwrap_or_default()
                .iter()
                .map(sample)
                .collect::<Option<_>>()?,
            last,
            faults: faults
                .unwrap_or_default()
                .iter()
                .map(fault)
                .collect::<Option<_>>()?,
            open: match text(schema::OPEN_ALERT) {
                Some(id) => Some(id.parse().ok()?),
                None => None,
            },
            notified_at: millis(schema::NOTIFIED_AT_MS),
        })
    }
}
