//! A server bridged to Mosquitto: no published message is lost when the server is killed or the broker restarts, and
//! servers can share the messages.

mod mosquitto;
#[path = "../support/mod.rs"]
mod support;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use mosquitto::Mosquitto;
use support::{Server, complaint, homeport, path, wait_until};

const TOKEN: &str = "admin-token-of-the-tests";
const FILTER: &str = "fleet/+/telemetry";
/// The number of a message is its time, so that a repeated message replaces the same item.
const RULES: &str = r#"{"rules": [{"ruleName": "fleet", "topicRulePayload": {
    "sql": "SELECT seq, topic(2) AS thing_name, seq AS timestamp, 'telemetry' AS message_type FROM 'fleet/+/telemetry'",
    "actions": [{"dynamoDBv2": {"putItem": {"tableName": "van-telemetry"}}}]}}]}"#;

/// A server with a bridge.
struct Bridged(Server);

impl Bridged {
    fn start(directory: &Path, broker: &Mosquitto, more: &[&str]) -> Self {
        let bridged = Self::start_unconnected(directory, &broker.url(), more);
        assert!(
            wait_until(|| bridged.metric("homeport_bridge_connected") == 1),
            "the bridge does not connect"
        );
        bridged
    }

    fn start_unconnected(directory: &Path, url: &str, more: &[&str]) -> Self {
        std::fs::create_dir_all(directory).expect("a directory");
        let rules = directory.join("rules.json");
        std::fs::write(&rules, RULES).expect("written");
        let data = directory.join("data");
        let mut command = homeport(&["serve", "--data-dir", path(&data), "--admin-token", TOKEN]);
        command.args(["--rules-file", path(&rules), "--bridge-url", url]);
        for (flag, value) in [
            ("--http-listen", "127.0.0.1:0"),
            ("--dynamodb-listen", "127.0.0.1:0"),
            ("--mqtt-listen", "127.0.0.1:0"),
            ("--bridge-filters", FILTER),
        ] {
            if !more.contains(&flag) {
                command.args([flag, value]);
            }
        }
        command.args(more);
        Self(Server::spawn(command))
    }

    fn get(&self, path: &str) -> (u16, String) {
        let agent: ureq::Agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .build()
            .into();
        let request = agent.get(format!("{}{path}", self.0.url));
        let answer = request.header("Authorization", format!("Bearer {TOKEN}"));
        let answer = answer.call().expect("an answer");
        let status = answer.status().as_u16();
        let body = answer.into_body().read_to_string().expect("a text");
        (status, body)
    }

    fn post(&self, path: &str, body: &str) -> (u16, String) {
        let agent: ureq::Agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .build()
            .into();
        let request = agent.post(format!("{}{path}", self.0.url));
        let request = request.header("Authorization", format!("Bearer {TOKEN}"));
        let answer = request
            .header("Content-Type", "application/json")
            .send(body);
        let answer = answer.expect("an answer");
        let status = answer.status().as_u16();
        let body = answer.into_body().read_to_string().expect("a text");
        (status, body)
    }

    fn metric(&self, name: &str) -> u64 {
        let (_, metrics) = self.get("/metrics");
        let mut lines = metrics.lines();
        let line = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|value| value.parse().ok()).unwrap_or(0)
    }

    /// The numbers of a thing's stored messages, with repeats.
    fn stored(&self, thing: &str) -> Vec<u64> {
        let mut numbers = Vec::new();
        let mut cursor = String::new();
        loop {
            let page = format!("/v1/telemetry/{thing}?limit=1000&order=asc&from=0{cursor}");
            let (status, body) = self.get(&page);
            assert_eq!(status, 200, "{body}");
            let body: serde_json::Value = serde_json::from_str(&body).expect("JSON");
            let messages = body["messages"].as_array().expect("messages");
            numbers.extend(
                messages
                    .iter()
                    .map(|one| one["seq"].as_u64().expect("a number")),
            );
            match body["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return numbers,
            }
        }
    }

    fn wait_for(&self, thing: &str, count: u32) {
        let mut stored = 0;
        let is_there = wait_until(|| {
            stored = self.stored(thing).len();
            stored >= count as usize
        });
        assert!(is_there, "{stored} of {count} messages are stored");
    }
}

fn all(count: u32) -> Vec<u64> {
    (0..count).map(u64::from).collect()
}

#[test]
fn published_messages_survive_kills() {
    const PUBLISHED: u32 = 6000;
    const KILLS: u32 = 3;
    let directory = tempfile::tempdir().expect("a directory");
    let broker = Mosquitto::start(directory.path());
    let mut server = Bridged::start(directory.path(), &broker, &[]);
    let publishing = broker.publishing("van-01", 0..PUBLISHED);
    for kill in 0..KILLS {
        let acknowledged = "homeport_bridge_messages_acknowledged_total";
        let is_under_way = wait_until(|| server.metric(acknowledged) >= 200);
        assert!(is_under_way, "nothing comes before kill {kill}");
        drop(server);
        server = Bridged::start(directory.path(), &broker, &[]);
    }
    publishing.finish();
    server.wait_for("van-01", PUBLISHED);
    assert_eq!(server.stored("van-01"), all(PUBLISHED));
}

