//! What holds on every route: unknown names, ranges of time, names of members, and keys of other systems. The OpenAPI
//! document lists the routes.

use crate::people::{as_person, create, sign_in};
use crate::support::{Answer, NOW_MS, Server};
use serde_json::{Map, Value, json};

const SYSTEMS: [&str; 5] = ["sensors", "chargers", "push", "telemetry", "records"];
const HOUR_MS: i64 = 3_600_000;
/// A name that no route knows, and that resembles no other.
const UNKNOWN: &str = "zzzzzzzzzzzz";
/// Schemas whose members a design document or AWS IoT fixes in another form.
const OTHER_SPELLING: [&str; 23] = [
    "ChargerUplink",
    "NewRule",
    "PushDevice",
    "RecordsError",
    "RegisterPushDevice",
    "ReplayCandidate",
    "ReplayedChange",
    "ReplayedMessage",
    "ReplayedWrite",
    "Rule",
    "RuleCounts",
    "RuleDefinition",
    "RuleDocument",
    "RuleError",
    "RuleList",
    "RulePatch",
    "RuleReplay",
    "RuleVersion",
    "RuleVersionList",
    "SendBroadcast",
    "SendNotification",
    "StatementTestResult",
    "TestStatement",
];

/// A documented operation.
pub(crate) struct Operation {
    pub(crate) method: String,
    /// The path with values for its parameters.
    pub(crate) path: String,
    /// The path of the document.
    pub(crate) route: String,
    pub(crate) system: String,
    credentials: Vec<String>,
    query: Vec<String>,
    pub(crate) takes_json: bool,
}

impl Operation {
    fn accepts(&self, credential: &str) -> bool {
        self.credentials.iter().any(|known| known == credential)
    }
}

fn path_value(name: &str) -> &'static str {
    match name {
        "hardware_id" => "AA:BB:CC:DD:EE:FF",
        "device_id" => "SC-C014EA63",
        "thing" => "van-1",
        "gid" | "did" | "jid" => "5YXd4XZ0",
        "user_id" => "anna",
        "key_id" => "550e8400-e29b-41d4-a716-446655440000",
        "definition_id" | "alert_id" | "notification_id" | "test_id" | "broadcast_id" => {
            "1800000000000-7c9e6679-7425-40de-944b-e07fc1f90ae7"
        }
        "name" => "policy",
        "version" => "1",
        "timestamp" | "timestamp_ms" => "1800000000000",
        "timestamp_mt" => "2026-02-21%2014:30:00.000",
        "batch_id" => "batch-1",
        "system" => "sensors",
        "id" => "AA:BB:CC:DD:EE:FF",
        "table" => "devices",
        "client_id" => "van-1",
        "topic" => "van/van-1/telemetry",
        other => panic!("the test has no value for the path parameter {other}"),
    }
}

fn fill(route: &str) -> String {
    let filled = route.split('/').map(|part| {
        match part
            .strip_prefix('{')
            .and_then(|part| part.strip_suffix('}'))
        {
            Some(name) => path_value(name),
            None => part,
        }
    });
    filled.collect::<Vec<_>>().join("/")
}

pub(crate) async fn document(server: &Server) -> Value {
    server.send("GET", "/openapi.json", &[], None).await.body
}

pub(crate) fn operations(document: &Value) -> Vec<Operation> {
    let mut all = Vec::new();
    for (route, methods) in document["paths"].as_object().expect("paths") {
        for (method, operation) in methods.as_object().expect("methods") {
            let list = |member: &str| operation[member].as_array().cloned().unwrap_or_default();
            let names = |requirement: &Value| -> Vec<String> {
                let names = requirement.as_object().expect("a requirement").keys();
                names.cloned().collect()
            };
            let parameters = list("parameters");
            let query = parameters.iter().filter(|one| one["in"] == "query");
            all.push(Operation {
                method: method.to_uppercase(),
                path: fill(route),
                route: route.clone(),
                system: operation["tags"][0].as_str().expect("a tag").to_owned(),
                credentials: list("security").iter().flat_map(names).collect(),
                query: query
                    .map(|one| one["name"].as_str().expect("a name").to_owned())
                    .collect(),
                takes_json: !operation["requestBody"]["content"]["application/json"].is_null(),
            });
        }
    }
    assert!(all.len() > 90, "{} operations", all.len());
    all
}

