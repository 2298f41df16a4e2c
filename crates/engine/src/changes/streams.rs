//! Streams of tables: the catalogue has a record for each period in which a table's stream was enabled. The
//! changes themselves are in the change log; a stream and its shards are ranges of it, and they outlive the
//! table for as long as changes are kept.

use std::sync::Arc;

use homeport_item::schema::{KeySchema, StreamView};
use homeport_store::StoreError;
use serde::{Deserialize, Serialize};

use crate::catalogue::Catalogue;
use crate::catalogue::table::TableRecord;
use crate::commit::committer::Committer;
use crate::error::unavailable;
use crate::shared::{Shared, run_exclusive};
use crate::storage::layout::{self, TableId};
use crate::storage::vault::{UserKey, UserValue};

/// A shard with changes is closed at this age and followed by another, so that readers can finish old shards.
const SHARD_AGE_MAX_MS: i64 = 4 * 60 * 60 * 1000;

pub(crate) const STREAM_PREFIX: &[u8] = b"stream/";

/// The id of a stream: its table, and when it was enabled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamId {
    pub table_id: u32,
    pub enabled_at_ms: i64,
}

/// The id of a shard within its stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardId {
    pub started_at_ms: i64,
    /// The first sequence number of the shard.
    pub first: u64,
}

/// The catalogue's record of a stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct StreamRecord {
    pub(crate) table_id: TableId,
    pub(crate) table: String,
    pub(crate) key: KeySchema,
    pub(crate) view: StreamView,
    pub(crate) enabled_at_ms: i64,
    pub(crate) ended: Option<StreamEnd>,
    /// In order; never empty. Each ends where the next one begins.
    pub(crate) shards: Vec<ShardRecord>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct StreamEnd {
    pub(crate) at_ms: i64,
    /// The first sequence number after the stream.
    pub(crate) end: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct ShardRecord {
    pub(crate) id: ShardId,
    pub(crate) parent: Option<ShardId>,
}

impl StreamRecord {
    pub(crate) fn id(&self) -> StreamId {
        StreamId {
            table_id: self.table_id,
            enabled_at_ms: self.enabled_at_ms,
        }
    }

    fn entry(&self) -> (UserKey, UserValue) {
        let value = serde_json::to_vec(self).expect("a stream record has string keys only");
        (stream_key(self.id()), value.into())
    }
}

/// `stream/` table(4) enabled-at(8)
fn stream_key(id: StreamId) -> UserKey {
    let at = id.enabled_at_ms.to_be_bytes();
    [STREAM_PREFIX, &id.table_id.to_be_bytes(), &at]
        .concat()
        .into()
}

/// The time of a change of tables, and the end of the change log at that time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChangeMoment {
    pub(crate) at_ms: i64,
    pub(crate) next_change: u64,
}

impl ChangeMoment {
    /// Only correct on the committer's thread, where nothing else extends the log.
    pub(crate) fn now(shared: &Shared) -> Self {
        Self {
            at_ms: shared.times().commit_ms,
            next_change: *shared.last_change.borrow(),
        }
    }
}

/// Ends and starts streams as required by a change of a table; returns the catalogue entries to write with
/// it.
pub(crate) fn update_streams(
    catalogue: &mut Catalogue,
    before: Option<&TableRecord>,
    after: Option<&mut TableRecord>,
    now: ChangeMoment,
) -> Vec<(UserKey, UserValue)> {
    let was = before.and_then(|record| record.schema.stream);
    let is = after.as_ref().and_then(|record| record.schema.stream);
    if was == is {
        return Vec::new();
    }
    let mut entries = Vec::new();
    if let Some(id) = before.filter(|_| was.is_some()).and_then(open_stream)
        && let Some(stream) = catalogue.streams.get_mut(&id)
    {
        let ended = StreamRecord {
            ended: Some(StreamEnd {
                at_ms: now.at_ms,
                end: now.next_change,
            }),
            ..StreamRecord::clone(stream)
        };
        entries.push(ended.entry());
        *stream = Arc::new(ended);
    }
    if let (Some(record), Some(view)) = (after, is) {
        // Two streams of one table must never have the same label.
        let last = record.stream_at_ms.map_or(i64::MIN, |last| last + 1);
        let stream = begin(record, view, now.at_ms.max(last), now.next_change);
        record.stream_at_ms = Some(stream.enabled_at_ms);
        entries.push(stream.entry());
        catalogue.streams.insert(stream.id(), Arc::new(stream));
    }
    entries
}