#[test]
fn unacknowledged_messages_are_redelivered() {
    const DELIVERED: u32 = 20;
    let directory = tempfile::tempdir().expect("a directory");
    let broker = Mosquitto::start(directory.path());
    let server = Bridged::start(directory.path(), &broker, &[]);
    // A frozen server: its socket receives messages that it does not store.
    server.0.signal("-STOP");
    broker.publish("van-01", 0..DELIVERED);
    drop(server);
    let server = Bridged::start(directory.path(), &broker, &["--bridge-protocol", "3.1.1"]);
    server.wait_for("van-01", DELIVERED);
    assert_eq!(server.stored("van-01"), all(DELIVERED));
    // Acknowledged messages are not redelivered.
    let (_, log) = server.0.stop("-TERM");
    let server = Bridged::start(directory.path(), &broker, &[]);
    broker.publish("van-01", DELIVERED..DELIVERED + 1);
    server.wait_for("van-01", DELIVERED + 1);
    let received = server.metric("homeport_bridge_messages_received_total{qos=\"1\"}");
    assert_eq!(received, 1, "{log}");
}

#[test]
fn bridged_uplinks_become_events() {
    const UPLINK: &str = r#"{"WirelessDeviceId": "b319d001-6b08-4d88-b4ca-4d2d98a6d43c",
        "PayloadData": "eyJjdXJyZW50X21hIjogMTYwMDB9", "WirelessMetadata": {"LoRaWAN": {"FCnt": 7, "FPort": 2}}}"#;
    let directory = tempfile::tempdir().expect("a directory");
    let broker = Mosquitto::start(directory.path());
    let options = ["--bridge-filters", "chargers/uplinks"];
    let server = Bridged::start(directory.path(), &broker, &options);
    // A message that is no uplink does not hold up the others, and a repeat is stored once.
    for payload in ["{}", UPLINK, UPLINK] {
        broker.publish_one("chargers/uplinks", payload);
    }
    let acknowledged = "homeport_bridge_messages_acknowledged_total";
    assert!(wait_until(|| server.metric(acknowledged) == 3));
    let (_, events) = server.get("/v1/chargers/SC-C014EA63/events");
    assert_eq!(
        events.matches("\"current_ma\":16000").count(),
        1,
        "{events}"
    );
    let refused = "homeport_mqtt_refused_total{kind=\"uplink\",reason=\"payload_invalid\"}";
    assert_eq!(server.metric(refused), 1);
}

#[test]
fn bridge_reconnects_to_a_restarted_broker() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut broker = Mosquitto::start(directory.path());
    let server = Bridged::start(directory.path(), &broker, &["--bridge-required", "true"]);
    assert_eq!(server.get("/readyz").0, 200);
    broker.stop();
    assert!(wait_until(|| server.get("/readyz").0 == 503));
    assert_eq!(server.metric("homeport_bridge_connected"), 0);
    broker.resume();
    broker.publish("van-01", 0..10);
    server.wait_for("van-01", 10);
    assert!(wait_until(|| server.get("/readyz").0 == 200));
    assert_eq!(server.metric("homeport_bridge_connects_total"), 2);
}

#[test]
fn shared_subscription_delivers_each_message_once() {
    const PUBLISHED: u32 = 400;
    let directory = tempfile::tempdir().expect("a directory");
    let broker = Mosquitto::start(directory.path());
    let shared = format!("$share/homeport/{FILTER}");
    let servers = ["one", "two"].map(|name| {
        let options = ["--bridge-filters", &shared, "--bridge-client-id", name];
        Bridged::start(&directory.path().join(name), &broker, &options)
    });
    broker.publish("van-01", 0..PUBLISHED);
    let mut parts = Vec::new();
    let is_there = wait_until(|| {
        parts = servers
            .iter()
            .map(|server| server.stored("van-01"))
            .collect();
        parts.iter().map(Vec::len).sum::<usize>() >= PUBLISHED as usize
    });
    assert!(
        is_there,
        "{:?}",
        parts.iter().map(Vec::len).collect::<Vec<_>>()
    );
    assert!(parts.iter().all(|part| !part.is_empty()), "one does it all");
    let together: BTreeSet<u64> = parts.iter().flatten().copied().collect();
    assert_eq!(together.into_iter().collect::<Vec<_>>(), all(PUBLISHED));
    assert_eq!(
        parts.iter().map(Vec::len).sum::<usize>(),
        PUBLISHED as usize
    );
}