async fn add_rule(server: &Server) {
    let rule = json!({"sql": "SELECT * FROM 'a'", "actions": [{"republish": {"topic": "b"}}]});
    let answer = server.as_admin("PUT", "/v1/rules/policy", rule).await;
    assert_eq!(answer.status, 201, "{answer:?}");
}

/// The error message of a problem or of the record store's envelope.
fn detail(answer: &Answer) -> &str {
    let detail = answer.body["detail"].as_str();
    detail
        .or(answer.body["errorMessage"].as_str())
        .unwrap_or_default()
}

#[tokio::test]
async fn unknown_query_parameters_are_refused_on_every_route() {
    let server = Server::start().await;
    for operation in operations(&document(&server).await) {
        let path = format!("{}?{UNKNOWN}=1", operation.path);
        let answer = server.as_admin(&operation.method, &path, json!({})).await;
        let place = format!("{} {}: {answer:?}", operation.method, operation.route);
        assert_eq!(answer.status, 400, "{place}");
        let expected = format!("unknown query parameter `{UNKNOWN}`");
        assert!(detail(&answer).starts_with(&expected), "{place}");
        for known in &operation.query {
            assert!(detail(&answer).contains(&format!("`{known}`")), "{place}");
        }
    }
}

#[tokio::test]
async fn unknown_members_are_refused_on_every_route() {
    let server = Server::start().await;
    add_rule(&server).await;
    let key = server.key().await;
    create(&server, "anna", "viewer").await;
    let session = sign_in(&server, "anna").await;
    let mut tried = 0;
    for operation in operations(&document(&server).await) {
        if !operation.takes_json {
            continue;
        }
        tried += 1;
        let mut body = json!({ UNKNOWN: 1 });
        let mut path = operation.path.clone();
        if operation.query.iter().any(|name| name == "thing") {
            path.push_str("?thing=van-1");
        }
        // An uplink of AWS may have any other member.
        if operation.route == "/v1/chargers/uplinks" {
            body["uplinks"] = json!([]);
        }
        let answer = if operation.accepts("device_key") && !operation.accepts("admin_token") {
            server.as_device(&key, &operation.method, &path, body).await
        } else if operation.credentials == ["console_session"] {
            as_person(&server, &session, &operation.method, &path, body).await
        } else {
            server.as_admin(&operation.method, &path, body).await
        };
        let place = format!("{} {}: {answer:?}", operation.method, operation.route);
        assert_eq!(answer.status, 400, "{place}");
        assert!(detail(&answer).contains(UNKNOWN), "{place}");
    }
    assert!(tried > 25, "{tried}");
}

#[tokio::test]
async fn misspelled_names_get_the_nearest_known_one() {
    let server = Server::start().await;
    let key = server.key().await;
    let path = "/v1/sensors/devices/AA:BB:CC:DD:EE:FF/readings?form=5";
    let answer = server.as_device(&key, "GET", path, Value::Null).await;
    assert_eq!(
        detail(&answer),
        "unknown query parameter `form` (did you mean `from`?)"
    );
    let mut reading = reading("b", NOW_MS);
    reading["sensor_satus"] = json!({});
    let body = json!({"readings": [reading]});
    let answer = server
        .as_device(&key, "POST", "/v1/sensors/data", body)
        .await;
    let result = &answer.body["results"][0];
    assert_eq!(result["status"], "rejected", "{answer:?}");
    let reason = result["reason"].as_str().expect("a reason");
    assert!(
        reason.starts_with("unknown member `sensor_satus` (did you mean `sensor_status`?)"),
        "{reason}"
    );
}

