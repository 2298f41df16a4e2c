//! `/v1/sensors` over HTTP.

use crate::support::{NOW_MS, Server};
use homeport_item::schema::{IndexSchema, KeyAttribute};
use homeport_item::{Item, KeyKind};
use homeport_store::{Get, Store};
use serde_json::{Value, json};

const DEVICE: &str = "AA:BB:CC:DD:EE:FF";
const BOOT: &str = "7c9e6679-7425-40de-944b-e07fc1f90ae7";

fn registration() -> Value {
    json!({
        "hardware_id": DEVICE, "boot_id": BOOT, "firmware_version": "1.0.16",
        "capabilities": {"sensors": ["bme280"], "features": {"tft_display": true}},
    })
}

fn reading(batch_id: &str, minutes_ago: i64) -> Value {
    json!({
        "batch_id": batch_id, "hardware_id": DEVICE, "boot_id": BOOT, "firmware_version": "1.0.16",
        "timestamp_ms": NOW_MS - minutes_ago * 60_000,
        "sensors": {"bme280_temp_c": 22.5, "pressure_hpa": 1013.25}, "sensor_status": {"bme280": "ok"},
    })
}

fn with(mut value: Value, name: &str, changed: Value) -> Value {
    value[name] = changed;
    value
}

#[tokio::test]
async fn registration_is_repeatable() {
    let server = Server::start().await;
    let key = server.key().await;
    let first = server
        .as_device(&key, "POST", "/v1/sensors/register", registration())
        .await;
    assert_eq!(first.status, 200, "{first:?}");
    assert_eq!(first.body["status"], "registered");
    assert_eq!(first.body["hardware_id"], DEVICE);
    assert_eq!(first.body["registered_at"], "2027-01-15T08:00:00Z");
    server.clock.advance_ms(5000);
    let second = server
        .as_device(&key, "POST", "/v1/sensors/register", registration())
        .await;
    assert_eq!(second.body, first.body);
}

#[tokio::test]
async fn invalid_registrations_are_rejected() {
    let server = Server::start().await;
    let key = server.key().await;
    for (name, value) in [
        ("hardware_id", json!("aa:bb:cc:dd:ee:ff")),
        ("hardware_id", json!(7)),
        ("boot_id", json!("7c9e6679-7425-10de-944b-e07fc1f90ae7")),
        ("firmware_version", json!("")),
        ("friendly_name", json!("")),
        ("friendly_name", json!("x".repeat(65))),
        ("capabilities", json!({"sensors": ["no spaces"]})),
        ("capabilities", json!(null)),
    ] {
        let body = with(registration(), name, value);
        let answer = server
            .as_device(&key, "POST", "/v1/sensors/register", body.clone())
            .await;
        assert_eq!(answer.problem(), (400, "INVALID_REQUEST"), "{body}");
    }
}

#[tokio::test]
async fn batch_may_mix_valid_and_invalid_readings() {
    let server = Server::start().await;
    let key = server.key().await;
    let path = "/v1/sensors/data";
    let before = json!({"readings": [reading("before", 1)]});
    assert_eq!(
        server.as_device(&key, "POST", path, before).await.status,
        200
    );
    let mut readings: Vec<Value> = (0..93).map(|n| reading(&format!("new-{n}"), n)).collect();
    readings.extend([
        reading("before", 1),
        reading("new-0", 0),
        with(
            reading("before", 1),
            "hardware_id",
            json!("AA:BB:CC:DD:EE:00"),
        ),
        with(reading("bad-time", 0), "timestamp_ms", json!(5)),
        with(
            reading("bad-value", 0),
            "sensors",
            json!({"bme280_temp_c": "hot"}),
        ),
        json!("nonsense"),
        reading("old", 91 * 24 * 60),
    ]);
    let answer = server
        .as_device(&key, "POST", path, json!({"readings": readings}))
        .await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let results = answer.body["results"].as_array().expect("results");
    assert_eq!(results.len(), 100);
    assert!(
        results[..93]
            .iter()
            .all(|result| result["status"] == "stored")
    );
    let rest: Vec<_> = results[93..]
        .iter()
        .map(|result| {
            (
                result["status"].as_str().expect("a status"),
                result["code"].as_str(),
            )
        })
        .collect();
    assert_eq!(
        rest,
        [
            ("duplicate", None),
            ("duplicate", None),
            ("rejected", Some("BATCH_ID_CONFLICT")),
            ("rejected", Some("INVALID_READING")),
            ("rejected", Some("INVALID_READING")),
            ("rejected", Some("INVALID_READING")),
            ("expired", None),
        ]
    );
    assert_eq!(results[98]["batch_id"], Value::Null);
    let acknowledged = answer.body["acknowledged_batch_ids"]
        .as_array()
        .expect("a list");
    assert_eq!(acknowledged.len(), 94);
    assert_eq!(answer.body["duplicate_batch_ids"], json!(["before"]));
}

