//! A store whose disk is nearly full, full, or failing: what still works, and that it recovers.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use homeport_engine::{Condition, Disk, Engine, ManualClock, Options};
use homeport_item::schema::TableSchema;
use homeport_item::{Item, KeyKind};
use homeport_store::{
    BatchWrite, Delete, Get, Put, Store as _, StoreError, Transaction, WriteError, WriteRequest,
};

const RESERVE_BYTES: u64 = 1000;
const NOW_SECS: i64 = 1_800_000_000;
const PATIENCE: Duration = Duration::from_secs(60);

/// A disk with a configurable amount of free space.
#[derive(Debug)]
struct MeasuredDisk(AtomicU64);

impl Disk for MeasuredDisk {
    fn free_bytes(&self, _: &Path) -> Option<u64> {
        Some(self.0.load(Ordering::SeqCst))
    }
}

struct Fixture {
    directory: tempfile::TempDir,
    disk: Arc<MeasuredDisk>,
    clock: Arc<ManualClock>,
}

impl Fixture {
    fn new() -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
            disk: Arc::new(MeasuredDisk(AtomicU64::new(RESERVE_BYTES))),
            clock: Arc::new(ManualClock::at_ms(NOW_SECS * 1000)),
        }
    }

    fn open(&self) -> Engine {
        let options = Options {
            disk_reserve_bytes: RESERVE_BYTES,
            disk: Arc::clone(&self.disk) as _,
            clock: Arc::clone(&self.clock) as _,
            background_sweep: false,
            workers: 1,
            ..Options::default()
        };
        Engine::open(self.directory.path(), options).unwrap()
    }

    /// An open store with items in the table `things`.
    async fn with_items(&self) -> Engine {
        let engine = self.open();
        let table = TableSchema::new("things", "id", KeyKind::S).with_ttl("until");
        engine.create_table(table).await.unwrap();
        for id in ["a", "b", "c"] {
            engine.put(put(id)).await.unwrap();
        }
        engine
    }

    async fn free(&self, engine: &Engine, bytes: u64, condition: Condition) {
        self.disk.0.store(bytes, Ordering::SeqCst);
        until(|| engine.condition() == condition).await;
    }
}

