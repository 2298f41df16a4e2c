//! Adds records to the history. In the same transaction a record becomes the latest one of its journal unless a newer
//! one exists, and its record id is remembered, so that a repeat stores nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use homeport_item::expression::{Condition, KeyCondition, Path, Projection, SortCondition};
use homeport_item::{Item, Value};
use homeport_store::{
    Action, ConditionCheck, Get, Put, Query, StoreError, Transaction, Update as UpdateRequest,
};
use sha2::{Digest as _, Sha256};

use super::record::Record;
use crate::fetch::fetch;
use crate::records::policy::PolicyAction;
use crate::records::types::{
    DataType, DeviceId, GroupId, JournalId, RecordId, RecordTime, RecordType, RecordValue, Unit,
};
use crate::records::writes::failed_actions;
use crate::records::{RECORD_ID_RETENTION_SECS, Records, RecordsError, schema, stored};

/// How far a record may move forward when its millisecond is occupied.
const MOVED_MS_MAX: i64 = 1000;
/// Attempts at an addition while other requests write to the same journal.
const ATTEMPTS_MAX: usize = 64;
/// The pause after the first conflict with another transaction. It doubles up to the longest pause.
const PAUSE_FIRST: Duration = Duration::from_millis(2);
const PAUSE_LONGEST: Duration = Duration::from_millis(250);

/// The positions of the actions of an addition.
const JOURNAL_CHECK: usize = 0;
const RECORD_PUT: usize = 1;
const RECORD_ID_PUT: usize = 3;

#[derive(Debug, Clone, PartialEq)]
pub struct NewRecord {
    pub value: RecordValue,
    pub unit: Unit,
    pub kind: RecordType,
    /// Now unless given.
    pub timestamp: Option<RecordTime>,
    /// A repeat with the same id within 30 days is not stored again.
    pub id: Option<RecordId>,
}

/// The result of adding a record.
#[derive(Debug, Clone, PartialEq)]
pub enum AddedRecord {
    New(Record),
    /// It was stored before under the same record id; nothing was done.
    Before(Record),
}

impl AddedRecord {
    #[must_use]
    pub fn into_record(self) -> Record {
        match self {
            Self::New(record) | Self::Before(record) => record,
        }
    }
}

/// The position of a record in its journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// It is the newest record.
    Newest,
    /// A newer record exists.
    Late,
}

/// A record that is being added.
struct Addition {
    record: Record,
    /// The time that was asked for. The record's own time moves on if its millisecond is occupied.
    wanted: RecordTime,
    place: Place,
    /// The id with a digest of what was sent.
    id: Option<(RecordId, String)>,
}

impl Records {
    /// Adds a record to a journal. A second record of one millisecond is stored at the next free millisecond,
    /// which the answer contains.
    ///
    /// # Errors
    /// When there is no such group, device or journal, the value is not of the journal's data type, the record id was
    /// used for another record, there is no free millisecond nearby, or the store fails.
    pub async fn add_record(
        &self,
        group: GroupId,
        device: DeviceId,
        journal: JournalId,
        new: NewRecord,
    ) -> Result<AddedRecord, RecordsError> {
        let added = self
            .add_records(group, device, vec![(journal, new)])
            .await?;
        let added = added.into_iter().next();
        added.unwrap_or_else(|| Err(StoreError::Throttled.into()))
    }

