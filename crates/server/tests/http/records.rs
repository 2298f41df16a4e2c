//! `/v1/groups` and `/v1/ids` over HTTP.

use crate::support::{ADMIN, Answer, NOW_MS, Server};
use homeport_item::Item;
use homeport_store::{Get, Scan, Store};
use serde_json::{Value, json};

/// Creates a group with a device and a journal, and returns their paths.
struct Places {
    gid: String,
    group: String,
    device: String,
    journal: String,
}

async fn places(server: &Server) -> Places {
    let add = async |path: &str, body| {
        let answer = server.as_admin("POST", path, body).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        response(&answer).clone()
    };
    let gid = add("/v1/groups", json!({"name": "home"})).await["gid"].clone();
    let gid = gid.as_str().expect("an id").to_owned();
    let group = format!("/v1/groups/{gid}");
    let added = add(&format!("{group}/devices"), json!({"name": "roof"})).await;
    let device = format!("{group}/devices/{}", added["did"].as_str().expect("an id"));
    let journal = json!({"name": "outside", "data_type": "number"});
    let added = add(&format!("{device}/journals"), journal).await;
    let journal = format!(
        "{device}/journals/{}",
        added["jid"].as_str().expect("an id")
    );
    Places {
        gid,
        group,
        device,
        journal,
    }
}

/// The content of a success envelope.
fn response(answer: &Answer) -> &Value {
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.body["status"], "OK", "{answer:?}");
    assert_eq!(answer.body.as_object().map(serde_json::Map::len), Some(2));
    &answer.body["response"]
}

/// Status and code of an error envelope.
fn failure(answer: &Answer) -> (u16, &str) {
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert!(answer.header("x-request-id").is_some());
    assert_eq!(answer.body["status"], "ERROR", "{answer:?}");
    assert_eq!(answer.body.as_object().map(serde_json::Map::len), Some(3));
    assert!(answer.body["errorMessage"].is_string());
    let code = answer.body["errorCode"].as_str().expect("a code");
    (answer.status, code)
}

fn record(value: Value, timestamp: i64) -> Value {
    json!({"value": value, "unit": "C", "type": "temperature", "timestamp": timestamp})
}

fn values(answer: &Answer) -> Vec<Value> {
    let records = response(answer)["records"].as_array().expect("records");
    records
        .iter()
        .map(|record| record["value"].clone())
        .collect()
}

#[tokio::test]
async fn id_dispenser_follows_its_document() {
    let server = Server::start().await;
    let post = async |path: &str, body| server.as_admin("POST", path, body).await;
    let config = json!({"salt": "sdfjkl34j234j", "min_length": 8});
    let init = json!({"idtag": "gid", "config": config});
    let made = post("/v1/ids/init", init.clone()).await;
    assert_eq!(
        made.body,
        json!({"status": "OK", "response": {"idtag": "gid"}})
    );
    let again = post("/v1/ids/init", init).await;
    assert_eq!(failure(&again), (409, "DUPLICATE_RESOURCE"));
    let mut dispensed = post("/v1/ids/dispense", json!({"idtag": "gid"})).await;
    for _ in 0..9 {
        dispensed = post("/v1/ids/dispense", json!({"idtag": "gid"})).await;
    }
    let tenth =
        json!({"status": "OK", "response": {"id": 10, "idtag": "gid", "encoded": "5YXd4XZ0"}});
    assert_eq!(dispensed.body, tenth);
    let decode = json!({"idtag": "gid", "encoded": "5YXd4XZ0"});
    assert_eq!(post("/v1/ids/decode", decode).await.body, tenth);
    let wrong = post(
        "/v1/ids/decode",
        json!({"idtag": "gid", "encoded": "nonsense"}),
    )
    .await;
    assert_eq!(wrong.status, 400);
    assert_eq!(
        wrong.body,
        json!({"status": "ERROR", "errorMessage": "Encoded id is not valid.",
               "errorCode": "FORMAT_INVALID"})
    );
    let unknown = post("/v1/ids/dispense", json!({"idtag": "other"})).await;
    assert_eq!(failure(&unknown), (404, "ERROR_NOTFOUND"));
}

