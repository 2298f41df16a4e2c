//! A table's past: keeping changes so that they can be undone, and making a new table as an old one
//! was at some moment.

use std::sync::Arc;

use crate::changes;
use crate::error::{TableError, unavailable};
use crate::layout;
use crate::record::Record;
use crate::restoring::{self, Filler, NewTable, RestoreError};
use crate::shared::Shared;
use crate::stream_read;
use crate::table::{History, Table, TableDescription};
use crate::vault::{Iter, Keyspace, Snapshot};

/// The longest that changes are kept to be undone.
pub const HISTORY_DAYS_MAX: u32 = 35;

/// Which moment of a table's past is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestorePoint {
    /// As it is now.
    Latest,
    /// As it was behind everything that happened until this moment.
    At(i64),
}

/// Asks for a table's history, changes how far it reaches back, or ends it.
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

/// Begins to make a table as `source` was at `point`.
pub(crate) async fn restore(
    shared: &Shared,
    source: String,
    point: RestorePoint,
    target: NewTable,
) -> Result<TableDescription, RestoreError> {
    let key = target.schema.key.clone();
    let open = move |shared: &Shared| {
        let past = open(shared, &source, point)?;
        if *past.table.key != key {
            return Err(RestoreError::DifferentKeys);
        }
        Ok(past)
    };
    let fill = |past: Past, filler: &mut Filler| past.fill(filler);
    restoring::begin(shared, target, None, open, fill).await
}

/// A table as it was. Only on the committer's thread, between two groups, is everything that happened
/// until then in the snapshot.
pub(crate) fn open(
    shared: &Shared,
    source: &str,
    point: RestorePoint,
) -> Result<Past, RestoreError> {
    let table = shared
        .catalogue
        .table(source)
        .map_err(|_| RestoreError::SourceMissing(source.to_owned()))?;
    let Some(history) = table.record.history else {
        return Err(RestoreError::HistoryOff(source.to_owned()));
    };
    let now_ms = shared.options.clock.now_ms();
    let at_ms = match point {
        RestorePoint::Latest => now_ms,
        RestorePoint::At(at_ms) => {
            let earliest_ms = history.reaches_back_to_ms(now_ms);
            // More may still happen in this very millisecond.
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
        stream_read::first_since(shared, &snapshot, table.id(), 0..u64::MAX, at_ms + 1)?;
    Ok(Past {
        table,
        snapshot,
        changes: shared.keyspaces.changes.clone(),
        first_later,
        at_ms,
    })
}

/// What a table was, as a snapshot of what it is and of the changes since.
pub(crate) struct Past {
    pub(crate) table: Arc<Table>,
    pub(crate) snapshot: Snapshot,
    changes: Keyspace,
    /// The sequence number of the first change that is to be undone.
    first_later: u64,
    pub(crate) at_ms: i64,
}

impl Past {
    /// Copies the table as it is and undoes what happened later, the newest first: the last that is
    /// undone of an item is what changed it first, and leaves it as it was before.
    pub(crate) fn fill(&self, filler: &mut Filler) -> Result<(), RestoreError> {
        for guard in self.snapshot.iter(&self.table.items) {
            let (key, value) = guard.into_inner().map_err(unavailable)?;
            if !self.had_expired(&key, &value)? {
                filler.set(key, Some(value))?;
            }
        }
        let mut later = self.later_changes();
        while let Some(guard) = later.next_back() {
            let value = guard.value().map_err(unavailable)?;
            let (key, before) = changes::undo(&value).map_err(unavailable)?;
            let before = match before {
                Some(value) if self.had_expired(&key, &value)? => None,
                before => before,
            };
            filler.set(key, before)?;
        }
        Ok(())
    }

    fn later_changes(&self) -> Iter<'_> {
        let id = self.table.id();
        let range = layout::change_key(id, self.first_later)..=layout::change_key(id, u64::MAX);
        self.snapshot.range(&self.changes, range)
    }

    /// Whether the table is another now.
    pub(crate) fn has_later_changes(&self) -> Result<bool, RestoreError> {
        match self.later_changes().next() {
            Some(guard) => Ok(guard.key().map(|_| true).map_err(unavailable)?),
            None => Ok(false),
        }
    }

    /// Whether nobody could see the item any more at that moment.
    pub(crate) fn had_expired(&self, key: &[u8], value: &[u8]) -> Result<bool, RestoreError> {
        let record = Record::new(&self.table.key, key, value).map_err(unavailable)?;
        let secs = self.at_ms.div_euclid(1000);
        let expired = self.table.is_expired(&record, secs).map_err(unavailable)?;
        Ok(expired)
    }
}
