//! The tables of sensors and API keys as the design document freezes them: stored items have these attributes
//! with these types, and no others.

mod support;

use std::collections::BTreeMap;
use std::sync::Arc;

use homeport_item::schema::{IndexProjection, KeySchema, TableSchema};
use homeport_item::{Item, KeyKind, ValueKind};
use homeport_store::{Scan, Store};
use homeport_systems::api_keys::{self, ApiKeys, NewApiKey, Pepper};
use homeport_systems::sensors::{
    Capabilities, NameChange, Named, Reading, Registration, Sensors, Settings, schema,
};
use homeport_systems::time::EpochMillis;
use support::NOW_MS;

/// An attribute: its name, its type, and whether every item has it.
type Attribute = (&'static str, ValueKind, bool);

use ValueKind::{Bool, M, N, S};

const DEVICES: &[Attribute] = &[
    ("hardware_id", S, true),
    ("confirmation_id", S, true),
    ("capabilities", M, true),
    ("first_registered_at", S, true),
    ("last_seen_at", S, true),
    ("last_boot_id", S, true),
    ("firmware_version", S, true),
    ("friendly_name", S, false),
    ("gsi1pk", S, true),
    ("gsi1sk", S, true),
];
const READINGS: &[Attribute] = &[
    ("hardware_id", S, true),
    ("ts_batch", S, true),
    ("timestamp_ms", N, true),
    ("batch_id", S, true),
    ("boot_id", S, true),
    ("firmware_version", S, true),
    ("friendly_name", S, false),
    ("sensors", M, true),
    ("sensor_status", M, true),
    ("expiration_time", N, false),
];
const MARKERS: &[Attribute] = &[
    ("batch_id", S, true),
    ("hardware_id", S, true),
    ("received_at", S, true),
    ("expiration_time", N, true),
];
const KEYS: &[Attribute] = &[
    ("key_id", S, true),
    ("api_key_hash", S, true),
    ("created_at", S, true),
    ("last_used_at", S, false),
    ("is_active", Bool, true),
    ("description", S, false),
    ("gsi1pk", S, true),
    ("gsi1sk", S, true),
];
/// Attributes that Homeport adds to keys: the document allows optional ones.
const KEYS_OF_OURS: [&str; 3] = ["system", "scopes", "permissions"];

fn key(key: &KeySchema) -> (&str, Option<&str>) {
    assert!(
        key.attributes()
            .all(|attribute| attribute.kind == KeyKind::S)
    );
    let sort = key.sort.as_ref().map(|sort| sort.name.as_str());
    (key.partition.name.as_str(), sort)
}

#[test]
fn tables_have_the_documented_keys_and_indexes() {
    let tables = [schema::tables(), vec![api_keys::schema::api_keys()]].concat();
    let shown: Vec<_> = tables
        .iter()
        .map(|table: &TableSchema| {
            (
                table.name.as_str(),
                key(&table.key),
                table.ttl_attribute.as_deref(),
            )
        })
        .collect();
    let expiry = Some("expiration_time");
    assert_eq!(
        shown,
        [
            ("devices", ("hardware_id", None), None),
            ("device_readings", ("hardware_id", Some("ts_batch")), expiry),
            ("processed_batches", ("batch_id", None), expiry),
            ("api_keys", ("key_id", None), None),
        ]
    );
    let indexes: Vec<_> = tables
        .iter()
        .flat_map(|table| table.indexes.iter().map(move |index| (table, index)))
        .map(|(table, index)| {
            assert!(!index.local && index.projection == IndexProjection::All);
            (table.name.as_str(), index.name.as_str(), key(&index.key))
        })
        .collect();
    assert_eq!(
        indexes,
        [
            ("devices", "gsi1", ("gsi1pk", Some("gsi1sk"))),
            ("api_keys", "api_key_hash_index", ("api_key_hash", None)),
            ("api_keys", "gsi1", ("gsi1pk", Some("gsi1sk"))),
        ]
    );
}

#[track_caller]
fn check(item: &Item, attributes: &[Attribute], ours: &[&str]) {
    for (name, kind, required) in attributes {
        match item.get(name) {
            Some(value) => assert_eq!(value.kind(), *kind, "{name}"),
            None => assert!(!required, "{name} is missing in {item:?}"),
        }
    }
    for (name, _) in item.iter() {
        let is_known = attributes.iter().any(|(known, ..)| *known == name);
        assert!(is_known || ours.contains(&name), "{name} is new");
    }
}

async fn only_item(store: &dyn Store, table: &str) -> Item {
    let mut items = store.scan(Scan::new(table)).await.expect("a scan").items;
    assert_eq!(items.len(), 1, "{table}");
    items.remove(0)
}

#[tokio::test]
async fn stored_items_have_only_documented_attributes() {
    let tables = [schema::tables(), api_keys::schema::tables()].concat();
    let fixture = support::fixture(&tables).await;
    let (store, clock) = (Arc::clone(&fixture.store), Arc::clone(&fixture.clock));
    let sensors = Sensors::new(
        Arc::clone(&store),
        Arc::clone(&clock) as _,
        Settings::default(),
    );
    let hardware_id = "AA:BB:CC:DD:EE:01";
    let boot_id = "7c9e6679-7425-40de-944b-e07fc1f90ae7";
    let capabilities = Capabilities::new(vec!["bme280".parse().expect("a name")], BTreeMap::new());
    let registration = Registration {
        hardware_id: hardware_id.parse().expect("a MAC address"),
        boot_id: boot_id.parse().expect("a UUID"),
        firmware_version: "1.0.16".parse().expect("a version"),
        friendly_name: NameChange::Set("roof".parse().expect("a name")),
        capabilities: capabilities.expect("few"),
    };
    sensors.register(registration).await.expect("registered");
    let reading = Reading {
        batch_id: "a".parse().expect("a batch id"),
        hardware_id: hardware_id.parse().expect("a MAC address"),
        boot_id: boot_id.parse().expect("a UUID"),
        firmware_version: "1.0.16".parse().expect("a version"),
        timestamp: EpochMillis(NOW_MS),
        sensors: Named::from([(
            "bme280_temp_c".parse().expect("a name"),
            "22.5".parse().expect("a number"),
        )]),
        sensor_status: Named::default(),
        friendly_name: Some("roof".parse().expect("a name")),
    };
    sensors.ingest(vec![reading]).await.expect("stored");
    let keys = ApiKeys::new(Arc::clone(&store), clock, Pepper::new("pepper".to_owned()));
    let new = NewApiKey {
        description: Some("greenhouse".to_owned()),
        ..NewApiKey::for_all_of("sensors")
    };
    let (_, raw) = keys.create(new).await.expect("a key");
    keys.verify(raw.reveal()).await.expect("verified");
    check(&only_item(&*store, "devices").await, DEVICES, &[]);
    check(&only_item(&*store, "device_readings").await, READINGS, &[]);
    check(&only_item(&*store, "processed_batches").await, MARKERS, &[]);
    check(&only_item(&*store, "api_keys").await, KEYS, &KEYS_OF_OURS);
}
