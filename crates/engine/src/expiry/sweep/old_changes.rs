//! Trims the change log: streams need one day of a table's changes, and its history may need more.

use std::collections::BTreeMap;
use std::ops::RangeBounds;
use std::sync::Arc;

use homeport_store::StoreError;

use super::{CHUNK, first_readable};
use crate::changes::log;
use crate::engine::sequence_of;
use crate::error::unavailable;
use crate::shared::{Shared, run_exclusive};
use crate::storage::layout::{self, TableId};
use crate::storage::vault::{self, Snapshot, UserKey};

/// Where the log of each table begins, as far as the sweeper knows.
#[derive(Default)]
pub(super) struct TrimPositions {
    /// `None` before the first pass, which finds deleted tables that still have changes.
    tables: Option<BTreeMap<TableId, TrimPosition>>,
}

#[derive(Debug, Clone, Copy, Default)]
struct TrimPosition {
    /// No earlier change exists.
    first: u64,
    /// No change before this one has a reliable time.
    undated_until: u64,
    /// The first change with a reliable time.
    dated: Option<Dated>,
}

#[derive(Debug, Clone, Copy)]
struct Dated {
    sequence: u64,
    at_ms: i64,
}

impl TrimPositions {
    /// Deletes the changes of all tables that are no longer needed at `now_ms`.
    pub(super) fn trim(&mut self, shared: &Shared, now_ms: i64) -> Result<u64, StoreError> {
        let tables = match &mut self.tables {
            Some(tables) => tables,
            None => self.tables.insert(tables_with_changes(shared)?),
        };
        let catalogue = shared.catalogue.now();
        for table in catalogue.tables() {
            tables.entry(table.id()).or_default();
        }
        let mut total = 0;
        let mut failure = None;
        tables.retain(|&table, position| {
            let cutoff_ms = kept_since_ms(shared, table, now_ms);
            match position.trim(shared, table, cutoff_ms) {
                Ok(trimmed) => total += trimmed,
                // A failure in one table must not keep the others from being trimmed.
                Err(error) => failure = Some(error),
            }
            position.dated.is_some() || failure.is_some() || catalogue.by_id(table).is_some()
        });
        match failure {
            Some(error) => Err(error),
            None => Ok(total),
        }
    }
}

/// The time before which changes of a table are no longer needed.
fn kept_since_ms(shared: &Shared, table: TableId, now_ms: i64) -> i64 {
    let for_streams = now_ms.saturating_sub(shared.options.change_retention_ms);
    let catalogue = shared.catalogue.now();
    let history = catalogue
        .by_id(table)
        .and_then(|table| table.record.history);
    history.map_or(for_streams, |history| {
        history.reaches_back_to_ms(now_ms).min(for_streams)
    })
}

/// All tables that have changes, including deleted ones.
fn tables_with_changes(shared: &Shared) -> Result<BTreeMap<TableId, TrimPosition>, StoreError> {
    let mut tables = BTreeMap::new();
    let mut from = Some(layout::change_key(0, 0).to_vec());
    while let Some(begin) = from {
        let snapshot = shared.database.snapshot();
        let first = snapshot
            .range(&shared.keyspaces.changes, begin.clone()..)
            .next();
        let Some(guard) = first else {
            break;
        };
        let key = match guard.key() {
            Err(error) if error.is_damaged_block() => {
                tracing::warn!(%error, "a part of the change log cannot be read");
                let table = first_readable(first_table(&begin), u64::from(TableId::MAX), |table| {
                    let begin = layout::change_key(to_table(table), 0).to_vec();
                    is_damaged(shared, &snapshot, begin..)
                });
                from = Some(layout::change_key(to_table(table), 0).to_vec());
                continue;
            }
            key => key.map_err(unavailable)?,
        };
        let table = key.first_chunk::<4>().map(|id| TableId::from_be_bytes(*id));
        let (Some(table), Ok(first)) = (table, sequence_of(&key)) else {
            tracing::warn!(?key, "a change's key is damaged");
            from = Some([key.as_ref(), &[0]].concat());
            continue;
        };
        let position = TrimPosition {
            first,
            undated_until: first,
            dated: None,
        };
        tables.insert(table, position);
        let next = table.checked_add(1);
        from = next.map(|table| layout::change_key(table, 0).to_vec());
    }
    Ok(tables)
}

fn first_table(key: &[u8]) -> u64 {
    key.first_chunk::<4>()
        .map_or(0, |id| u64::from(TableId::from_be_bytes(*id)))
}

fn to_table(number: u64) -> TableId {
    TableId::try_from(number).unwrap_or(TableId::MAX)
}