fn begin(record: &TableRecord, view: StreamView, at_ms: i64, first: u64) -> StreamRecord {
    StreamRecord {
        table_id: record.id,
        table: record.schema.name.clone(),
        key: record.schema.key.clone(),
        view,
        enabled_at_ms: at_ms,
        ended: None,
        shards: vec![ShardRecord {
            id: ShardId {
                started_at_ms: at_ms,
                first,
            },
            parent: None,
        }],
    }
}

/// The table's current stream.
fn open_stream(record: &TableRecord) -> Option<StreamId> {
    record.stream_at_ms.map(|enabled_at_ms| StreamId {
        table_id: record.id,
        enabled_at_ms,
    })
}

/// Adds the stream of a table that is older than stream records: it starts with the table and with the log.
/// This always gives the same result, so it need not be stored.
pub(crate) fn add_derived_stream(catalogue: &mut Catalogue, record: &mut TableRecord, first: u64) {
    let Some(view) = record.schema.stream else {
        return;
    };
    let at_ms = *record.stream_at_ms.get_or_insert(record.created_at_ms);
    let stream = begin(record, view, at_ms, first);
    let known = catalogue.streams.entry(stream.id());
    known.or_insert_with(|| Arc::new(stream));
}

/// Deletes the records of streams and shards that are too old to be read, and closes old shards.
pub(crate) fn maintain_streams(shared: &Shared) -> Result<(), StoreError> {
    let is_due = {
        let catalogue = shared.catalogue.now();
        let mut due = false;
        for stream in catalogue.streams.values() {
            due = due || due_maintenance(shared, stream, ChangeMoment::now(shared))?.is_some();
        }
        due
    };
    if !is_due {
        return Ok(());
    }
    run_exclusive(shared, apply_maintenance)
}

fn apply_maintenance(committer: &mut Committer) -> Result<(), StoreError> {
    let shared = Arc::clone(&committer.shared);
    let mut catalogue = Catalogue::clone(&shared.catalogue.now());
    let mut due = Vec::new();
    for stream in catalogue.streams.values() {
        if let Some(change) = due_maintenance(&shared, stream, ChangeMoment::now(&shared))? {
            due.push((stream.id(), change));
        }
    }
    committer.write(|group| {
        for (id, change) in &due {
            match change {
                StreamMaintenance::Delete => {
                    group.remove(&shared.keyspaces.catalogue, stream_key(*id))
                }
                StreamMaintenance::Replace(stream) => {
                    let (key, value) = stream.entry();
                    group.insert(&shared.keyspaces.catalogue, key, value);
                }
            }
        }
        Ok(())
    })?;
    for (id, change) in due {
        match change {
            StreamMaintenance::Delete => {
                catalogue.streams.remove(&id);
            }
            StreamMaintenance::Replace(stream) => {
                catalogue.streams.insert(id, Arc::new(stream));
            }
        }
    }
    shared.catalogue.replace(catalogue);
    Ok(())
}

enum StreamMaintenance {
    Delete,
    Replace(StreamRecord),
}

fn due_maintenance(
    shared: &Shared,
    stream: &StreamRecord,
    now: ChangeMoment,
) -> Result<Option<StreamMaintenance>, StoreError> {
    let cutoff_ms = now.at_ms - shared.options.change_retention_ms;
    if stream.ended.is_some_and(|ended| ended.at_ms < cutoff_ms) {
        return Ok(Some(StreamMaintenance::Delete));
    }
    let mut shards = stream.shards.clone();
    // A shard ends when the next one starts.
    let gone = shards
        .iter()
        .skip(1)
        .take_while(|next| next.id.started_at_ms < cutoff_ms)
        .count();
    shards.drain(..gone);
    if stream.ended.is_none()
        && let Some(open) = shards.last().copied()
        && now.at_ms - open.id.started_at_ms >= SHARD_AGE_MAX_MS
        && has_changes(shared, stream.table_id, open.id.first)?
    {
        shards.push(ShardRecord {
            id: ShardId {
                started_at_ms: now.at_ms,
                first: now.next_change,
            },
            parent: Some(open.id),
        });
    }
    if shards == stream.shards {
        return Ok(None);
    }
    Ok(Some(StreamMaintenance::Replace(StreamRecord {
        shards,
        ..stream.clone()
    })))
}

fn has_changes(shared: &Shared, table: TableId, from: u64) -> Result<bool, StoreError> {
    let range = layout::change_key(table, from)..=layout::change_key(table, u64::MAX);
    let snapshot = shared.database.snapshot();
    match snapshot.range(&shared.keyspaces.changes, range).next() {
        Some(guard) => match guard.key() {
            Err(error) if !error.is_damaged_block() => Err(unavailable(error)),
            _ => Ok(true),
        },
        None => Ok(false),
    }
}
