//! What a device stored in a range of time, page by page, oldest first. At most one page of the store is in
//! memory.

use std::collections::VecDeque;
use std::sync::Arc;

use homeport_item::Item;
use homeport_item::expression::{KeyCondition, Projection, SortCondition};
use homeport_store::Query;

use super::gather::integer;
use super::name::DeviceRef;
use super::{Fleet, FleetError};
use crate::chargers::mountain::wall_clocks;
use crate::chargers::{Event, MOVES_MAX};
use crate::cursor::Cursor;
use crate::records::{self, RecordRange, RecordTime};
use crate::time::EpochMillis;
use crate::{chargers, sensors, telemetry};

/// The first and the last time that the keys of all systems can hold.
pub(super) const FIRST_MS: i64 = 0;
pub(super) const LAST_MS: i64 = 9_999_999_999_999;
/// The last instant whose wall clock can be written.
const WALL_CLOCK_MS_MAX: i64 = 4_102_444_800_000;

/// An item that a device stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    pub at: EpochMillis,
    pub item: Item,
    /// The name of the journal, for records.
    pub(super) journal: Option<Arc<str>>,
}

/// Reads the rows of one device.
#[derive(Debug)]
pub struct RowReader {
    fleet: Fleet,
    from: EpochMillis,
    to: EpochMillis,
    source: Source,
}

#[derive(Debug)]
enum Source {
    /// There are no (more) rows.
    Empty,
    Table {
        query: Box<Query>,
        read: fn(&Item) -> Option<EpochMillis>,
    },
    Journals {
        group: records::GroupId,
        device: records::DeviceId,
        left: VecDeque<(records::JournalId, Arc<str>)>,
        cursor: Option<Cursor>,
    },
}

impl Row {
    pub(crate) fn new(at: EpochMillis, item: Item) -> Self {
        Self {
            at,
            item,
            journal: None,
        }
    }
}

impl Fleet {
    /// What a device stored in a range of time; both ends are included. `is_lean` leaves out attributes that
    /// hold no values.
    ///
    /// # Errors
    /// When there is no such device of the record store, or the store fails.
    pub async fn rows(
        &self,
        device: &DeviceRef,
        from: EpochMillis,
        to: EpochMillis,
        is_lean: bool,
    ) -> Result<RowReader, FleetError> {
        let bound = |at: EpochMillis| EpochMillis(at.0.clamp(FIRST_MS, LAST_MS));
        let (from, to) = (bound(from), bound(to));
        let source = match device {
            _ if from > to => Source::Empty,
            DeviceRef::Sensor(id) => {
                use sensors::schema;
                let between = SortCondition::Between(
                    format!("{:013}#", from.0).into(),
                    format!("{:013}#\u{ffff}", to.0).into(),
                );
                let condition =
                    KeyCondition::new(schema::HARDWARE_ID, id).with_sort(schema::TS_BATCH, between);
                let lean = [schema::TIMESTAMP_MS, schema::SENSORS];
                Source::Table {
                    query: query(schema::DEVICE_READINGS, condition, is_lean.then_some(&lean)),
                    read: |item| integer(item, schema::TIMESTAMP_MS).map(EpochMillis),
                }
            }
            DeviceRef::Thing(thing) => {
                use telemetry::schema;
                let between = SortCondition::Between(from.0.into(), to.0.into());
                let condition = KeyCondition::new(schema::THING_NAME, thing)
                    .with_sort(schema::TIMESTAMP, between);
                Source::Table {
                    query: query(&self.0.telemetry.name, condition, None),
                    read: |item| integer(item, schema::TIMESTAMP).map(EpochMillis),
                }
            }
            DeviceRef::Charger(id) => {
                use chargers::schema;
                // The key of an event may be this much later than its time.
                let last = (to.0 + MOVES_MAX - 1).min(WALL_CLOCK_MS_MAX);
                let first = EpochMillis(from.0.min(last));
                let (lowest, highest) = wall_clocks(first, EpochMillis(last));
                let between = SortCondition::Between(lowest.into(), highest.into());
                let condition = KeyCondition::new(schema::DEVICE_ID, id)
                    .with_sort(schema::TIMESTAMP_MT, between);
                Source::Table {
                    query: query(schema::EVENTS, condition, None),
                    read: |item| Some(Event::from_item(item).ok()?.timestamp_utc),
                }
            }
            DeviceRef::Recorder { group, device } => {
                let journals = self.journals(*group, *device).await?;
                let left = journals.into_iter();
                Source::Journals {
                    group: *group,
                    device: *device,
                    left: left
                        .map(|(id, name)| (records::JournalId(id), name.into()))
                        .collect(),
                    cursor: None,
                }
            }
            DeviceRef::Phone { .. } => Source::Empty,
        };
        Ok(RowReader {
            fleet: self.clone(),
            from,
            to,
            source,
        })
    }
}

fn query(table: &str, condition: KeyCondition, lean: Option<&[&str; 2]>) -> Box<Query> {
    let mut query = Query::new(table, condition);
    query.projection = lean.map(|names| Projection::new(names.iter().copied()));
    Box::new(query)
}

impl RowReader {
    /// The next rows, or `None` after the last page. A page may be empty.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn next_page(&mut self) -> Result<Option<Vec<Row>>, FleetError> {
        match &mut self.source {
            Source::Empty => Ok(None),
            Source::Table { query, read } => {
                let page = self.fleet.store().query((**query).clone()).await?;
                let (from, to) = (self.from, self.to);
                let rows = page.items.into_iter().filter_map(|item| {
                    let at = read(&item)?;
                    (from..=to).contains(&at).then(|| Row::new(at, item))
                });
                let rows: Vec<Row> = rows.collect();
                query.start = page.next;
                if query.start.is_none() {
                    self.source = Source::Empty;
                }
                Ok(Some(rows))
            }
            Source::Journals {
                group,
                device,
                left,
                cursor,
            } => {
                let Some((journal, name)) = left.front().cloned() else {
                    return Ok(None);
                };
                let range = RecordRange {
                    from: RecordTime::nearest(self.from),
                    to: RecordTime::nearest(self.to),
                    order: records::Order::OldestFirst,
                };
                let records = &self.fleet.0.parts.records;
                let page = records
                    .records(
                        *group,
                        *device,
                        Some(journal),
                        range,
                        records::PAGE_MAX,
                        cursor.take(),
                    )
                    .await?;
                *cursor = page.next;
                if cursor.is_none() {
                    left.pop_front();
                }
                let rows = page.records.iter().map(|record| Row {
                    at: EpochMillis(record.timestamp.millis()),
                    item: record.to_item(),
                    journal: Some(Arc::clone(&name)),
                });
                Ok(Some(rows.collect()))
            }
        }
    }
}
