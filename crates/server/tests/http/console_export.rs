//! `/v1/export` over HTTP.

use std::io::Read as _;

use homeport_item::Item;
use homeport_store::{Put, Store};
use serde_json::{Value, json};

use crate::support::{ADMIN, Answer, NOW_MS, Server};

const SENSOR: &str = "AA:BB:CC:DD:EE:FF";
const OTHER: &str = "AA:BB:CC:DD:EE:00";

async fn get(server: &Server, path: &str) -> Answer {
    let answer = server.as_admin("GET", path, Value::Null).await;
    assert_eq!(answer.status, 200, "{path}: {answer:?}");
    answer
}

fn text(answer: &Answer) -> &str {
    answer.body.as_str().expect("a text")
}

async fn server_with_readings() -> Server {
    let server = Server::start().await;
    let key = server.key().await;
    for (device, minutes) in [(SENSOR, 0..3), (OTHER, 0..1)] {
        let readings = minutes.map(|minute| {
            json!({
                "batch_id": format!("{device}-{minute}"), "hardware_id": device,
                "boot_id": "7c9e6679-7425-40de-944b-e07fc1f90ae7", "firmware_version": "1.0.16",
                "timestamp_ms": NOW_MS + minute * 60_000,
                "sensors": {"bme280_temp_c": 20.25, "pressure_hpa": 1000 + minute}, "sensor_status": {},
            })
        });
        let body = json!({"readings": readings.collect::<Vec<_>>()});
        let answer = server
            .as_device(&key, "POST", "/v1/sensors/data", body)
            .await;
        assert_eq!(answer.status, 200, "{answer:?}");
    }
    server
}

#[tokio::test]
async fn csv_has_a_line_per_value() {
    let server = server_with_readings().await;
    let answer = get(&server, "/v1/export/sensors").await;
    assert_eq!(
        answer.header("content-type"),
        Some("text/csv; charset=utf-8; header=present")
    );
    assert_eq!(
        answer.header("content-disposition"),
        Some("attachment; filename=\"sensors.csv\"")
    );
    let lines: Vec<&str> = text(&answer).split("\r\n").collect();
    assert_eq!(lines.len(), 1 + 8 + 1, "{lines:?}");
    assert_eq!(lines[0], "system,device,at,name,value,unit");
    assert_eq!(
        lines[1],
        "sensors,AA:BB:CC:DD:EE:00,2027-01-15T08:00:00.000Z,bme280_temp_c,20.25,°C"
    );
    assert_eq!(
        lines[8],
        "sensors,AA:BB:CC:DD:EE:FF,2027-01-15T08:02:00.000Z,pressure_hpa,1002,hPa"
    );
}

#[tokio::test]
async fn export_filters_device_and_range() {
    let server = server_with_readings().await;
    let from = NOW_MS + 60_000;
    let path = format!("/v1/export/sensors?device={SENSOR}&from={from}&to={from}&format=ndjson");
    let answer = get(&server, &path).await;
    assert_eq!(
        answer.header("content-disposition"),
        Some("attachment; filename=\"sensors-AA-BB-CC-DD-EE-FF.ndjson\"")
    );
    // A single line parses as one JSON value.
    assert_eq!(answer.body["device"], SENSOR);
    assert_eq!(answer.body["at"], "2027-01-15T08:01:00.000Z");
    assert_eq!(answer.body["item"]["sensors"]["pressure_hpa"], 1001);
    let empty = get(&server, "/v1/export/sensors?to=0").await;
    assert_eq!(text(&empty), "system,device,at,name,value,unit\r\n");
}

#[tokio::test]
async fn export_spans_several_pages() {
    let server = Server::start().await;
    let filler = "x".repeat(3000);
    for at in 0..1500 {
        let item = Item::new()
            .with("thing_name", "van")
            .with("timestamp", NOW_MS + at)
            .with("message_type", "telemetry")
            .with("number", at)
            .with("filler", filler.as_str());
        server
            .engine
            .put(Put::new("van-telemetry", item))
            .await
            .expect("stored");
    }
    let answer = get(&server, "/v1/export/telemetry?format=ndjson").await;
    let numbers = text(&answer).lines().map(|line| {
        let line: Value = serde_json::from_str(line).expect("JSON");
        line["item"]["number"].as_i64().expect("a number")
    });
    assert_eq!(numbers.collect::<Vec<_>>(), (0..1500).collect::<Vec<_>>());
}

#[tokio::test]
async fn export_can_be_compressed() {
    let server = server_with_readings().await;
    let plain = get(&server, "/v1/export/sensors").await;
    let url = format!("http://{}/v1/export/sensors", server.host());
    let compressed = tokio::task::spawn_blocking(move || {
        let request = ureq::get(url)
            .header("authorization", format!("Bearer {ADMIN}"))
            .header("accept-encoding", "gzip");
        let mut answer = request.call().expect("an answer");
        answer.body_mut().read_to_vec().expect("a whole body")
    });
    let compressed = compressed.await.expect("no panic");
    let mut file = String::new();
    let mut decoder = flate2::read::GzDecoder::new(compressed.as_slice());
    decoder.read_to_string(&mut file).expect("gzip");
    assert_eq!(file, text(&plain));
}