#[tokio::test]
async fn store_errors_are_not_rejections() {
    let server = Server::start().await;
    let key = server.key().await;
    // The attribute has another type in readings.
    let by_time = KeyAttribute::new("timestamp_ms", KeyKind::S);
    let index = IndexSchema::global("by-time", by_time, None);
    let added = server.engine.add_index("device_readings", index).await;
    added.expect("an index");
    let body = json!({"readings": [reading("one", 1)]});
    let answer = server
        .as_device(&key, "POST", "/v1/sensors/data", body)
        .await;
    assert_eq!(answer.problem(), (503, "STORE_UNAVAILABLE"));
    assert_eq!(answer.header("retry-after"), Some("1"));
}

#[tokio::test]
async fn invalid_requests_are_rejected_entirely() {
    let server = Server::start().await;
    let key = server.key().await;
    let too_many: Vec<_> = (0..101).map(|n| reading(&n.to_string(), 0)).collect();
    for body in [
        json!({}),
        json!({"readings": []}),
        json!({"readings": too_many}),
        json!({"readings": 7}),
        json!([]),
    ] {
        let answer = server
            .as_device(&key, "POST", "/v1/sensors/data", body)
            .await;
        assert_eq!(answer.problem(), (400, "INVALID_REQUEST"));
    }
    let headers = [("x-api-key", key.as_str())];
    let broken = server
        .send("POST", "/v1/sensors/data", &headers, Some("{".into()))
        .await;
    assert_eq!(broken.problem(), (400, "INVALID_REQUEST"));
    // One byte too many: the server reads the whole body first, so that the client can finish sending.
    let large = Some("x".repeat(1024 * 1024 + 1));
    let large = server
        .send("POST", "/v1/sensors/data", &headers, large)
        .await;
    assert_eq!(large.problem(), (413, "BODY_TOO_LARGE"));
}

#[tokio::test]
async fn stored_reading_equals_the_sent_one() {
    let server = Server::start().await;
    let key = server.key().await;
    let exact = r#"{"bme280_temp_c": 22.50, "pressure_hpa": 1013.2500000000000000000000001}"#;
    let body = json!({"readings": [reading("b", 0)]}).to_string();
    let plain = r#"{"bme280_temp_c":22.5,"pressure_hpa":1013.25}"#;
    assert!(body.contains(plain));
    let body = body.replace(plain, exact);
    let headers = [("x-api-key", key.as_str())];
    let answer = server
        .send("POST", "/v1/sensors/data", &headers, Some(body))
        .await;
    assert_eq!(
        answer.body["acknowledged_batch_ids"],
        json!(["b"]),
        "{answer:?}"
    );
    let item_key = Item::new()
        .with("hardware_id", DEVICE)
        .with("ts_batch", format!("{NOW_MS}#b"));
    let item = server
        .engine
        .get(Get::new("device_readings", item_key))
        .await;
    let item = serde_json::to_value(item.expect("a get").expect("an item")).expect("json");
    assert_eq!(
        item["sensors"],
        json!({"M": {
            "bme280_temp_c": {"N": "22.5"},
            "pressure_hpa": {"N": "1013.2500000000000000000000001"},
        }})
    );
}

#[tokio::test]
async fn devices_and_readings_are_paged() {
    let server = Server::start().await;
    let key = server.key().await;
    server
        .as_device(&key, "POST", "/v1/sensors/register", registration())
        .await;
    let readings: Vec<_> = (0..10).map(|n| reading(&format!("b{n}"), n)).collect();
    let body = json!({"readings": readings});
    server
        .as_device(&key, "POST", "/v1/sensors/data", body)
        .await;
    let devices = server
        .as_admin("GET", "/v1/sensors/devices", Value::Null)
        .await;
    assert_eq!(devices.body["devices"][0]["hardware_id"], DEVICE);
    assert_eq!(devices.body.get("next_cursor"), None);
    let path = format!("/v1/sensors/devices/{DEVICE}");
    let one = server.as_device(&key, "GET", &path, Value::Null).await;
    assert_eq!(one.body, devices.body["devices"][0]);
    let latest = server
        .as_device(&key, "GET", &format!("{path}/latest"), Value::Null)
        .await;
    assert_eq!(latest.body["batch_id"], "b0");
    assert_eq!(latest.body["sensors"]["bme280_temp_c"], json!(22.5));
    let mut read = Vec::new();
    let from = "2027-01-15T07:52:00Z";
    let to = NOW_MS - 60_000;
    let mut next = format!("{path}/readings?from={from}&to={to}&order=asc&limit=3");
    loop {
        let page = server.as_admin("GET", &next, Value::Null).await;
        assert_eq!(page.status, 200, "{page:?}");
        let readings = page.body["readings"].as_array().expect("readings").clone();
        read.extend(
            readings
                .into_iter()
                .map(|reading| reading["batch_id"].clone()),
        );
        match page.body["next_cursor"].as_str() {
            Some(cursor) => {
                next = format!(
                    "{path}/readings?from={from}&to={to}&order=asc&limit=3&cursor={cursor}"
                );
            }
            None => break,
        }
    }
    assert_eq!(read, ["b8", "b7", "b6", "b5", "b4", "b3", "b2", "b1"]);
}

