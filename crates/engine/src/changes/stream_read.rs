//! Reads streams: the list of streams, their shards, and the changes of a shard.

use homeport_item::schema::{KeySchema, StreamView};
use homeport_store::StoreError;

use crate::changes::log::{self, Change};
use crate::changes::streams::{ShardId, StreamId, StreamRecord};
use crate::commit::writer::CommitRecord;
use crate::engine::{CHANGES_PAGE_MAX, Engine, sequence_of};
use crate::error::unavailable;
use crate::shared::Shared;
use crate::storage::layout::{self, TableId};
use crate::storage::vault::{self, Snapshot};

/// A page ends when its changes reach this size.
const PAGE_BYTES_MAX: usize = 1024 * 1024;

/// A stream that can be read.
#[derive(Debug, Clone, PartialEq)]
pub struct Stream {
    pub id: StreamId,
    pub table: String,
    pub key: KeySchema,
    pub view: StreamView,
    pub is_enabled: bool,
    /// In order; the last one is open while the stream is enabled.
    pub shards: Vec<Shard>,
}

/// A section of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    pub id: ShardId,
    pub parent: Option<ShardId>,
    /// The first sequence number after the shard, once it is closed.
    pub end: Option<u64>,
}

/// Where a page of a shard begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShardPosition {
    /// At the oldest change that is kept.
    Oldest,
    /// At this sequence number.
    At(u64),
}

/// A page of changes of a shard.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ShardPage {
    pub changes: Vec<Change>,
    /// The sequence number to continue with; `None` when a closed shard has been read to its end.
    pub next: Option<u64>,
}

/// Why a shard could not be read.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum StreamError {
    #[error("there is no such stream")]
    StreamMissing,
    #[error("there is no such shard")]
    ShardMissing,
    #[error("changes from there on are no longer kept")]
    Trimmed,
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Engine {
    /// All streams that can be read, ordered by id.
    #[must_use]
    pub fn streams(&self) -> Vec<Stream> {
        let catalogue = self.shared().catalogue.now();
        let streams = catalogue.streams.values();
        streams.map(|record| describe(record)).collect()
    }

    /// A stream that can be read.
    #[must_use]
    pub fn stream(&self, id: StreamId) -> Option<Stream> {
        let catalogue = self.shared().catalogue.now();
        catalogue.streams.get(&id).map(|record| describe(record))
    }

    /// Returns up to `limit` changes of a shard, in order. Damaged changes are skipped.
    ///
    /// # Errors
    /// Fails if the shard does not exist, the position is older than what is kept, or the log cannot be read.
    pub fn read_shard(
        &self,
        stream: StreamId,
        shard: ShardId,
        position: ShardPosition,
        limit: usize,
    ) -> Result<ShardPage, StreamError> {
        let shared = self.shared();
        let stream = self.stream(stream).ok_or(StreamError::StreamMissing)?;
        let shard = stream.shard(shard).ok_or(StreamError::ShardMissing)?;
        let end = shard.end.unwrap_or(u64::MAX);
        let snapshot = shared.database.snapshot();
        let from = start_of_page(shared, &snapshot, stream.id.table_id, shard, position)?;
        if from >= end {
            return Ok(ShardPage::default());
        }
        let mut page = ShardPage::default();
        let mut bytes = 0;
        let mut next = from;
        let table = stream.id.table_id;
        let range = layout::change_key(table, from)..layout::change_key(table, end);
        for guard in snapshot.range(&shared.keyspaces.changes, range) {
            if page.changes.len() >= limit.min(CHANGES_PAGE_MAX) || bytes >= PAGE_BYTES_MAX {
                page.next = Some(next);
                return Ok(page);
            }
            let logged = log::read(&stream.key, guard)?;
            next = logged.sequence + 1;
            if let Some(change) = logged.change {
                bytes += change.size();
                page.changes.push(change);
            }
        }
        // This table has no more changes before the next change of any table.
        let commit = snapshot
            .get(&shared.keyspaces.meta, layout::COMMIT_KEY)
            .map_err(unavailable)?
            .and_then(|bytes| CommitRecord::decode(&bytes));
        let next = next.max(commit.map_or(0, |record| record.next_change));
        page.next = shard.end.is_none().then_some(next);
        Ok(page)
    }

    /// Checks that all changes of a shard from a sequence number on are kept.
    ///
    /// # Errors
    /// Fails if the shard does not exist, changes are missing, or the log cannot be read.
    pub fn check_shard_position(
        &self,
        stream: StreamId,
        shard: ShardId,
        sequence: u64,
    ) -> Result<(), StreamError> {
        let shared = self.shared();
        let stream = self.stream(stream).ok_or(StreamError::StreamMissing)?;
        let shard = stream.shard(shard).ok_or(StreamError::ShardMissing)?;
        let snapshot = shared.database.snapshot();
        let position = ShardPosition::At(sequence);
        start_of_page(shared, &snapshot, stream.id.table_id, shard, position).map(|_| ())
    }
}

