//! A table's history: keeps changes so that they can be undone, and restores a table to an earlier moment.

use std::ops::Range;
use std::sync::Arc;

use crate::archive::copying::TableCopy;
use crate::archive::restoring::{self, NewTable, RestoreError, TableFiller};
use crate::catalogue::table::{History, Table, TableDescription};
use crate::changes::log;
use crate::changes::stream_read;
use crate::commit::committer::Committer;
use crate::engine::sequence_of;
use crate::error::{TableError, unavailable};
use crate::shared::Shared;
use crate::storage::layout;
use crate::storage::record::Record;
use crate::storage::vault::UserValue;

/// The longest history period.
pub const HISTORY_DAYS_MAX: u32 = 35;

/// Changes that are read from one snapshot.
const UNDO_CHANGES_MAX: usize = 1024;
const UNDO_BYTES_MAX: usize = 1024 * 1024;

/// A moment in a table's history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestorePoint {
    /// The current state.
    Latest,
    /// The state after everything that happened up to this moment.
    At(i64),
}

/// Enables a table's history, changes its period, or disables it.
pub(crate) async fn set(
    shared: &Shared,
    table: String,
    period_days: Option<u32>,
) -> Result<(), TableError> {
    shared
        .alter_table(table, move |record, now_ms| {
            record.history = period_days.map(|period_days| History {
                since_ms: record.history.map_or(now_ms, |history| history.since_ms),
                period_days: period_days.clamp(1, HISTORY_DAYS_MAX),
            });
            Ok(())
        })
        .await
}

/// Starts restoring a table to the state of `source` at `point`.
pub(crate) async fn restore(
    shared: &Shared,
    source: String,
    point: RestorePoint,
    target: NewTable,
) -> Result<TableDescription, RestoreError> {
    let key = target.schema.key.clone();
    let open = move |committer: &Committer| {
        let past = open(committer, &source, point)?;
        if *past.table.key != key {
            return Err(RestoreError::DifferentKeys);
        }
        Ok(past)
    };
    let fill = |past: PastState, filler: &mut TableFiller| past.fill(filler);
    restoring::begin(shared, target, None, open, fill).await
}

/// Opens an earlier state of a table. Borrowing the committer ensures that this runs between two groups.
pub(crate) fn open(
    committer: &Committer,
    source: &str,
    point: RestorePoint,
) -> Result<PastState, RestoreError> {
    let shared = Arc::clone(&committer.shared);
    let table = shared
        .catalogue
        .table(source)
        .map_err(|_| RestoreError::SourceMissing(source.to_owned()))?;
    let Some(history) = table.record.history else {
        return Err(RestoreError::HistoryOff(source.to_owned()));
    };
    let times = shared.times();
    let now_ms = times.commit_ms;
    let at_ms = match point {
        RestorePoint::Latest => now_ms,
        RestorePoint::At(at_ms) => {
            let earliest_ms = history.reaches_back_to_ms(now_ms);
            // More changes may still happen in the current millisecond.
            let latest_ms = now_ms - 1;
            if !(earliest_ms..=latest_ms).contains(&at_ms) {
                return Err(RestoreError::OutOfReach {
                    earliest_ms,
                    latest_ms,
                });
            }
            at_ms
        }
    };
    let snapshot = shared.database.snapshot();
    let first_later =
        stream_read::first_since(&shared, &snapshot, table.id(), 0..u64::MAX, at_ms + 1)?;
    let end = *shared.last_change.borrow();
    let copy = TableCopy::begin(committer, std::slice::from_ref(&table));
    Ok(PastState {
        table,
        copy,
        shared,
        later: first_later..end.max(first_later),
        at_ms,
        expired_until_secs: at_ms.min(times.removal_ms()).div_euclid(1000),
    })
}

/// An earlier state of a table: a copy of its items, and the changes to undo.
pub(crate) struct PastState {
    pub(crate) table: Arc<Table>,
    pub(crate) copy: TableCopy,
    shared: Arc<Shared>,
    /// The sequence numbers of the changes to undo.
    later: Range<u64>,
    pub(crate) at_ms: i64,
    /// Items that expire up to this time had expired. It is earlier than `at_ms` while the wall clock is
    /// behind commit time.
    expired_until_secs: i64,
}

impl PastState {
    /// Copies the current table and undoes later changes, newest first: the change of an item that is undone
    /// last is its earliest, and leaves the state before it.
    pub(crate) fn fill(&self, filler: &mut TableFiller) -> Result<(), RestoreError> {
        self.copy.read(&self.table, |key, value| {
            if !self.had_expired(&key, &value)? {
                filler.set(key, Some(value))?;
            }
            Ok::<_, RestoreError>(())
        })?;
        let mut later = self.later.clone();
        loop {
            let changes = self.last_changes(later.clone())?;
            let Some((first, _)) = changes.last() else {
                return Ok(());
            };
            later.end = *first;
            for (_, value) in changes {
                let (key, before) = log::undo(&value).map_err(unavailable)?;
                let before = match before {
                    Some(value) if self.had_expired(&key, &value)? => None,
                    before => before,
                };
                filler.set(key, before)?;
            }
        }
    }

    /// The last changes in a range of sequence numbers, newest first; as many as one snapshot should stay
    /// open for.
    fn last_changes(&self, range: Range<u64>) -> Result<Vec<(u64, UserValue)>, RestoreError> {
        let id = self.table.id();
        let keyspaces = &self.shared.keyspaces;
        let snapshot = self.shared.database.snapshot();
        let trimmed = snapshot
            .get(&keyspaces.meta, layout::trimmed_key(id))
            .map_err(unavailable)?
            .map(|last| sequence_of(&last))
            .transpose()?;
        if trimmed.is_some_and(|trimmed| trimmed >= self.later.start) && !self.later.is_empty() {
            return Err(unavailable(
                "changes that had to be undone were trimmed in the meantime; choose a later moment",
            )
            .into());
        }
        let keys = layout::change_key(id, range.start)..layout::change_key(id, range.end);
        let mut changes = Vec::new();
        let mut bytes = 0;
        for guard in snapshot.range(&keyspaces.changes, keys).rev() {
            let (key, value) = guard.into_inner().map_err(unavailable)?;
            bytes += value.len();
            changes.push((sequence_of(&key)?, value));
            if changes.len() >= UNDO_CHANGES_MAX || bytes >= UNDO_BYTES_MAX {
                break;
            }
        }
        Ok(changes)
    }

    /// Whether the table has changed since.
    pub(crate) fn has_later_changes(&self) -> Result<bool, RestoreError> {
        let id = self.table.id();
        let keys = layout::change_key(id, self.later.start)..layout::change_key(id, self.later.end);
        let snapshot = self.shared.database.snapshot();
        match snapshot.range(&self.shared.keyspaces.changes, keys).next() {
            Some(guard) => Ok(guard.key().map(|_| true).map_err(unavailable)?),
            None => Ok(false),
        }
    }

    /// Whether the item had expired at that moment.
    pub(crate) fn had_expired(&self, key: &[u8], value: &[u8]) -> Result<bool, RestoreError> {
        let record = Record::new(&self.table.key, key, value).map_err(unavailable)?;
        let expired = self.table.is_expired(&record, self.expired_until_secs);
        Ok(expired.map_err(unavailable)?)
    }
}
