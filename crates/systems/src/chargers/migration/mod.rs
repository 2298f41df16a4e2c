//! Migrates data from the predecessor's tables: events with their state markers, the registry, and daily
//! aggregates. The old tables are only read.
//!
//! Every step reads one page of one old table, writes the new items together, and then stores its progress. Steps are
//! idempotent, so an interrupted run can continue. Newer data in the new tables is never overwritten. Items that cannot
//! be migrated are remembered until they are fixed or accepted.

mod bring;
mod find;
mod old;
mod progress;
mod read;
mod refusals;

use std::collections::BTreeMap;
use std::sync::Arc;

use homeport_item::Item;
use homeport_item::schema::TableSchema;
use homeport_store::{Get, Store, StoreError};

use super::mountain::MountainTime;
use super::types::{ScId, WirelessDeviceId};
use super::{ChargersError, schema};
use crate::time::{EpochMillis, UtcSecond};
use old::{Moved, OldEvent};
use read::{OldItem, OldPage, OldReader, ReadAhead};

pub use old::{OLD_DAILY, OLD_DEVICES, OLD_EVENTS, ORPHANS, old_tables};
pub use progress::{Counts, PROGRESS, Progress, Source, Stage, progress_table};
pub use refusals::Refused;

/// The default number of old items per step, at most as many as a page of the store has. The items of a step share a
/// few syncs of the disk, and a step is repeated after an interruption.
pub const STEP_ITEMS: usize = 2000;
/// Missing items that the report describes. All of them are counted.
pub const DESCRIPTIONS_MAX: usize = 100;

/// A migration on a store that has both the old tables and the new ones.
pub struct Migration {
    store: Arc<dyn Store>,
    now: UtcSecond,
    dry_run: bool,
    step_items: usize,
    /// The schemas of the old tables. The design document names their keys, but the tables decide.
    old_tables: Vec<TableSchema>,
    progress: Progress,
    /// Items that cannot be migrated, by table and key.
    refused: BTreeMap<String, Refused>,
    /// Whether an earlier run was complete, so that this one only looks at refused items.
    retries_refused: bool,
    descriptions: Vec<String>,
    /// The known owner of each SC-ID.
    owners: BTreeMap<ScId, WirelessDeviceId>,
    /// The page after the current one.
    ahead: Option<ReadAhead>,
}

/// Why an old item is not in the new tables.
enum Refusal {
    Item(String),
    Store(StoreError),
}

/// The newest event of a device in a step. Only this one updates the state of the device.
struct Seen {
    event: OldEvent,
    timestamp_mt: MountainTime,
}