    /// Adds independent records to journals of a device; the results are in the same order.
    ///
    /// # Errors
    /// When there is no such group or device, its policy does not permit it, or the store fails. Then some records may be stored; with record ids all
    /// of them can be sent again.
    pub async fn add_records(
        &self,
        group: GroupId,
        device: DeviceId,
        new: Vec<(JournalId, NewRecord)>,
    ) -> Result<Vec<Result<AddedRecord, RecordsError>>, RecordsError> {
        let journals: BTreeSet<JournalId> = new.iter().map(|(journal, _)| *journal).collect();
        let data_types = self.data_types(group, device, journals).await?;
        let (mut additions, mut results) = (Vec::new(), Vec::new());
        for (journal, new) in new {
            let checked = match data_types.get(&journal) {
                Some(data_type) => data_type.check(&new.value).map_err(RecordsError::from),
                None => Err(RecordsError::JournalMissing),
            };
            results.push(checked.err().map(Err));
            additions.push(self.addition(group, device, journal, new));
        }
        let mut pause = PAUSE_FIRST;
        for _ in 0..ATTEMPTS_MAX {
            let open: Vec<usize> = (0..results.len())
                .filter(|at| results[*at].is_none())
                .collect();
            if open.is_empty() {
                break;
            }
            let transactions = open.iter().map(|at| self.transaction(&additions[*at]));
            let answers = self.store.transact_each(transactions.collect()).await;
            let mut has_conflict = false;
            for (at, answer) in open.into_iter().zip(answers) {
                match failed_actions(answer)? {
                    Some(failed) => results[at] = self.settle(&mut additions[at], &failed).await?,
                    None => has_conflict = true,
                }
            }
            if has_conflict {
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(PAUSE_LONGEST);
            }
        }
        let results: Option<Vec<_>> = results.into_iter().collect();
        results.ok_or_else(|| StoreError::Throttled.into())
    }

    fn addition(
        &self,
        group: GroupId,
        device: DeviceId,
        journal: JournalId,
        new: NewRecord,
    ) -> Addition {
        let digest = digest(&new);
        let wanted = match new.timestamp {
            Some(timestamp) => timestamp,
            None => RecordTime::nearest(self.now()),
        };
        Addition {
            record: Record {
                group,
                device,
                journal,
                value: new.value,
                unit: new.unit,
                kind: new.kind,
                timestamp: wanted,
            },
            wanted,
            place: Place::Newest,
            id: new.id.map(|id| (id, digest)),
        }
    }

