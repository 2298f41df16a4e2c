//! Removing what was below a group, a device or a journal.
//!
//! The item of the removed thing is deleted together with the writing of a job, so that everything
//! below is invisible from that moment, and so that a crash cannot make the rest be forgotten. The
//! job is deleted last. All of it may be done twice, by one process or by several.

use homeport_item::Item;
use homeport_item::expression::Projection;
use homeport_store::{
    Action, BATCH_WRITE_MAX, BatchWrite, Delete, Put, StoreError, WriteError, WriteRequest,
};

use super::types::{DeviceId, GroupId, JournalId};
use super::{Records, RecordsError, schema, stored};

/// Jobs that are read at once.
const JOBS_PER_READ: usize = 100;
/// Keys that are read at once; as many batches as fit are deleted before the next ones.
const KEYS_PER_READ: usize = 10 * BATCH_WRITE_MAX;
/// How often deletions that the store could not do at once are handed over again.
const ATTEMPTS_MAX: usize = 8;

/// Something that is removed with everything below.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Removal {
    Group(GroupId),
    Device(GroupId, DeviceId),
    Journal(GroupId, DeviceId, JournalId),
}

/// What a call got done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Swept {
    /// Items that were deleted.
    pub items: usize,
    /// Whether there was nothing left when it ended.
    pub is_finished: bool,
}

/// How many batches may still be deleted.
pub(super) struct Budget(pub(super) usize);

impl Budget {
    fn take(&mut self) -> bool {
        let is_left = self.0 > 0;
        self.0 = self.0.saturating_sub(1);
        is_left
    }
}

impl Removal {
    fn group(self) -> GroupId {
        match self {
            Self::Group(group) | Self::Device(group, _) | Self::Journal(group, _, _) => group,
        }
    }

    fn key(self) -> Item {
        let sort = match self {
            Self::Group(group) => format!("{}{group}#", schema::REMOVAL),
            Self::Device(group, device) => format!("{}{group}#{device}#", schema::REMOVAL),
            Self::Journal(group, device, journal) => {
                format!("{}{group}#{device}#{journal}#", schema::REMOVAL)
            }
        };
        schema::key(schema::REMOVAL, sort)
    }

    fn from_item(item: &Item) -> Result<Self, RecordsError> {
        let group = GroupId(stored::id_at(item, 0)?);
        match schema::ids_in(stored::sort_key(item)).count() {
            1 => Ok(Self::Group(group)),
            2 => Ok(Self::Device(group, DeviceId(stored::id_at(item, 1)?))),
            _ => Ok(Self::Journal(
                group,
                DeviceId(stored::id_at(item, 1)?),
                JournalId(stored::id_at(item, 2)?),
            )),
        }
    }

    /// What the sort keys below begin with, in the order in which they must go.
    ///
    /// IMPORTANT: journals go before records. A record that is being added is let in by its
    /// journal, so that none can come any more when the records are looked for.
    fn prefixes(self) -> Vec<String> {
        let below = [schema::JOURNAL, schema::LATEST_RECORD, schema::RECORD];
        match self {
            Self::Group(_) => [schema::DEVICE]
                .into_iter()
                .chain(below)
                .map(str::to_owned)
                .collect(),
            Self::Device(_, device) => below.map(|word| schema::of_device(word, device)).into(),
            Self::Journal(_, device, journal) => [schema::LATEST_RECORD, schema::RECORD]
                .map(|word| schema::of_journal(word, device, journal))
                .into(),
        }
    }
}

impl Records {
    /// The action that makes sure that a removal is brought to its end.
    pub(super) fn begin_removal(&self, removal: Removal) -> Action {
        Put::new(self.table(), removal.key()).into()
    }

    /// Removals that are not finished, at most a hundred of them.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn open_removals(&self) -> Result<Vec<Removal>, RecordsError> {
        let query = self
            .query_prefix(schema::REMOVAL.to_owned(), schema::REMOVAL.to_owned())
            .limit(JOBS_PER_READ);
        let page = self.store.query(query).await?;
        let mut removals = Vec::with_capacity(page.items.len());
        for item in &page.items {
            match Removal::from_item(item) {
                Ok(removal) => removals.push(removal),
                // What something else wrote must not keep all other removals from their end.
                Err(error) => tracing::warn!(%error, "a removal is passed over"),
            }
        }
        Ok(removals)
    }

    /// Goes on with removals until there are none, or until as many batches were deleted as it may.
    ///
    /// # Errors
    /// When the store fails; what was deleted stays so, and the next call goes on.
    pub async fn continue_removals(&self, batches_max: usize) -> Result<Swept, RecordsError> {
        let mut budget = Budget(batches_max);
        let mut items = 0;
        loop {
            let removals = self.open_removals().await?;
            if removals.is_empty() {
                let is_finished = true;
                return Ok(Swept { items, is_finished });
            }
            for removal in removals {
                let mut is_finished = true;
                for prefix in removal.prefixes() {
                    let (deleted, is_clear) =
                        self.sweep(removal.group(), prefix, &mut budget).await?;
                    items += deleted;
                    is_finished &= is_clear;
                    if !is_finished {
                        return Ok(Swept { items, is_finished });
                    }
                }
                self.end_removal(removal).await?;
            }
        }
    }

    async fn end_removal(&self, removal: Removal) -> Result<(), RecordsError> {
        match self
            .store
            .delete(Delete::new(self.table(), removal.key()))
            .await
        {
            Ok(_) | Err(WriteError::ConditionFailed { .. }) => {}
            Err(WriteError::Store(error)) => return Err(error.into()),
        }
        tracing::info!(?removal, "removed");
        metrics::counter!("homeport_records_removals_total").increment(1);
        Ok(())
    }

    /// Deletes what is in a group below a prefix: how many, and whether all of it is gone.
    async fn sweep(
        &self,
        group: GroupId,
        prefix: String,
        budget: &mut Budget,
    ) -> Result<(usize, bool), RecordsError> {
        let mut query = self.query_prefix(group.to_string(), prefix);
        query.projection = Some(Projection::new([schema::PK, schema::SK]));
        query.limit = Some(KEYS_PER_READ);
        let mut deleted = 0;
        loop {
            let page = self.store.query(query.clone()).await?;
            let (count, is_clear) = self.delete_all(page.items, budget).await?;
            deleted += count;
            metrics::counter!("homeport_records_removed_items_total")
                .increment(u64::try_from(count).unwrap_or(u64::MAX));
            // Going on behind what was read: what is deleted need not be skipped again.
            query.start = page.next;
            if query.start.is_none() || !is_clear {
                return Ok((deleted, is_clear));
            }
        }
    }

    /// Deletes items by their keys, in batches: how many, and whether all.
    pub(super) async fn delete_all(
        &self,
        keys: Vec<Item>,
        budget: &mut Budget,
    ) -> Result<(usize, bool), RecordsError> {
        let mut deleted = 0;
        for batch in keys.chunks(BATCH_WRITE_MAX) {
            if !budget.take() {
                return Ok((deleted, false));
            }
            let mut writes: Vec<WriteRequest> = batch
                .iter()
                .map(|key| WriteRequest::Delete {
                    table: self.table().to_owned(),
                    key: key.clone(),
                })
                .collect();
            for _ in 0..ATTEMPTS_MAX {
                let answer = self.store.batch_write(BatchWrite { writes }).await?;
                writes = answer.unprocessed;
                if writes.is_empty() {
                    break;
                }
            }
            if !writes.is_empty() {
                return Err(StoreError::Throttled.into());
            }
            deleted += batch.len();
        }
        Ok((deleted, true))
    }
}
