//! `/v1/chargers` over HTTP.

use crate::support::{NOW_MS, Server};
use homeport_item::Item;
use homeport_store::{Get, Store};
use serde_json::{Value, json};

const UUID: &str = "b319d001-6b08-4d88-b4ca-4d2d98a6d43c";
const SC_ID: &str = "SC-C014EA63";
const OTHER: &str = "b319d001-6b08-4d88-b4ca-4d2d98a6d43d";
/// Two UUIDs with one SC-ID.
const COLLIDING: [&str; 2] = [
    "54cdc5dc-66d8-487c-86ec-2d23278927f0",
    "5ccd847d-4605-490f-a990-b15986fd40ec",
];
const EVENTS: &str = "/v1/chargers/events";

fn event(minutes_ago: i64) -> Value {
    json!({
        "wireless_device_id": UUID, "event_type": "telemetry",
        "occurred_at": NOW_MS - minutes_ago * 60_000,
        "data": {"j1772_state": "C", "current_ma": 16000, "nested": {"list": [1, 2.5, null]}},
    })
}

fn with(mut value: Value, name: &str, changed: Value) -> Value {
    value[name] = changed;
    value
}

async fn key(server: &Server) -> String {
    server.key_of("chargers", []).await
}

async fn post(server: &Server, key: &str, body: Value) -> Vec<Value> {
    let answer = server.as_device(key, "POST", EVENTS, body).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.body["results"].as_array().expect("results").clone()
}

#[tokio::test]
async fn single_event_returns_its_timestamp() {
    let server = Server::start().await;
    let key = key(&server).await;
    let sent = with(event(0), "occurred_at", json!("2027-01-15T07:45:00Z"));
    let results = post(&server, &key, sent.clone()).await;
    assert_eq!(
        results,
        [json!({
            "status": "stored", "device_id": SC_ID,
            "timestamp_mt": "2027-01-15 00:45:00.000", "timestamp_utc_ms": NOW_MS - 900_000,
        })]
    );
    // The same instant in another notation is the same uplink.
    let again = with(sent, "occurred_at", json!(NOW_MS - 900_000));
    let results = post(&server, &key, again).await;
    assert_eq!(
        results,
        [json!({
            "status": "duplicate", "device_id": SC_ID, "timestamp_mt": "2027-01-15 00:45:00.000",
        })]
    );
    let item_key = Item::new()
        .with("device_id", SC_ID)
        .with("timestamp_mt", "2027-01-15 00:45:00.000");
    let stored = server.engine.get(Get::new("evse-events", item_key)).await;
    let stored = stored.expect("a get").expect("an event");
    assert_eq!(stored.get("wireless_device_id"), Some(&UUID.into()));
}

#[tokio::test]
async fn invalid_single_event_is_refused_like_any_body() {
    let server = Server::start().await;
    let key = server.key_of("chargers", [UUID]).await;
    let misspelled = with(event(0), "ocurred_at", json!(NOW_MS));
    for (body, expected, words) in [
        (
            misspelled.clone(),
            (400, "INVALID_REQUEST"),
            "unknown member `ocurred_at` (did you mean `occurred_at`?)",
        ),
        (
            with(event(0), "wireless_device_id", json!("nonsense")),
            (400, "INVALID_REQUEST"),
            "wireless_device_id",
        ),
        (
            with(event(0), "sequence", json!(i64::MAX as u64 + 1)),
            (400, "INVALID_REQUEST"),
            "sequence must be at most",
        ),
        (
            with(event(0), "occurred_at", json!("yesterday")),
            (400, "INVALID_REQUEST"),
            "occurred_at",
        ),
        (
            with(event(0), "occurred_at", json!(NOW_MS + 48 * 3_600_000)),
            (400, "TIME_IN_FUTURE"),
            "",
        ),
        (
            with(event(0), "wireless_device_id", json!(OTHER)),
            (403, "OUT_OF_SCOPE"),
            "",
        ),
    ] {
        let answer = server.as_device(&key, "POST", EVENTS, body).await;
        assert_eq!(answer.problem(), expected, "{answer:?}");
        let detail = answer.body["detail"].as_str().expect("a detail");
        assert!(detail.contains(words), "{detail}");
    }
    // In a list, each event has its own result.
    let results = post(&server, &key, json!({"events": [misspelled, event(0)]})).await;
    assert_eq!(results[0]["code"], "INVALID_EVENT");
    assert_eq!(results[1]["status"], "stored");
}