impl Stream {
    /// The shard with this id.
    #[must_use]
    pub fn shard(&self, id: ShardId) -> Option<&Shard> {
        self.shards.iter().find(|shard| shard.id == id)
    }
}

fn describe(record: &StreamRecord) -> Stream {
    let next = record.shards.iter().skip(1).map(|next| next.id.first);
    let ends = next
        .map(Some)
        .chain([record.ended.map(|ended| ended.end)])
        .chain([None]);
    Stream {
        id: record.id(),
        table: record.table.clone(),
        key: record.key.clone(),
        view: record.view,
        is_enabled: record.ended.is_none(),
        shards: record
            .shards
            .iter()
            .zip(ends)
            .map(|(shard, end)| Shard {
                id: shard.id,
                parent: shard.parent,
                end,
            })
            .collect(),
    }
}

/// The sequence number at which to start reading.
fn start_of_page(
    shared: &Shared,
    snapshot: &Snapshot,
    table: TableId,
    shard: &Shard,
    position: ShardPosition,
) -> Result<u64, StreamError> {
    let trimmed = snapshot
        .get(&shared.keyspaces.meta, layout::trimmed_key(table))
        .map_err(unavailable)?
        .map(|last| sequence_of(&last))
        .transpose()?;
    let end = shard.end.unwrap_or(u64::MAX);
    let cutoff_ms = shared.times().commit_ms - shared.options.change_retention_ms;
    match position {
        ShardPosition::At(sequence) => {
            let from = sequence.max(shard.id.first);
            let is_trimmed = from < end && trimmed.is_some_and(|trimmed| from <= trimmed);
            if is_trimmed || is_older(shared, snapshot, table, from..end, cutoff_ms)? {
                return Err(StreamError::Trimmed);
            }
            Ok(from)
        }
        ShardPosition::Oldest => {
            let kept = trimmed.map_or(0, |trimmed| trimmed + 1);
            let from = kept.max(shard.id.first);
            if is_older(shared, snapshot, table, from..end, cutoff_ms)? {
                // The log is kept longer than its changes can be read as a stream.
                return first_since(shared, snapshot, table, from..end, cutoff_ms)
                    .map_err(StreamError::Store);
            }
            Ok(from)
        }
    }
}

fn is_older(
    shared: &Shared,
    snapshot: &Snapshot,
    table: TableId,
    range: std::ops::Range<u64>,
    cutoff_ms: i64,
) -> Result<bool, StoreError> {
    let first = first_change(shared, snapshot, table, range)?;
    Ok(first.is_some_and(|(_, at_ms)| at_ms < cutoff_ms))
}

/// The first sequence number in `range` whose change was made at or after `at_ms`; the end of the range if
/// no change matches.
pub(crate) fn first_since(
    shared: &Shared,
    snapshot: &Snapshot,
    table: TableId,
    range: std::ops::Range<u64>,
    at_ms: i64,
) -> Result<u64, StoreError> {
    // Changes are in time order, so a binary search finds it.
    let behind = snapshot
        .range(
            &shared.keyspaces.changes,
            layout::change_key(table, range.start)..layout::change_key(table, range.end),
        )
        .next_back();
    let Some(last) = behind else {
        return Ok(range.end);
    };
    let mut low = range.start;
    let mut high = sequence_of(&last.key().map_err(unavailable)?)? + 1;
    while low < high {
        let middle = low + (high - low) / 2;
        match first_change(shared, snapshot, table, middle..high)? {
            Some((found, found_at_ms)) if found_at_ms < at_ms => low = found + 1,
            _ => high = middle,
        }
    }
    Ok(low)
}

/// The first change in a range with a readable time: its sequence number and time.
fn first_change(
    shared: &Shared,
    snapshot: &Snapshot,
    table: TableId,
    range: std::ops::Range<u64>,
) -> Result<Option<(u64, i64)>, StoreError> {
    if range.is_empty() {
        return Ok(None);
    }
    let keys = layout::change_key(table, range.start)..layout::change_key(table, range.end);
    for guard in snapshot.range(&shared.keyspaces.changes, keys) {
        let (key, value) = match guard.into_inner() {
            Err(vault::Error::Unopened { .. }) => continue,
            entry => entry.map_err(unavailable)?,
        };
        // Changes are in time order, so a damaged one is about as old as the next.
        if let Some(at_ms) = log::changed_at_ms(&value) {
            return Ok(Some((sequence_of(&key)?, at_ms)));
        }
    }
    Ok(None)
}