#[tokio::test]
async fn groups_are_created_listed_changed_and_deleted() {
    let server = Server::start().await;
    let empty = server.as_admin("GET", "/v1/groups", Value::Null).await;
    assert_eq!(response(&empty), &json!({"groups": []}));
    let body = json!({"name": "home", "retention_secs": 86_400});
    let added = server.as_admin("POST", "/v1/groups", body).await;
    assert_eq!(added.status, 201);
    let gid = response(&added)["gid"].as_str().expect("an id").to_owned();
    let path = format!("/v1/groups/{gid}");
    let listed = server.as_admin("GET", "/v1/groups", Value::Null).await;
    assert_eq!(response(&listed), &json!({"groups": [response(&added)]}));
    let change = json!({"retention_secs": null});
    let altered = server.as_admin("PATCH", &path, change).await;
    assert_eq!(response(&altered), &json!({"gid": gid, "name": "home"}));
    let change = json!({"name": "office"});
    server.as_admin("PATCH", &path, change).await;
    let read = server.as_admin("GET", &path, Value::Null).await;
    assert_eq!(response(&read), &json!({"gid": gid, "name": "office"}));
    let removed = server.as_admin("DELETE", &path, Value::Null).await;
    assert_eq!(response(&removed), &json!({"gid": gid}));
    for (method, body) in [
        ("GET", Value::Null),
        ("DELETE", Value::Null),
        ("PATCH", json!({"name": "x"})),
    ] {
        let answer = server.as_admin(method, &path, body).await;
        assert_eq!(failure(&answer), (404, "ERROR_NOTFOUND"), "{method}");
    }
}