impl Migration {
    /// Creates the new tables and continues where the previous run stopped. A dry run creates and writes
    /// nothing, and counts from the beginning.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn start(
        store: Arc<dyn Store>,
        now: EpochMillis,
        dry_run: bool,
    ) -> Result<Self, ChargersError> {
        let (progress, refused) = if dry_run {
            (Progress::new(), Vec::new())
        } else {
            let mut tables = schema::tables();
            tables.push(progress_table());
            store.ensure_tables(&tables).await?;
            (
                Progress::load(&*store).await?,
                refusals::load(&*store).await?,
            )
        };
        Ok(Self {
            store,
            now: UtcSecond::new(now.seconds()),
            dry_run,
            step_items: STEP_ITEMS,
            old_tables: old_tables(),
            retries_refused: progress.stage == Stage::Done,
            progress,
            refused: refused
                .into_iter()
                .map(|refused| (refused.id(), refused))
                .collect(),
            descriptions: Vec::new(),
            owners: BTreeMap::new(),
            ahead: None,
        })
    }

    /// Sets the number of items per step.
    #[must_use]
    pub fn with_step_items(mut self, step_items: usize) -> Self {
        self.step_items = step_items.max(1);
        self
    }

    /// Sets the schemas of the old tables, whose keys may have other names than in the design document.
    #[must_use]
    pub fn with_old_tables(mut self, found: impl IntoIterator<Item = TableSchema>) -> Self {
        for found in found {
            let mut tables = self.old_tables.iter_mut();
            if let Some(table) = tables.find(|table| table.name == found.name) {
                *table = found;
            }
        }
        self
    }

    #[must_use]
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// The items that cannot be migrated and were not accepted.
    pub fn refused(&self) -> impl Iterator<Item = &Refused> {
        self.refused.values().filter(|refused| !refused.is_accepted)
    }

    /// The number of items that an operator has accepted not to be migrated.
    #[must_use]
    pub fn accepted_count(&self) -> usize {
        self.refused
            .values()
            .filter(|refused| refused.is_accepted)
            .count()
    }

    /// The items that this run did not find in the new tables.
    #[must_use]
    pub fn descriptions(&self) -> &[String] {
        &self.descriptions
    }

    /// Whether everything is done, every refused item is accepted, and every other old item was verified. A dry run
    /// verifies nothing.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        let counts = self.progress.counts;
        let read = counts.devices + counts.events + counts.states + counts.daily;
        self.progress.stage == Stage::Done
            && self.refused().next().is_none()
            && counts.missing == 0
            && (counts.verified == read || self.dry_run)
    }

    /// Starts from the beginning: all items are read again, and existing new items stay as they are.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn restart(&mut self) -> Result<(), ChargersError> {
        self.progress = Progress::new();
        self.retries_refused = false;
        if !self.dry_run {
            // Accepted items stay accepted.
            for refused in self.refused().cloned().collect::<Vec<_>>() {
                refused.forget(&*self.store).await?;
            }
            self.progress.save(&*self.store).await?;
        }
        self.refused.retain(|_, refused| refused.is_accepted);
        Ok(())
    }

    /// Accepts that the refused items are not migrated. A dry run does not store this.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn accept_refused(&mut self) -> Result<(), ChargersError> {
        for refused in self.refused.values_mut() {
            if !refused.is_accepted {
                refused.is_accepted = true;
                if !self.dry_run {
                    refused.save(&*self.store).await?;
                }
            }
        }
        Ok(())
    }

    /// Runs all remaining steps.
    ///
    /// # Errors
    /// When the store fails. Another run continues from there.
    pub async fn run(&mut self) -> Result<(), ChargersError> {
        while self.step().await? {}
        Ok(())
    }

    /// Runs one step; returns true if there is another one.
    ///
    /// # Errors
    /// When the store fails. The step can be repeated.
    pub async fn step(&mut self) -> Result<bool, ChargersError> {
        let stage = self.progress.stage;
        let Some(source) = stage.source() else {
            return self.retry_refused().await;
        };
        let verifies = matches!(stage, Stage::Verify(_));
        if verifies && self.dry_run {
            self.progress.stage = Stage::Done;
            return Ok(false);
        }
        let mut counts = self.progress.counts;
        let OldPage { items, next } = self.read(source).await?;
        if verifies {
            self.verify(source, items, &mut counts).await?;
        } else {
            self.bring(source, items, &mut counts).await?;
        }
        self.progress = Progress {
            stage: if next.is_some() { stage } else { stage.next() },
            start: next,
            counts,
        };
        if !self.dry_run {
            // IMPORTANT: only after everything of the step is stored.
            self.progress.save(&*self.store).await?;
        }
        Ok(self.progress.stage != Stage::Done)
    }

    /// Reads the refused items again: those that were fixed are migrated, and those that were deleted are forgotten.
    async fn retry_refused(&mut self) -> Result<bool, ChargersError> {
        if !std::mem::take(&mut self.retries_refused) {
            return Ok(false);
        }
        let mut counts = self.progress.counts;
        for refused in self.refused().cloned().collect::<Vec<_>>() {
            let table = refused.source.table();
            let found = match self.store.get(Get::new(table, refused.key.clone())).await {
                Err(StoreError::TableNotFound(_)) => None,
                found => found?,
            };
            self.refused.remove(&refused.id());
            counts.refused = counts.refused.saturating_sub(1);
            if let Some(item) = found {
                let source = refused.source;
                let reader = self.reader(source);
                let item = || reader.old_item(item.clone());
                let (brought, verified) = (item(), item());
                self.bring(source, vec![brought], &mut counts).await?;
                self.verify(source, vec![verified], &mut counts).await?;
            }
            if !self.refused.contains_key(&refused.id()) {
                refused.forget(&*self.store).await?;
            }
            self.progress.counts = counts;
            self.progress.save(&*self.store).await?;
        }
        Ok(false)
    }

    /// The next page of an old table. The page after it is read meanwhile.
    async fn read(&mut self, source: Source) -> Result<OldPage, StoreError> {
        let start = self.progress.start.clone();
        let reader = self.reader(source);
        let page = match self.ahead.take() {
            Some(ahead) if ahead.source == source && ahead.start == start => {
                let read = ahead.page.await;
                read.map_err(|error| StoreError::Unavailable(error.to_string()))??
            }
            _ => reader.clone().read(start).await?,
        };
        self.ahead = page.next.clone().map(|next| ReadAhead {
            source,
            start: Some(next.clone()),
            page: tokio::spawn(reader.read(Some(next))),
        });
        Ok(page)
    }

    fn reader(&self, source: Source) -> OldReader {
        let mut tables = self.old_tables.iter();
        let table = tables.find(|table| table.name == source.table());
        OldReader {
            store: Arc::clone(&self.store),
            source,
            key: table.expect("every source has its table").key.clone(),
            step_items: self.step_items,
        }
    }

    /// Remembers that an item cannot be migrated, unless an operator has accepted that.
    async fn refuse(
        &mut self,
        source: Source,
        key: Item,
        reason: String,
        counts: &mut Counts,
    ) -> Result<(), StoreError> {
        counts.refused += 1;
        let id = refusals::id(source, &key);
        let is_accepted = self.refused.get(&id).is_some_and(|known| known.is_accepted);
        let refused = Refused {
            source,
            key,
            reason,
            is_accepted,
        };
        if !self.dry_run {
            refused.save(&*self.store).await?;
        }
        self.refused.insert(id, refused);
        Ok(())
    }

    async fn get(&self, table: &str, key: Item) -> Result<Option<Item>, Refusal> {
        match self.store.get(Get::new(table, key)).await {
            // A dry run may use a store without the new tables.
            Err(StoreError::TableNotFound(_)) if self.dry_run => Ok(None),
            answer => answer.map_err(Refusal::Store),
        }
    }
}

impl std::fmt::Debug for Migration {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Migration")
            .field("dry_run", &self.dry_run)
            .field("progress", &self.progress)
            .finish_non_exhaustive()
    }
}
