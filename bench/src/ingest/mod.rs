//! Readings over HTTP: the server process, compared with a route that only parses, and with the engine that receives the same
//! readings.

pub(crate) mod bare;
mod report;
mod requests;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, ensure};
use homeport_engine::{Engine, Options};
use homeport_item::Item;
use homeport_store::Store as _;
use homeport_systems::sensors::schema;

use crate::load::connection::Connection;
use crate::load::drive::{Caller, Driven, Numbers, Plan, contains, drive};
use crate::load::server::{self, Homeport, ServerProcess};
use crate::load::template::{Body, Template};
use crate::measure::{Measured, Round, run as run_calls};
use crate::wire::Times;
use crate::workload::{hardware_id, mix};
use requests::{DEVICES_PER_CONNECTION, Sent};

use report::IngestRow;

const CONNECTIONS: [usize; 3] = [1, 16, 64];
const READINGS_PER_REQUEST: [u64; 2] = [1, 25];
/// Readings per round of the engine, built before the measurement.
const ENGINE_READINGS_PER_ROUND: usize = 32_000;
/// Fewer for a single caller, which waits for the disk each time.
const ENGINE_CALLS_EACH_MAX: usize = 2_000;
/// Stored readings to read back at the end.
const SAMPLE: u64 = 50;
const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// A server process that stores readings.
struct Served {
    homeport: Homeport,
    key: String,
    /// Acknowledged numbers of readings.
    sent: Arc<AtomicU64>,
}

struct Sides {
    plain: Served,
    sealed: Served,
    bare: ServerProcess,
    parsed: Arc<AtomicU64>,
    engine: Engine,
    handed: AtomicU64,
    start_ms: u64,
}

/// Measures every row and prints the tables.
pub(crate) fn run(
    runtime: &tokio::runtime::Runtime,
    directory: &Path,
    times: Times,
    only: Option<&str>,
) -> anyhow::Result<()> {
    let served = |homeport: Homeport| -> anyhow::Result<Served> {
        Ok(Served {
            key: runtime.block_on(make_key(homeport.http))?,
            homeport,
            sent: Arc::default(),
        })
    };
    let plain = served(server::start_homeport(&directory.join("homeport-http"))?)?;
    let sealed = directory.join("homeport-http-sealed");
    let sealed = served(server::start_sealed_homeport(&sealed)?)?;
    let engine = Engine::open(directory.join("engine-http"), Options::default())?;
    runtime.block_on(engine.ensure_tables(&schema::tables()))?;
    let sides = Sides {
        plain,
        sealed,
        bare: server::start_bare_route()?,
        parsed: Arc::default(),
        engine,
        handed: AtomicU64::new(0),
        start_ms: start_ms()?,
    };
    let mut rows = Vec::new();
    let mut devices = 0;
    for readings in READINGS_PER_REQUEST {
        for connections in CONNECTIONS {
            let mut row = IngestRow::new(readings, connections);
            if only.is_some_and(|only| !row.name().contains(only)) {
                continue;
            }
            eprintln!("measuring: {}", row.name());
            for _ in 0..times.rounds {
                sides.plain.homeport.dynamodb.settle();
                row.add(sides.stored(&sides.plain, &row, times)?);
                sides.sealed.homeport.dynamodb.settle();
                let sealed = sides.stored(&sides.sealed, &row, times)?;
                row.sealed.add(sealed.round);
                let key = &sides.plain.key;
                let bare = sides.over_http(sides.bare.address, key, &sides.parsed, &row, times)?;
                row.bare.add(bare.round);
                row.engine.add(runtime.block_on(sides.engine_alone(&row)));
            }
            row.resident_bytes = sides.plain.homeport.dynamodb.resident_bytes();
            devices = devices.max(row.devices());
            rows.push(row);
        }
    }
    for served in [&sides.plain, &sides.sealed] {
        runtime
            .block_on(sides.check(served, devices))
            .context("reading back")?;
    }
    report::print(&rows, &sides.plain.homeport.dynamodb, &sides.bare);
    report::print_sealed(&rows, &sides.sealed.homeport.dynamodb);
    Ok(())
}

impl Sides {
    /// A round of a server that stores.
    fn stored(&self, served: &Served, row: &IngestRow, times: Times) -> anyhow::Result<Driven> {
        let (address, key) = (served.homeport.http, &served.key);
        self.over_http(address, key, &served.sent, row, times)
    }

    fn over_http(
        &self,
        address: SocketAddr,
        key: &str,
        counter: &Arc<AtomicU64>,
        row: &IngestRow,
        times: Times,
    ) -> anyhow::Result<Driven> {
        let callers = callers(key, counter, self.start_ms, row.readings, row.connections);
        let plan = Plan {
            duration: times.round,
            weight: usize::try_from(row.readings)?,
            is_good: are_all_stored,
        };
        drive(address, callers, plan).with_context(|| row.name())
    }

