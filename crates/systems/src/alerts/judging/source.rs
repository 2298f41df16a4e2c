//! The sources of values: the followed tables, and the device and time of their items.

use std::sync::Arc;

use homeport_item::Item;
use homeport_item::schema::{StreamView, TableSchema};

use super::watch::Mark;
use crate::alerts::definitions::definition::Definition;
use crate::alerts::types::{DEVICE_BYTES_MAX, DeviceName};
use crate::fleet::{DeviceSource, SystemName};
use crate::time::EpochMillis;

/// How far a device's clock may be ahead. A value from further ahead gets the time of its arrival:
/// otherwise all later values would count as older and never be judged.
const AHEAD_MS_MAX: i64 = 5 * 60 * 1000;

/// Changes this much older than a definition still count: DynamoDB reports whole seconds of its own
/// clock.
const SINCE_SLACK_MS: i64 = 2000;

/// A system that alerts can watch.
#[derive(Clone)]
pub(in crate::alerts) struct Source {
    pub(in crate::alerts) devices: Arc<dyn DeviceSource>,
    schema: TableSchema,
    reaction_name: &'static str,
}

/// The device and order of an item.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::alerts) struct Subject {
    pub(in crate::alerts) device: DeviceName,
    pub(in crate::alerts) mark: Mark,
}

impl Source {
    /// `None` for systems that alerts cannot watch.
    pub(in crate::alerts) fn of(devices: &Arc<dyn DeviceSource>) -> Option<Self> {
        Some(Self {
            devices: Arc::clone(devices),
            schema: devices.row_table(),
            reaction_name: devices.system().alert_reaction?,
        })
    }

    pub(in crate::alerts) fn system(&self) -> &'static SystemName {
        &self.devices.system().name
    }

    /// The name under which the position in the change log is stored.
    pub(in crate::alerts) fn reaction_name(&self) -> &'static str {
        self.reaction_name
    }

    pub(in crate::alerts) fn table(&self) -> &str {
        &self.schema.name
    }

    /// The table with a stream of new images, unless it has a stream already.
    pub(in crate::alerts) fn followed_schema(&self) -> TableSchema {
        let mut schema = self.schema.clone();
        schema.stream.get_or_insert(StreamView::NewImage);
        schema
    }

    /// The device and order of a stored item; `None` for items that are not judged.
    pub(in crate::alerts) fn subject(
        &self,
        item: &Item,
        stored_at: EpochMillis,
    ) -> Option<Subject> {
        let subject = self.devices.alert_subject(item)?;
        if subject.name.len() > DEVICE_BYTES_MAX {
            return None;
        }
        let is_ahead = subject.at.0 > stored_at.0.saturating_add(AHEAD_MS_MAX);
        Some(Subject {
            device: DeviceName::stored(subject.name),
            mark: Mark {
                at: if is_ahead { stored_at } else { subject.at },
                tie: subject.tie,
            },
        })
    }
}

impl std::fmt::Debug for Source {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.reaction_name)
    }
}

impl Definition {
    /// Whether this definition watches an item that was stored at `stored_at`.
    pub(in crate::alerts) fn watches(
        &self,
        device: &DeviceName,
        item: &Item,
        stored_at: EpochMillis,
    ) -> bool {
        let fits = self.terms.filter.as_ref().is_none_or(|filter| {
            let found = filter.attribute.find(item);
            found.is_some_and(|value| value.as_str() == Some(filter.equals.as_str()))
        });
        let is_of_now = stored_at.0 >= self.since.0.saturating_sub(SINCE_SLACK_MS);
        is_of_now && fits && self.terms.devices.has(device.as_str())
    }
}