#[tokio::test]
async fn unknown_members_of_nested_objects_are_refused() {
    let server = Server::start().await;
    add_rule(&server).await;
    let key = server.key().await;
    let registration = json!({
        "hardware_id": "AA:BB:CC:DD:EE:FF", "boot_id": "7c9e6679-7425-40de-944b-e07fc1f90ae7",
        "firmware_version": "1", "capabilities": { UNKNOWN: 1 },
    });
    let answer = server
        .as_device(&key, "POST", "/v1/sensors/register", registration)
        .await;
    assert!(detail(&answer).contains("unknown member"), "{answer:?}");
    let definition = |member: &str, value: Value| {
        let mut body = json!({
            "name": "a", "source": "sensors", "condition": {"absence": {"after_secs": 60}},
        });
        body[member] = value;
        body
    };
    let event = json!({"event_type": "telemetry", "device_id": "SC-C014EA63", UNKNOWN: 1});
    for (method, path, body) in [
        (
            "POST",
            "/v1/ids/init",
            json!({"idtag": "a", "config": { UNKNOWN: 1 }}),
        ),
        (
            "POST",
            "/v1/tables/devices/scan",
            json!({"filter": { UNKNOWN: 1 }}),
        ),
        (
            "POST",
            "/v1/alerts/definitions",
            definition("where", json!({ UNKNOWN: 1 })),
        ),
        (
            "POST",
            "/v1/alerts/definitions",
            definition("quiet", json!({ UNKNOWN: 1 })),
        ),
        (
            "POST",
            "/v1/alerts/definitions",
            definition("condition", json!({"absence": { UNKNOWN: 1 }})),
        ),
        (
            "PATCH",
            "/v1/rules/policy",
            json!({"actions": [{"republish": { UNKNOWN: 1 }}]}),
        ),
        ("PATCH", "/v1/rules/policy", json!({ UNKNOWN: null })),
    ] {
        let answer = server.as_admin(method, path, body.clone()).await;
        assert_eq!(answer.status, 400, "{path} {body}: {answer:?}");
        let expected = format!("unknown member `{UNKNOWN}`");
        assert!(detail(&answer).contains(&expected), "{path} {answer:?}");
    }
    let body = json!({"events": [event]});
    let answer = server.as_admin("POST", "/v1/chargers/events", body).await;
    let reason = answer.body["results"][0]["reason"]
        .as_str()
        .expect("a reason");
    assert!(
        reason.contains(&format!("unknown member `{UNKNOWN}`")),
        "{reason}"
    );
}

fn reading(batch_id: &str, timestamp_ms: i64) -> Value {
    json!({
        "batch_id": batch_id, "hardware_id": "AA:BB:CC:DD:EE:FF", "timestamp_ms": timestamp_ms,
        "boot_id": "7c9e6679-7425-40de-944b-e07fc1f90ae7", "firmware_version": "1", "sensors": {},
        "sensor_status": {},
    })
}

#[tokio::test]
async fn readings_need_a_status_and_may_have_a_name() {
    let server = Server::start().await;
    let key = server.key().await;
    let mut without_status = reading("a", NOW_MS);
    without_status
        .as_object_mut()
        .expect("an object")
        .remove("sensor_status");
    let mut with_name = reading("b", NOW_MS);
    with_name["friendly_name"] = json!("greenhouse");
    let body = json!({"readings": [without_status, with_name]});
    let answer = server
        .as_device(&key, "POST", "/v1/sensors/data", body)
        .await;
    let results = &answer.body["results"];
    assert_eq!(results[0]["code"], "INVALID_READING", "{answer:?}");
    let reason = results[0]["reason"].as_str().expect("a reason");
    assert!(reason.contains("sensor_status"), "{reason}");
    assert_eq!(results[1]["status"], "stored", "{answer:?}");
    let latest = "/v1/sensors/devices/AA:BB:CC:DD:EE:FF/latest";
    let stored = server.as_device(&key, "GET", latest, Value::Null).await;
    assert_eq!(stored.body.get("friendly_name"), None, "{stored:?}");
}

