//! Listing and disconnecting MQTT clients.

use homeport_store::{Scan, Store as _};
use homeport_systems::messages::schema;
use rumqttc::v5::mqttbytes::{QoS, v5};
use serde_json::{Value, json};

use crate::mqtt_client::MqttClient;
use crate::support::{ADMIN, Answer, Server};

const CLIENTS: &str = "/v1/mqtt/clients";
const OPERATOR: (&str, &str) = ("admin", ADMIN);

async fn get(server: &Server, path: &str) -> Answer {
    let path = format!("{CLIENTS}{path}");
    server.as_admin("GET", &path, Value::Null).await
}

async fn end(server: &Server, path: &str) -> Answer {
    let path = format!("{CLIENTS}{path}");
    server.as_admin("DELETE", &path, Value::Null).await
}

fn ids(answer: &Answer) -> Vec<&str> {
    let clients = answer.body["clients"].as_array().expect("clients");
    let ids = clients.iter().map(|client| client["client_id"].as_str());
    ids.map(|id| id.expect("an id")).collect()
}

/// Waits until a client is offline or gone.
async fn until_offline(server: &Server, client_id: &str) {
    for _ in 0..2000 {
        let answer = get(server, &format!("/{client_id}")).await;
        if answer.body["state"] != "connected" {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    panic!("{client_id} stays connected");
}

async fn count(server: &Server, table: &str) -> usize {
    let page = server.engine.scan(Scan::new(table)).await;
    page.expect("a page").count
}

fn will(delay_secs: u32) -> v5::LastWill {
    let properties = v5::LastWillProperties {
        delay_interval: Some(delay_secs),
        payload_format_indicator: None,
        message_expiry_interval: None,
        content_type: None,
        response_topic: None,
        correlation_data: None,
        user_properties: Vec::new(),
    };
    v5::LastWill {
        topic: "van/v1/will".into(),
        message: "lost".into(),
        qos: QoS::AtLeastOnce,
        retain: false,
        properties: Some(properties),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn connected_client_is_shown_with_its_traffic() {
    let server = Server::start().await;
    let address = server.serve_mqtt().await;
    let key = server.key_of("telemetry", ["v1"]).await;
    let mut client = MqttClient::connect(address, "fleet/v1", ("v1", &key), Some(600), None).await;
    client.subscribe("van/v1/commands").await;
    client.publish("van/v1/status", "hello").await;
    let refused = client.subscribe("van/v2/commands").await;
    assert_eq!(refused, v5::SubscribeReasonCode::NotAuthorized);

    let shown = get(&server, "/fleet%2Fv1").await.body;
    let list = get(&server, "").await.body;
    assert_eq!(list["clients"][0]["client_id"], "fleet/v1");
    for (member, expected) in [
        ("state", json!("connected")),
        ("since", json!("2027-01-15T08:00:00.000Z")),
        ("persistent", json!(true)),
        ("session_expiry_secs", json!(600)),
        (
            "subscriptions",
            json!([{"filter": "van/v1/commands", "qos": 1}]),
        ),
        ("subscription_count", json!(1)),
        ("queue_len", json!(0)),
    ] {
        assert_eq!(shown[member], expected, "{member}");
    }
    let connection = &shown["connection"];
    for (member, expected) in [
        ("address", json!("127.0.0.1")),
        ("transport", json!("tcp")),
        ("protocol_version", json!("5")),
        ("keep_alive_secs", json!(60)),
        ("messages_received", json!(1)),
        ("payload_bytes_received", json!(5)),
        ("messages_sent", json!(0)),
    ] {
        assert_eq!(connection[member], expected, "{member}");
    }
    assert_eq!(connection["key"]["scopes"], json!(["v1"]));
    let problem = &shown["last_problem"];
    assert_eq!(problem["kind"], "subscription");
    assert_eq!(problem["reason"], "not_authorized");
    assert_eq!(problem["topic"], "van/v2/commands");
}

#[tokio::test(flavor = "multi_thread")]
async fn mqtt_clients_are_paged_and_filtered() {
    let server = Server::start().await;
    let address = server.serve_mqtt().await;
    let mut connected = Vec::new();
    for id in ["van-1", "bus-1", "van-3", "van-2"] {
        let expiry = (id != "van-1").then_some(600);
        let client = MqttClient::connect(address, id, OPERATOR, expiry, None).await;
        connected.push((id, client));
    }
    connected.retain(|(id, _)| *id != "van-3");
    until_offline(&server, "van-3").await;

    let all = get(&server, "").await;
    assert_eq!(ids(&all), ["bus-1", "van-1", "van-2", "van-3"]);
    assert_eq!(ids(&get(&server, "?state=offline").await), ["van-3"]);
    let offline = get(&server, "/van-3").await.body;
    assert_eq!(offline["last_problem"]["reason"], "connection_lost");
    assert_eq!(offline["since"], "2027-01-15T08:00:00.000Z");

    let mut path = "?prefix=van&state=connected&limit=1".to_owned();
    let mut found = Vec::new();
    loop {
        let page = get(&server, &path).await;
        found.extend(ids(&page).into_iter().map(str::to_owned));
        let Some(cursor) = page.body["next_cursor"].as_str() else {
            break;
        };
        let other_list = get(&server, &format!("?cursor={cursor}")).await;
        assert_eq!(other_list.problem(), (400, "INVALID_CURSOR"));
        path = format!("?prefix=van&state=connected&limit=1&cursor={cursor}");
    }
    assert_eq!(found, ["van-1", "van-2"]);
    let unknown = get(&server, "?stat=offline").await;
    assert_eq!(unknown.problem(), (400, "INVALID_REQUEST"));
}

#[tokio::test(flavor = "multi_thread")]
async fn operator_disconnects_a_client() {
    let server = Server::start().await;
    let address = server.serve_mqtt().await;
    let mut client = MqttClient::connect(address, "v1", OPERATOR, Some(600), None).await;
    let answer = end(&server, "/v1").await;
    assert_eq!(answer.body["was_connected"], true, "{answer:?}");
    assert_eq!(answer.body["session_deleted"], false);
    match client.receive().await {
        v5::Packet::Disconnect(said) => assert_eq!(
            said.reason_code,
            v5::DisconnectReasonCode::AdministrativeAction
        ),
        other => panic!("{other:?}"),
    }
    assert_eq!(client.next().await, None);
    assert_eq!(get(&server, "/v1").await.body["state"], "offline");
    let again = end(&server, "/v1").await;
    assert_eq!(again.body["was_connected"], false);
    assert_eq!(get(&server, "/v1").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_session_leaves_no_queue() {
    let server = Server::start().await;
    let address = server.serve_mqtt().await;
    let mut client = MqttClient::connect(address, "v1", OPERATOR, Some(600), None).await;
    client.subscribe("van/v1/commands").await;
    drop(client);
    until_offline(&server, "v1").await;
    let mut publisher = MqttClient::connect(address, "p", OPERATOR, None, None).await;
    publisher.publish("van/v1/commands", "heat").await;
    assert_eq!(get(&server, "/v1").await.body["queue_len"], 1);
    let sessions = count(&server, schema::SESSIONS).await;

    let answer = end(&server, "/v1?session=true").await;
    assert_eq!(answer.body["session_deleted"], true, "{answer:?}");
    assert_eq!(
        get(&server, "/v1").await.problem(),
        (404, "CLIENT_NOT_FOUND")
    );
    assert_eq!(count(&server, schema::QUEUE).await, 0);
    assert_eq!(count(&server, schema::SESSIONS).await, sessions - 1);
    // Nobody subscribes any more.
    publisher.publish("van/v1/commands", "heat").await;
    assert_eq!(count(&server, schema::QUEUE).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn delayed_will_is_due_with_the_session() {
    let server = Server::start().await;
    let address = server.serve_mqtt().await;
    let mut watcher = MqttClient::connect(address, "watcher", OPERATOR, None, None).await;
    watcher.subscribe("van/v1/#").await;
    let _lost = MqttClient::connect(address, "v1", OPERATOR, Some(600), Some(will(300))).await;
    assert_eq!(end(&server, "/v1").await.status, 200);
    // Published after the disconnection: the will was not before it.
    let mut publisher = MqttClient::connect(address, "p", OPERATOR, None, None).await;
    publisher.publish("van/v1/status", "first").await;
    assert_eq!(watcher.receive_payload().await, "first");
    assert_eq!(end(&server, "/v1?session=true").await.status, 200);
    assert_eq!(watcher.receive_payload().await, "lost");
}

#[tokio::test(flavor = "multi_thread")]
async fn shared_client_id_needs_its_owner() {
    let server = Server::start().await;
    let address = server.serve_mqtt().await;
    let key = server.key_of("telemetry", ["v1"]).await;
    let _device = MqttClient::connect(address, "s", ("v1", &key), None, None).await;
    let _operator = MqttClient::connect(address, "s", OPERATOR, None, None).await;
    for answer in [get(&server, "/s").await, end(&server, "/s").await] {
        assert_eq!(answer.problem(), (409, "CLIENT_AMBIGUOUS"));
        let detail = answer.body["detail"].as_str().expect("a detail");
        assert!(detail.contains("admin"), "{detail}");
    }
    let operator = get(&server, "/s?owner=admin").await.body;
    assert_eq!(operator["connection"]["key"], Value::Null);
    assert_eq!(end(&server, "/s?owner=admin").await.status, 200);
    // One is left.
    until_offline(&server, "s?owner=admin").await;
    let device = get(&server, "/s").await.body;
    assert_eq!(device["connection"]["key"]["scopes"], json!(["v1"]));
    assert_eq!(device["state"], "connected");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_operators_reach_mqtt_clients() {
    let server = Server::start().await;
    let key = server.key_of("telemetry", []).await;
    for (method, path) in [("GET", ""), ("GET", "/v1"), ("DELETE", "/v1")] {
        let path = format!("{CLIENTS}{path}");
        let answer = server.as_device(&key, method, &path, Value::Null).await;
        assert_eq!(answer.problem(), (401, "TOKEN_MISSING"), "{method} {path}");
    }
}
