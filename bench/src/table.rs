//! The table of a run, and its results for the goals.

use std::time::Duration;

use crate::child::Crash;
use crate::machine::SyncSpeed;
use crate::measure::Measured;
use crate::process::DiskUse;

/// The goal of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Goal {
    /// At least this percentage of the raw store.
    PercentOfRaw(u32),
    /// Faster than SQLite.
    AheadOfSqlite,
}

/// One row: the same work by all contestants.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) goal: Goal,
    pub(crate) ours: Measured,
    /// The engine with encrypted values.
    pub(crate) sealed: Measured,
    pub(crate) raw: Measured,
    pub(crate) sqlite: Measured,
}

impl Row {
    fn to_raw(&self) -> f64 {
        self.ours.rate() / self.raw.rate()
    }

    fn to_sqlite(&self) -> f64 {
        self.ours.rate() / self.sqlite.rate()
    }
}

pub(crate) fn print_rows(rows: &[Row]) {
    println!(
        "| work | unit | engine | raw store | SQLite | engine/raw | engine/SQLite | p50 / p99 µs: engine | raw store | SQLite | spread % of rounds: engine | raw store | SQLite |"
    );
    println!("| --- | --- | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: |");
    for row in rows {
        println!(
            "| {} | {} | {:.0} | {:.0} | {:.0} | {:.2} | {:.2} | {} | {} | {} | {} | {} | {} |",
            row.name,
            row.unit,
            row.ours.rate(),
            row.raw.rate(),
            row.sqlite.rate(),
            row.to_raw(),
            row.to_sqlite(),
            latency(&row.ours),
            latency(&row.raw),
            latency(&row.sqlite),
            spread(&row.ours),
            spread(&row.raw),
            spread(&row.sqlite),
        );
    }
}

/// The cost of encryption: rates, and disk usage after the last row, compacted.
pub(crate) fn print_sealed(rows: &[Row], plain: DiskUse, sealed: DiskUse) {
    println!("### Sealed");
    println!();
    println!(
        "| work | unit | engine | sealed engine | sealed/plain | p50 / p99 µs: engine | sealed engine | spread % of rounds: engine | sealed engine |"
    );
    println!("| --- | --- |{}", " --: |".repeat(7));
    for row in rows {
        println!(
            "| {} | {} | {:.0} | {:.0} | {:.2} | {} | {} | {} | {} |",
            row.name,
            row.unit,
            row.ours.rate(),
            row.sealed.rate(),
            row.sealed.rate() / row.ours.rate(),
            latency(&row.ours),
            latency(&row.sealed),
            spread(&row.ours),
            spread(&row.sealed),
        );
    }
    println!();
    println!(
        "Disk after compaction, without journals: engine {:.0} MB, sealed engine {:.0} MB, {:.2} times as much",
        megabytes(plain.others),
        megabytes(sealed.others),
        sealed.others as f64 / plain.others as f64
    );
}

pub(crate) fn latency(measured: &Measured) -> String {
    format!(
        "{} / {}",
        measured.latency(50).as_micros(),
        measured.latency(99).as_micros()
    )
}

pub(crate) fn spread(measured: &Measured) -> String {
    let (low, high) = measured.spread_percent();
    format!("{low:+.0} … {high:+.0}")
}

pub(crate) fn print_machine(speed: &SyncSpeed) {
    println!(
        "Machine: 10 KiB append + fdatasync p50 {} µs, p99 {} µs, {:.0} syncs/s",
        speed.p50.as_micros(),
        speed.p99.as_micros(),
        speed.per_second
    );
}

pub(crate) fn print_durability() {
    println!(
        "Durability: engine answers after fdatasync of its group (Durability::Sync); raw store likewise (PersistMode::SyncData per group); SQLite WAL with synchronous=FULL, one transaction per group."
    );
}

pub(crate) fn print_crash(crash: &Crash) {
    println!(
        "Ingest process: {} readings ({} items) in {:.1} s; resident {:.0} MB at most while sampled, {:.0} MB high-water mark",
        crash.readings,
        crash.readings * 2,
        crash.ingest_secs,
        megabytes(crash.resident_bytes),
        megabytes(crash.resident_bytes_max)
    );
    println!(
        "Start after kill -9 (page cache warm): open {} ms, open and first get {} ms",
        crash.open.as_millis(),
        crash.open_and_get.as_millis()
    );
    for (when, used) in [
        ("before", crash.before_compaction),
        ("after", crash.after_compaction),
    ] {
        println!(
            "Disk {when} compaction: {:.0} bytes per reading with marker and expiry entries; beside them {:.0} MB of journals, preallocated and bounded, not counted",
            used.others as f64 / crash.readings as f64,
            megabytes(used.journals)
        );
    }
}

pub(crate) fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

pub(crate) fn print_goals(rows: &[Row], crash: &Crash) {
    print_goal_head();
    for row in rows {
        if let Goal::PercentOfRaw(percent) = row.goal {
            let least = f64::from(percent) / 100.0;
            let name = format!("{}: at least {percent} % of the raw store", row.name);
            at_least(&name, row.to_raw(), least);
        }
    }
    for row in rows {
        at_least(
            &format!("{}: ahead of SQLite", row.name),
            row.to_sqlite(),
            1.0,
        );
    }
    at_most(
        "resident memory under full ingest, MB",
        megabytes(crash.resident_bytes_max),
        300.0,
    );
    at_most(
        "bytes on disk per reading, compacted",
        crash.after_compaction.others as f64 / crash.readings as f64,
        300.0,
    );
    at_most("start after kill -9, s", secs(crash.open_and_get), 3.0);
}

pub(crate) fn print_goal_head() {
    println!("| goal | measured | |");
    println!("| --- | --: | --- |");
}

fn secs(duration: Duration) -> f64 {
    duration.as_secs_f64()
}

pub(crate) fn at_least(name: &str, measured: f64, least: f64) {
    let off = (measured / least - 1.0) * 100.0;
    print_goal(name, measured, off, measured >= least);
}

pub(crate) fn at_most(name: &str, measured: f64, most: f64) {
    let off = (1.0 - measured / most) * 100.0;
    print_goal(name, measured, off, measured < most);
}

fn print_goal(name: &str, measured: f64, off: f64, is_met: bool) {
    let word = if is_met { "met" } else { "MISSED" };
    println!("| {name} | {measured:.2} | {word} by {:.0} % |", off.abs());
}
