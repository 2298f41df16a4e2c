//! `/v1/devices` and `/v1/overview` over HTTP.

use homeport_systems::fleet::SystemName;
use serde_json::{Value, json};

use crate::support::{NOW_MS, Server};

const SENSOR: &str = "AA:BB:CC:DD:EE:FF";
const CHARGER: &str = "SC-C014EA63";
const BOOT: &str = "7c9e6679-7425-40de-944b-e07fc1f90ae7";

async fn get(server: &Server, path: &str) -> Value {
    let answer = server.as_admin("GET", path, Value::Null).await;
    assert_eq!(answer.status, 200, "{path}: {answer:?}");
    answer.body
}

fn texts<'a>(list: &'a Value, name: &str) -> Vec<&'a str> {
    let list = list.as_array().expect("a list").iter();
    list.map(|entry| entry[name].as_str().expect("a text"))
        .collect()
}

async fn readings(server: &Server, hardware_id: &str, values: &[(i64, f64)]) {
    let key = server.key().await;
    for (chunk, values) in values.chunks(100).enumerate() {
        let readings = values
            .iter()
            .enumerate()
            .map(|(at, (timestamp_ms, degrees))| {
                json!({
                    "batch_id": format!("{hardware_id}-{chunk}-{at}"), "hardware_id": hardware_id,
                    "boot_id": BOOT, "firmware_version": "1.0.16", "timestamp_ms": timestamp_ms,
                    "sensors": {"bme280_temp_c": degrees}, "sensor_status": {"bme280": "ok"},
                })
            });
        let body = json!({"readings": readings.collect::<Vec<_>>()});
        let answer = server
            .as_device(&key, "POST", "/v1/sensors/data", body)
            .await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let results = answer.body["results"].as_array().expect("results");
        assert!(
            results.iter().all(|result| result["status"] == "stored"),
            "{results:?}"
        );
    }
}

async fn charger_event(server: &Server, event_type: &str, minutes_ago: i64, data: Value) {
    let event = json!({
        "wireless_device_id": "b319d001-6b08-4d88-b4ca-4d2d98a6d43c", "event_type": event_type,
        "occurred_at": NOW_MS - minutes_ago * 60_000, "data": data,
    });
    let answer = server.as_admin("POST", "/v1/chargers/events", event).await;
    assert_eq!(answer.status, 200, "{answer:?}");
}