#[tokio::test]
async fn ranges_must_not_end_before_they_start() {
    let server = Server::start().await;
    add_rule(&server).await;
    let mut tried = 0;
    for operation in operations(&document(&server).await) {
        let has = |name: &str| operation.query.iter().any(|known| known == name);
        if !has("from") || !has("to") {
            continue;
        }
        tried += 1;
        let mut path = format!("{}?from=-1h&to=-2d", operation.path);
        for (name, value) in [
            ("thing", "van-1"),
            ("event_type", "telemetry"),
            ("message_type", "status"),
        ] {
            if has(name) {
                path.push_str(&format!("&{name}={value}"));
            }
        }
        let answer = server.as_admin(&operation.method, &path, json!({})).await;
        let place = format!("{} {}: {answer:?}", operation.method, operation.route);
        assert_eq!(answer.status, 400, "{place}");
        assert_eq!(detail(&answer), "from must not be later than to", "{place}");
    }
    assert!(tried >= 11, "{tried}");
    let rebuild = json!({"from": "2026-02-22", "to": "2026-02-21"});
    let answer = server
        .as_admin("POST", "/v1/chargers/daily/rebuild", rebuild)
        .await;
    assert_eq!(
        detail(&answer),
        "from must not be later than to",
        "{answer:?}"
    );
}