#[tokio::test]
async fn batch_may_mix_valid_and_invalid_events() {
    let server = Server::start().await;
    let key = key(&server).await;
    post(
        &server,
        &key,
        with(event(0), "wireless_device_id", json!(COLLIDING[0])),
    )
    .await;
    let mut events: Vec<Value> = (0..90).map(event).collect();
    events.extend([
        event(5),
        with(event(0), "wireless_device_id", json!(COLLIDING[1])),
        with(event(0), "wireless_device_id", json!("nonsense")),
        with(event(0), "event_type", json!("no spaces")),
        with(event(0), "data", json!([1])),
        with(event(0), "occurred_at", json!("yesterday")),
        with(event(-60 * 48), "data", json!({})),
        json!({"device_id": "SC-00000000", "event_type": "telemetry"}),
        json!({"device_id": "SC-00000000", "wireless_device_id": UUID, "event_type": "telemetry"}),
        json!("nonsense"),
    ]);
    let results = post(&server, &key, json!({"events": events})).await;
    assert_eq!(results.len(), 100);
    assert!(
        results[..90]
            .iter()
            .all(|result| result["status"] == "stored")
    );
    assert_eq!(results[90]["status"], "duplicate");
    let codes: Vec<&Value> = results[91..].iter().map(|result| &result["code"]).collect();
    assert_eq!(codes[0], "SC_ID_COLLISION");
    assert_eq!(codes[6], "UNKNOWN_DEVICE");
    assert_eq!(codes[5], "TIME_IN_FUTURE");
    for at in [1, 2, 3, 4, 7, 8] {
        assert_eq!(codes[at], "INVALID_EVENT", "{}", results[91 + at]);
    }
    let reason = results[91]["reason"].as_str().expect("a reason");
    assert!(
        reason.contains(COLLIDING[0]) && reason.contains(COLLIDING[1]),
        "{reason}"
    );
}

#[tokio::test]
async fn invalid_requests_are_rejected_entirely() {
    let server = Server::start().await;
    let key = key(&server).await;
    let many: Vec<Value> = (0..101).map(event).collect();
    for body in [
        json!({"events": many}),
        json!({"events": []}),
        json!({"events": 7}),
        json!([event(0)]),
        json!(7),
    ] {
        let answer = server.as_device(&key, "POST", EVENTS, body).await;
        assert_eq!(answer.problem(), (400, "INVALID_REQUEST"));
    }
    let torn = server
        .send("POST", EVENTS, &[("x-api-key", &key)], Some("{".to_owned()))
        .await;
    assert_eq!(torn.problem(), (400, "INVALID_REQUEST"));
}