/// Whether the first change in a range is in a damaged block.
fn is_damaged(shared: &Shared, snapshot: &Snapshot, range: impl RangeBounds<Vec<u8>>) -> bool {
    let first = snapshot.range(&shared.keyspaces.changes, range).next();
    first.is_some_and(|guard| guard.key().is_err())
}

impl TrimPosition {
    fn trim(&mut self, shared: &Shared, table: TableId, cutoff_ms: i64) -> Result<u64, StoreError> {
        let mut total = 0;
        while let Some(dated) = self.find_dated(shared, table)? {
            if dated.at_ms >= cutoff_ms {
                break;
            }
            let last = last_old(shared, table, dated.sequence, cutoff_ms)?;
            // Earlier changes in the log are at least as old, whatever their own records say.
            total += remove_until(shared, table, self.first, last)?;
            *self = Self {
                first: last + 1,
                undated_until: last + 1,
                dated: None,
            };
        }
        Ok(total)
    }

    /// The first change with a reliable time. Damaged records have none, and times in the future were written
    /// by an old version that followed any clock.
    fn find_dated(&mut self, shared: &Shared, table: TableId) -> Result<Option<Dated>, StoreError> {
        while self.dated.is_none() {
            let mut looked = 0;
            let changes = read(shared, table, self.undated_until, CHUNK)?;
            // IMPORTANT: read the clock after the changes: none of them was committed later than this.
            let now_ms = shared.times().commit_ms;
            for change in changes {
                looked += 1;
                let sequence = sequence_of(&change.key)?;
                if let Some(at_ms) = change.at_ms.filter(|at_ms| *at_ms <= now_ms) {
                    self.dated = Some(Dated { sequence, at_ms });
                    break;
                }
                if self.undated_until <= sequence {
                    tracing::warn!(
                        table,
                        sequence,
                        "a change has no usable time; it is kept as long as the next one"
                    );
                }
                self.undated_until = sequence + 1;
            }
            if looked == 0 {
                break;
            }
        }
        Ok(self.dated)
    }
}

/// The last old change in one commit's chunk, starting at an old one.
fn last_old(shared: &Shared, table: TableId, from: u64, cutoff_ms: i64) -> Result<u64, StoreError> {
    let mut last = from;
    for change in read(shared, table, from, CHUNK)? {
        if change.at_ms.is_some_and(|at_ms| at_ms < cutoff_ms) {
            last = sequence_of(&change.key)?;
        }
    }
    Ok(last)
}

/// Deletes the changes of a table from `first` to `last`.
fn remove_until(shared: &Shared, table: TableId, first: u64, last: u64) -> Result<u64, StoreError> {
    let mut total = 0;
    let mut from = first;
    while from <= last {
        let mut keys = Vec::new();
        for change in read(shared, table, from, CHUNK)? {
            if sequence_of(&change.key)? > last {
                break;
            }
            keys.push(change.key);
        }
        let Some(end) = keys.last() else {
            break;
        };
        from = sequence_of(end)? + 1;
        total += remove(shared, table, keys)?;
    }
    Ok(total)
}

struct LoggedChange {
    key: UserKey,
    /// `None` if the record is damaged.
    at_ms: Option<i64>,
}

/// Reads up to `count` changes of a table, starting at a sequence number.
fn read(
    shared: &Shared,
    table: TableId,
    from: u64,
    count: usize,
) -> Result<Vec<LoggedChange>, StoreError> {
    let range = |from| {
        let end = layout::change_key(table, u64::MAX).to_vec();
        layout::change_key(table, from).to_vec()..=end
    };
    let snapshot = shared.database.snapshot();
    let mut logged: Vec<LoggedChange> = Vec::new();
    let entries = snapshot.range(&shared.keyspaces.changes, range(from));
    for guard in entries.take(count) {
        logged.push(match guard.into_inner() {
            Err(vault::Error::Unopened { key, .. }) => LoggedChange { key, at_ms: None },
            // The next call begins there.
            Err(error) if error.is_damaged_block() && !logged.is_empty() => break,
            Err(error) if error.is_damaged_block() => {
                let end = *shared.last_change.borrow();
                let next = first_readable(from, end, |from| {
                    is_damaged(shared, &snapshot, range(from))
                });
                tracing::warn!(table, from, next, %error, "changes cannot be read and are left in the log");
                return if next > from && next < end {
                    read(shared, table, next, count)
                } else {
                    Ok(logged)
                };
            }
            entry => {
                let (key, value) = entry.map_err(unavailable)?;
                let at_ms = log::changed_at_ms(&value);
                LoggedChange { key, at_ms }
            }
        });
    }
    Ok(logged)
}