#[tokio::test]
async fn relative_times_stay_fixed_across_pages() {
    let server = Server::start().await;
    let key = server.key().await;
    let ages_h = [0, 23, 24, 25, 48];
    let readings = ages_h.map(|age| reading(&age.to_string(), NOW_MS - age * HOUR_MS));
    let body = json!({ "readings": readings });
    let answer = server
        .as_device(&key, "POST", "/v1/sensors/data", body)
        .await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let list = "/v1/sensors/devices/AA:BB:CC:DD:EE:FF/readings?from=-24h&limit=1&order=asc";
    let mut found = Vec::new();
    let mut cursor = String::new();
    loop {
        let path = format!("{list}{cursor}");
        let page = server.as_device(&key, "GET", &path, Value::Null).await;
        assert_eq!(page.status, 200, "{page:?}");
        found.push(page.body["readings"][0]["batch_id"].clone());
        match page.body["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
        // A later page begins where the first one did, although a day has another begin now.
        server.clock.advance_ms(HOUR_MS);
    }
    assert_eq!(found, ["24", "23", "0"]);
}

#[tokio::test]
async fn charger_ranges_accept_wall_clocks_of_keys() {
    let server = Server::start().await;
    for minute in [0, 1, 2] {
        let event = json!({
            "wireless_device_id": "b319d001-6b08-4d88-b4ca-4d2d98a6d43c", "event_type": "telemetry",
            "occurred_at": format!("2026-02-21 14:3{minute}:00.000"), "data": {"minute": minute},
        });
        let answer = server.as_admin("POST", "/v1/chargers/events", event).await;
        assert_eq!(answer.body["results"][0]["status"], "stored", "{answer:?}");
        assert_eq!(
            answer.body["results"][0]["timestamp_mt"],
            format!("2026-02-21 14:3{minute}:00.000")
        );
    }
    let path = "/v1/chargers/SC-C014EA63/events?order=asc\
        &from=2026-02-21%2014:31:00.000&to=2026-02-21%2014:31:59.999";
    let answer = server.as_admin("GET", path, Value::Null).await;
    let events = answer.body["events"].as_array().expect("events");
    assert_eq!(events.len(), 1, "{answer:?}");
    assert_eq!(events[0]["data"]["minute"], 1);
}

#[tokio::test]
async fn keys_of_other_systems_are_refused_on_every_route() {
    let server = Server::start().await;
    let mut keys = Vec::new();
    for system in SYSTEMS {
        keys.push((system, server.key_of(system, []).await));
    }
    let mut tried = 0;
    for operation in operations(&document(&server).await) {
        if !operation.accepts("device_key") {
            continue;
        }
        assert!(SYSTEMS.contains(&&*operation.system), "{}", operation.route);
        for (system, key) in &keys {
            let body = if operation.takes_json {
                json!({})
            } else {
                Value::Null
            };
            let answer = server
                .as_device(key, &operation.method, &operation.path, body)
                .await;
            let place = format!(
                "{system} key on {} {}: {answer:?}",
                operation.method, operation.route
            );
            if *system == operation.system {
                let is_broadcast = operation.method == "POST"
                    && operation.route.starts_with("/v1/push/broadcasts");
                let needs_permission = is_broadcast || operation.route.ends_with("/commands");
                assert!(needs_permission || answer.status != 403, "{place}");
                assert_ne!(answer.status, 401, "{place}");
            } else {
                tried += 1;
                assert_eq!(answer.status, 403, "{place}");
                assert!(answer.body.to_string().contains("OUT_OF_SCOPE"), "{place}");
            }
        }
    }
    assert!(tried > 100, "{tried}");
}

#[tokio::test]
async fn scoped_keys_read_only_their_own_subjects() {
    let server = Server::start().await;
    let other_subjects = [
        ("sensors", "AA:BB:CC:DD:EE:00"),
        ("chargers", "SC-00000000"),
        ("push", "bert"),
        ("telemetry", "van-2"),
        ("records", "OxaYbwKR"),
    ];
    let mut tried = 0;
    for operation in operations(&document(&server).await) {
        if !operation.accepts("device_key") || operation.method != "GET" {
            continue;
        }
        tried += 1;
        let (_, subject) = other_subjects
            .into_iter()
            .find(|(system, _)| *system == operation.system)
            .expect("a system");
        let key = server.key_of(&operation.system, [subject]).await;
        let mut path = operation.path.clone();
        for (name, value) in [("event_type", "telemetry"), ("message_type", "status")] {
            if operation.query.iter().any(|known| known == name) {
                let sign = if path.contains('?') { '&' } else { '?' };
                path.push_str(&format!("{sign}{name}={value}"));
            }
        }
        let answer = server.as_device(&key, "GET", &path, Value::Null).await;
        assert_eq!(answer.status, 403, "{} {answer:?}", operation.route);
    }
    assert!(tried > 20, "{tried}");
}

#[tokio::test]
async fn members_are_snake_case_and_pages_have_next_cursor() {
    let server = Server::start().await;
    let document = document(&server).await;
    let schemas = document["components"]["schemas"]
        .as_object()
        .expect("schemas");
    for (name, schema) in schemas {
        let mut members = Vec::new();
        collect_members(schema, &mut members);
        if name.ends_with("List") || name == "Timeline" {
            assert!(!members.contains(&"cursor"), "{name} answers cursor");
        }
        if OTHER_SPELLING.contains(&&**name) {
            continue;
        }
        for member in members {
            assert_eq!(member, member.to_lowercase(), "{name}");
        }
    }
}

fn collect_members<'a>(schema: &'a Value, members: &mut Vec<&'a str>) {
    match schema {
        Value::Object(object) => {
            let properties = object.get("properties").and_then(Value::as_object);
            members.extend(
                properties
                    .into_iter()
                    .flat_map(Map::keys)
                    .map(String::as_str),
            );
            for (name, inner) in object {
                if name != "example" && name != "examples" {
                    collect_members(inner, members);
                }
            }
        }
        Value::Array(list) => list
            .iter()
            .for_each(|inner| collect_members(inner, members)),
        _ => {}
    }
}

