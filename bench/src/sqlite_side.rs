//! SQLite with the same tables, checks and group commit.
//!
//! It uses a write-ahead log, `synchronous=FULL`, prepared statements, key columns, and JSON documents for the other
//! attributes. Every caller reads through its own connection.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use rusqlite::{CachedStatement, Connection, params};
use serde_json::{Value as Json, json};

use crate::contestant::Contestant;
use crate::group_commit::GroupCommit;
use crate::workload::{DEVICE_COUNT, Reading, friendly_name, hardware_id};

/// Concurrent readers, each with its share of the cache that the other contestants have.
pub(crate) const READERS: usize = 8;
const CACHE_KIB: u32 = 48 * 1024;

const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS devices (
        hardware_id TEXT PRIMARY KEY, last_seen_at TEXT, last_boot_id TEXT, document TEXT
    ) WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS devices_by_activity ON devices (last_seen_at);
    CREATE TABLE IF NOT EXISTS device_readings (
        hardware_id TEXT, ts_batch TEXT, expiration_time INTEGER, document TEXT,
        PRIMARY KEY (hardware_id, ts_batch)
    ) WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS readings_by_expiry ON device_readings (expiration_time);
    CREATE TABLE IF NOT EXISTS processed_batches (
        batch_id TEXT PRIMARY KEY, hardware_id TEXT, received_at TEXT, expiration_time INTEGER
    ) WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS batches_by_expiry ON processed_batches (expiration_time);
";

#[derive(Clone)]
pub(crate) struct SqliteSide {
    readers: Arc<Vec<Mutex<Connection>>>,
    writer: GroupCommit<Row>,
}

/// The bound parameters of one transaction.
pub(crate) struct Row {
    hardware_id: String,
    batch_id: String,
    received_at: String,
    marker_expires_at: i64,
    ts_batch: String,
    expires_at: i64,
    document: String,
    boot_id: String,
}

impl SqliteSide {
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        std::fs::create_dir_all(path)?;
        let file = path.join("bench.sqlite");
        let mut connection = connect(&file, CACHE_KIB)?;
        connection.execute_batch(TABLES)?;
        for device in 0..DEVICE_COUNT {
            register(&connection, Reading { device, step: 0 })?;
        }
        let readers = (0..READERS)
            .map(|_| connect(&file, CACHE_KIB / 8).map(Mutex::new))
            .collect::<Result<_, _>>()?;
        let writer = GroupCommit::start("sqlite-commit", move |group| {
            commit(&mut connection, &group).expect("the disk takes a write");
        });
        Ok(Self {
            readers: Arc::new(readers),
            writer,
        })
    }

    fn reader(&self, caller: usize) -> MutexGuard<'_, Connection> {
        self.readers[caller % READERS]
            .lock()
            .expect("nobody panics with the lock")
    }
}

fn connect(file: &Path, cache_kib: u32) -> rusqlite::Result<Connection> {
    let connection = Connection::open(file)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "cache_size", -i64::from(cache_kib))?;
    connection.set_prepared_statement_cache_capacity(16);
    Ok(connection)
}

fn register(connection: &Connection, reading: Reading) -> rusqlite::Result<()> {
    let document = json!({
        "confirmation_id": reading.boot_id(),
        "capabilities": {
            "sensors": ["bme280", "ds18b20", "soil_moisture"],
            "features": {"tft_display": true, "offline_buffering": true},
        },
        "first_registered_at": reading.last_seen_at(),
        "firmware_version": "1.0.16",
        "friendly_name": friendly_name(reading.device),
    });
    let mut statement =
        connection.prepare_cached("INSERT OR IGNORE INTO devices VALUES (?1, ?2, ?3, ?4)")?;
    statement.execute(params![
        reading.hardware_id(),
        reading.last_seen_at(),
        reading.boot_id(),
        document.to_string(),
    ])?;
    Ok(())
}

fn commit(connection: &mut Connection, group: &[Row]) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    {
        let mut marker = transaction
            .prepare_cached("INSERT OR IGNORE INTO processed_batches VALUES (?1, ?2, ?3, ?4)")?;
        let mut reading = transaction
            .prepare_cached("INSERT OR REPLACE INTO device_readings VALUES (?1, ?2, ?3, ?4)")?;
        let mut device = transaction.prepare_cached(
            "UPDATE devices SET last_seen_at = ?2, last_boot_id = ?3 WHERE hardware_id = ?1",
        )?;
        for row in group {
            let is_new = marker.execute(params![
                row.batch_id,
                row.hardware_id,
                row.received_at,
                row.marker_expires_at
            ])?;
            assert_eq!(is_new, 1, "the workload has no batch twice");
            reading.execute(params![
                row.hardware_id,
                row.ts_batch,
                row.expires_at,
                row.document
            ])?;
            device.execute(params![row.hardware_id, row.received_at, row.boot_id])?;
        }
    }
    transaction.commit()
}

