//! DynamoDB's protocol: the same requests to Homeport and to other implementations in alternating rounds. Each server is a
//! separate process with its data on disk.

mod report;
mod requests;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, ensure};

use crate::load::connection::Connection;
use crate::load::drive::{Caller, Numbers, Plan, contains, drive};
use crate::load::server::{self, ServerProcess};
use crate::load::template::Template;
use crate::measure::Measured;
use crate::workload::mix;

pub(crate) use report::WireRow;

/// Written keys to read back at the end.
const SAMPLE: u64 = 200;
const CONNECTIONS: [usize; 3] = [1, 16, 32];

/// Durations and numbers of rounds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    pub(crate) rounds: usize,
    pub(crate) round: Duration,
}

impl Times {
    pub(crate) fn new(is_quick: bool) -> Self {
        if is_quick {
            Self {
                rounds: 3,
                round: Duration::from_millis(700),
            }
        } else {
            Self {
                rounds: 5,
                round: Duration::from_secs(2),
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    Put,
    Get,
    Query,
    Transact,
}

const OPERATIONS: [Operation; 4] = [
    Operation::Put,
    Operation::Get,
    Operation::Query,
    Operation::Transact,
];

impl Operation {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Put => "PutItem, 400 bytes",
            Self::Get => "GetItem, 400 bytes",
            Self::Query => "Query, newest 100",
            Self::Transact => "TransactWriteItems, marker and 25",
        }
    }

    /// The goal as a multiple of dynoxide's rate, with many connections.
    pub(crate) fn goal(self) -> f64 {
        match self {
            Self::Put | Self::Query => 5.0,
            Self::Get => 3.0,
            Self::Transact => 6.0,
        }
    }

    fn template(self) -> Template {
        match self {
            Self::Put => requests::put_item(),
            Self::Get => requests::get_item(requests::READINGS),
            Self::Query => requests::query(),
            Self::Transact => requests::transact_write_items(),
        }
    }

    fn is_good(self) -> fn(&[u8]) -> bool {
        match self {
            Self::Put | Self::Transact => |body| body == b"{}",
            Self::Get => |body| contains(body, "greenhouse-sensor-01"),
            Self::Query => |body| contains(body, "\"Count\":100"),
        }
    }
}

/// A server and the numbers that it acknowledged.
struct Side {
    server: ServerProcess,
    written: Arc<AtomicU64>,
}

/// Measures every row and prints the tables.
pub(crate) fn run(directory: &Path, times: Times, only: Option<&str>) -> anyhow::Result<()> {
    let homeport = server::start_homeport(&directory.join("homeport-wire"))?.dynamodb;
    let mut servers = vec![homeport];
    let mut absent = Vec::new();
    match server::start_dynoxide(directory)? {
        Some(dynoxide) => servers.push(dynoxide),
        None => absent.push("dynoxide was not there: `cargo xtask bench` installs it"),
    }
    match server::start_dynamodb_local(directory)? {
        Some(local) => servers.push(local),
        None => absent.push(
            "DynamoDB Local was not there: it needs java and its folder in HOMEPORT_DYNAMODB_LOCAL",
        ),
    }
    let mut sides = Vec::new();
    for server in servers {
        eprintln!("filling: {}", server.name);
        prepare(&server).with_context(|| format!("filling {}", server.name))?;
        sides.push(Side {
            server,
            written: Arc::default(),
        });
    }
    let mut rows = Vec::new();
    for operation in OPERATIONS {
        for connections in CONNECTIONS {
            let row = WireRow::new(operation, connections, sides.len());
            if only.is_some_and(|only| !row.name().contains(only)) {
                continue;
            }
            eprintln!("measuring: {}", row.name());
            rows.push(measure(row, &sides, times)?);
        }
    }
    for side in &sides {
        check(side).with_context(|| format!("reading back from {}", side.server.name))?;
    }
    let servers: Vec<&ServerProcess> = sides.iter().map(|side| &side.server).collect();
    report::print(&rows, &servers, &absent);
    Ok(())
}

fn measure(mut row: WireRow, sides: &[Side], times: Times) -> anyhow::Result<WireRow> {
    for round in 0..times.rounds {
        for (at, side) in sides.iter().enumerate() {
            side.server.settle();
            let driven = drive(
                side.server.address,
                callers(row.operation, row.connections, side, round as u64),
                Plan {
                    duration: times.round,
                    weight: 1,
                    is_good: row.operation.is_good(),
                },
            )
            .with_context(|| format!("{} at {}", row.name(), side.server.name))?;
            row.measured[at].add(driven.round);
            row.client_cpu_percent[at] = row.client_cpu_percent[at].max(driven.client_cpu_percent);
        }
    }
    Ok(row)
}

fn callers(operation: Operation, connections: usize, side: &Side, round: u64) -> Vec<Caller> {
    (0..connections as u64)
        .map(|caller| Caller {
            templates: vec![operation.template()],
            numbers: match operation {
                // A put and a transaction share numbers, so that keys are unique.
                Operation::Put | Operation::Transact => Numbers::Next {
                    counter: Arc::clone(&side.written),
                    step: requests::READINGS_PER_TRANSACTION,
                },
                Operation::Get => Numbers::Random {
                    seed: mix(round << 32 | caller),
                    below: requests::PARTITIONS * requests::READINGS_EACH,
                },
                Operation::Query => Numbers::Random {
                    seed: mix(round << 32 | caller),
                    below: requests::PARTITIONS * requests::READINGS_PER_TRANSACTION,
                },
            },
        })
        .collect()
}

/// Creates the tables and fills the one for reads.
fn prepare(server: &ServerProcess) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut connection = Connection::open(server.address).await?;
        let tables = [requests::READINGS, requests::WRITTEN, requests::BATCHES];
        for mut making in tables.map(requests::create_table) {
            expect_ok(&mut connection, making.fill(0), "").await?;
        }
        let mut filling = requests::batch_write_item(requests::READINGS);
        let batches =
            requests::PARTITIONS * requests::READINGS_EACH / requests::READINGS_PER_TRANSACTION;
        for batch in 0..batches {
            let request = filling.fill(batch * requests::READINGS_PER_TRANSACTION);
            expect_ok(&mut connection, request, "\"UnprocessedItems\":{}").await?;
        }
        anyhow::Ok(())
    })
}

/// Reads back a sample of the acknowledged items.
fn check(side: &Side) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let requests_made = side.written.load(Ordering::Relaxed) / requests::READINGS_PER_TRANSACTION;
    runtime.block_on(async {
        let mut connection = Connection::open(side.server.address).await?;
        let mut getting = requests::get_item(requests::WRITTEN);
        for at in 0..SAMPLE.min(requests_made) {
            let number = mix(at) % requests_made * requests::READINGS_PER_TRANSACTION;
            let request = getting.fill(number);
            expect_ok(&mut connection, request, "greenhouse-sensor-01").await?;
        }
        anyhow::Ok(())
    })
}

async fn expect_ok(connection: &mut Connection, request: &[u8], part: &str) -> anyhow::Result<()> {
    let answer = connection.exchange(request).await?;
    ensure!(
        answer.status == 200 && (part.is_empty() || contains(answer.body, part)),
        "status {}: {}",
        answer.status,
        String::from_utf8_lossy(answer.body)
    );
    Ok(())
}

impl WireRow {
    fn new(operation: Operation, connections: usize, servers: usize) -> Self {
        Self {
            operation,
            connections,
            measured: vec![Measured::default(); servers],
            client_cpu_percent: vec![0.0; servers],
        }
    }
}