async fn until(mut reached: impl FnMut() -> bool) {
    let started = Instant::now();
    while !reached() {
        assert!(started.elapsed() < PATIENCE, "timed out");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn put(id: &str) -> Put {
    Put::new(
        "things",
        Item::new().with("id", id).with("until", NOW_SECS + 10),
    )
}

fn key(id: &str) -> Item {
    Item::new().with("id", id)
}

async fn has(engine: &Engine, id: &str) -> bool {
    let found = engine.get(Get::new("things", key(id))).await;
    found.unwrap().is_some()
}

#[track_caller]
fn assert_refused<T: std::fmt::Debug>(outcome: Result<T, WriteError>) {
    match outcome {
        Err(WriteError::Store(StoreError::Unavailable(text))) => {
            assert!(text.contains("the disk is"), "{text}");
        }
        other => panic!("not refused: {other:?}"),
    }
}

#[tokio::test]
async fn deletes_work_on_a_nearly_full_disk() {
    let fixture = Fixture::new();
    let engine = fixture.with_items().await;
    fixture
        .free(&engine, RESERVE_BYTES / 2, Condition::DiskShort)
        .await;
    assert_refused(engine.put(put("d")).await);
    assert!(has(&engine, "a").await);
    engine
        .delete(Delete::new("things", key("a")))
        .await
        .unwrap();
    assert!(!has(&engine, "a").await);
    let delete = WriteRequest::Delete {
        table: "things".to_owned(),
        key: key("b"),
    };
    engine
        .batch_write(BatchWrite {
            writes: vec![delete],
        })
        .await
        .unwrap();
    // A small record of the deletion may be written with it.
    let with_note = |text: &str| {
        let note = Item::new().with("id", "note").with("text", text);
        let delete = Delete::new("things", key("c"));
        Transaction::new(vec![delete.into(), Put::new("things", note).into()])
    };
    let large = "x".repeat(100_000);
    assert!(engine.transact(with_note(&large)).await.is_err());
    engine.transact(with_note("small")).await.unwrap();
    assert!(!has(&engine, "b").await && !has(&engine, "c").await);
    assert!(engine.check().await.unwrap().descriptions.is_empty());
    fixture.free(&engine, RESERVE_BYTES, Condition::Ready).await;
    engine.put(put("d")).await.unwrap();
}

#[tokio::test]
async fn expired_items_are_deleted_on_a_nearly_full_disk() {
    let fixture = Fixture::new();
    let engine = fixture.with_items().await;
    fixture
        .free(&engine, RESERVE_BYTES / 2, Condition::DiskShort)
        .await;
    fixture.clock.advance_ms(20_000);
    assert_eq!(engine.sweep().await.unwrap().expired, 3);
}

#[tokio::test]
async fn nothing_is_written_on_a_full_disk() {
    let fixture = Fixture::new();
    let engine = fixture.with_items().await;
    fixture
        .free(&engine, RESERVE_BYTES / 4 - 1, Condition::DiskFull)
        .await;
    let commits = engine.metrics().commits;
    assert_refused(engine.put(put("d")).await);
    assert_refused(engine.delete(Delete::new("things", key("a"))).await);
    fixture.clock.advance_ms(20_000);
    engine.sweep().await.unwrap_err();
    assert_eq!(engine.metrics().commits, commits);
    fixture.free(&engine, RESERVE_BYTES, Condition::Ready).await;
    engine.put(put("d")).await.unwrap();
}

#[tokio::test]
async fn store_opens_on_a_full_disk() {
    let fixture = Fixture::new();
    drop(fixture.with_items().await);
    fixture.disk.0.store(0, Ordering::SeqCst);
    let engine = fixture.open();
    assert_eq!(engine.condition(), Condition::DiskFull);
    assert!(has(&engine, "a").await);
    assert_refused(engine.put(put("d")).await);
    fixture.free(&engine, RESERVE_BYTES, Condition::Ready).await;
    engine.put(put("d")).await.unwrap();
}

/// The folders of table files of all keyspaces.
fn table_folders(directory: &Path) -> Vec<PathBuf> {
    let keyspaces = std::fs::read_dir(directory.join("store/keyspaces")).unwrap();
    let folders = keyspaces.map(|keyspace| keyspace.unwrap().path().join("tables"));
    folders.filter(|folder| folder.exists()).collect()
}

fn aside(folder: &Path) -> PathBuf {
    folder.with_extension("aside")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn store_reopens_itself_after_a_failed_flush() {
    let fixture = Fixture::new();
    let engine = fixture.with_items().await;
    let table = engine.table("things").unwrap();
    // Flushing fails while the folders for table files are missing.
    let folders = table_folders(fixture.directory.path());
    for folder in &folders {
        std::fs::rename(folder, aside(folder)).unwrap();
    }
    engine.compact().await.unwrap_err();
    assert!(matches!(engine.condition(), Condition::WritesFailed(_)));
    let refused = engine.put(put("d")).await.unwrap_err();
    assert!(refused.to_string().contains("refused"), "{refused}");
    // Opening fails as well, and creates nothing in their place.
    until(|| matches!(engine.condition(), Condition::Closed(_))).await;
    engine.get(Get::new("things", key("a"))).await.unwrap_err();
    for folder in &folders {
        let _ = std::fs::remove_dir(folder);
        std::fs::rename(aside(folder), folder).unwrap();
    }
    until(|| engine.condition() == Condition::Ready).await;
    for id in ["a", "b", "c"] {
        assert!(has(&engine, id).await);
    }
    engine.put(put("d")).await.unwrap();
    engine.compact().await.unwrap();
    assert_eq!(engine.metrics().reopened, 1);
    assert!(engine.check().await.unwrap().descriptions.is_empty());
    // A table that was held in the meantime is still the same table.
    assert_eq!(table.schema().name, "things");
    drop((engine, table));
    assert!(has(&fixture.open(), "d").await);
}
