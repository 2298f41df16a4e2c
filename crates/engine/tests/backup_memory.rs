//! The memory of a process that backs up a store under full ingest. This is a test program of its own,
//! because the figure is one of the whole process.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use homeport_engine::{Durability, Engine, Options};
use homeport_item::schema::TableSchema;
use homeport_item::{Item, KeyKind};
use homeport_store::{Put, Store as _, Transaction};

const RESIDENT_MAX_BYTES: u64 = 400_000_000;
/// A snapshot that stays open during the backup would keep all new writes in memory, which exceeds this.
const WRITTEN_MIN_BYTES: u64 = 400_000_000;
/// The table grows by this many items until its backup takes long enough.
const ITEMS_PER_ROUND: u64 = 10_000;
const ROUNDS_MAX: u64 = 10;
const WRITERS: u64 = 8;
const KEYS_PER_WRITER: u64 = 16;
const NOTE_BYTES: u64 = 200_000;

/// Overwrites large items as fast as the store accepts them.
async fn ingest(engine: Engine, writer: u64, is_over: Arc<AtomicBool>, written: Arc<AtomicU64>) {
    let note = "x".repeat(usize::try_from(NOTE_BYTES).unwrap());
    let mut number = 0;
    while !is_over.load(Ordering::Relaxed) {
        number += 1;
        let id = format!("{writer}-{}", number % KEYS_PER_WRITER);
        let item = Item::new().with("id", id).with("note", note.as_str());
        engine.put(Put::new("notes", item)).await.unwrap();
        written.fetch_add(NOTE_BYTES, Ordering::Relaxed);
    }
}

async fn add_items(engine: &Engine, round: u64) {
    for first in (0..ITEMS_PER_ROUND).step_by(100) {
        let puts = (first..first + 100).map(|number| {
            let item = Item::new().with("id", format!("{round}-{number}"));
            Put::new("readings", item.with("number", number)).into()
        });
        let transaction = Transaction::new(puts.collect());
        engine.transact(transaction).await.unwrap();
    }
}

/// The peak resident memory of this process.
fn resident_max_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next());
    kib.unwrap().parse::<u64>().unwrap() * 1024
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn backup_under_ingest_needs_little_memory() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options {
        durability: Durability::Relaxed,
        ..Options::default()
    };
    let engine = Engine::open(directory.path().join("data"), options).unwrap();
    for table in ["readings", "notes"] {
        let schema = TableSchema::new(table, "id", KeyKind::S);
        engine.create_table(schema).await.unwrap();
    }
    for round in 0..ROUNDS_MAX {
        add_items(&engine, round).await;
        let (is_over, written) = (Arc::default(), Arc::default());
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let (is_over, written) = (Arc::clone(&is_over), Arc::clone(&written));
                tokio::spawn(ingest(engine.clone(), writer, is_over, written))
            })
            .collect();
        let backup = directory.path().join(format!("backup-{round}"));
        let summary = engine.backup(&backup).await.unwrap();
        let written = written.load(Ordering::Relaxed);
        is_over.store(true, Ordering::Relaxed);
        for writer in writers {
            writer.await.unwrap();
        }
        std::fs::remove_file(&backup).unwrap();
        let resident = resident_max_bytes();
        println!(
            "{} items backed up, {written} bytes written meanwhile, {resident} bytes resident at most",
            summary.items
        );
        assert!(resident <= RESIDENT_MAX_BYTES, "{resident} bytes resident");
        if written >= WRITTEN_MIN_BYTES {
            return;
        }
    }
    panic!("no backup took long enough");
}