#[tokio::test]
async fn callers_are_charger_keys_or_operators() {
    let server = Server::start().await;
    let key = key(&server).await;
    post(&server, &key, event(1)).await;
    let sensors = server.key().await;
    let reads = [
        "",
        "/events?event_type=telemetry",
        "/SC-C014EA63",
        "/SC-C014EA63/events",
        "/SC-C014EA63/state",
        "/SC-C014EA63/daily",
    ];
    for path in reads.map(|path| format!("/v1/chargers{path}")) {
        let answer = server.send("GET", &path, &[], None).await;
        assert_eq!(answer.problem().0, 401, "{path}");
        let answer = server.as_device(&sensors, "GET", &path, Value::Null).await;
        assert_eq!(answer.problem(), (403, "OUT_OF_SCOPE"), "{path}");
        assert_eq!(
            server
                .as_device(&key, "GET", &path, Value::Null)
                .await
                .status,
            200,
            "{path}"
        );
        assert_eq!(
            server.as_admin("GET", &path, Value::Null).await.status,
            200,
            "{path}"
        );
    }
    assert_eq!(
        server
            .as_device(&sensors, "POST", EVENTS, event(2))
            .await
            .problem(),
        (403, "OUT_OF_SCOPE")
    );
    assert_eq!(
        server
            .send("POST", EVENTS, &[], Some(event(2).to_string()))
            .await
            .problem()
            .0,
        401
    );
    let by_operator = server.as_admin("POST", EVENTS, event(2)).await;
    assert_eq!(by_operator.body["results"][0]["status"], "stored");
    for (method, path) in [
        ("PATCH", "/v1/chargers/SC-C014EA63/state"),
        ("POST", "/v1/chargers/daily/rebuild"),
    ] {
        let answer = server
            .as_device(&key, method, path, json!({"ota_a": 1}))
            .await;
        assert_eq!(answer.problem().0, 401, "{path}");
    }
}

#[tokio::test]
async fn scoped_key_accesses_only_its_charger() {
    let server = Server::start().await;
    for scope in [UUID, SC_ID] {
        let key = server.key_of("chargers", [scope]).await;
        let foreign = with(event(1), "wireless_device_id", json!(OTHER));
        let named = json!({"device_id": SC_ID, "event_type": "boot"});
        let results = post(&server, &key, json!({"events": [event(1), foreign, named]})).await;
        assert_eq!(results[1]["code"], "OUT_OF_SCOPE");
        assert_ne!(results[0]["status"], "rejected");
        // In the first request the device is not registered yet.
        assert_ne!(results[2]["code"], "OUT_OF_SCOPE");
        for (path, status) in [
            (format!("/{SC_ID}"), 200),
            (format!("/{UUID}/events"), 200),
            (format!("/{OTHER}/state"), 403),
            (format!("/{OTHER}/daily"), 403),
            ("/events?event_type=telemetry".to_owned(), 403),
            (String::new(), 403),
        ] {
            let path = format!("/v1/chargers{path}");
            let answer = server.as_device(&key, "GET", &path, Value::Null).await;
            assert_eq!(answer.status, status, "{path}: {answer:?}");
        }
    }
}

#[tokio::test]
async fn uuid_never_reaches_charger_with_same_sc_id() {
    let server = Server::start().await;
    let [owner, stranger] = COLLIDING;
    let of_owner = with(event(1), "wireless_device_id", json!(owner));
    let results = post(&server, &key(&server).await, of_owner).await;
    let sc_id = results[0]["device_id"]
        .as_str()
        .expect("an SC-ID")
        .to_owned();
    let pause = json!({"scheduler_paused": true});
    let rebuild = |id: &str| json!({"device_id": id, "from": "2027-01-15", "to": "2027-01-15"});
    for (id, status) in [(&*sc_id, 200), (owner, 200), (stranger, 404)] {
        for path in ["", "/events", "/state", "/daily"] {
            let path = format!("/v1/chargers/{id}{path}");
            let answer = server.as_admin("GET", &path, Value::Null).await;
            assert_eq!(answer.status, status, "{path}: {answer:?}");
        }
        for path in [
            format!("/v1/devices/chargers/{id}"),
            format!("/v1/devices/chargers/{id}/timeline"),
        ] {
            let answer = server.as_admin("GET", &path, Value::Null).await;
            assert_eq!(answer.status, status, "{path}: {answer:?}");
        }
        let rebuilt = server
            .as_admin("POST", "/v1/chargers/daily/rebuild", rebuild(id))
            .await;
        assert_eq!(rebuilt.status, status, "{rebuilt:?}");
    }
    let path = format!("/v1/chargers/{stranger}/state");
    let patched = server.as_admin("PATCH", &path, pause).await;
    assert_eq!(patched.problem(), (404, "DEVICE_NOT_FOUND"));
    let path = format!("/v1/chargers/{owner}/state");
    let state = server.as_admin("GET", &path, Value::Null).await;
    assert_eq!(state.body["scheduler_paused"], Value::Null);
    // The key of one charger does not reach the other one through the SC-ID that both have.
    let key = server.key_of("chargers", [stranger]).await;
    let path = format!("/v1/chargers/{sc_id}");
    let read = server.as_device(&key, "GET", &path, Value::Null).await;
    assert_eq!(read.problem(), (403, "OUT_OF_SCOPE"));
    let named = json!({"device_id": sc_id, "event_type": "boot"});
    let both = json!({"device_id": stranger, "wireless_device_id": owner, "event_type": "boot"});
    let results = post(&server, &key, json!({"events": [named, both]})).await;
    assert_eq!(results[0]["code"], "OUT_OF_SCOPE");
    assert_eq!(results[1]["code"], "INVALID_EVENT");
}

