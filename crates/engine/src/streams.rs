//! The streams of tables: what the catalogue keeps of each time that a table's changes were asked
//! for. The changes themselves are in the change log; a stream and its shards are ranges of it, and
//! outlive the table for as long as changes are kept.

use std::sync::Arc;

use homeport_item::schema::{KeySchema, StreamView};
use homeport_store::StoreError;
use serde::{Deserialize, Serialize};

use crate::catalogue::Catalogue;
use crate::committer::Committer;
use crate::error::unavailable;
use crate::layout::{self, TableId};
use crate::shared::{Shared, stopped};
use crate::table::TableRecord;
use crate::vault::{UserKey, UserValue};

/// A shard that has changes is closed at this age, and another one goes on: whoever follows a
/// stream can then be far ahead in one shard and done with another.
const SHARD_AGE_MAX_MS: i64 = 4 * 60 * 60 * 1000;

pub(crate) const STREAM_PREFIX: &[u8] = b"stream/";

/// Identifies a stream: its table, and when it was switched on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamId {
    pub table_id: u32,
    pub enabled_at_ms: i64,
}

/// Identifies a shard within its stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardId {
    pub started_at_ms: i64,
    /// The sequence number that the shard begins with.
    pub first: u64,
}

/// A stream as the catalogue keeps it.
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
    /// The first sequence number behind the stream.
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

/// The moment of a change of tables, and how far the log is then.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) at_ms: i64,
    pub(crate) next_change: u64,
}

impl Moment {
    /// Right only on the committer's thread, where nothing else moves the log on.
    pub(crate) fn now(shared: &Shared) -> Self {
        Self {
            at_ms: shared.times().commit_ms,
            next_change: *shared.last_change.borrow(),
        }
    }
}

/// Ends and begins streams as a change of a table asks; what has to be written with that change.
pub(crate) fn follow(
    catalogue: &mut Catalogue,
    before: Option<&TableRecord>,
    after: Option<&mut TableRecord>,
    now: Moment,
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
        // Two streams of one table never have one label.
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

/// The stream that a table has now.
fn open_stream(record: &TableRecord) -> Option<StreamId> {
    record.stream_at_ms.map(|enabled_at_ms| StreamId {
        table_id: record.id,
        enabled_at_ms,
    })
}

/// The stream of a table that was made before streams were kept: it is as old as its table and
/// begins with the log. Working it out again gives the same, so that it need not be written.
pub(crate) fn adopt(catalogue: &mut Catalogue, record: &mut TableRecord, first: u64) {
    let Some(view) = record.schema.stream else {
        return;
    };
    let at_ms = *record.stream_at_ms.get_or_insert(record.created_at_ms);
    let stream = begin(record, view, at_ms, first);
    let known = catalogue.streams.entry(stream.id());
    known.or_insert_with(|| Arc::new(stream));
}

/// Forgets streams and shards whose changes are too old to be read, and closes shards that are old
/// enough.
pub(crate) fn upkeep(shared: &Shared) -> Result<(), StoreError> {
    let is_due = {
        let catalogue = shared.catalogue.now();
        let mut due = false;
        for stream in catalogue.streams.values() {
            due = due || kept_up(shared, stream, Moment::now(shared))?.is_some();
        }
        due
    };
    if !is_due {
        return Ok(());
    }
    shared
        .exclusive(carry_out)
        .blocking_recv()
        .map_err(|_| stopped())?
}

fn carry_out(committer: &mut Committer) -> Result<(), StoreError> {
    let shared = Arc::clone(&committer.shared);
    let mut catalogue = Catalogue::clone(&shared.catalogue.now());
    let mut due = Vec::new();
    for stream in catalogue.streams.values() {
        if let Some(change) = kept_up(&shared, stream, Moment::now(&shared))? {
            due.push((stream.id(), change));
        }
    }
    committer.write(|group| {
        for (id, change) in &due {
            match change {
                KeptUp::Forgotten => group.remove(&shared.keyspaces.catalogue, stream_key(*id)),
                KeptUp::Changed(stream) => {
                    let (key, value) = stream.entry();
                    group.insert(&shared.keyspaces.catalogue, key, value);
                }
            }
        }
        Ok(())
    })?;
    for (id, change) in due {
        match change {
            KeptUp::Forgotten => {
                catalogue.streams.remove(&id);
            }
            KeptUp::Changed(stream) => {
                catalogue.streams.insert(id, Arc::new(stream));
            }
        }
    }
    shared.catalogue.replace(catalogue);
    Ok(())
}

enum KeptUp {
    Forgotten,
    Changed(StreamRecord),
}

fn kept_up(
    shared: &Shared,
    stream: &StreamRecord,
    now: Moment,
) -> Result<Option<KeptUp>, StoreError> {
    let cutoff_ms = now.at_ms - shared.options.change_retention_ms;
    if stream.ended.is_some_and(|ended| ended.at_ms < cutoff_ms) {
        return Ok(Some(KeptUp::Forgotten));
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
    Ok(Some(KeptUp::Changed(StreamRecord {
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
