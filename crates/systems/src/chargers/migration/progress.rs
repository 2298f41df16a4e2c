//! The progress of a migration, stored after every step so that the next run can continue.

use homeport_item::schema::TableSchema;
use homeport_item::{Item, KeyKind, Map, Number, Value};
use homeport_store::{Get, Put, Store, StoreError, WriteError};

use super::old::{OLD_DAILY, OLD_DEVICES, OLD_EVENTS};

/// The table of progress, which a migration creates.
pub const PROGRESS: &str = "homeport-migrations";
pub(super) const NAME: &str = "migration";
pub(super) const CHARGERS: &str = "chargers";
const STAGE: &str = "stage";
const START: &str = "start";
const COUNTS: &str = "counts";

/// The stages of a migration, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    Devices,
    Events,
    Daily,
    /// Every old item is verified in the new tables.
    Verify(Source),
    Done,
}

/// An old table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    Devices,
    Events,
    Daily,
}

/// Counts of a migration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    pub devices: u64,
    pub events: u64,
    pub states: u64,
    pub daily: u64,
    /// Items that cannot be migrated, accepted or not.
    pub refused: u64,
    /// Old items whose attributes are all in the new tables.
    pub verified: u64,
    /// Old items that are not in the new tables; a complete migration has none.
    pub missing: u64,
}

/// The progress of a migration.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    pub stage: Stage,
    /// The key of the stage's table at which to continue.
    pub(super) start: Option<Item>,
    pub counts: Counts,
}

impl Source {
    #[must_use]
    pub fn table(self) -> &'static str {
        match self {
            Self::Devices => OLD_DEVICES,
            Self::Events => OLD_EVENTS,
            Self::Daily => OLD_DAILY,
        }
    }
}

impl Source {
    pub(super) fn from_table(table: &str) -> Option<Self> {
        [Self::Devices, Self::Events, Self::Daily]
            .into_iter()
            .find(|source| source.table() == table)
    }
}

impl Stage {
    const ORDER: [(Self, &'static str); 7] = [
        (Self::Devices, "devices"),
        (Self::Events, "events"),
        (Self::Daily, "daily"),
        (Self::Verify(Source::Devices), "verify-devices"),
        (Self::Verify(Source::Events), "verify-events"),
        (Self::Verify(Source::Daily), "verify-daily"),
        (Self::Done, "done"),
    ];

    pub(super) fn source(self) -> Option<Source> {
        match self {
            Self::Devices => Some(Source::Devices),
            Self::Events => Some(Source::Events),
            Self::Daily => Some(Source::Daily),
            Self::Verify(source) => Some(source),
            Self::Done => None,
        }
    }

    pub(super) fn next(self) -> Self {
        let at = Self::ORDER.iter().position(|(stage, _)| *stage == self);
        let next = at.and_then(|at| Self::ORDER.get(at + 1));
        next.map_or(Self::Done, |(stage, _)| *stage)
    }

    #[must_use]
    pub fn name(self) -> &'static str {
        let found = Self::ORDER.iter().find(|(stage, _)| *stage == self);
        found.map_or("done", |(_, name)| name)
    }

    fn from_name(name: &str) -> Option<Self> {
        let found = Self::ORDER.iter().find(|(_, known)| *known == name);
        found.map(|(stage, _)| *stage)
    }
}

impl Counts {
    fn fields(&mut self) -> [(&'static str, &mut u64); 7] {
        [
            ("devices", &mut self.devices),
            ("events", &mut self.events),
            ("states", &mut self.states),
            ("daily", &mut self.daily),
            ("refused", &mut self.refused),
            ("verified", &mut self.verified),
            ("missing", &mut self.missing),
        ]
    }
}

impl Progress {
    pub(super) fn new() -> Self {
        Self {
            stage: Stage::Devices,
            start: None,
            counts: Counts::default(),
        }
    }

    pub(super) async fn load(store: &dyn Store) -> Result<Self, StoreError> {
        let key = Item::new().with(NAME, CHARGERS);
        let Some(item) = store.get(Get::new(PROGRESS, key)).await? else {
            return Ok(Self::new());
        };
        let stage = item.get(STAGE).and_then(Value::as_str);
        let Some(stage) = stage.and_then(Stage::from_name) else {
            return Ok(Self::new());
        };
        let mut counts = Counts::default();
        let stored = item.get(COUNTS).and_then(Value::as_map);
        for (name, count) in counts.fields() {
            let number = stored.and_then(|stored| stored.get(name)?.as_number()?.to_i64());
            *count = number
                .and_then(|number| u64::try_from(number).ok())
                .unwrap_or(0);
        }
        let start = item.get(START).and_then(Value::as_map);
        Ok(Self {
            stage,
            start: start.map(|start| Item::from(start.clone())),
            counts,
        })
    }

    pub(super) async fn save(&self, store: &dyn Store) -> Result<(), StoreError> {
        match store.put(self.put()).await {
            Ok(_) | Err(WriteError::ConditionFailed { .. }) => Ok(()),
            Err(WriteError::Store(error)) => Err(error),
        }
    }

    fn put(&self) -> Put {
        let mut counts = self.counts;
        let counts: Map = counts
            .fields()
            .into_iter()
            .map(|(name, count)| (name.to_owned(), Value::N(Number::from(*count))))
            .collect();
        let mut item = Item::new()
            .with(NAME, CHARGERS)
            .with(STAGE, self.stage.name())
            .with(COUNTS, Value::M(counts));
        if let Some(start) = &self.start {
            item.insert(START, Value::M(start.attributes().clone()));
        }
        Put::new(PROGRESS, item)
    }
}

/// The schema of the table of progress.
#[must_use]
pub fn progress_table() -> TableSchema {
    TableSchema::new(PROGRESS, NAME, KeyKind::S)
}