#[tokio::test]
async fn answer_names_attributes_missing_from_state() {
    let server = Server::start().await;
    let key = key(&server).await;
    let members = |range: std::ops::Range<usize>| -> Value {
        range
            .map(|n| (format!("a{n:03}"), json!(n)))
            .collect::<serde_json::Map<_, _>>()
            .into()
    };
    for (at, range) in [(9, 0..64), (8, 64..128)] {
        let results = post(&server, &key, with(event(at), "data", members(range))).await;
        assert_eq!(results[0]["not_in_state"], Value::Null);
    }
    let mut data = members(0..2);
    data["late"] = json!(1);
    data["revision"] = json!(1);
    data["ota_version"] = json!("1");
    data["a002"] = json!("x".repeat(2000));
    let results = post(&server, &key, with(event(7), "data", data)).await;
    assert_eq!(results[0]["status"], "stored");
    let rejected = results[0]["not_in_state"].as_array().expect("a list");
    let rejected: Vec<(&str, &str)> = rejected
        .iter()
        .map(|one| {
            assert!(one["reason"].is_string(), "{one}");
            (
                one["attribute"].as_str().expect("a name"),
                one["code"].as_str().expect("a code"),
            )
        })
        .collect();
    assert_eq!(
        rejected,
        [
            ("a002", "VALUE_TOO_LARGE"),
            ("late", "TOO_MANY_ATTRIBUTES"),
            ("ota_version", "OPERATOR_ATTRIBUTE"),
            ("revision", "RESERVED_NAME"),
        ]
    );
    let path = format!("/v1/chargers/{SC_ID}/state");
    let state = server.as_admin("GET", &path, Value::Null).await;
    assert_eq!(state.body["a001"], 1);
    assert_eq!(state.body["late"], Value::Null);
}

