//! Removes everything below a group, a device or a journal.
//!
//! One transaction deletes the item of the removed thing and writes a job. From then on everything below is
//! invisible, and a crash cannot lose the job. The job is deleted last. All steps are idempotent, also across
//! processes.

use homeport_item::Item;
use homeport_item::expression::Projection;
use homeport_store::{Action, BATCH_WRITE_MAX, Delete, Put, WriteError, WriteRequest};

use crate::records::types::{DeviceId, GroupId, JournalId};
use crate::records::{Records, RecordsError, schema, stored};
use crate::removal::{Budget, Swept, delete_all};

/// Jobs that are read at once.
const JOBS_PER_READ: usize = 100;
/// Keys that are read at once. They are deleted in full batches before the next keys are read.
const KEYS_PER_READ: usize = 10 * BATCH_WRITE_MAX;

/// A thing that is removed with everything below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Removal {
    Group(GroupId),
    Device(GroupId, DeviceId),
    Journal(GroupId, DeviceId, JournalId),
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

    /// The prefixes of the sort keys below, in the order of deletion.
    ///
    /// IMPORTANT: journals are deleted before records. A record can only be added while its journal exists, so
    /// no record can appear after the records have been listed.
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
    /// The action that writes the job of a removal.
    pub(in crate::records) fn begin_removal(&self, removal: Removal) -> Action {
        Put::new(self.table(), removal.key()).into()
    }

    /// Unfinished removals, at most a hundred of them.
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
                // A malformed item that another program wrote must not block other removals.
                Err(error) => tracing::warn!(%error, "a removal is passed over"),
            }
        }
        Ok(removals)
    }

    /// Continues removals until none is left or the limit of batches is reached.
    ///
    /// # Errors
    /// When the store fails. Deleted items stay deleted, and the next call continues.
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

    /// Deletes all items of a group with a prefix; returns their number and whether all are gone.
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
            // Continue after the read keys, so that deleted keys are not skipped again.
            query.start = page.next;
            if query.start.is_none() || !is_clear {
                return Ok((deleted, is_clear));
            }
        }
    }

    /// Deletes items by key in batches; returns their number and whether all are gone.
    pub(super) async fn delete_all(
        &self,
        keys: Vec<Item>,
        budget: &mut Budget,
    ) -> Result<(usize, bool), RecordsError> {
        let deletes = keys.into_iter().map(|key| WriteRequest::Delete {
            table: self.table().to_owned(),
            key,
        });
        let swept = delete_all(&*self.store, deletes.collect(), budget).await?;
        Ok((swept.items, swept.is_finished))
    }
}