    /// The transaction that adds a record at a free key. It only checks that the journal exists: a check of the
    /// group would make all records of the group conflict. A removal deletes journals before records, so it
    /// also deletes a record that was added in between.
    fn transaction(&self, addition: &Addition) -> Transaction {
        let record = &addition.record;
        let (device, journal) = (record.device, record.journal);
        let at = record.timestamp.millis();
        let put = Put::new(self.table(), record.to_item()).when(Condition::not_exists(schema::PK));
        let latest_key = schema::key_in(record.group, schema::latest_sort(device, journal));
        let timestamp = Path::new(schema::TIMESTAMP);
        let latest: Action = match addition.place {
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
        let mut actions = vec![
            self.must_exist(record.group, schema::journal_sort(device, journal)),
            put.into(),
            latest,
        ];
        if let Some((id, digest)) = &addition.id {
            let forget_at = self.now().seconds().plus_secs(RECORD_ID_RETENTION_SECS);
            let remembered = self
                .record_id_key(record, id)
                .with(schema::TIMESTAMP, at)
                .with(schema::DIGEST, digest.as_str())
                .with(schema::FORGET_AT, forget_at.0);
            let put = Put::new(schema::RECORD_IDS, remembered);
            actions.push(put.when(Condition::not_exists(schema::PK)).into());
        }
        Transaction::new(actions)
    }

    /// The result of an addition, from the actions whose condition failed. `None` asks for another attempt.
    async fn settle(
        &self,
        addition: &mut Addition,
        failed: &[usize],
    ) -> Result<Option<Result<AddedRecord, RecordsError>>, RecordsError> {
        if failed.is_empty() {
            return Ok(Some(Ok(AddedRecord::New(addition.record.clone()))));
        }
        if failed.contains(&JOURNAL_CHECK) {
            return Ok(Some(Err(RecordsError::JournalMissing)));
        }
        if failed.contains(&RECORD_ID_PUT) {
            return self.stored_before(addition).await;
        }
        if failed.contains(&RECORD_PUT) {
            match self.next_free(&addition.record, addition.wanted).await {
                Ok(free) => addition.record.timestamp = free,
                Err(RecordsError::TimeOccupied) => {
                    return Ok(Some(Err(RecordsError::TimeOccupied)));
                }
                Err(error) => return Err(error),
            }
        } else {
            addition.place = match addition.place {
                Place::Newest => Place::Late,
                Place::Late => Place::Newest,
            };
        }
        Ok(None)
    }

    /// The record that was stored with the same id, or an error if it was another one.
    async fn stored_before(
        &self,
        addition: &Addition,
    ) -> Result<Option<Result<AddedRecord, RecordsError>>, RecordsError> {
        let Some((id, digest)) = &addition.id else {
            return Ok(None);
        };
        let get = Get::new(schema::RECORD_IDS, self.record_id_key(&addition.record, id));
        // It may have expired since.
        let Some(remembered) = self.store.get(get).await? else {
            return Ok(None);
        };
        let sent = remembered.get(schema::DIGEST).and_then(Value::as_str);
        if sent != Some(digest.as_str()) {
            return Ok(Some(Err(RecordsError::RecordIdReused)));
        }
        let timestamp = stored::optional_integer(&remembered, schema::TIMESTAMP)?;
        let record = Record {
            timestamp: timestamp.unwrap_or(addition.wanted),
            ..addition.record.clone()
        };
        Ok(Some(Ok(AddedRecord::Before(record))))
    }

    /// The key of a record id. It begins with the name of the table, because several record stores may share this
    /// table.
    fn record_id_key(&self, record: &Record, id: &RecordId) -> Item {
        let Record {
            group,
            device,
            journal,
            ..
        } = record;
        let partition = format!("{}#{group}#{device}#{journal}#", self.table());
        schema::key(partition, id.as_str())
    }

    /// The data types of those journals that exist.
    async fn data_types(
        &self,
        group: GroupId,
        device: DeviceId,
        journals: BTreeSet<JournalId>,
    ) -> Result<BTreeMap<JournalId, DataType>, RecordsError> {
        let (group_sort, device_sort) = (schema::group_sort(group), schema::device_sort(device));
        let sorts = [group_sort.clone(), device_sort.clone()].into_iter().chain(
            journals
                .into_iter()
                .map(|journal| schema::journal_sort(device, journal)),
        );
        let keys = sorts.map(|sort| schema::key_in(group, sort));
        let projection = Projection::new([
            schema::PK,
            schema::SK,
            schema::DATA_TYPE,
            schema::ACL_POLICY,
        ]);
        let found = fetch(&*self.store, self.table(), keys, Some(projection)).await?;
        let item = |sort: &String| found.iter().find(|item| stored::sort_key(item) == sort);
        item(&group_sort).ok_or(RecordsError::GroupMissing)?;
        let device_item = item(&device_sort).ok_or(RecordsError::DeviceMissing)?;
        self.check_policy(device_item, PolicyAction::Write)?;
        let journals = found
            .iter()
            .filter(|item| stored::sort_key(item).starts_with(schema::JOURNAL));
        let data_types = journals.map(|item| {
            let (_, journal) = stored::journal_ids(item)?;
            Ok((journal, DataType::of_stored(item)?))
        });
        data_types.collect()
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

/// Identifies what was sent, to detect another record under the same id.
fn digest(new: &NewRecord) -> String {
    let value = match &new.value {
        RecordValue::Number(number) => format!("number {number}"),
        RecordValue::Text(text) => format!("text {text}"),
        RecordValue::Bool(flag) => format!("boolean {flag}"),
    };
    let timestamp = new.timestamp.map(RecordTime::millis);
    let sent = serde_json::json!([value, new.unit.as_str(), new.kind.as_str(), timestamp]);
    hex::encode(Sha256::digest(sent.to_string()))
}