    /// The same transactions, given to an engine in this process by as many callers.
    async fn engine_alone(&self, row: &IngestRow) -> Round {
        let per_call = row.readings as usize;
        let each =
            (ENGINE_READINGS_PER_ROUND / row.connections / per_call).min(ENGINE_CALLS_EACH_MAX);
        let calls = (0..row.connections as u32)
            .map(|caller| {
                (0..each as u32)
                    .map(|call| {
                        let device =
                            caller * DEVICES_PER_CONNECTION + call % DEVICES_PER_CONNECTION;
                        let first = self.handed.fetch_add(row.readings, Ordering::Relaxed);
                        (first..first + row.readings)
                            .map(|number| {
                                Sent {
                                    device,
                                    number,
                                    start_ms: self.start_ms,
                                }
                                .transaction()
                            })
                            .collect::<Vec<_>>()
                    })
                    .collect()
            })
            .collect();
        let engine = self.engine.clone();
        run_calls(calls, per_call, move |_, transactions| {
            let engine = engine.clone();
            async move {
                for outcome in engine.transact_each(transactions).await {
                    outcome.expect("a new reading is stored");
                }
            }
        })
        .await
    }

    /// Reads readings back over DynamoDB's port. Each must equal the item that the engine received for it. The device of a number
    /// is not recorded, so all are tried.
    async fn check(&self, served: &Served, devices: u32) -> anyhow::Result<()> {
        let mut connection = Connection::open(served.homeport.dynamodb.address).await?;
        let total = served.sent.load(Ordering::Relaxed);
        for at in 0..SAMPLE.min(total) {
            let number = mix(at) % total;
            let mut is_found = false;
            for device in 0..devices {
                let sent = Sent {
                    device,
                    number,
                    start_ms: self.start_ms,
                };
                if let Some(item) = stored(&mut connection, sent).await? {
                    ensure!(item == sent.item(), "stored otherwise than sent: {item:?}");
                    is_found = true;
                    break;
                }
            }
            ensure!(
                is_found,
                "reading {number} was acknowledged and is not there"
            );
        }
        Ok(())
    }
}

/// Connections that send readings, each for its own devices; the counter numbers the readings.
pub(crate) fn callers(
    key: &str,
    counter: &Arc<AtomicU64>,
    start_ms: u64,
    readings: u64,
    connections: usize,
) -> Vec<Caller> {
    let caller = |caller: u32| {
        let first = caller * DEVICES_PER_CONNECTION;
        let templates = (first..first + DEVICES_PER_CONNECTION)
            .map(|device| requests::template(key, device, start_ms, readings));
        Caller {
            templates: templates.collect(),
            numbers: Numbers::Next {
                counter: Arc::clone(counter),
                step: readings,
            },
        }
    };
    (0..connections as u32).map(caller).collect()
}

/// Whether a response confirms every reading.
pub(crate) fn are_all_stored(body: &[u8]) -> bool {
    contains(body, "stored")
        && !["duplicate\"", "expired\"", "rejected\""]
            .iter()
            .any(|bad| contains(body, bad))
}

/// A time in the past that is recent enough not to expire.
pub(crate) fn start_ms() -> anyhow::Result<u64> {
    let now_ms = SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis();
    Ok(u64::try_from(now_ms)? - 30 * DAY_MS)
}

/// A reading as Homeport stored it.
async fn stored(connection: &mut Connection, sent: Sent) -> anyhow::Result<Option<Item>> {
    let body = serde_json::json!({
        "TableName": schema::DEVICE_READINGS,
        "Key": {
            schema::HARDWARE_ID: {"S": hardware_id(sent.device)},
            schema::TS_BATCH: {"S": sent.ts_batch()},
        },
    });
    let headers =
        "Content-Type: application/x-amz-json-1.0\r\nX-Amz-Target: DynamoDB_20120810.GetItem\r\n";
    let mut request = Template::post("/", headers, &Body::default().text(&body.to_string()));
    let answer = connection.exchange(request.fill(0)).await?;
    ensure!(answer.status == 200, "status {}", answer.status);
    let mut answer: serde_json::Value = serde_json::from_slice(answer.body)?;
    let item = answer.get_mut("Item").map(serde_json::Value::take);
    Ok(item.map(serde_json::from_value).transpose()?)
}

/// Creates an API key with the admin token.
pub(crate) async fn make_key(address: SocketAddr) -> anyhow::Result<String> {
    let headers = format!(
        "Content-Type: application/json\r\nAuthorization: Bearer {}\r\n",
        server::ADMIN_TOKEN
    );
    let body = Body::default().text("{\"description\":\"benchmark\",\"all\":true}");
    let mut request = Template::post("/v1/api-keys", &headers, &body);
    let mut connection = Connection::open(address).await?;
    let answer = connection.exchange(request.fill(0)).await?;
    ensure!(answer.status == 201, "no API key: status {}", answer.status);
    let answer: serde_json::Value = serde_json::from_slice(answer.body)?;
    let key = answer["api_key"].as_str().context("an API key")?;
    Ok(key.to_owned())
}

impl IngestRow {
    fn new(readings: u64, connections: usize) -> Self {
        Self {
            readings,
            connections,
            ours: Measured::default(),
            sealed: Measured::default(),
            bare: Measured::default(),
            engine: Measured::default(),
            client_cpu_percent: 0.0,
            resident_bytes: 0,
        }
    }

    fn add(&mut self, driven: Driven) {
        self.ours.add(driven.round);
        self.client_cpu_percent = self.client_cpu_percent.max(driven.client_cpu_percent);
    }

    fn devices(&self) -> u32 {
        self.connections as u32 * DEVICES_PER_CONNECTION
    }
}