impl Contestant for SqliteSide {
    type Request = Row;

    fn request(&self, reading: Reading) -> Row {
        let sensors: serde_json::Map<_, _> = reading
            .sensors()
            .into_iter()
            .map(|(name, hundredths)| (name.to_owned(), json!(hundredths as f64 / 100.0)))
            .collect();
        let document = json!({
            "timestamp_ms": reading.timestamp_ms(),
            "batch_id": reading.batch_id(),
            "boot_id": reading.boot_id(),
            "firmware_version": "1.0.16",
            "friendly_name": friendly_name(reading.device),
            "sensors": sensors,
            "sensor_status": {"bme280": "ok", "ds18b20": "ok", "soil_moisture": "ok"},
        });
        Row {
            hardware_id: reading.hardware_id(),
            batch_id: reading.batch_id(),
            received_at: reading.last_seen_at(),
            marker_expires_at: reading.marker_expires_at_secs(),
            ts_batch: reading.ts_batch(),
            expires_at: reading.expires_at_secs(),
            document: document.to_string(),
            boot_id: reading.boot_id(),
        }
    }

    /// The devices exist since the tables were created.
    async fn register(&self) {}

    async fn write(&self, requests: Vec<Row>) {
        self.writer.write(requests).await;
    }

    async fn get(&self, caller: usize, reading: Reading, decoded: bool) -> bool {
        let connection = self.reader(caller);
        let mut statement = prepare(
            &connection,
            "SELECT hardware_id, ts_batch, expiration_time, document FROM device_readings
             WHERE hardware_id = ?1 AND ts_batch = ?2",
        );
        let found = collect(
            &mut statement,
            params![reading.hardware_id(), reading.ts_batch()],
            decoded,
        );
        found == 1
    }

    async fn newest(&self, caller: usize, device: u32, count: usize, decoded: bool) -> usize {
        let connection = self.reader(caller);
        let mut statement = prepare(
            &connection,
            "SELECT hardware_id, ts_batch, expiration_time, document FROM device_readings
             WHERE hardware_id = ?1 ORDER BY ts_batch DESC LIMIT ?2",
        );
        collect(
            &mut statement,
            params![hardware_id(device), count as i64],
            decoded,
        )
    }

    async fn range(&self, caller: usize, first: Reading, count: usize, decoded: bool) -> usize {
        let connection = self.reader(caller);
        let mut statement = prepare(
            &connection,
            "SELECT hardware_id, ts_batch, expiration_time, document FROM device_readings
             WHERE hardware_id = ?1 AND ts_batch >= ?2 ORDER BY ts_batch LIMIT ?3",
        );
        let bound = params![first.hardware_id(), first.ts_batch(), count as i64];
        collect(&mut statement, bound, decoded)
    }
}

fn prepare<'a>(connection: &'a Connection, text: &str) -> CachedStatement<'a> {
    connection
        .prepare_cached(text)
        .expect("the statement is valid")
}

/// Reads rows into memory; decoded ones also as parsed documents.
fn collect(
    statement: &mut CachedStatement<'_>,
    bound: &[&dyn rusqlite::ToSql],
    decoded: bool,
) -> usize {
    let mut rows = statement.query(bound).expect("a query works");
    let mut plain: Vec<(String, String, i64, String)> = Vec::new();
    let mut parsed: Vec<Json> = Vec::new();
    while let Some(row) = rows.next().expect("a query works") {
        let partition: String = row.get(0).expect("a text");
        let sort: String = row.get(1).expect("a text");
        let expires_at: i64 = row.get(2).expect("a number");
        if decoded {
            let document = row.get_ref(3).expect("a column");
            let text = document.as_str().expect("a text");
            let mut document: Json = serde_json::from_str(text).expect("a document");
            document["hardware_id"] = partition.into();
            document["ts_batch"] = sort.into();
            document["expiration_time"] = expires_at.into();
            parsed.push(document);
        } else {
            plain.push((partition, sort, expires_at, row.get(3).expect("a text")));
        }
    }
    std::hint::black_box((&plain, &parsed));
    plain.len() + parsed.len()
}
