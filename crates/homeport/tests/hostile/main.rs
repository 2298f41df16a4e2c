//! Attacks a server with mutated and random requests on DynamoDB's port, from a seed, while a canary checks that other
//! clients are served correctly.
//!
//! As a test it takes about ten seconds; `cargo xtask hostile --minutes 10` runs it longer.

mod attack;
mod corpus;
mod exchange;
mod json;
mod keeper;
mod server;
mod tally;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::attack::Attacker;
use crate::exchange::Exchange;
use crate::server::Server;
use crate::tally::Tally;

const ATTACKERS: u64 = 8;
const SHORT: Duration = Duration::from_secs(10);
const SEED: u64 = 2026;
/// Interval of progress reports.
const REPORT_EVERY: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Limit of resident memory: room for large bodies, the caches, and as much again for requests in progress.
const RESIDENT_MAX_BYTES: u64 = 1024 * 1024 * 1024;
/// Limit of growth from the first to the second half of a long run.
const GROWTH_MAX_BYTES: u64 = 64 * 1024 * 1024;
/// A run with fewer responses did not really take place.
const ANSWERS_MIN: u64 = 100;

#[test]
fn a_hostile_client_breaks_nothing() {
    let variable = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    let duration = variable("HOMEPORT_HOSTILE_MINUTES")
        .map_or(SHORT, |minutes| Duration::from_secs(minutes * 60));
    let seed = variable("HOMEPORT_HOSTILE_SEED").unwrap_or(SEED);
    println!("{} s with seed {seed}", duration.as_secs());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    let directory = tempfile::tempdir().expect("a directory");
    let data_dir = directory.path().join("data");
    let mut server = Server::start(&data_dir);
    let tally = Tally::default();
    let memory = runtime.block_on(attack(&mut server, &tally, duration, seed));
    let complaints = server.complaints();
    let stopped_well = server.stop();
    println!("{tally}");
    let mut wrong = tally.findings();
    wrong.extend(complaints);
    wrong.extend(memory.judge(duration));
    if !stopped_well {
        wrong.push("the server did not stop as it should".to_owned());
    }
    if !store_is_whole(&data_dir) {
        wrong.push("the store is damaged".to_owned());
    }
    for line in &wrong {
        println!("WRONG: {line}");
    }
    assert!(wrong.is_empty(), "{} things went wrong", wrong.len());
    let accepted = tally.count_of("200");
    assert!(
        tally.answers() >= ANSWERS_MIN && accepted > 0 && tally.count_of("400") > 0,
        "the attack did not take place"
    );
    println!("VERDICT: it stands; {} answers", tally.answers());
}

async fn attack(server: &mut Server, tally: &Tally, duration: Duration, seed: u64) -> Memory {
    let address = server.address;
    keeper::make_tables(address).await;
    let stop = Arc::new(AtomicBool::new(false));
    let mut tasks = Vec::new();
    for attacker in 0..ATTACKERS {
        let mut attacker = Attacker::new(
            seed.wrapping_mul(1000) + attacker,
            Exchange::new(address),
            tally.clone(),
        );
        let stop = Arc::clone(&stop);
        tasks.push(tokio::spawn(async move {
            while !stop.load(Ordering::Relaxed) {
                attacker.attack_once().await;
            }
        }));
    }
    tasks.push(tokio::spawn(keeper::watch_canary(
        address,
        tally.clone(),
        Arc::clone(&stop),
    )));
    tasks.push(tokio::spawn(keeper::keep_small(address, Arc::clone(&stop))));
    let mut memory = Memory::default();
    let started = Instant::now();
    let mut reported = Duration::ZERO;
    while started.elapsed() < duration {
        tokio::time::sleep(LOOK_EVERY).await;
        if server.has_ended() {
            tally.finding("the server ended", b"any request");
            break;
        }
        memory.samples.extend(server.resident_bytes());
        if started.elapsed() >= reported + REPORT_EVERY {
            reported += REPORT_EVERY;
            println!(
                "{:>4} s: {} MB of memory, {} answers",
                started.elapsed().as_secs(),
                memory.samples.last().copied().unwrap_or_default() / 1_000_000,
                tally.answers()
            );
        }
    }
    stop.store(true, Ordering::Relaxed);
    for task in tasks {
        task.await.expect("a task of the test does not panic");
    }
    memory
}

/// Samples of the server's memory, twice a second.
#[derive(Default)]
struct Memory {
    samples: Vec<u64>,
}

impl Memory {
    fn judge(&self, duration: Duration) -> Vec<String> {
        let mut wrong = Vec::new();
        let most = self.samples.iter().max().copied().unwrap_or_default();
        let (first, second) = self.samples.split_at(self.samples.len() / 2);
        let (first, second) = (median(first), median(second));
        println!(
            "MB of memory: {} in the first half, {} in the second, {} at most",
            first / 1_000_000,
            second / 1_000_000,
            most / 1_000_000
        );
        if most > RESIDENT_MAX_BYTES {
            wrong.push(format!("{most} bytes of memory"));
        }
        if duration > SHORT && second > first + GROWTH_MAX_BYTES {
            wrong.push(format!("memory grows: from {first} to {second} bytes"));
        }
        wrong
    }
}

fn median(samples: &[u64]) -> u64 {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

fn store_is_whole(data_dir: &std::path::Path) -> bool {
    std::process::Command::new(env!("CARGO_BIN_EXE_homeport"))
        .args(["check", "--data-dir"])
        .arg(data_dir)
        .status()
        .expect("the check runs")
        .success()
}
