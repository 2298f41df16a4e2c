//! A separate process that ingests at full rate until it is killed: its memory is only the engine's, and its end is a crash.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;

use crate::contestant::Contestant as _;
use crate::engine_side::EngineSide;
use crate::measure::Progress;
use crate::process::{self, DiskUse};
use crate::stream::Stream;
use crate::workload::Reading;

const CALLERS: usize = 8;
const TRANSACTIONS_AT_ONCE: usize = 100;
const REPORT_EVERY: Duration = Duration::from_millis(200);

/// The measurements of the child and of the store after its crash.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Crash {
    pub(crate) readings: u64,
    pub(crate) ingest_secs: f64,
    pub(crate) resident_bytes: u64,
    pub(crate) resident_bytes_max: u64,
    pub(crate) open: Duration,
    pub(crate) open_and_get: Duration,
    pub(crate) before_compaction: DiskUse,
    pub(crate) after_compaction: DiskUse,
}

/// The child: ingests forever and reports its progress.
pub(crate) async fn ingest_until_killed(directory: &Path) -> anyhow::Result<()> {
    let side = EngineSide::open(directory).await?;
    side.register().await;
    let stream = Arc::new(stream());
    let progress = Progress::default();
    for _ in 0..CALLERS {
        let (side, stream, progress) = (side.clone(), Arc::clone(&stream), progress.clone());
        tokio::spawn(async move {
            loop {
                let readings = stream.take(TRANSACTIONS_AT_ONCE);
                let requests = readings.iter().map(|reading| side.request(*reading));
                side.write(requests.collect()).await;
                progress.add(readings.len());
            }
        });
    }
    loop {
        tokio::time::sleep(REPORT_EVERY).await;
        let mut out = std::io::stdout().lock();
        let (now, max) = (
            process::memory_bytes(process::SELF, "VmRSS"),
            process::memory_bytes(process::SELF, "VmHWM"),
        );
        writeln!(out, "{} {now} {max}", progress.total())?;
        out.flush()?;
    }
}

fn stream() -> Stream {
    Stream::new(1, 1)
}

/// The parent: starts the child, kills it after `readings` stored readings, and opens what it left.
pub(crate) async fn crash(directory: &Path, readings: u64) -> anyhow::Result<Crash> {
    let mut crash = Crash::default();
    let mut child = Command::new(std::env::current_exe()?)
        .args(["--role", "ingest", "--directory"])
        .arg(directory)
        .stdout(Stdio::piped())
        .spawn()
        .context("the ingesting process does not start")?;
    let output = child.stdout.take().context("the child has no output")?;
    let started = Instant::now();
    for line in BufReader::new(output).lines() {
        let line = line?;
        let numbers: Vec<u64> = line
            .split(' ')
            .filter_map(|part| part.parse().ok())
            .collect();
        let &[done, now, max] = numbers.as_slice() else {
            continue;
        };
        crash.readings = done;
        crash.resident_bytes = crash.resident_bytes.max(now);
        crash.resident_bytes_max = max;
        if done >= readings {
            break;
        }
    }
    crash.ingest_secs = started.elapsed().as_secs_f64();
    // SIGKILL on Unix, so the child cannot clean up.
    child.kill()?;
    child.wait()?;

    let started = Instant::now();
    let side = EngineSide::open(directory).await?;
    crash.open = started.elapsed();
    let found = side.get(0, Reading { device: 0, step: 1 }, true).await;
    crash.open_and_get = started.elapsed();
    anyhow::ensure!(found, "the first reading is gone");
    crash.before_compaction = process::disk_use(directory)?;
    side.compact().await?;
    crash.after_compaction = process::disk_use(directory)?;
    Ok(crash)
}
