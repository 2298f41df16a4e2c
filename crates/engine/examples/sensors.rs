//! The embedded engine in five minutes: the four tables of the sensors' system, readings that are
//! stored once however often they are sent, queries in both directions and through an index.
//!
//! Run it with `cargo run --example sensors`.

use homeport_engine::{Engine, Options};
use homeport_item::expression::{Condition, KeyCondition, SortCondition, Update};
use homeport_item::schema::{IndexSchema, KeyAttribute, TableSchema};
use homeport_item::{Item, KeyKind, Map, Value};
use homeport_store::{Get, Put, Query, Store, TransactError, Transaction, Update as UpdateRequest};

const HARDWARE_ID: &str = "AA:BB:CC:DD:EE:FF";
const BOOT_ID: &str = "7c9e6679-7425-40de-944b-e07fc1f90ae7";

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let engine = Engine::open(directory.path(), Options::default())?;

    // Tables are ensured at every start: what is there already stays as it is.
    engine.ensure_tables(&tables()).await?;
    println!("tables: {:?}", engine.table_names());

    // A device registers. A second registration would fail on the condition.
    let device = Item::new()
        .with("hardware_id", HARDWARE_ID)
        .with("firmware_version", "1.0.16")
        .with("last_seen_at", "2024-01-15T10:30:00Z")
        .with("gsi1pk", "devices")
        .with("gsi1sk", "2024-01-15T10:30:00Z");
    engine
        .put(Put::new("devices", device).when(Condition::not_exists("hardware_id")))
        .await?;

    // Three averaging windows arrive, and the last of them a second time.
    for minute in [0, 5, 10, 10] {
        match engine.transact(reading(minute)).await {
            Ok(()) => println!("minute {minute:>2}: stored, and on disk"),
            Err(TransactError::Cancelled(_)) => println!("minute {minute:>2}: had it already"),
            Err(error) => return Err(error.into()),
        }
    }

    // The device was seen: an update, which moves its entry in the index too.
    let seen = Update::new()
        .set("last_seen_at", "2024-01-15T10:40:00Z")
        .set("gsi1sk", "2024-01-15T10:40:00Z");
    let key = Item::new().with("hardware_id", HARDWARE_ID);
    engine
        .update(UpdateRequest::new("devices", key.clone(), seen))
        .await?;

    // The newest reading, and then a range, oldest first.
    let of_device = KeyCondition::new("hardware_id", HARDWARE_ID);
    let newest = Query::new("device_readings", of_device.clone())
        .descending()
        .limit(1);
    println!("newest: {}", show(&engine.query(newest).await?.items));
    let range = SortCondition::Between(
        format!("{:013}#", at_ms(0)).into(),
        format!("{:013}#\u{ffff}", at_ms(5)).into(),
    );
    let between = Query::new("device_readings", of_device.with_sort("ts_batch", range));
    println!("range: {}", show(&engine.query(between).await?.items));

    // All devices, most recently active first, through the index.
    let active = Query::new("devices", KeyCondition::new("gsi1pk", "devices"))
        .on_index("gsi1")
        .descending();
    for item in engine.query(active).await?.items {
        println!(
            "active: {:?} at {:?}",
            item.get("hardware_id"),
            item.get("gsi1sk")
        );
    }
    assert!(engine.get(Get::new("devices", key)).await?.is_some());

    let report = engine.check().await?;
    println!(
        "checked {} items: {} problems",
        report.items, report.problems
    );
    Ok(())
}

fn tables() -> [TableSchema; 4] {
    let text = |name: &str| KeyAttribute::new(name, KeyKind::S);
    let by_activity = || IndexSchema::global("gsi1", text("gsi1pk"), Some(text("gsi1sk")));
    [
        TableSchema::new("devices", "hardware_id", KeyKind::S).with_index(by_activity()),
        TableSchema::new("device_readings", "hardware_id", KeyKind::S)
            .with_sort("ts_batch", KeyKind::S)
            .with_ttl("expiration_time"),
        TableSchema::new("processed_batches", "batch_id", KeyKind::S).with_ttl("expiration_time"),
        TableSchema::new("api_keys", "key_id", KeyKind::S)
            .with_index(IndexSchema::global(
                "api_key_hash_index",
                text("api_key_hash"),
                None,
            ))
            .with_index(by_activity()),
    ]
}

/// One reading: its marker, which must be new, and the reading itself, together or not at all.
fn reading(minute: i64) -> Transaction {
    let timestamp_ms = at_ms(minute);
    let batch_id = format!(
        "{HARDWARE_ID}_{BOOT_ID}_{}_{timestamp_ms}",
        timestamp_ms - 300_000
    );
    let expires_at = 4_102_444_800_i64;
    let marker = Item::new()
        .with("batch_id", batch_id.as_str())
        .with("hardware_id", HARDWARE_ID)
        .with("received_at", "2024-01-15T10:40:00Z")
        .with("expiration_time", expires_at);
    let sensors = Map::from([
        (
            "bme280_temp_c".to_owned(),
            Value::N("22.5".parse().expect("a number")),
        ),
        ("humidity_pct".to_owned(), Value::from(45 + minute)),
    ]);
    let reading = Item::new()
        .with("hardware_id", HARDWARE_ID)
        .with("ts_batch", format!("{timestamp_ms:013}#{batch_id}"))
        .with("timestamp_ms", timestamp_ms)
        .with("batch_id", batch_id)
        .with("boot_id", BOOT_ID)
        .with("sensors", Value::M(sensors))
        .with("expiration_time", expires_at);
    Transaction::new(vec![
        Put::new("processed_batches", marker)
            .when(Condition::not_exists("batch_id"))
            .into(),
        Put::new("device_readings", reading).into(),
    ])
}

fn at_ms(minute: i64) -> i64 {
    1_705_314_600_000 + minute * 60_000
}

fn show(items: &[Item]) -> String {
    let times = items.iter().filter_map(|item| item.get("timestamp_ms"));
    format!("{:?}", times.collect::<Vec<_>>())
}