#[tokio::test]
async fn only_operators_rename_devices() {
    let server = Server::start().await;
    let key = server.key().await;
    server
        .as_device(&key, "POST", "/v1/sensors/register", registration())
        .await;
    let path = format!("/v1/sensors/devices/{DEVICE}");
    let renamed = server
        .as_admin("PATCH", &path, json!({"friendly_name": "roof"}))
        .await;
    assert_eq!(renamed.body["friendly_name"], "roof");
    let removed = server
        .as_admin("PATCH", &path, json!({"friendly_name": null}))
        .await;
    assert_eq!(removed.body.get("friendly_name"), None);
    let refused = server
        .as_device(&key, "PATCH", &path, json!({"friendly_name": "x"}))
        .await;
    assert_eq!(refused.problem(), (401, "TOKEN_MISSING"));
    let unknown = "/v1/sensors/devices/AA:BB:CC:DD:EE:00";
    let missing = server
        .as_admin("PATCH", unknown, json!({"friendly_name": "x"}))
        .await;
    assert_eq!(missing.problem(), (404, "DEVICE_NOT_FOUND"));
}

#[tokio::test]
async fn invalid_ids_are_explained() {
    let server = Server::start().await;
    let base = format!("/v1/sensors/devices/{DEVICE}");
    for (path, expected) in [
        (
            "/v1/sensors/devices/nobody".to_owned(),
            (400, "INVALID_REQUEST"),
        ),
        (base.clone(), (404, "DEVICE_NOT_FOUND")),
        (format!("{base}/latest"), (404, "NO_READINGS")),
        (
            format!("{base}/readings?from=yesterday"),
            (400, "INVALID_REQUEST"),
        ),
        (format!("{base}/readings?limit=0"), (400, "INVALID_REQUEST")),
        (
            format!("{base}/readings?limit=1001"),
            (400, "INVALID_REQUEST"),
        ),
        (
            format!("{base}/readings?order=sideways"),
            (400, "INVALID_REQUEST"),
        ),
        (
            format!("{base}/readings?cursor=e30"),
            (400, "INVALID_CURSOR"),
        ),
        (
            "/v1/sensors/devices?cursor=x".to_owned(),
            (400, "INVALID_CURSOR"),
        ),
        ("/v1/sensors".to_owned(), (404, "NOT_FOUND")),
    ] {
        let answer = server.as_admin("GET", &path, Value::Null).await;
        assert_eq!(answer.problem(), expected, "{path}");
    }
    let wrong_method = server.as_admin("PUT", &base, Value::Null).await;
    assert_eq!(wrong_method.problem(), (405, "METHOD_NOT_ALLOWED"));
}

#[tokio::test]
async fn operators_remove_readings_and_devices() {
    let server = Server::start().await;
    let key = server.key().await;
    let sent = json!({"readings": [reading("a/b%", 1), reading("second", 2)]});
    let stored = server
        .as_device(&key, "POST", "/v1/sensors/data", sent.clone())
        .await;
    assert_eq!(stored.status, 200, "{stored:?}");
    let device = format!("/v1/sensors/devices/{DEVICE}");
    let at = NOW_MS - 60_000;
    let one = format!("{device}/readings/{at}/a%2Fb%25");
    for path in [&one, &device] {
        let answer = server.as_device(&key, "DELETE", path, Value::Null).await;
        assert_eq!(answer.problem().0, 401, "{path}");
    }
    let answer = server.as_admin("DELETE", &one, Value::Null).await;
    assert_eq!(answer.status, 204, "{answer:?}");
    let answer = server.as_admin("DELETE", &one, Value::Null).await;
    assert_eq!(answer.problem(), (404, "READING_NOT_FOUND"));
    let wrong = format!("{device}/readings/now/second");
    let answer = server.as_admin("DELETE", &wrong, Value::Null).await;
    assert_eq!(answer.problem(), (400, "INVALID_REQUEST"));
    let again = server
        .as_device(&key, "POST", "/v1/sensors/data", sent.clone())
        .await;
    assert_eq!(again.body["results"][0]["status"], "duplicate");

    let answer = server.as_admin("DELETE", &device, Value::Null).await;
    assert_eq!(answer.status, 202, "{answer:?}");
    for path in [
        device.clone(),
        format!("{device}/latest"),
        format!("/v1/devices/sensors/{DEVICE}"),
        format!("/v1/devices/sensors/{DEVICE}/timeline"),
    ] {
        let answer = server.as_admin("GET", &path, Value::Null).await;
        assert_eq!(answer.problem().0, 404, "{path}");
    }
    let refused = server
        .as_device(&key, "POST", "/v1/sensors/register", registration())
        .await;
    assert_eq!(refused.problem(), (409, "DEVICE_BEING_DECOMMISSIONED"));
    let refused = server
        .as_device(&key, "POST", "/v1/sensors/data", sent)
        .await;
    assert_eq!(
        refused.body["results"][0]["code"],
        "DEVICE_BEING_DECOMMISSIONED"
    );
}