#[tokio::test]
async fn timeline_is_paged_under_either_id() {
    let server = Server::start().await;
    let key = key(&server).await;
    let events: Vec<Value> = (0..30)
        .map(|n| {
            with(
                event(n),
                "event_type",
                json!(if n % 3 == 0 { "ota_start" } else { "telemetry" }),
            )
        })
        .collect();
    post(&server, &key, json!({"events": events})).await;
    for id in [SC_ID, UUID] {
        let mut seen = Vec::new();
        let mut cursor = String::new();
        loop {
            let from = NOW_MS - 20 * 60_000;
            let path = format!(
                "/v1/chargers/{id}/events?event_type=ota_start&from={from}&to=2027-01-15T07:59:00Z&order=asc&limit=2{cursor}"
            );
            let page = server.as_device(&key, "GET", &path, Value::Null).await;
            assert_eq!(page.status, 200, "{page:?}");
            for event in page.body["events"].as_array().expect("events") {
                seen.push((NOW_MS - event["timestamp_utc_ms"].as_i64().expect("a time")) / 60_000);
                assert_eq!(event["data"]["nested"]["list"], json!([1, 2.5, null]));
            }
            match page.body["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        assert_eq!(seen, [18, 15, 12, 9, 6, 3]);
    }
    let fleet = server
        .as_device(
            &key,
            "GET",
            "/v1/chargers/events?event_type=ota_start&limit=3",
            Value::Null,
        )
        .await;
    assert_eq!(fleet.body["events"].as_array().expect("events").len(), 3);
    assert_eq!(fleet.body["events"][0]["timestamp_utc_ms"], NOW_MS);
    for path in [
        EVENTS,
        "/v1/chargers/x/events",
        "/v1/chargers/SC-C014EA63/events?from=x",
        "/v1/chargers/SC-C014EA63/events?limit=0",
        "/v1/chargers/SC-C014EA63/events?cursor=x",
    ] {
        assert_eq!(
            server
                .as_device(&key, "GET", path, Value::Null)
                .await
                .problem()
                .0,
            400,
            "{path}"
        );
    }
}

#[tokio::test]
async fn fleet_and_charger_show_registration_and_state() {
    let server = Server::start().await;
    let key = key(&server).await;
    post(
        &server,
        &key,
        json!({"events": [event(1), with(event(2), "wireless_device_id", json!(OTHER))]}),
    )
    .await;
    let one = server
        .as_device(&key, "GET", &format!("/v1/chargers/{UUID}"), Value::Null)
        .await;
    assert_eq!(one.body["device_id"], SC_ID);
    assert_eq!(one.body["registration"]["wireless_device_id"], UUID);
    assert_eq!(one.body["state"]["current_ma"], 16000);
    assert_eq!(one.body["state"]["revision"], Value::Null);
    let first = server
        .as_admin("GET", "/v1/chargers?limit=1", Value::Null)
        .await;
    let cursor = first.body["next_cursor"].as_str().expect("a cursor");
    let second = server
        .as_admin(
            "GET",
            &format!("/v1/chargers?limit=1&cursor={cursor}"),
            Value::Null,
        )
        .await;
    assert_eq!(second.body["next_cursor"], Value::Null);
    assert_ne!(
        first.body["chargers"][0]["device_id"],
        second.body["chargers"][0]["device_id"]
    );
    let missing = server
        .as_admin("GET", "/v1/chargers/SC-00000000", Value::Null)
        .await;
    assert_eq!(missing.problem(), (404, "DEVICE_NOT_FOUND"));
}

#[tokio::test]
async fn uplinks_keep_state_set_by_operators() {
    let server = Server::start().await;
    let key = key(&server).await;
    let path = format!("/v1/chargers/{SC_ID}/state");
    let set = json!({"scheduler_paused": true, "ota_session": {"id": 7, "chunks": [1, 2]}});
    let early = server.as_admin("PATCH", &path, set.clone()).await;
    assert_eq!(early.problem(), (404, "DEVICE_NOT_FOUND"));
    post(&server, &key, event(5)).await;
    assert_eq!(server.as_admin("PATCH", &path, set).await.status, 200);
    post(&server, &key, event(4)).await;
    let state = server.as_device(&key, "GET", &path, Value::Null).await;
    assert_eq!(state.body["scheduler_paused"], true);
    assert_eq!(
        state.body["ota_session"],
        json!({"id": 7, "chunks": [1, 2]})
    );
    let removed = server
        .as_admin("PATCH", &path, json!({"ota_session": null}))
        .await;
    assert_eq!(removed.body["ota_session"], Value::Null);
    for body in [
        json!({"current_ma": 1}),
        json!({}),
        json!([]),
        json!({"ota_x": "x".repeat(2000)}),
    ] {
        assert_eq!(
            server.as_admin("PATCH", &path, body).await.problem(),
            (400, "INVALID_REQUEST")
        );
    }
}

#[tokio::test]
async fn daily_statistics_are_rebuilt_and_read() {
    let server = Server::start().await;
    let key = key(&server).await;
    let body = json!({"events": [event(60), event(45), with(event(30), "data", json!({"j1772_state": "B"}))]});
    post(&server, &key, body).await;
    let rebuild = json!({"from": "2027-01-01", "to": "2027-01-31"});
    let answer = server
        .as_admin("POST", "/v1/chargers/daily/rebuild", rebuild)
        .await;
    assert_eq!(answer.body, json!({"days": 1}), "{answer:?}");
    let path = format!("/v1/chargers/{UUID}/daily?from=2027-01-15&to=2027-01-15T08:00:00Z");
    let daily = server.as_device(&key, "GET", &path, Value::Null).await;
    assert_eq!(
        daily.body["days"],
        json!([{
            "device_id": SC_ID, "date": "2027-01-15", "event_count": 3, "availability_pct": 3.13,
            "longest_gap_minutes": 15, "total_kwh": 1.92, "charge_session_count": 1,
            "charge_duration_min": 30, "peak_current_ma": 16000, "fault_counts": {},
        }])
    );
    for body in [
        json!({"from": "2027-01-31", "to": "2027-01-01"}),
        json!({"from": "2016-01-01", "to": "2027-01-31"}),
        json!({"from": "x", "to": "2027-01-31"}),
        json!({"from": "2027-01-31", "to": "2027-01-31", "device_id": "x"}),
    ] {
        let answer = server
            .as_admin("POST", "/v1/chargers/daily/rebuild", body)
            .await;
        assert_eq!(answer.problem(), (400, "INVALID_REQUEST"));
    }
}

#[tokio::test]
async fn operators_name_and_remove_chargers_and_events() {
    let server = Server::start().await;
    let key = key(&server).await;
    let results = post(&server, &key, json!({"events": [event(1), event(2)]})).await;
    let path = format!("/v1/chargers/{UUID}");
    let timestamp_mt = results[0]["timestamp_mt"].as_str().expect("a key");
    let event_path = format!("{path}/events/{}", timestamp_mt.replace(' ', "%20"));
    let name = json!({"friendly_name": "garage"});
    for (method, path) in [("PATCH", &path), ("DELETE", &path), ("DELETE", &event_path)] {
        let answer = server.as_device(&key, method, path, name.clone()).await;
        assert_eq!(answer.problem().0, 401, "{method} {path}");
    }
    let named = server.as_admin("PATCH", &path, name).await;
    assert_eq!(named.body["registration"]["friendly_name"], "garage");
    let typo = json!({"freindly_name": "garage"});
    let typo = server.as_admin("PATCH", &path, typo).await;
    assert_eq!(typo.problem(), (400, "INVALID_REQUEST"));

    let answer = server.as_admin("DELETE", &event_path, Value::Null).await;
    assert_eq!(answer.status, 204, "{answer:?}");
    let answer = server.as_admin("DELETE", &event_path, Value::Null).await;
    assert_eq!(answer.problem(), (404, "EVENT_NOT_FOUND"));
    let wrong = format!("{path}/events/yesterday");
    let answer = server.as_admin("DELETE", &wrong, Value::Null).await;
    assert_eq!(answer.problem(), (400, "INVALID_REQUEST"));
    let events = format!("{path}/events");
    let left = server.as_admin("GET", &events, Value::Null).await;
    assert_eq!(left.body["events"].as_array().expect("events").len(), 1);

    let answer = server.as_admin("DELETE", &path, Value::Null).await;
    assert_eq!(answer.status, 202, "{answer:?}");
    let device = format!("/v1/devices/chargers/{SC_ID}");
    for path in [&path, &device, &format!("{path}/state")] {
        let answer = server.as_admin("GET", path, Value::Null).await;
        assert_eq!(answer.problem().0, 404, "{path}");
    }
    let results = post(&server, &key, event(3)).await;
    assert_eq!(results[0]["code"], "DEVICE_BEING_DECOMMISSIONED");
}
