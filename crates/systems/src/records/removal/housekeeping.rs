//! Deletes history that is older than its group's retention. The latest record of a journal is kept whatever
//! its age.

use homeport_item::Item;
use homeport_item::expression::{KeyCondition, Projection, SortCondition};
use homeport_store::{BATCH_WRITE_MAX, Query};

use crate::records::types::{DeviceId, GroupId, JournalId, RecordTime, Retention};
use crate::records::{Records, RecordsError, schema, stored};
use crate::removal::Budget;
use crate::time::EpochMillis;

/// Groups, journals or records that are read at once.
const KEYS_PER_READ: usize = 10 * BATCH_WRITE_MAX;

/// The result of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Housekept {
    /// Deleted records.
    pub records: usize,
    /// Whether no old record was left at the end.
    pub is_finished: bool,
}

impl Records {
    /// Deletes old history of all groups until none is left or the limit of batches is reached. The next call
    /// continues.
    ///
    /// # Errors
    /// When the store fails. Deleted records stay deleted.
    pub async fn housekeep(&self, batches_max: usize) -> Result<Housekept, RecordsError> {
        let mut budget = Budget(batches_max);
        let mut records = 0;
        let mut groups = self
            .query_prefix(schema::GROUPS.to_owned(), schema::GROUPS.to_owned())
            .limit(KEYS_PER_READ);
        loop {
            let page = self.store.query(groups.clone()).await?;
            for item in &page.items {
                let Some((group, retention)) = of_group(item) else {
                    continue;
                };
                let Some(oldest) = retention.and_then(|retention| self.oldest_kept(retention))
                else {
                    continue;
                };
                let (deleted, is_finished) =
                    self.housekeep_group(group, oldest, &mut budget).await?;
                records += deleted;
                if !is_finished {
                    return Ok(Housekept {
                        records,
                        is_finished,
                    });
                }
            }
            groups.start = page.next;
            if groups.start.is_none() {
                return Ok(Housekept {
                    records,
                    is_finished: true,
                });
            }
        }
    }

    /// The last millisecond that is not kept; `None` when everything is kept.
    fn oldest_kept(&self, retention: Retention) -> Option<RecordTime> {
        let kept_from = self
            .removal_clock
            .now_ms()
            .checked_sub(retention.secs().checked_mul(1000)?)?;
        (kept_from > 0).then(|| RecordTime::nearest(EpochMillis(kept_from - 1)))
    }

    async fn housekeep_group(
        &self,
        group: GroupId,
        last: RecordTime,
        budget: &mut Budget,
    ) -> Result<(usize, bool), RecordsError> {
        let mut journals = self
            .query_prefix(group.to_string(), schema::JOURNAL.to_owned())
            .limit(KEYS_PER_READ);
        journals.projection = Some(Projection::new([schema::PK, schema::SK]));
        let mut deleted = 0;
        loop {
            let page = self.store.query(journals.clone()).await?;
            for item in &page.items {
                let Ok((device, journal)) = stored::journal_ids(item) else {
                    continue;
                };
                let (count, is_finished) = self
                    .housekeep_journal(group, device, journal, last, budget)
                    .await?;
                deleted += count;
                if !is_finished {
                    return Ok((deleted, false));
                }
            }
            journals.start = page.next;
            if journals.start.is_none() {
                return Ok((deleted, true));
            }
        }
    }

    async fn housekeep_journal(
        &self,
        group: GroupId,
        device: DeviceId,
        journal: JournalId,
        last: RecordTime,
        budget: &mut Budget,
    ) -> Result<(usize, bool), RecordsError> {
        let sort = |at| schema::record_sort(device, journal, at);
        let between = SortCondition::Between(sort(RecordTime::FIRST).into(), sort(last).into());
        let condition =
            KeyCondition::new(schema::PK, group.to_string()).with_sort(schema::SK, between);
        let mut query = Query::new(self.table(), condition).limit(KEYS_PER_READ);
        query.projection = Some(Projection::new([schema::PK, schema::SK]));
        let mut deleted = 0;
        loop {
            let page = self.store.query(query.clone()).await?;
            let (count, is_finished) = self.delete_all(page.items, budget).await?;
            deleted += count;
            metrics::counter!("homeport_records_expired_total")
                .increment(u64::try_from(count).unwrap_or(u64::MAX));
            query.start = page.next;
            if query.start.is_none() || !is_finished {
                return Ok((deleted, is_finished));
            }
        }
    }
}

/// Reads a group in the list of groups. A malformed item that another program wrote must not block housekeeping
/// of other groups.
fn of_group(item: &Item) -> Option<(GroupId, Option<Retention>)> {
    let group = GroupId(stored::id_at(item, 0).ok()?);
    let retention = stored::optional_integer(item, schema::RETENTION_SECS);
    match retention {
        Ok(retention) => Some((group, retention)),
        Err(error) => {
            tracing::warn!(%group, %error, "housekeeping skips a malformed group");
            None
        }
    }
}
