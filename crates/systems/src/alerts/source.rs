//! The sources of values: the followed tables, and the device and time of their items.

use std::sync::Arc;

use homeport_item::expression::KeyCondition;
use homeport_item::schema::{StreamView, TableSchema};
use homeport_item::{Item, Value};
use homeport_store::{Query, Store};

use super::AlertsError;
use super::definition::{Definition, SourceKind};
use super::types::{DEVICE_BYTES_MAX, DeviceName};
use super::watch::Mark;
use crate::records::{self, RecordIds, Records, RecordsError};
use crate::sensors;
use crate::telemetry::schema::{THING_NAME, TIMESTAMP};
use crate::time::EpochMillis;

/// How far a device's clock may be ahead. A value from further ahead gets the time of its arrival:
/// otherwise all later values would count as older and never be judged.
const AHEAD_MS_MAX: i64 = 5 * 60 * 1000;

/// Changes this much older than a definition still count: DynamoDB reports whole seconds of its own
/// clock.
const SINCE_SLACK_MS: i64 = 2000;

/// A followed table.
#[derive(Debug, Clone)]
pub(super) struct Source {
    pub(super) kind: SourceKind,
    schema: TableSchema,
}

/// The device and order of an item.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Subject {
    pub(super) device: DeviceName,
    pub(super) mark: Mark,
}

/// The id encoding that names devices of records.
#[derive(Clone)]
pub(super) struct Naming(Option<Arc<RecordIds>>);

impl Source {
    pub(super) fn new(kind: SourceKind, schema: TableSchema) -> Self {
        Self { kind, schema }
    }

    /// The name under which the position in the change log is stored.
    pub(super) fn reaction_name(&self) -> &'static str {
        match self.kind {
            SourceKind::Telemetry => "alerts-telemetry",
            SourceKind::Sensors => "alerts-sensors",
            SourceKind::Records => "alerts-records",
        }
    }

    pub(super) fn table(&self) -> &str {
        &self.schema.name
    }

    /// The table with a stream of new images, unless it has a stream already.
    pub(super) fn followed_schema(&self) -> TableSchema {
        let mut schema = self.schema.clone();
        schema.stream.get_or_insert(StreamView::NewImage);
        schema
    }

    pub(super) async fn naming(&self, records: &Records) -> Result<Naming, AlertsError> {
        if self.kind != SourceKind::Records {
            return Ok(Naming(None));
        }
        match records.ids().await {
            Ok(ids) => Ok(Naming(Some(ids))),
            // There are no records yet.
            Err(RecordsError::TagMissing(_)) => Ok(Naming(None)),
            Err(RecordsError::Store(error)) => Err(error.into()),
            Err(error) => Err(AlertsError::Malformed(error.to_string())),
        }
    }

    /// The device and order of a stored item; `None` for items that are not judged.
    pub(super) fn subject(
        &self,
        naming: &Naming,
        item: &Item,
        stored_at: EpochMillis,
    ) -> Option<Subject> {
        let text = |name: &str| item.get(name).and_then(Value::as_str);
        let whole = |name: &str| item.get(name)?.as_number()?.to_i64();
        let (device, at, tie) = match self.kind {
            SourceKind::Telemetry => (text(THING_NAME)?.to_owned(), whole(TIMESTAMP)?, ""),
            SourceKind::Sensors => (
                text(sensors::schema::HARDWARE_ID)?.to_owned(),
                whole(sensors::schema::TIMESTAMP_MS)?,
                text(sensors::schema::TS_BATCH)?,
            ),
            SourceKind::Records => {
                let ids = naming.0.as_ref()?;
                let (group, device, journal) = records::journal_of_record(item)?;
                let device = [ids.group(group), ids.device(device), ids.journal(journal)];
                // No two records of a journal have the same time.
                (device.join("/"), whole(records::schema::TIMESTAMP)?, "")
            }
        };
        if device.len() > DEVICE_BYTES_MAX {
            return None;
        }
        let at = if at > stored_at.0.saturating_add(AHEAD_MS_MAX) {
            stored_at.0
        } else {
            at
        };
        Some(Subject {
            device: DeviceName::stored(device),
            mark: Mark {
                at: EpochMillis(at),
                tie: tie.to_owned(),
            },
        })
    }

    /// The newest item of a device.
    pub(super) async fn newest(
        &self,
        store: &dyn Store,
        records: &Records,
        naming: &Naming,
        device: &DeviceName,
    ) -> Result<Option<Item>, AlertsError> {
        let partition = match self.kind {
            SourceKind::Telemetry => THING_NAME,
            SourceKind::Sensors => sensors::schema::HARDWARE_ID,
            SourceKind::Records => return newest_record(records, naming, device).await,
        };
        let condition = KeyCondition::new(partition, device);
        let query = Query::new(self.table(), condition).descending().limit(1);
        Ok(store.query(query).await?.items.into_iter().next())
    }
}

async fn newest_record(
    records: &Records,
    naming: &Naming,
    device: &DeviceName,
) -> Result<Option<Item>, AlertsError> {
    let Some(ids) = naming.0.as_ref() else {
        return Ok(None);
    };
    let mut parts = device.as_str().split('/');
    let mut part = || parts.next().unwrap_or_default();
    let place = (
        ids.parse_group(part()),
        ids.parse_device(part()),
        ids.parse_journal(part()),
    );
    let (Ok(group), Ok(device), Ok(journal)) = place else {
        return Ok(None);
    };
    Ok(records.newest_item(group, device, journal).await?)
}

impl Definition {
    /// Whether this definition watches an item that was stored at `stored_at`.
    pub(super) fn watches(&self, device: &DeviceName, item: &Item, stored_at: EpochMillis) -> bool {
        let fits = self.terms.filter.as_ref().is_none_or(|filter| {
            let found = filter.attribute.find(item);
            found.is_some_and(|value| value.as_str() == Some(filter.equals.as_str()))
        });
        let is_of_now = stored_at.0 >= self.since.0 - SINCE_SLACK_MS;
        is_of_now && fits && self.terms.devices.has(device.as_str())
    }
}
