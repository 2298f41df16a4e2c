//! Sends requests over many connections for some time, and measures latencies.
//!
//! One thread serves all connections: on few cores, more threads would only take time from the server. Each row reports the
//! generator's share of a core, which shows when the generator is the limit.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use super::connection::Connection;
use super::template::Template;
use crate::measure::Round;
use crate::process;
use crate::workload::mix;

/// One response in this many is parsed; for the others only the status is checked.
const LOOK_EVERY: usize = 64;
const ERROR_SHOWN_BYTES: usize = 500;

/// The templates that a connection sends in turn, each time with another number.
pub(crate) struct Caller {
    pub(crate) templates: Vec<Template>,
    pub(crate) numbers: Numbers,
}

/// The source of request numbers.
#[derive(Debug, Clone)]
pub(crate) enum Numbers {
    /// Unique numbers over all connections; a request uses `step` of them.
    Next { counter: Arc<AtomicU64>, step: u64 },
    /// Any numbers below a limit.
    Random { seed: u64, below: u64 },
}

/// The duration of a round, and what counts as a good response.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) duration: Duration,
    /// What one request counts in the rate.
    pub(crate) weight: usize,
    /// Whether a body is as expected.
    pub(crate) is_good: fn(&[u8]) -> bool,
}

/// A round, and the load generator's share of one core.
pub(crate) struct Driven {
    pub(crate) round: Round,
    pub(crate) client_cpu_percent: f64,
}

/// Records the longest time between two responses, over all connections.
struct Silence {
    started: Instant,
    last_answer_us: AtomicU64,
    longest_us: AtomicU64,
}

impl Silence {
    fn new(started: Instant) -> Self {
        Self {
            started,
            last_answer_us: AtomicU64::new(0),
            longest_us: AtomicU64::new(0),
        }
    }

    /// Notes a response.
    fn end(&self) {
        let now_us = u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX);
        let last_us = self.last_answer_us.swap(now_us, Ordering::Relaxed);
        let silent_us = now_us.saturating_sub(last_us);
        self.longest_us.fetch_max(silent_us, Ordering::Relaxed);
    }

    fn longest(&self) -> Duration {
        Duration::from_micros(self.longest_us.load(Ordering::Relaxed))
    }
}

/// Runs all callers concurrently. Every response must have status 200.
pub(crate) fn drive(
    address: SocketAddr,
    callers: Vec<Caller>,
    plan: Plan,
) -> anyhow::Result<Driven> {
    drive_watched(address, callers, plan).map(|(driven, _)| driven)
}

/// Like [`drive`], and returns the longest time without a response on any connection.
pub(crate) fn drive_watched(
    address: SocketAddr,
    callers: Vec<Caller>,
    plan: Plan,
) -> anyhow::Result<(Driven, Duration)> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut connections = Vec::with_capacity(callers.len());
        for caller in callers {
            connections.push((Connection::open(address).await?, caller));
        }
        let cpu_before = process::cpu_time(process::SELF);
        let started = Instant::now();
        let silence = Arc::new(Silence::new(started));
        let tasks: Vec<_> = connections
            .into_iter()
            .map(|(connection, caller)| {
                tokio::spawn(call(connection, caller, plan, Arc::clone(&silence)))
            })
            .collect();
        let mut latencies = Vec::new();
        for task in tasks {
            latencies.extend(task.await.context("a caller panicked")??);
        }
        let secs = started.elapsed().as_secs_f64();
        let cpu = process::cpu_time(process::SELF) - cpu_before;
        let driven = Driven {
            round: Round {
                rate: (latencies.len() * plan.weight) as f64 / secs,
                latencies,
            },
            client_cpu_percent: cpu.as_secs_f64() / secs * 100.0,
        };
        Ok((driven, silence.longest()))
    })
}

async fn call(
    mut connection: Connection,
    mut caller: Caller,
    plan: Plan,
    silence: Arc<Silence>,
) -> anyhow::Result<Vec<Duration>> {
    let mut latencies = Vec::new();
    let count = caller.templates.len();
    while silence.started.elapsed() < plan.duration {
        let at = latencies.len();
        let number = caller.numbers.next();
        let request = caller.templates[at % count].fill(number);
        let sent = Instant::now();
        let answer = connection.exchange(request).await?;
        latencies.push(sent.elapsed());
        silence.end();
        if answer.status != 200 || at % LOOK_EVERY == 0 && !(plan.is_good)(answer.body) {
            let shown = &answer.body[..answer.body.len().min(ERROR_SHOWN_BYTES)];
            bail!(
                "status {}: {}",
                answer.status,
                String::from_utf8_lossy(shown)
            );
        }
    }
    Ok(latencies)
}

impl Numbers {
    pub(crate) fn next(&mut self) -> u64 {
        match self {
            Self::Next { counter, step } => counter.fetch_add(*step, Ordering::Relaxed),
            Self::Random { seed, below } => {
                *seed = mix(*seed);
                *seed % *below
            }
        }
    }
}

/// Whether `bytes` contain `needle`.
pub(crate) fn contains(bytes: &[u8], needle: &str) -> bool {
    bytes
        .windows(needle.len())
        .any(|window| window == needle.as_bytes())
}
