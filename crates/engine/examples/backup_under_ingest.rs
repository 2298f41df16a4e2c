//! Backs up a store again and again while it is written as quickly as it takes writes, and fails if the process
//! ever needs more than 400 MB of memory.
//!
//! Run it with `cargo run --release --example backup_under_ingest -- 120`; the number is that of seconds, 60
//! unless given.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use homeport_engine::{Engine, Options};
use homeport_item::schema::TableSchema;
use homeport_item::{Item, KeyKind};
use homeport_store::{Put, Store, Transaction};

const WRITERS: u64 = 64;
const ITEMS_PER_TRANSACTION: u64 = 25;
const RESIDENT_MAX_KIB: u64 = 400_000_000 / 1024;
/// Makes an item about as large as a reading.
const NOTE: &str = "0123456789abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz";

type Failure = Box<dyn std::error::Error>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let secs: u64 = match std::env::args().nth(1) {
        Some(text) => text.parse()?,
        None => 60,
    };
    let directory = tempfile::tempdir()?;
    let engine = Engine::open(directory.path().join("data"), Options::default())?;
    let schema = TableSchema::new("readings", "device", KeyKind::S).with_sort("at", KeyKind::N);
    engine.create_table(schema).await?;
    let is_over = Arc::new(AtomicBool::new(false));
    let written = Arc::new(AtomicU64::new(0));
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let (engine, is_over) = (engine.clone(), Arc::clone(&is_over));
            let written = Arc::clone(&written);
            tokio::spawn(async move {
                let mut at = 0;
                while !is_over.load(Ordering::Relaxed) {
                    let puts = (0..ITEMS_PER_TRANSACTION).map(|_| {
                        at += 1;
                        let item = Item::new()
                            .with("device", format!("device-{:04}", writer * 100 + at % 100))
                            .with("at", at)
                            .with("note", NOTE);
                        Put::new("readings", item).into()
                    });
                    let transaction = Transaction::new(puts.collect());
                    if engine.transact(transaction).await.is_ok() {
                        written.fetch_add(ITEMS_PER_TRANSACTION, Ordering::Relaxed);
                    }
                }
            })
        })
        .collect();
    let started = Instant::now();
    let mut backups = 0;
    let mut longest = Duration::ZERO;
    while started.elapsed() < Duration::from_secs(secs) {
        let path = directory.path().join("backup");
        let began = Instant::now();
        let summary = engine.backup(&path).await?;
        longest = longest.max(began.elapsed());
        backups += 1;
        std::fs::remove_file(&path)?;
        println!(
            "{:5.1} s: {} items in {:.1} s, {} MB resident at most",
            started.elapsed().as_secs_f64(),
            summary.items,
            began.elapsed().as_secs_f64(),
            peak_kib()? * 1024 / 1_000_000
        );
    }
    is_over.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.await?;
    }
    let peak_kib = peak_kib()?;
    println!(
        "{} items written, {backups} backups, the longest {:.1} s, {} MB resident at most, {} entries from one snapshot at most",
        written.load(Ordering::Relaxed),
        longest.as_secs_f64(),
        peak_kib * 1024 / 1_000_000,
        engine.metrics().snapshot_entries_max,
    );
    if peak_kib > RESIDENT_MAX_KIB {
        return Err(format!("more than {RESIDENT_MAX_KIB} KiB were resident").into());
    }
    Ok(())
}

/// The most memory that this process had resident.
fn peak_kib() -> Result<u64, Failure> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next());
    Ok(kib.ok_or("no VmHWM in /proc/self/status")?.parse()?)
}
