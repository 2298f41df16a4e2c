//! Deletes a single record. If it is the latest one of its journal, the record before it becomes the latest.

use homeport_item::Item;
use homeport_item::expression::{Condition, KeyCondition, Path, SortCondition};
use homeport_store::{
    Action, ConditionCheck, Delete, Get, Query, StoreError, Update as UpdateRequest, WriteError,
};

use super::record::Record;
use crate::records::types::{DeviceId, GroupId, JournalId, RecordTime};
use crate::records::{Records, RecordsError, schema, stored};

/// Attempts while other requests write to the same journal.
const ATTEMPTS_MAX: usize = 16;

impl Records {
    /// Deletes a record. Its record id stays known, so that a repeat does not store it again.
    ///
    /// # Errors
    /// When there is no such group, device, journal or record, or the store fails.
    pub async fn delete_record(
        &self,
        group: GroupId,
        device: DeviceId,
        journal: JournalId,
        at: RecordTime,
    ) -> Result<(), RecordsError> {
        self.journal(group, device, journal).await?;
        let record_key = schema::key_in(group, schema::record_sort(device, journal, at));
        for _ in 0..ATTEMPTS_MAX {
            let exists = Condition::exists(schema::PK);
            let delete = Delete::new(self.table(), record_key.clone()).when(exists);
            let place = (group, device, journal);
            let latest = self.latest_without(place, at).await?;
            let failed = self.all_or_none(&[delete.into(), latest]).await?;
            if failed.is_empty() {
                return self.catch_up_latest(place).await;
            }
            if failed.contains(&0) {
                return Err(RecordsError::RecordMissing);
            }
        }
        Err(StoreError::Throttled.into())
    }

    /// The action on the latest record while the record at a time is deleted.
    async fn latest_without(
        &self,
        place: (GroupId, DeviceId, JournalId),
        at: RecordTime,
    ) -> Result<Action, RecordsError> {
        let (group, device, journal) = place;
        let key = schema::key_in(group, schema::latest_sort(device, journal));
        let latest = self.store.get(Get::new(self.table(), key.clone())).await?;
        let latest_at = latest
            .as_ref()
            .map(|item| stored::optional_integer::<RecordTime>(item, schema::TIMESTAMP));
        let timestamp = || Path::new(schema::TIMESTAMP);
        if latest_at.transpose()?.flatten() != Some(at) {
            let is_other = timestamp()
                .less_than(at.millis())
                .or(timestamp().greater_than(at.millis()));
            let is_other = Condition::not_exists(schema::PK).or(is_other);
            return Ok(ConditionCheck::new(self.table(), key, is_other).into());
        }
        let is_deleted = timestamp().equals(at.millis());
        let newest = self.newest_records(place, 2).await?;
        let mut others = newest.iter().filter(|record| record.timestamp != at);
        Ok(match others.next() {
            Some(other) => UpdateRequest::new(self.table(), key, other.to_update())
                .when(is_deleted)
                .into(),
            None => Delete::new(self.table(), key).when(is_deleted).into(),
        })
    }

    /// Corrects the latest record if a late record was added while another record took its place.
    async fn catch_up_latest(
        &self,
        place: (GroupId, DeviceId, JournalId),
    ) -> Result<(), RecordsError> {
        let (group, device, journal) = place;
        let newest = self.newest_records(place, 1).await?;
        let Some(newest) = newest.first() else {
            return Ok(());
        };
        let is_older = Path::new(schema::TIMESTAMP).less_than(newest.timestamp.millis());
        let key = schema::key_in(group, schema::latest_sort(device, journal));
        let update = UpdateRequest::new(self.table(), key, newest.to_update());
        let update = update.when(Condition::not_exists(schema::PK).or(is_older));
        match self.store.update(update).await {
            Ok(_) | Err(WriteError::ConditionFailed { .. }) => Ok(()),
            Err(WriteError::Store(error)) => Err(error.into()),
        }
    }

    async fn newest_records(
        &self,
        (group, device, journal): (GroupId, DeviceId, JournalId),
        count: usize,
    ) -> Result<Vec<Record>, RecordsError> {
        let prefix = schema::of_journal(schema::RECORD, device, journal);
        let begins = SortCondition::BeginsWith(prefix.into());
        let condition =
            KeyCondition::new(schema::PK, group.to_string()).with_sort(schema::SK, begins);
        let query = Query {
            consistent: true,
            ..Query::new(self.table(), condition)
                .descending()
                .limit(count)
        };
        let page = self.store.query(query).await?;
        let record = |item: &Item| Record::from_item(group, item);
        page.items.iter().map(record).collect()
    }
}