#[tokio::test]
async fn times_far_in_the_future_are_refused() {
    const DAY_MS: i64 = 24 * 3_600_000;
    let server = Server::start().await;
    let key = server.key().await;
    let readings = [
        reading("today", NOW_MS + DAY_MS),
        reading("later", NOW_MS + DAY_MS + 1),
    ];
    let body = json!({ "readings": readings });
    let answer = server
        .as_device(&key, "POST", "/v1/sensors/data", body)
        .await;
    assert_eq!(answer.body["results"][0]["status"], "stored", "{answer:?}");
    assert_eq!(answer.body["results"][1]["code"], "TIME_IN_FUTURE");
    let event = |occurred_at: i64| {
        json!({
            "wireless_device_id": "b319d001-6b08-4d88-b4ca-4d2d98a6d43c", "event_type": "telemetry",
            "occurred_at": occurred_at,
        })
    };
    let body = json!({"events": [event(NOW_MS + DAY_MS), event(NOW_MS + DAY_MS + 1)]});
    let answer = server.as_admin("POST", "/v1/chargers/events", body).await;
    assert_eq!(answer.body["results"][0]["status"], "stored", "{answer:?}");
    assert_eq!(answer.body["results"][1]["code"], "TIME_IN_FUTURE");
    let add = |path: String, body: Value| {
        let server = &server;
        async move { server.as_admin("POST", &path, body).await.body["response"].clone() }
    };
    let group = add("/v1/groups".to_owned(), json!({"name": "home"})).await;
    let devices = format!(
        "/v1/groups/{}/devices",
        group["gid"].as_str().expect("an id")
    );
    let device = add(devices.clone(), json!({"name": "roof"})).await;
    let journals = format!(
        "{devices}/{}/journals",
        device["did"].as_str().expect("an id")
    );
    let journal = json!({"name": "outside", "data_type": "number"});
    let journal = add(journals.clone(), journal).await;
    let records = format!(
        "{journals}/{}/records",
        journal["jid"].as_str().expect("an id")
    );
    for (timestamp, status) in [(NOW_MS + DAY_MS, 201), (NOW_MS + DAY_MS + 1, 400)] {
        let record = json!({"value": 1, "unit": "C", "type": "t", "timestamp": timestamp});
        let answer = server.as_admin("POST", &records, record).await;
        assert_eq!(answer.status, status, "{answer:?}");
        if status == 400 {
            assert_eq!(answer.body["errorCode"], "TIME_IN_FUTURE");
        }
    }
    let rule = json!({
        "sql": "SELECT topic(2) AS thing_name, 'own' AS message_type, * FROM 'van/+/own'",
        "actions": [{"dynamoDBv2": {"putItem": {"tableName": "van-telemetry"}}}],
    });
    let made = server.as_admin("PUT", "/v1/rules/own", rule).await;
    assert_eq!(made.status, 201, "{made:?}");
    for at in [NOW_MS + DAY_MS, NOW_MS + DAY_MS + 1] {
        server
            .take("van/v1/own", &json!({"timestamp": at}).to_string())
            .await;
    }
    let stored = server
        .as_admin("GET", "/v1/telemetry/v1", Value::Null)
        .await;
    let stored = stored.body["messages"]
        .as_array()
        .expect("messages")
        .clone();
    assert_eq!(stored.len(), 1, "{stored:?}");
    assert_eq!(stored[0]["timestamp"], NOW_MS + DAY_MS);
    let errors = server
        .as_admin("GET", "/v1/rules/own/errors", Value::Null)
        .await;
    assert!(
        errors.body.to_string().contains("TIME_IN_FUTURE"),
        "{errors:?}"
    );
}

#[tokio::test]
async fn operators_delete_one_telemetry_message() {
    let server = Server::start().await;
    for number in [1, 2] {
        server
            .take("van/v1/telemetry", &json!({"number": number}).to_string())
            .await;
        server.clock.advance_ms(1);
    }
    let path = format!("/v1/telemetry/v1/messages/{NOW_MS}");
    let key = server.key_of("telemetry", []).await;
    let refused = server.as_device(&key, "DELETE", &path, Value::Null).await;
    assert_eq!(refused.problem(), (401, "TOKEN_MISSING"));
    let deleted = server.as_admin("DELETE", &path, Value::Null).await;
    assert_eq!(deleted.status, 204, "{deleted:?}");
    let again = server.as_admin("DELETE", &path, Value::Null).await;
    assert_eq!(again.problem(), (404, "NO_MESSAGE"));
    let left = server
        .as_admin("GET", "/v1/telemetry/v1", Value::Null)
        .await;
    let left = left.body["messages"].as_array().expect("messages").clone();
    assert_eq!(left.len(), 1, "{left:?}");
    assert_eq!(left[0]["number"], 2);
    let invalid = server
        .as_admin("DELETE", "/v1/telemetry/v1/messages/today", Value::Null)
        .await;
    assert_eq!(invalid.problem(), (400, "INVALID_REQUEST"));
}
