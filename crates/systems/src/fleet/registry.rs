//! The list of systems with devices. It is written here and nowhere else.

use std::sync::Arc;

use homeport_item::Item;
use homeport_store::{Clock, Store};

use super::FleetError;
use super::name::SystemName;
use super::source::DeviceSource;
use crate::chargers::Chargers;
use crate::push::Push;
use crate::records::Records;
use crate::schema::TableNames;
use crate::sensors::Sensors;
use crate::telemetry::Telemetry;
use crate::time::EpochMillis;
use crate::{chargers, push, records, sensors, telemetry};

/// All systems with devices, in the order in which people see them.
pub static SYSTEMS: [&System; 5] = [
    &sensors::SYSTEM,
    &chargers::SYSTEM,
    &telemetry::SYSTEM,
    &records::SYSTEM,
    &push::SYSTEM,
];

/// A system with devices.
#[derive(Debug)]
pub struct System {
    pub name: SystemName,
    /// How often its devices report unless a setting says otherwise.
    pub report_every_secs: i64,
    /// Whether its devices store values over time, which can be exported.
    pub has_values: bool,
    /// The name under which alerts store their position in its change log; `None` if alerts cannot watch it.
    pub alert_reaction: Option<&'static str>,
    /// The time of a row; `None` for other items. Of a removed row, only the key is left.
    pub time_of: fn(&Item) -> Option<EpochMillis>,
    /// Makes its source.
    pub connect: fn(&SourceDeps) -> Arc<dyn DeviceSource>,
}

/// What the sources read from.
#[derive(Clone)]
pub struct SourceDeps {
    pub store: Arc<dyn Store>,
    pub sensors: Sensors,
    pub chargers: Chargers,
    pub telemetry: Telemetry,
    pub records: Records,
    pub push: Push,
}

/// The registry: the sources of all systems; cheap to clone.
#[derive(Clone)]
pub struct Sources(Arc<[Arc<dyn DeviceSource>]>);

impl SourceDeps {
    /// Systems with default settings, which are enough for reading.
    #[must_use]
    pub fn for_reading(store: &Arc<dyn Store>, clock: &Arc<dyn Clock>, names: &TableNames) -> Self {
        let (store, clock) = (|| Arc::clone(store), || Arc::clone(clock));
        let telemetry = telemetry::Settings {
            table: names.telemetry.clone(),
        };
        let records = records::Settings {
            table: names.records.clone(),
            ..records::Settings::default()
        };
        let push = push::Settings {
            table: names.device_tokens.clone(),
            broadcast_index: names.broadcast_index,
            ..push::Settings::default()
        };
        Self {
            store: store(),
            sensors: Sensors::new(store(), clock(), sensors::Settings::default()),
            chargers: Chargers::new(store(), clock()),
            telemetry: Telemetry::new(store(), clock(), &telemetry),
            records: Records::new(store(), clock(), records),
            push: Push::new(store(), clock(), push),
        }
    }
}

impl Sources {
    #[must_use]
    pub fn connect(systems: &[&'static System], deps: &SourceDeps) -> Self {
        Self(
            systems
                .iter()
                .map(|system| (system.connect)(deps))
                .collect(),
        )
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<dyn DeviceSource>> {
        self.0.iter()
    }

    /// The source of a system.
    ///
    /// # Errors
    /// When there is no such system.
    pub(crate) fn get(&self, system: &SystemName) -> Result<&Arc<dyn DeviceSource>, FleetError> {
        let mut sources = self.0.iter();
        let source = sources.find(|source| source.system().name == *system);
        source.ok_or_else(|| {
            let names: Vec<&str> = self
                .iter()
                .map(|source| source.system().name.as_str())
                .collect();
            FleetError::SystemMissing {
                name: system.clone(),
                known: names.join(", "),
            }
        })
    }

    /// The place of a system in the list.
    pub(super) fn rank(&self, system: &SystemName) -> usize {
        let mut sources = self.0.iter();
        let rank = sources.position(|source| source.system().name == *system);
        rank.unwrap_or(self.0.len())
    }
}

impl std::fmt::Debug for SourceDeps {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("SourceDeps").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Sources {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = self.iter().map(|source| &source.system().name);
        formatter.debug_list().entries(names).finish()
    }
}