#[tokio::test]
async fn policy_numbers_keep_every_digit() {
    let server = Server::start().await;
    let places = places(&server).await;
    let policy =
        r#"{"Limit":12345678901234567890123456789012345678,"Rate":[0.12345678901234567890123]}"#;
    let body = format!(r#"{{"acl_policy": {policy}}}"#);
    let token = format!("Bearer {ADMIN}");
    let headers = [("authorization", token.as_str())];
    let altered = server
        .send("PATCH", &places.device, &headers, Some(body))
        .await;
    assert_eq!(altered.status, 200, "{altered:?}");
    let stored = server.engine.scan(Scan::new("awsh-recordstore-dev")).await;
    let stored = stored.expect("a scan").items;
    let kept = stored.iter().find_map(|item| item.get("acl_policy"));
    let kept = serde_json::to_string(kept.expect("a policy")).expect("JSON");
    for digits in [
        "12345678901234567890123456789012345678",
        "0.12345678901234567890123",
    ] {
        assert!(kept.contains(digits), "{kept}");
    }
}

#[tokio::test]
async fn devices_and_journals_are_managed() {
    let server = Server::start().await;
    let places = places(&server).await;
    let get = async |path: &str| server.as_admin("GET", path, Value::Null).await;
    let policy = json!({"Statement": [{"Effect": "Allow", "Rate": 1.5}]});
    let change = json!({"model": "BME280", "acl_policy": policy});
    let altered = server.as_admin("PATCH", &places.device, change).await;
    assert_eq!(response(&altered)["acl_policy"], policy);
    assert_eq!(response(&altered)["name"], "roof");
    let read = get(&places.device).await;
    assert_eq!(response(&read), response(&altered));
    let listed = get(&format!("{}/devices", places.group)).await;
    assert_eq!(response(&listed), &json!({"devices": [response(&read)]}));
    let change = json!({"data_type": "text"});
    let journal = server.as_admin("PATCH", &places.journal, change).await;
    assert_eq!(response(&journal)["data_type"], "text");
    assert_eq!(response(&journal)["name"], "outside");
    for path in [&places.group, &places.device] {
        let listed = get(&format!("{path}/journals")).await;
        assert_eq!(
            response(&listed),
            &json!({"journals": [response(&journal)]})
        );
    }
    assert_eq!(response(&get(&places.journal).await), response(&journal));
    let removed = server
        .as_admin("DELETE", &places.journal, Value::Null)
        .await;
    assert_eq!(removed.status, 200);
    assert_eq!(
        failure(&get(&places.journal).await),
        (404, "ERROR_NOTFOUND")
    );
    let removed = server.as_admin("DELETE", &places.device, Value::Null).await;
    assert_eq!(removed.status, 200);
    assert_eq!(failure(&get(&places.device).await), (404, "ERROR_NOTFOUND"));
    let listed = get(&format!("{}/devices", places.group)).await;
    assert_eq!(response(&listed), &json!({"devices": []}));
}

#[tokio::test]
async fn records_are_added_and_listed() {
    let server = Server::start().await;
    let places = places(&server).await;
    let key = server.key_of("records", [&*places.gid]).await;
    let path = format!("{}/records", places.journal);
    let any = json!({"data_type": "any"});
    let any = server.as_admin("PATCH", &places.journal, any).await;
    assert_eq!(any.status, 200);
    let add = async |body| server.as_device(&key, "POST", &path, body).await;
    // Every digit and every type of value.
    let raw = r#"{"value": 20.123456789012345678901234567890, "unit": "C", "type": "t", "timestamp": 200}"#;
    let headers = [("x-api-key", &*key)];
    let exact = server
        .send("POST", &path, &headers, Some(raw.to_owned()))
        .await;
    assert_eq!(exact.status, 201, "{exact:?}");
    assert_eq!(add(record(json!("warm"), 300)).await.status, 201);
    let late = add(record(json!(true), 100)).await;
    assert_eq!(response(&late)["timestamp"], 100);
    let same = add(record(json!(5), 300)).await;
    assert_eq!(response(&same)["timestamp"], 301);
    let get = async |path: &str| server.as_device(&key, "GET", path, Value::Null).await;
    for path in [&places.group, &places.device] {
        let latest = get(&format!("{path}/latest")).await;
        assert_eq!(response(&latest), &json!({"records": [response(&same)]}));
    }
    let range = get(&format!(
        "{path}?from=200&to=1970-01-01T00:00:00.3Z&order=asc"
    ))
    .await;
    assert_eq!(values(&range)[1], "warm");
    assert_eq!(values(&range).len(), 2);
    let device_range = format!("{}/records?limit=3", places.device);
    let first = get(&device_range).await;
    assert_eq!(values(&first)[0], 5);
    let cursor = response(&first)["next_cursor"].as_str().expect("a cursor");
    let second = get(&format!("{device_range}&cursor={cursor}")).await;
    assert_eq!(response(&second), &json!({"records": [response(&late)]}));
    let key = Item::new()
        .with("PK", "1")
        .with("SK", "Record#1#1#0000000000200#");
    let stored = server
        .engine
        .get(Get::new("awsh-recordstore-dev", key))
        .await;
    assert_eq!(
        serde_json::to_value(stored.expect("a get").expect("an item")).expect("JSON")["value"],
        json!({"N": "20.12345678901234567890123456789"})
    );
}

#[tokio::test]
async fn record_without_time_gets_server_time() {
    let server = Server::start().await;
    let places = places(&server).await;
    let path = format!("{}/records", places.journal);
    let body = json!({"value": 1, "unit": "", "type": "count"});
    let added = server.as_admin("POST", &path, body).await;
    assert_eq!(response(&added)["timestamp"], NOW_MS);
}

#[tokio::test]
async fn invalid_requests_get_an_envelope() {
    let server = Server::start().await;
    let places = places(&server).await;
    let records = format!("{}/records", places.journal);
    let devices = format!("{}/devices", places.group);
    let journals = format!("{}/journals", places.device);
    let device_records = format!("{}/records", places.device);
    let without = |name: &str| {
        let mut body = record(json!(1), 1);
        body.as_object_mut().expect("an object").remove(name);
        body
    };
    for (method, path, body) in [
        ("POST", &*records, without("value")),
        ("POST", &records, without("unit")),
        ("POST", &records, without("type")),
        ("POST", &records, record(json!([1]), 1)),
        ("POST", &records, record(json!(null), 1)),
        ("POST", &records, record(json!("x".repeat(4097)), 1)),
        ("POST", &records, record(json!(1), -1)),
        ("POST", &records, record(json!(1), 10_000_000_000_000)),
        ("POST", &records, json!("nonsense")),
        ("POST", &devices, json!({"name": ""})),
        ("POST", &devices, json!({"name": "x", "acl_policy": [1]})),
        ("POST", &devices, json!({"name": "x", "other": 1})),
        (
            "POST",
            "/v1/groups",
            json!({"name": "x", "retention_secs": 1}),
        ),
        (
            "PATCH",
            &places.group,
            json!({"name": null, "retention_secs": 0}),
        ),
        ("POST", "/v1/ids/init", json!({"idtag": "a b"})),
        (
            "POST",
            "/v1/ids/init",
            json!({"idtag": "a", "config": {"next_id": 0}}),
        ),
        ("POST", &records, record(json!("warm"), 1)),
        (
            "POST",
            &journals,
            json!({"name": "x", "data_type": "temperature"}),
        ),
        ("POST", &device_records, json!({"records": []})),
        ("DELETE", &format!("{records}/yesterday"), Value::Null),
        (
            "POST",
            "/v1/ids/init",
            json!({"idtag": "a", "config": {"min_length": 99}}),
        ),
        ("GET", &format!("{records}?from=yesterday"), Value::Null),
        ("GET", &format!("{records}?limit=1001"), Value::Null),
        ("GET", &format!("{records}?limit=0"), Value::Null),
        ("GET", "/v1/groups/nonsense", Value::Null),
        ("GET", &format!("{devices}/nonsense/records"), Value::Null),
    ] {
        let answer = server.as_admin(method, path, body.clone()).await;
        assert_eq!(
            failure(&answer),
            (400, "FORMAT_INVALID"),
            "{method} {path} {body}"
        );
    }
    let answer = server
        .as_admin("GET", &format!("{records}?cursor=x"), Value::Null)
        .await;
    assert_eq!(failure(&answer), (400, "INVALID_CURSOR"));
    let answer = server
        .as_admin("GET", &format!("{}/nothing", places.group), Value::Null)
        .await;
    assert_eq!(failure(&answer), (404, "ERROR_NOTFOUND"));
    let answer = server.as_admin("PUT", &places.group, Value::Null).await;
    assert_eq!(failure(&answer), (405, "METHOD_NOT_ALLOWED"));
    let large = json!({"name": "x".repeat(1024 * 1024)});
    let answer = server.as_admin("POST", "/v1/groups", large).await;
    assert_eq!(failure(&answer), (413, "BODY_TOO_LARGE"));
}

#[tokio::test]
async fn keys_access_their_groups_but_manage_nothing() {
    let server = Server::start().await;
    let (own, other) = (places(&server).await, places(&server).await);
    let any = server.key_of("records", []).await;
    let scoped = server.key_of("records", [&*own.gid]).await;
    let sensors = server.key().await;
    let body = || record(json!(1), 1);
    for (key, places, status) in [
        (&any, &own, 201),
        (&any, &other, 201),
        (&scoped, &own, 201),
        (&scoped, &other, 403),
        (&sensors, &own, 403),
    ] {
        let path = format!("{}/records", places.journal);
        let answer = server.as_device(key, "POST", &path, body()).await;
        assert_eq!(answer.status, status, "{answer:?}");
        if status == 403 {
            assert_eq!(failure(&answer), (403, "OUT_OF_SCOPE"));
        }
        let reads = [
            places.group.clone(),
            places.device.clone(),
            places.journal.clone(),
            format!("{}/latest", places.group),
            format!("{}/latest", places.device),
            format!("{}/journals", places.group),
            format!("{}/devices", places.group),
            format!("{}/records", places.device),
            path,
        ];
        for path in reads {
            let read = server.as_device(key, "GET", &path, Value::Null).await;
            assert_eq!(read.status == 200, status == 201, "{path}");
        }
    }
    let devices = format!("{}/devices", own.group);
    for (method, path, body) in [
        ("POST", "/v1/groups", json!({"name": "x"})),
        ("GET", "/v1/groups", Value::Null),
        ("PATCH", &own.group, json!({"name": "x"})),
        ("DELETE", &own.group, Value::Null),
        ("POST", &devices, json!({"name": "x"})),
        ("DELETE", &own.device, Value::Null),
        ("DELETE", &own.journal, Value::Null),
        ("POST", "/v1/ids/init", json!({"idtag": "x"})),
        ("POST", "/v1/ids/dispense", json!({"idtag": "gid"})),
    ] {
        let answer = server.as_device(&any, method, path, body).await;
        assert_eq!(failure(&answer), (401, "TOKEN_MISSING"), "{method} {path}");
    }
    let nobody = server.send("GET", &own.group, &[], None).await;
    assert_eq!(failure(&nobody), (401, "TOKEN_MISSING"));
    let unknown = server
        .as_device(&"0".repeat(64), "GET", &own.group, Value::Null)
        .await;
    assert_eq!(failure(&unknown), (401, "KEY_INVALID"));
    let decode = json!({"idtag": "gid", "encoded": own.gid});
    let decoded = server
        .as_device(&scoped, "POST", "/v1/ids/decode", decode.clone())
        .await;
    assert_eq!(response(&decoded)["id"], 1);
    let decoded = server
        .as_device(&sensors, "POST", "/v1/ids/decode", decode)
        .await;
    assert_eq!(failure(&decoded), (403, "OUT_OF_SCOPE"));
}

#[tokio::test]
async fn openapi_document_has_all_record_routes() {
    let document = serde_json::to_value(homeport_server::openapi()).expect("JSON");
    let paths = document["paths"].as_object().expect("paths");
    let device = "/v1/groups/{gid}/devices/{did}";
    for (path, methods) in [
        ("/v1/groups", &["get", "post"][..]),
        ("/v1/groups/{gid}", &["delete", "get", "patch"]),
        ("/v1/groups/{gid}/devices", &["get", "post"]),
        (device, &["delete", "get", "patch"]),
        ("/v1/groups/{gid}/journals", &["get"]),
        ("/v1/groups/{gid}/latest", &["get"]),
        (&format!("{device}/journals"), &["get", "post"]),
        (
            &format!("{device}/journals/{{jid}}"),
            &["delete", "get", "patch"],
        ),
        (
            &format!("{device}/journals/{{jid}}/records"),
            &["get", "post"],
        ),
        (
            &format!("{device}/journals/{{jid}}/records/{{timestamp}}"),
            &["delete"],
        ),
        (&format!("{device}/records"), &["get", "post"]),
        (&format!("{device}/latest"), &["get"]),
        ("/v1/ids/init", &["post"]),
        ("/v1/ids/dispense", &["post"]),
        ("/v1/ids/decode", &["post"]),
    ] {
        let found: Vec<_> = paths[path].as_object().expect(path).keys().collect();
        assert_eq!(found, methods, "{path}");
        for method in methods {
            let errors = &paths[path][*method]["responses"]["400"];
            assert!(
                errors.to_string().contains("RecordsError"),
                "{path} {errors}"
            );
        }
    }
    // Two systems have devices, with separate schemas.
    let schemas = &document["components"]["schemas"];
    assert!(schemas["Device"]["properties"]["hardware_id"].is_object());
    assert!(schemas["GroupDevice"]["properties"]["did"].is_object());
}

#[tokio::test]
async fn repeated_record_is_stored_once() {
    let server = Server::start().await;
    let places = places(&server).await;
    let key = server.key_of("records", [&*places.gid]).await;
    let path = format!("{}/records", places.journal);
    let body = json!({"value": 1, "unit": "C", "type": "t"});
    let send = async |body: &Value| {
        let headers = [("x-api-key", &*key), ("idempotency-key", "a")];
        server
            .send("POST", &path, &headers, Some(body.to_string()))
            .await
    };
    let first = send(&body).await;
    assert_eq!(first.status, 201, "{first:?}");
    server.clock.advance_ms(1000);
    let again = send(&body).await;
    assert_eq!((again.status, &again.body), (200, &first.body));
    let mut with_member = body.clone();
    with_member["record_id"] = json!("a");
    let same = server
        .as_device(&key, "POST", &path, with_member.clone())
        .await;
    assert_eq!((same.status, &same.body), (200, &first.body));
    with_member["record_id"] = json!("b");
    assert_eq!(failure(&send(&with_member).await).0, 400);
    let other = json!({"value": 2, "unit": "C", "type": "t"});
    assert_eq!(failure(&send(&other).await), (409, "RECORD_ID_REUSED"));
}

#[tokio::test]
async fn batch_answers_for_each_record() {
    let server = Server::start().await;
    let places = places(&server).await;
    let key = server.key_of("records", [&*places.gid]).await;
    let path = format!("{}/records", places.device);
    let jid = places.journal.rsplit('/').next().expect("an id");
    let record = |value: Value, id: &str| json!({"jid": jid, "value": value, "unit": "C", "type": "t", "timestamp": 100, "record_id": id});
    let body = json!({"records": [
        record(json!(1), "a"), record(json!(1), "a"), record(json!("warm"), "b"),
        {"jid": jid, "value": 1, "unit": "C", "typ": "t"}, record(json!(2), "c"),
    ]});
    let added = server.as_device(&key, "POST", &path, body).await;
    let results = response(&added)["results"].as_array().expect("results");
    let shown: Vec<_> = results
        .iter()
        .map(|result| (&result["status"], &result["timestamp"], &result["code"]))
        .collect();
    let null = Value::Null;
    assert_eq!(
        shown,
        [
            (&json!("stored"), &json!(100), &null),
            (&json!("duplicate"), &json!(100), &null),
            (&json!("rejected"), &null, &json!("FORMAT_INVALID")),
            (&json!("rejected"), &null, &json!("FORMAT_INVALID")),
            (&json!("stored"), &json!(101), &null),
        ]
    );
    let reason = results[3]["reason"].as_str().expect("a reason");
    assert!(reason.contains("typ"), "{reason}");
}

#[tokio::test]
async fn operator_deletes_one_record() {
    let server = Server::start().await;
    let places = places(&server).await;
    let path = format!("{}/records", places.journal);
    for at in [100, 200] {
        let added = server.as_admin("POST", &path, record(json!(at), at)).await;
        assert_eq!(added.status, 201);
    }
    let one = format!("{path}/200");
    let key = server.key_of("records", [&*places.gid]).await;
    let refused = server.as_device(&key, "DELETE", &one, Value::Null).await;
    assert_eq!(failure(&refused), (401, "TOKEN_MISSING"));
    let deleted = server.as_admin("DELETE", &one, Value::Null).await;
    assert_eq!(response(&deleted)["timestamp"], 200);
    let latest = format!("{}/latest", places.device);
    let latest = server.as_admin("GET", &latest, Value::Null).await;
    assert_eq!(values(&latest), [100]);
    let gone = server.as_admin("DELETE", &one, Value::Null).await;
    assert_eq!(failure(&gone), (404, "ERROR_NOTFOUND"));
}

#[tokio::test]
async fn tag_continues_from_its_next_id() {
    let server = Server::start().await;
    let config = json!({"salt": "sdfjkl34j234j", "next_id": 10});
    let init = json!({"idtag": "old", "config": config});
    let made = server.as_admin("POST", "/v1/ids/init", init).await;
    assert_eq!(made.status, 201);
    let tag = json!({"idtag": "old"});
    let first = server.as_admin("POST", "/v1/ids/dispense", tag).await;
    let expected = json!({"id": 10, "idtag": "old", "encoded": "5YXd4XZ0"});
    assert_eq!(response(&first), &expected);
}

#[tokio::test]
async fn group_is_found_by_its_external_id() {
    let server = Server::start().await;
    let body = json!({"name": "home", "external_id": "user 1", "attributes": {"site": "north", "floors": [1, 2.50]}});
    let added = server.as_admin("POST", "/v1/groups", body.clone()).await;
    assert_eq!(added.status, 201, "{added:?}");
    let group = response(&added).clone();
    assert_eq!(group["attributes"], body["attributes"]);
    let again = server.as_admin("POST", "/v1/groups", body).await;
    assert_eq!(failure(&again), (409, "DUPLICATE_RESOURCE"));
    let find = async |id: &str| {
        let path = format!("/v1/groups?external_id={id}");
        let found = server.as_admin("GET", &path, Value::Null).await;
        response(&found)["groups"].clone()
    };
    assert_eq!(find("user%201").await, json!([group]));
    assert_eq!(find("user-2").await, json!([]));
    let path = format!("/v1/groups/{}", group["gid"].as_str().expect("an id"));
    let change = json!({"external_id": null, "attributes": {"site": null}});
    let altered = server.as_admin("PATCH", &path, change).await;
    let altered = response(&altered);
    assert_eq!(altered["external_id"], Value::Null);
    assert_eq!(altered["attributes"], json!({"floors": [1, 2.5]}));
    assert_eq!(find("user%201").await, json!([]));
    let known = json!({"attributes": {"name": "x"}});
    let refused = server.as_admin("PATCH", &path, known).await;
    assert_eq!(failure(&refused), (400, "FORMAT_INVALID"));
}

#[tokio::test]
async fn device_policy_restricts_keys() {
    let server = Server::start().await;
    let places = places(&server).await;
    let key = server.key_of("records", [&*places.gid]).await;
    let path = format!("{}/records", places.journal);
    let send = async || {
        server
            .as_device(&key, "POST", &path, record(json!(1), 1))
            .await
    };
    assert_eq!(send().await.status, 201);
    let policy = json!({"acl_policy": {"Statement": [{"Effect": "Allow", "Action": "read"}]}});
    let altered = server.as_admin("PATCH", &places.device, policy).await;
    assert_eq!(altered.status, 200);
    assert_eq!(failure(&send().await), (403, "DENIED_BY_POLICY"));
    let read = server.as_device(&key, "GET", &path, Value::Null).await;
    assert_eq!(values(&read), [1]);
    let none = json!({"acl_policy": {"Statement": []}});
    server.as_admin("PATCH", &places.device, none).await;
    for path in [&path, &places.device, &places.journal] {
        let read = server.as_device(&key, "GET", path, Value::Null).await;
        assert_eq!(failure(&read), (403, "DENIED_BY_POLICY"), "{path}");
    }
    let latest = format!("{}/latest", places.group);
    let latest = server.as_device(&key, "GET", &latest, Value::Null).await;
    assert_eq!(response(&latest), &json!({"records": []}));
    let as_operator = server.as_admin("GET", &path, Value::Null).await;
    assert_eq!(values(&as_operator), [1]);
}