/// Creates one device of each system, all just seen. Returns the ids of those in the record store and push.
async fn one_of_each(server: &Server) -> String {
    readings(server, SENSOR, &[(NOW_MS, 22.5)]).await;
    charger_event(server, "telemetry", 0, json!({"current_ma": 16000})).await;
    server
        .take("van/van-1/telemetry", r#"{"speed_kmh": 80}"#)
        .await;
    let made =
        |answer: &Value, name: &str| answer["response"][name].as_str().expect("an id").to_owned();
    let add = async |path: &str, body: Value| server.as_admin("POST", path, body).await.body;
    let gid = made(&add("/v1/groups", json!({"name": "home"})).await, "gid");
    let devices = format!("/v1/groups/{gid}/devices");
    let did = made(
        &add(&devices, json!({"name": "roof", "model": "M1"})).await,
        "did",
    );
    let journals = format!("{devices}/{did}/journals");
    let journal = json!({"name": "outside", "data_type": "number"});
    let jid = made(&add(&journals, journal).await, "jid");
    let record = json!({"value": 21.5, "unit": "C", "type": "temperature", "timestamp": NOW_MS});
    add(&format!("{journals}/{jid}/records"), record).await;
    let phone = json!({"expoPushToken": "ExponentPushToken[abcdefgh]", "platform": "ios"});
    let path = "/v1/push/devices/phone?userId=anna";
    let answer = server.as_admin("PUT", path, phone).await;
    assert!(answer.status < 300, "{answer:?}");
    format!("{gid}/{did}")
}

#[tokio::test]
async fn device_list_spans_all_systems() {
    let server = Server::start().await;
    let empty = get(&server, "/v1/devices").await;
    assert_eq!(
        empty,
        json!({"devices": [], "counts": {"online": 0, "late": 0, "silent": 0, "total": 0}})
    );
    let recorder = one_of_each(&server).await;
    server.clock.advance_ms(60_000);
    let list = get(&server, "/v1/devices").await;
    assert_eq!(
        texts(&list["devices"], "id"),
        [SENSOR, CHARGER, "van-1", &recorder, "anna/phone"]
    );
    assert_eq!(
        texts(&list["devices"], "system"),
        ["sensors", "chargers", "telemetry", "records", "push"]
    );
    assert_eq!(list["counts"]["online"], 5);
    assert_eq!(
        list["devices"][3],
        json!({
            "system": "records", "id": recorder, "name": "roof", "kind": "M1", "group": "home",
            "last_seen_at": "2027-01-15T08:00:00.000Z", "health": "online",
        })
    );
}

#[tokio::test]
async fn health_and_counts_follow_the_clock() {
    let server = Server::start().await;
    one_of_each(&server).await;
    // Sensors are expected every ten minutes, chargers every 15, things every 5, records every hour.
    for (minutes, expected) in [
        (9, ["online", "online", "online", "online", "online"]),
        (11, ["online", "online", "late", "online", "online"]),
        (31, ["late", "late", "silent", "online", "online"]),
        (361, ["silent", "silent", "silent", "silent", "online"]),
    ] {
        server
            .clock
            .advance_ms(NOW_MS + minutes * 60_000 - server.now_ms());
        let list = get(&server, "/v1/devices").await;
        assert_eq!(texts(&list["devices"], "health"), expected, "{minutes}");
    }
    let silent = get(&server, "/v1/devices?health=silent&limit=2").await;
    assert_eq!(texts(&silent["devices"], "id"), [SENSOR, CHARGER]);
    assert_eq!(
        silent["counts"],
        json!({"online": 1, "late": 0, "silent": 4, "total": 5})
    );
    let overview = get(&server, "/v1/overview").await;
    let sensors = json!({"system": "sensors", "devices": 1, "online": 0, "late": 0, "silent": 1});
    assert_eq!(overview["systems"][0], sensors);
}

#[tokio::test]
async fn pages_list_every_device_once() {
    let server = Server::start().await;
    for number in 0..25 {
        readings(
            &server,
            &format!("AA:BB:CC:DD:EE:{number:02X}"),
            &[(NOW_MS, 1.0)],
        )
        .await;
        for message in 0..3 {
            let payload = format!(r#"{{"n": {message}}}"#);
            server
                .take(&format!("van/van-{number:02}/telemetry"), &payload)
                .await;
        }
    }
    let mut seen = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = get(&server, &format!("/v1/devices?limit=7{cursor}")).await;
        let ids = texts(&page["devices"], "id");
        assert!(ids.len() <= 7);
        seen.extend(ids.into_iter().map(str::to_owned));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    let sensors = (0..25).map(|number| format!("AA:BB:CC:DD:EE:{number:02X}"));
    let things = (0..25).map(|number| format!("van-{number:02}"));
    assert_eq!(seen, sensors.chain(things).collect::<Vec<_>>());
    let found = get(&server, "/v1/devices?search=VAN-1&system=telemetry&limit=3").await;
    assert_eq!(
        texts(&found["devices"], "id"),
        ["van-10", "van-11", "van-12"]
    );
    assert_eq!(found["counts"]["total"], 10);
    let other = found["next_cursor"].as_str().expect("a cursor");
    let answer = server
        .as_admin("GET", &format!("/v1/devices?cursor={other}"), Value::Null)
        .await;
    assert_eq!(answer.problem(), (400, "INVALID_CURSOR"));
}

#[tokio::test]
async fn every_system_has_a_device_view() {
    let server = Server::start().await;
    let recorder = one_of_each(&server).await.replace('/', "%2F");
    let device = get(&server, &format!("/v1/devices/sensors/{SENSOR}")).await;
    assert_eq!(device["health"], "online");
    assert_eq!(device["identity"]["firmware_version"], "1.0.16");
    assert_eq!(device["state"]["bme280_status"], "ok");
    assert_eq!(
        device["latest"],
        json!([{"name": "bme280_temp_c", "value": 22.5, "unit": "°C", "at": "2027-01-15T08:00:00.000Z"}])
    );
    let device = get(&server, &format!("/v1/devices/chargers/{CHARGER}")).await;
    assert_eq!(device["latest"][0]["name"], "current_ma");
    assert_eq!(device["latest"][0]["unit"], "mA");
    let device = get(&server, "/v1/devices/telemetry/van-1").await;
    assert_eq!(device["latest"][0]["value"], 80);
    let device = get(&server, &format!("/v1/devices/records/{recorder}")).await;
    assert_eq!(device["identity"]["group"], "home");
    assert_eq!(
        device["latest"],
        json!([{"name": "outside", "value": 21.5, "unit": "C", "at": "2027-01-15T08:00:00.000Z"}])
    );
    let device = get(&server, "/v1/devices/push/anna%2Fphone").await;
    assert_eq!(device["state"]["isActive"], true);
    assert!(
        !device.to_string().contains("ExponentPushToken"),
        "{device}"
    );
    for path in [
        "/v1/devices/sensors/00:00:00:00:00:00",
        "/v1/devices/sensors/nonsense",
        "/v1/devices/telemetry/van-2",
        "/v1/devices/records/a%2Fb",
        "/v1/devices/records/nonsense",
        "/v1/devices/push/anna%2Ftablet",
    ] {
        let answer = server.as_admin("GET", path, Value::Null).await;
        assert_eq!(answer.problem(), (404, "DEVICE_NOT_FOUND"), "{path}");
    }
    let answer = server
        .as_admin("GET", "/v1/devices/toasters/x", Value::Null)
        .await;
    assert_eq!(answer.problem().0, 400);
}

#[tokio::test]
async fn downsampled_chart_keeps_spikes() {
    let server = Server::start().await;
    // A reading every five minutes for two days and a half, with one spike.
    let start = NOW_MS - 720 * 300_000;
    let value = |n: i64| {
        if n == 345 {
            99.0
        } else {
            20.0 + (n % 10) as f64
        }
    };
    let values: Vec<(i64, f64)> = (0..720).map(|n| (start + n * 300_000, value(n))).collect();
    readings(&server, SENSOR, &values).await;
    let path = format!("/v1/devices/sensors/{SENSOR}/series?from={start}&to={NOW_MS}&points=36");
    let chart = get(&server, &path).await;
    assert_eq!(chart["bucket_ms"], 20 * 300_000);
    let series = &chart["series"][0];
    assert_eq!(series["unit"], "°C");
    let points = series["points"].as_array().expect("points");
    assert_eq!(points.len(), 36);
    assert_eq!(
        points[17],
        json!([start + 17 * 20 * 300_000, 20.0, 99.0, 28.2, 20])
    );
    assert_eq!(
        points[16],
        json!([start + 16 * 20 * 300_000, 20.0, 29.0, 24.5, 20])
    );
    let none = get(&server, &format!("{path}&names=other")).await;
    assert_eq!(none["series"], json!([]));
}

#[tokio::test]
async fn every_system_with_history_has_charts() {
    let server = Server::start().await;
    let recorder = one_of_each(&server).await.replace('/', "%2F");
    let to = NOW_MS + 1;
    for (device, name) in [
        (format!("chargers/{CHARGER}"), "current_ma"),
        ("telemetry/van-1".to_owned(), "speed_kmh"),
        (format!("records/{recorder}"), "outside"),
    ] {
        let chart = get(&server, &format!("/v1/devices/{device}/series?to={to}")).await;
        assert_eq!(chart["series"][0]["name"], name, "{chart}");
        assert_eq!(chart["series"][0]["points"][0][4], 1);
    }
    let chart = get(&server, "/v1/devices/push/anna%2Fphone/series").await;
    assert_eq!(chart["series"], json!([]));
}

#[tokio::test]
async fn timeline_order_is_independent_of_page_size() {
    let server = Server::start().await;
    let definition = json!({
        "name": "Cold", "source": "sensors",
        "condition": {"threshold": {
            "attribute": "sensors.bme280_temp_c", "side": "below", "raise": 5.0, "clear": 7.5,
        }},
        "targets": [{"email": {"to": "anna@example.com"}}],
    });
    let made = server
        .as_admin("POST", "/v1/alerts/definitions", definition)
        .await;
    assert_eq!(made.status, 201, "{made:?}");
    for (at, degrees) in [20.0, 4.0, 3.0, 9.0, 21.0].into_iter().enumerate() {
        server.clock.advance_ms(60_000);
        let now_ms = server.now_ms();
        let key = server.key().await;
        let reading = json!({"readings": [{
            "batch_id": format!("b{at}"), "hardware_id": SENSOR, "boot_id": BOOT,
            "firmware_version": "1.0.16", "timestamp_ms": now_ms,
            "sensors": {"bme280_temp_c": degrees}, "sensor_status": {},
        }]});
        server
            .as_device(&key, "POST", "/v1/sensors/data", reading)
            .await;
        server.clock.advance_ms(1);
        let reactions = server.alerts.reactions().expect("a feed");
        let reaction = server.alerts.reaction(&SystemName::new("sensors"));
        let reaction = reaction.expect("a watched system");
        reactions.catch_up(&reaction).await.expect("judged");
    }
    let path = format!("/v1/devices/sensors/{SENSOR}/timeline");
    let whole = get(&server, &path).await;
    let titles = texts(&whole["entries"], "title");
    let types = texts(&whole["entries"], "type");
    let (reading, alert, told) = ("telemetry", "alert", "notification");
    assert_eq!(
        types,
        [
            reading, alert, told, reading, reading, alert, told, reading, reading
        ],
        "{titles:?}"
    );
    assert!(titles[5].starts_with("Alert raised: Cold"), "{titles:?}");
    assert!(titles[6].contains("anna@example.com"), "{titles:?}");
    assert_eq!(titles[0], "Reading: bme280_temp_c 21 °C");
    let ids = texts(&whole["entries"], "id");
    let times = texts(&whole["entries"], "at");
    assert!(times.is_sorted_by(|a, b| a >= b), "{times:?}");
    assert_eq!(
        whole["entries"][0]["item"]["hardware_id"],
        json!({"S": SENSOR})
    );
    for limit in 1..4 {
        let mut seen: Vec<String> = Vec::new();
        let mut cursor = String::new();
        loop {
            let page = get(&server, &format!("{path}?limit={limit}{cursor}")).await;
            seen.extend(texts(&page["entries"], "id").into_iter().map(str::to_owned));
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        assert_eq!(seen, ids, "{limit}");
    }
    let upwards = get(&server, &format!("{path}?order=asc")).await;
    let mut upwards = texts(&upwards["entries"], "id");
    upwards.reverse();
    assert_eq!(upwards, ids);
    let alerts = get(&server, &format!("{path}?types=alert")).await;
    assert_eq!(texts(&alerts["entries"], "type"), ["alert", "alert"]);
    let from = times[1];
    let part = get(&server, &format!("{path}?from={from}")).await;
    assert_eq!(
        texts(&part["entries"], "id"),
        ids[..times.iter().filter(|at| **at >= from).count()]
    );
    let answer = server
        .as_admin("GET", &format!("{path}?types=toast"), Value::Null)
        .await;
    assert_eq!(answer.problem().0, 400);
}

#[tokio::test]
async fn charger_events_have_entry_types() {
    let server = Server::start().await;
    for (minutes_ago, event_type) in ["telemetry", "ota_progress", "scheduler_window", "time_sync"]
        .into_iter()
        .enumerate()
    {
        let minutes_ago = i64::try_from(minutes_ago).expect("small");
        charger_event(&server, event_type, minutes_ago, json!({"current_ma": 1})).await;
    }
    let path = format!("/v1/devices/chargers/{CHARGER}/timeline");
    let all = get(&server, &path).await;
    assert_eq!(
        texts(&all["entries"], "type"),
        ["telemetry", "ota", "scheduler", "state"]
    );
    let some = get(&server, &format!("{path}?types=ota,scheduler")).await;
    assert_eq!(texts(&some["entries"], "type"), ["ota", "scheduler"]);
}

#[tokio::test]
async fn overview_counts_ingested_data() {
    let server = Server::start().await;
    let before = get(&server, "/v1/overview").await;
    assert_eq!(before["started_at"], "2027-01-15T08:00:00.000Z");
    assert_eq!(before["alerts"], json!({"open": 0, "unacknowledged": 0}));
    one_of_each(&server).await;
    readings(&server, "AA:BB:CC:DD:EE:01", &[(NOW_MS, 1.0)]).await;
    let key = server.key().await;
    let again = json!({"readings": [
        {"batch_id": "AA:BB:CC:DD:EE:01-0-0", "hardware_id": "AA:BB:CC:DD:EE:01", "boot_id": BOOT,
         "firmware_version": "1.0.16", "timestamp_ms": NOW_MS, "sensors": {}, "sensor_status": {}},
        {"nonsense": true},
    ]});
    server
        .as_device(&key, "POST", "/v1/sensors/data", again)
        .await;
    let after = get(&server, "/v1/overview").await;
    let grown = |name: &str| {
        let read = |body: &Value| body["ingest"][name].as_u64().expect("a number");
        read(&after) - read(&before)
    };
    // Two readings, an event, a message and a record.
    assert_eq!(
        (grown("stored"), grown("duplicates"), grown("rejected")),
        (5, 1, 1)
    );
    assert!(after["commit"]["count"].as_u64() > Some(0));
    let tables = after["storage"]["tables"].as_array().expect("tables");
    let readings = tables
        .iter()
        .find(|table| table["name"] == "device_readings");
    assert_eq!(readings.expect("a table")["items"], 2);
}

#[tokio::test]
async fn devices_are_for_operators() {
    let server = Server::start().await;
    let key = server.key().await;
    for path in ["/v1/devices", "/v1/overview", "/v1/tables", "/v1/live"] {
        let answer = server.send("GET", path, &[], None).await;
        assert_eq!(answer.status, 401, "{path}");
        let answer = server.as_device(&key, "GET", path, Value::Null).await;
        assert_eq!(answer.status, 401, "{path}");
    }
}