#[test]
fn bridge_loop_does_not_forward_forever() {
    let directory = tempfile::tempdir().expect("a directory");
    // The server is bridged to itself, so it would receive its own messages forever.
    let probe = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = probe.local_addr().expect("an address").to_string();
    drop(probe);
    let url = format!("mqtt://{address}");
    let options = [
        "--mqtt-listen",
        &address,
        "--bridge-user",
        "admin",
        "--bridge-password",
        TOKEN,
    ];
    let server = Bridged::start_unconnected(directory.path(), &url, &options);
    assert!(wait_until(
        || server.metric("homeport_bridge_connected") == 1
    ));
    let published = Command::new("mosquitto_pub")
        .args([
            "-h",
            "127.0.0.1",
            "-p",
            address.rsplit(':').next().expect("a port"),
        ])
        .args(["-u", "admin", "-P", TOKEN, "-V", "mqttv5", "-q", "1"])
        .args(["-t", "fleet/van-01/telemetry", "-m", "{\"seq\":1}"])
        .status();
    assert!(published.expect("mosquitto_pub is installed").success());
    let dropped = "homeport_bridge_dropped_total{reason=\"circle\"}";
    assert!(wait_until(|| server.metric(dropped) == 1), "it goes on");
    let received = server.metric("homeport_bridge_messages_received_total{qos=\"1\"}");
    assert_eq!(received, 6);
}

#[test]
fn metrics_show_an_unconnected_bridge() {
    let directory = tempfile::tempdir().expect("a directory");
    // No broker listens on the discard port.
    let server = Bridged::start_unconnected(directory.path(), "mqtt://127.0.0.1:9", &[]);
    let (_, metrics) = server.get("/metrics");
    assert!(metrics.contains("homeport_bridge_connected 0"), "{metrics}");
}

#[test]
fn command_without_subscriber_is_refused_with_reason() {
    let directory = tempfile::tempdir().expect("a directory");
    let probe = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = probe.local_addr().expect("an address");
    drop(probe);
    let listen = address.to_string();
    // No broker listens on the discard port.
    let options = ["--mqtt-listen", listen.as_str()];
    let server = Bridged::start_unconnected(directory.path(), "mqtt://127.0.0.1:9", &options);
    let send = || server.post("/v1/telemetry/van-01/commands", r#"{"command":"heat"}"#);
    let (status, body) = send();
    assert_eq!(status, 409, "{body}");
    assert!(body.contains("NO_SUBSCRIBER"), "{body}");
    assert!(
        body.contains("the bridge does not forward commands"),
        "{body}"
    );
    let mut options = rumqttc::MqttOptions::new("van-01", "127.0.0.1", address.port());
    options.set_credentials("admin", TOKEN);
    let (client, mut connection) = rumqttc::Client::new(options, 1);
    let subscribed = client.subscribe("van/van-01/commands", rumqttc::QoS::AtLeastOnce);
    subscribed.expect("sent");
    let is_subscribed = |event| {
        matches!(
            event,
            Ok(rumqttc::Event::Incoming(rumqttc::Packet::SubAck(_)))
        )
    };
    assert!(connection.iter().any(is_subscribed));
    assert_eq!(send().0, 202);
}

#[test]
fn rejecting_broker_is_reported_with_its_reason() {
    let directory = tempfile::tempdir().expect("a directory");
    let broker = Mosquitto::start_with(directory.path(), "allow_anonymous false");
    let options = ["--bridge-required", "true"];
    let server = Bridged::start_unconnected(directory.path(), &broker.url(), &options);
    let mut said = String::new();
    let is_told = wait_until(|| {
        let (status, body) = server.get("/readyz");
        said = body;
        status == 503 && said.contains("not_authorized")
    });
    assert!(is_told, "{said}");
}

#[test]
fn invalid_bridge_settings_are_rejected() {
    let directory = tempfile::tempdir().expect("a directory");
    let data = directory.path().join("data");
    for (options, expected) in [
        (&["--bridge-url", "http://a"][..], "mqtt://host:port"),
        (&["--bridge-url", "mqtt://a"], "bridge.filters"),
        (&["--bridge-filters", "a/#/b"], "invalid topic filter"),
        (
            &[
                "--bridge-url",
                "mqtt://a",
                "--bridge-filters",
                "a",
                "--bridge-tls-ca",
                "ca.pem",
            ],
            "mqtts://",
        ),
        (
            &[
                "--bridge-url",
                "mqtts://a",
                "--bridge-filters",
                "a",
                "--bridge-tls-ca",
                "/no-such-file",
            ],
            "/no-such-file",
        ),
        (&["--bridge-tls-cert", "c"], "bridge.tls_key"),
    ] {
        let mut arguments = vec!["serve", "--data-dir", path(&data)];
        arguments.extend([
            "--http-listen",
            "127.0.0.1:0",
            "--dynamodb-listen",
            "127.0.0.1:0",
        ]);
        arguments.extend(["--mqtt-listen", "127.0.0.1:0"]);
        arguments.extend(options);
        let complaint = complaint(&arguments);
        assert!(complaint.contains(expected), "{options:?}: {complaint}");
    }
}