/// Deletes changes of a table, in order, in one commit.
fn remove(shared: &Shared, table: TableId, keys: Vec<UserKey>) -> Result<u64, StoreError> {
    let removed = run_exclusive(shared, move |committer| {
        let shared = Arc::clone(&committer.shared);
        committer.write(|group| {
            let count = keys.len() as u64;
            // The position of the last one tells late readers that they missed changes.
            if let Some(last) = keys.last() {
                let key = layout::trimmed_key(table);
                group.insert(&shared.keyspaces.meta, key.into(), last.clone());
            }
            for key in keys {
                group.remove(&shared.keyspaces.changes, key);
            }
            Ok(count)
        })
    })?;
    shared.metrics.changes_trimmed(removed);
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Engine;
    use crate::options::Options;
    use crate::storage::vault::UserValue;
    use homeport_item::schema::{StreamView, TableSchema};
    use homeport_item::{Item, KeyKind};
    use homeport_store::{ChangeFeed, ManualClock, Put, Store as _};
    use std::time::Duration;

    use crate::changes::stream_read::{self, ShardPosition};

    const START_MS: i64 = 1_800_000_000_000;
    const DAY_MS: i64 = 24 * 60 * 60 * 1000;

    struct Fixture {
        engine: Engine,
        clock: Arc<ManualClock>,
        _directory: tempfile::TempDir,
    }

    impl Fixture {
        async fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let clock = Arc::new(ManualClock::at_ms(START_MS));
            let options = Options::for_tests().with_clock(&clock);
            let engine = Engine::open(directory.path(), options).unwrap();
            for name in ["first", "second"] {
                let mut table = TableSchema::new(name, "id", KeyKind::S);
                table.stream = Some(StreamView::KeysOnly);
                engine.create_table(table).await.unwrap();
            }
            Self {
                engine,
                clock,
                _directory: directory,
            }
        }

        async fn put(&self, table: &str, count: usize) {
            for id in 0..count {
                let item = Item::new().with("id", format!("{id}"));
                self.engine.put(Put::new(table, item)).await.unwrap();
                let delete = Item::new().with("id", format!("{id}"));
                let delete = homeport_store::Delete::new(table, delete);
                self.engine.delete(delete).await.unwrap();
            }
        }

        /// Overwrites the change at a position in a table's log.
        async fn overwrite(&self, table: &str, at: usize, change: impl Fn(&[u8]) -> Vec<u8>) {
            let shared = Arc::clone(self.engine.shared());
            let id = shared.catalogue.table(table).unwrap().id();
            let logged = read(&shared, id, 0, 1000).unwrap();
            let key = logged[at].key.clone();
            let value = shared.keyspaces.changes.get(&key).unwrap().unwrap();
            let value = UserValue::from(change(&value));
            let write = shared.exclusive(move |committer| {
                let shared = Arc::clone(&committer.shared);
                committer.write(|group| {
                    group.insert(&shared.keyspaces.changes, key, value);
                    Ok(())
                })
            });
            write.await.unwrap().unwrap();
        }

        async fn trimmed_after_ms(&self, ms: i64) -> u64 {
            self.clock.advance_ms(ms);
            self.engine.sweep().await.unwrap().changes_trimmed
        }
    }

    fn dated(at_ms: i64) -> impl Fn(&[u8]) -> Vec<u8> {
        move |value| {
            let mut value = value.to_vec();
            value[3..11].copy_from_slice(&at_ms.to_be_bytes());
            value
        }
    }

    #[tokio::test]
    async fn damaged_change_does_not_block_trimming() {
        let store = Fixture::new().await;
        store.put("first", 2).await;
        store.put("second", 1).await;
        store.overwrite("first", 1, |_| b"x".to_vec()).await;
        assert_eq!(store.trimmed_after_ms(DAY_MS).await, 0);
        assert_eq!(store.trimmed_after_ms(1).await, 6);
    }

    #[tokio::test]
    async fn damaged_last_change_is_trimmed_with_the_next() {
        let store = Fixture::new().await;
        store.put("first", 1).await;
        store.overwrite("first", 1, |_| Vec::new()).await;
        assert_eq!(store.trimmed_after_ms(DAY_MS).await, 0);
        assert_eq!(store.trimmed_after_ms(1).await, 1);
        store.put("first", 1).await;
        assert_eq!(store.trimmed_after_ms(DAY_MS).await, 0);
        assert_eq!(store.trimmed_after_ms(1).await, 3);
    }

    #[tokio::test]
    async fn future_change_of_an_older_version_is_trimmed() {
        let store = Fixture::new().await;
        store.put("first", 300).await;
        store.put("second", 1).await;
        for at in [0, 1, 5] {
            let future = dated(START_MS + 400 * DAY_MS);
            store.overwrite("first", at, future).await;
        }
        assert_eq!(store.trimmed_after_ms(DAY_MS).await, 0);
        assert_eq!(store.trimmed_after_ms(1).await, 602);
    }

    #[tokio::test]
    async fn change_committed_during_a_sweep_has_its_time() {
        let store = Fixture::new().await;
        store.put("first", 1).await;
        let shared = store.engine.shared();
        let mut positions = TrimPositions::default();
        // The sweep began before the change was committed.
        positions.trim(shared, START_MS - 1).unwrap();
        let id = shared.catalogue.table("first").unwrap().id();
        let dated = positions.tables.unwrap()[&id].dated;
        assert_eq!(dated.map(|dated| dated.at_ms), Some(START_MS));
    }

    #[tokio::test]
    async fn changes_of_a_deleted_table_are_trimmed() {
        let store = Fixture::new().await;
        store.put("first", 1).await;
        assert_eq!(store.trimmed_after_ms(0).await, 0);
        store.engine.delete_table("first").await.unwrap();
        assert_eq!(store.trimmed_after_ms(DAY_MS).await, 0);
        assert_eq!(store.trimmed_after_ms(1).await, 2);
    }

    #[tokio::test]
    async fn damaged_change_does_not_block_readers() {
        let store = Fixture::new().await;
        store.put("first", 2).await;
        store.overwrite("first", 1, |_| b"x".to_vec()).await;
        let page = store.engine.changes("first", 0, 100).unwrap();
        assert_eq!((page.changes.len(), page.has_damage), (3, true));
        let from = homeport_store::Position::new("1".to_owned());
        let feed = ChangeFeed::changes(&store.engine, "first", &from, 100, Duration::ZERO);
        assert!(feed.await.unwrap().has_gap);
        let stream = store.engine.streams().swap_remove(0);
        let shard = stream.shards[0].id;
        let read = |position| store.engine.read_shard(stream.id, shard, position, 100);
        assert_eq!(read(ShardPosition::Oldest).unwrap().changes.len(), 3);
        assert_eq!(read(ShardPosition::At(2)).unwrap().changes.len(), 2);
    }

    #[tokio::test]
    async fn unreadable_block_does_not_block_trimming() {
        let store = Fixture::new().await;
        let shared = store.engine.shared();
        let changes = &shared.keyspaces.changes;
        let files = || {
            let tables = changes.path().unwrap().join("tables");
            let files = std::fs::read_dir(tables).unwrap();
            files.map(|file| file.unwrap().path()).collect::<Vec<_>>()
        };
        store.put("first", 1).await;
        crate::engine::flush(shared, changes).unwrap();
        let damaged = files();
        for table in ["first", "second"] {
            store.put(table, 1).await;
            crate::engine::flush(shared, changes).unwrap();
        }
        assert_eq!((damaged.len(), files().len()), (1, 3));
        let mut bytes = std::fs::read(&damaged[0]).unwrap();
        bytes[60] ^= 1;
        std::fs::write(&damaged[0], bytes).unwrap();
        assert_eq!(store.trimmed_after_ms(DAY_MS).await, 0);
        assert_eq!(store.trimmed_after_ms(1).await, 4);
    }

    #[tokio::test]
    async fn damaged_change_does_not_block_search_by_time() {
        let store = Fixture::new().await;
        store.put("first", 2).await;
        store.clock.advance_ms(1000);
        store.put("first", 2).await;
        for at in [1, 3, 4] {
            store.overwrite("first", at, |_| b"x".to_vec()).await;
        }
        let shared = store.engine.shared();
        let id = shared.catalogue.table("first").unwrap().id();
        let snapshot = shared.database.snapshot();
        let first_since = |at_ms| stream_read::first_since(shared, &snapshot, id, 0..100, at_ms);
        assert_eq!(first_since(START_MS).unwrap(), 0);
        // Changes 4 and 5 are damaged, so their age is unknown.
        assert_eq!(first_since(START_MS + 1000).unwrap(), 4);
    }

    #[tokio::test]
    async fn trimmed_changes_are_not_read_again() {
        let store = Fixture::new().await;
        store.put("first", 5).await;
        store.clock.advance_ms(DAY_MS);
        store.put("first", 1).await;
        assert_eq!(store.trimmed_after_ms(1).await, 10);
        let shared = store.engine.shared();
        let id = shared.catalogue.table("first").unwrap().id();
        let sweeper = shared.sweeper.lock().unwrap();
        let position = sweeper.changes.tables.as_ref().unwrap()[&id];
        assert_eq!(position.first, 11);
        assert_eq!(position.dated.map(|dated| dated.sequence), Some(11));
    }
}