#[tokio::test]
async fn events_and_records_are_exported() {
    let server = Server::start().await;
    let event = json!({
        "wireless_device_id": "b319d001-6b08-4d88-b4ca-4d2d98a6d43c", "event_type": "telemetry",
        "occurred_at": NOW_MS, "data": {"current_ma": 16000, "note": "a, b"},
    });
    let without_data = json!({
        "wireless_device_id": "b319d001-6b08-4d88-b4ca-4d2d98a6d43c", "event_type": "boot",
        "occurred_at": NOW_MS - 1000,
    });
    let events = json!({"events": [event, without_data]});
    server.as_admin("POST", "/v1/chargers/events", events).await;
    let answer = get(&server, "/v1/export/chargers?format=csv").await;
    let lines: Vec<&str> = text(&answer).split("\r\n").collect();
    assert_eq!(
        lines[1..5],
        [
            "chargers,SC-C014EA63,2027-01-15T07:59:59.000Z,event_type,boot,",
            "chargers,SC-C014EA63,2027-01-15T08:00:00.000Z,event_type,telemetry,",
            "chargers,SC-C014EA63,2027-01-15T08:00:00.000Z,current_ma,16000,mA",
            "chargers,SC-C014EA63,2027-01-15T08:00:00.000Z,note,\"a, b\",",
        ]
    );
    let records = get(&server, "/v1/export/records").await;
    assert_eq!(text(&records).lines().count(), 1);
}

#[tokio::test]
async fn invalid_exports_are_rejected() {
    let server = Server::start().await;
    for (path, status) in [
        ("/v1/export/push", 400),
        ("/v1/export/sensors?device=nonsense", 404),
        ("/v1/export/sensors?format=xlsx", 400),
        ("/v1/export/sensors?from=yesterday", 400),
        ("/v1/export/tables/nothing", 404),
        ("/v1/export/tables/devices?format=parquet", 400),
        ("/v1/export/tables/devices?q=nonsense", 400),
        (
            "/v1/export/tables/devices?q=%7B%22index%22%3A%22x%22%7D",
            404,
        ),
    ] {
        let answer = server.as_admin("GET", path, Value::Null).await;
        assert_eq!(answer.problem().0, status, "{path}");
    }
    let answer = server.send("GET", "/v1/export/sensors", &[], None).await;
    assert_eq!(answer.status, 401);
}

#[tokio::test]
async fn table_query_is_exported() {
    let server = Server::start().await;
    for at in 0..3 {
        let mut item = Item::new()
            .with("thing_name", "van")
            .with("timestamp", at)
            .with("message_type", "telemetry");
        if at == 1 {
            item.insert("note", "with, comma");
        }
        server
            .engine
            .put(Put::new("van-telemetry", item))
            .await
            .expect("stored");
    }
    let answer = get(&server, "/v1/export/tables/van-telemetry").await;
    assert_eq!(
        text(&answer),
        "thing_name,timestamp,message_type,note,more attributes\r\n\
         van,0,telemetry,,\r\nvan,1,telemetry,\"with, comma\",\r\nvan,2,telemetry,,\r\n"
    );
    // {"partition":{"S":"van"},"sort":{"op":">=","values":[{"N":"2"}]}}
    let query = "%7B%22partition%22%3A%7B%22S%22%3A%22van%22%7D%2C%22sort%22%3A%7B%22op%22%3A%22%3E%3D%22%2C%22values%22%3A%5B%7B%22N%22%3A%222%22%7D%5D%7D%7D";
    let path = format!("/v1/export/tables/van-telemetry?format=ndjson&q={query}");
    let answer = get(&server, &path).await;
    assert_eq!(
        answer.body,
        json!({"thing_name": "van", "timestamp": 2, "message_type": "telemetry"})
    );
}

#[tokio::test]
async fn csv_texts_cannot_become_formulas() {
    let server = Server::start().await;
    let item = Item::new()
        .with("thing_name", "-van")
        .with("timestamp", NOW_MS)
        .with("message_type", "telemetry")
        .with("@name", "+1")
        .with("cr", "\rx")
        .with("formula", "=cmd|'/c calc'!A1")
        .with("minus", "-2+3")
        .with(
            "number",
            homeport_item::Value::N("-5.2".parse().expect("a number")),
        )
        .with("plain", "a=b")
        .with("tab", "\t=1");
    let put = Put::new("van-telemetry", item);
    server.engine.put(put).await.expect("stored");
    let path = "/v1/export/tables/van-telemetry";
    let safe = get(&server, path).await;
    assert_eq!(
        text(&safe),
        format!(
            "thing_name,timestamp,'@name,cr,formula,message_type,minus,number,plain,tab,more attributes\r\n\
             '-van,{NOW_MS},'+1,\"'\rx\",'=cmd|'/c calc'!A1,telemetry,'-2+3,-5.2,a=b,'\t=1,\r\n"
        )
    );
    let raw = get(&server, &format!("{path}?raw=true")).await;
    assert!(text(&raw).contains("\n-van,"));
    assert!(text(&raw).contains(",+1,\"\rx\",=cmd|'/c calc'!A1,telemetry,-2+3,-5.2,a=b,\t=1,"));
    assert_eq!(text(&raw).matches("'=").count(), 0);

    let fleet = get(&server, "/v1/export/telemetry").await;
    let line = text(&fleet).lines().find(|line| line.contains("minus"));
    let at = "2027-01-15T08:00:00.000Z";
    let expected = format!("telemetry,'-van,{at},minus,'-2+3,");
    assert_eq!(line, Some(expected.as_str()));
    let raw = get(&server, "/v1/export/telemetry?raw=true").await;
    let line = text(&raw).lines().find(|line| line.contains("minus"));
    let expected = format!("telemetry,-van,{at},minus,-2+3,");
    assert_eq!(line, Some(expected.as_str()));
}
