//! A soak test: readings over HTTP at full rate for a long time, beside idle tables that were written once. Idle tables keep
//! old journals until the store flushes them (fjall issue 288).

mod report;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};

use crate::ingest;
use crate::load::connection::Connection;
use crate::load::drive::{Plan, drive_watched};
use crate::load::server;
use crate::load::template::{Body, Template};
use crate::measure::percentile;
use crate::process;
use report::{Minute, Sample, Soak};

const CONNECTIONS: usize = 64;
const READINGS_PER_REQUEST: u64 = 25;
const IDLE_TABLES: usize = 16;
const MINUTE: Duration = Duration::from_secs(60);
const SAMPLE_EVERY: Duration = Duration::from_secs(1);

/// Runs for some minutes and prints a report. Returns an error if a limit is exceeded.
pub(crate) fn run(
    runtime: &tokio::runtime::Runtime,
    directory: &Path,
    minutes: u32,
) -> anyhow::Result<()> {
    let data_dir = directory.join("homeport-soak");
    let homeport = server::start_homeport(&data_dir)?;
    runtime.block_on(make_idle_tables(homeport.dynamodb.address))?;
    let key = runtime.block_on(ingest::make_key(homeport.http))?;
    let (start_ms, counter) = (ingest::start_ms()?, Arc::default());
    let plan = Plan {
        duration: MINUTE,
        weight: usize::try_from(READINGS_PER_REQUEST)?,
        is_good: ingest::are_all_stored,
    };
    let mut soak = Soak::default();
    for minute in 1..=minutes {
        let sampler = Sampler::start(homeport.dynamodb.id(), data_dir.clone());
        let callers = ingest::callers(&key, &counter, start_ms, READINGS_PER_REQUEST, CONNECTIONS);
        let driven = drive_watched(homeport.http, callers, plan);
        let samples = sampler.end()?;
        let (driven, longest_silence) = driven.with_context(|| format!("minute {minute}"))?;
        let latencies = driven.round.latencies;
        soak.minutes.push(Minute {
            rate: driven.round.rate,
            latency_max: latencies.iter().max().copied().unwrap_or_default(),
            latency_p50: percentile(latencies.clone(), 50),
            latency_p99: percentile(latencies, 99),
            longest_silence,
            samples,
        });
        eprintln!(
            "minute {minute} of {minutes}: {:.0} readings a second",
            driven.round.rate
        );
    }
    soak.print();
    let failures = soak.failures();
    if !failures.is_empty() {
        bail!("the soak failed: {}", failures.join("; "));
    }
    Ok(())
}

/// Creates tables and writes one item to each.
async fn make_idle_tables(address: SocketAddr) -> anyhow::Result<()> {
    let mut connection = Connection::open(address).await?;
    for number in 0..IDLE_TABLES {
        let name = format!("soak-idle-{number}");
        let table = serde_json::json!({
            "TableName": name, "BillingMode": "PAY_PER_REQUEST",
            "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
            "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
        });
        let item = serde_json::json!({"TableName": name, "Item": {"pk": {"S": "idle"}}});
        for (operation, body) in [("CreateTable", table), ("PutItem", item)] {
            let headers = format!(
                "Content-Type: application/x-amz-json-1.0\r\nX-Amz-Target: DynamoDB_20120810.{operation}\r\n"
            );
            let body = Body::default().text(&body.to_string());
            let mut request = Template::post("/", &headers, &body);
            let answer = connection.exchange(request.fill(0)).await?;
            ensure!(answer.status == 200, "{operation}: {}", answer.status);
        }
    }
    Ok(())
}

/// Starts a thread that samples the server once a second.
struct Sampler {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<std::io::Result<Vec<Sample>>>,
}

impl Sampler {
    fn start(process: String, data_dir: PathBuf) -> Self {
        let stop: Arc<AtomicBool> = Arc::default();
        let is_stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut samples = Vec::new();
            while !is_stopped.load(Ordering::Relaxed) {
                let next = Instant::now() + SAMPLE_EVERY;
                let used = process::disk_use(&data_dir)?;
                samples.push(Sample {
                    resident_bytes: process::memory_bytes(&process, "VmRSS"),
                    journal_bytes: used.journals,
                    table_bytes: used.others,
                });
                std::thread::sleep(next.saturating_duration_since(Instant::now()));
            }
            Ok(samples)
        });
        Self { stop, thread }
    }

    fn end(self) -> anyhow::Result<Vec<Sample>> {
        self.stop.store(true, Ordering::Relaxed);
        let samples = self.thread.join();
        Ok(samples.ok().context("the sampling thread panicked")??)
    }
}
