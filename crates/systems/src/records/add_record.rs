//! Adds a record to the history. In the same transaction it becomes the latest record of its journal unless a
//! newer one exists.

use std::collections::BTreeSet;

use homeport_item::expression::{Condition, KeyCondition, Path, Projection, SortCondition};
use homeport_store::{Action, ConditionCheck, Put, Query, StoreError, Update as UpdateRequest};

use super::record::Record;
use super::types::{DeviceId, GroupId, JournalId, RecordTime, RecordType, RecordValue, Unit};
use super::{Records, RecordsError, schema, stored};

/// How far a record may move forward when its millisecond is occupied.
const MOVED_MS_MAX: i64 = 1000;
/// Attempts at an addition while other requests write to the same journal.
const ATTEMPTS_MAX: usize = 64;

#[derive(Debug, Clone, PartialEq)]
pub struct NewRecord {
    pub value: RecordValue,
    pub unit: Unit,
    pub kind: RecordType,
    /// Now unless given.
    pub timestamp: Option<RecordTime>,
}

/// The position of a record in its journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// It is the newest record.
    Newest,
    /// A newer record exists.
    Late,
}

impl Records {
    /// Adds a record to a journal. A second record of one millisecond is stored at the next free millisecond,
    /// which the answer contains.
    ///
    /// # Errors
    /// When there is no such group, device or journal, there is no free millisecond nearby, or the store fails.
    pub async fn add_record(
        &self,
        group: GroupId,
        device: DeviceId,
        journal: JournalId,
        new: NewRecord,
    ) -> Result<Record, RecordsError> {
        self.check_parents(group, device).await?;
        let wanted = match new.timestamp {
            Some(timestamp) => timestamp,
            None => RecordTime::nearest(self.now()),
        };
        let mut record = Record {
            group,
            device,
            journal,
            value: new.value,
            unit: new.unit,
            kind: new.kind,
            timestamp: wanted,
        };
        let mut place = Place::Newest;
        for _ in 0..ATTEMPTS_MAX {
            let failed = self.all_or_none(&self.addition(&record, place)).await?;
            if failed.is_empty() {
                return Ok(record);
            }
            if failed.contains(&0) {
                return Err(RecordsError::JournalMissing);
            }
            if failed.contains(&1) {
                record.timestamp = self.next_free(&record, wanted).await?;
            } else {
                place = match place {
                    Place::Newest => Place::Late,
                    Place::Late => Place::Newest,
                };
            }
        }
        Err(StoreError::Throttled.into())
    }

    /// The transaction that adds a record at a free key. It only checks that the journal exists: a check of the
    /// group would make all records of the group conflict. A removal deletes journals before records, so it
    /// also deletes a record that was added in between.
    fn addition(&self, record: &Record, place: Place) -> [Action; 3] {
        let (device, journal) = (record.device, record.journal);
        let at = record.timestamp.millis();
        let put = Put::new(self.table(), record.to_item()).when(Condition::not_exists(schema::PK));
        let latest_key = schema::key_in(record.group, schema::latest_sort(device, journal));
        let timestamp = Path::new(schema::TIMESTAMP);
        let latest = match place {
            Place::Newest => {
                let is_newer = Condition::not_exists(schema::PK).or(timestamp.less_than(at));
                UpdateRequest::new(self.table(), latest_key, record.to_update())
                    .when(is_newer)
                    .into()
            }
            Place::Late => {
                ConditionCheck::new(self.table(), latest_key, timestamp.at_least(at)).into()
            }
        };
        [
            self.must_exist(record.group, schema::journal_sort(device, journal)),
            put.into(),
            latest,
        ]
    }

    async fn check_parents(&self, group: GroupId, device: DeviceId) -> Result<(), RecordsError> {
        let (group_sort, device_sort) = (schema::group_sort(group), schema::device_sort(device));
        let wanted = BTreeSet::from([group_sort.clone(), device_sort.clone()]);
        let present = self.present(group, wanted).await?;
        if !present.contains(&group_sort) {
            return Err(RecordsError::GroupMissing);
        }
        if !present.contains(&device_sort) {
            return Err(RecordsError::DeviceMissing);
        }
        Ok(())
    }

    /// The first free millisecond from `wanted` on.
    async fn next_free(
        &self,
        record: &Record,
        wanted: RecordTime,
    ) -> Result<RecordTime, RecordsError> {
        let last = wanted.plus_ms(MOVED_MS_MAX).unwrap_or(RecordTime::LAST);
        let sort = |at| schema::record_sort(record.device, record.journal, at);
        let between = SortCondition::Between(sort(wanted).into(), sort(last).into());
        let condition =
            KeyCondition::new(schema::PK, record.group.to_string()).with_sort(schema::SK, between);
        let mut query = Query {
            consistent: true,
            projection: Some(Projection::new([schema::SK])),
            ..Query::new(self.table(), condition)
        };
        let mut free = wanted;
        loop {
            let page = self.store.query(query.clone()).await?;
            for item in &page.items {
                if stored::sort_key(item) != sort(free) {
                    return Ok(free);
                }
                free = match free.plus_ms(1) {
                    Some(next) if next <= last => next,
                    _ => return Err(RecordsError::TimeOccupied),
                };
            }
            query.start = page.next;
            if query.start.is_none() {
                return Ok(free);
            }
        }
    }
}
