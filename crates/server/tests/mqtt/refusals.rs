//! Refused connections, messages and subscriptions in the log and in the metrics.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use homeport_server::MqttSettings;
use metrics_exporter_prometheus::PrometheusBuilder;
use rumqttc::mqttbytes::v4;
use rumqttc::v5::mqttbytes::QoS;
use rumqttc::v5::mqttbytes::v5::Packet;
use tracing::field::{Field, Visit};

use crate::client::{Client, Options5, V3, V5, message};
use crate::world::World;

/// The fields of the lines about refusals.
#[derive(Clone, Default)]
struct RefusalLines(Arc<Mutex<Vec<Line>>>);

#[derive(Default)]
struct Line(BTreeMap<&'static str, String>);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }
}

impl tracing::Subscriber for RefusalLines {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target().ends_with("refusal_log")
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut line = Line::default();
        event.record(&mut line);
        self.0.lock().expect("no panic").push(line);
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

impl RefusalLines {
    /// The values of these fields in the lines since the last call.
    fn take<const N: usize>(&self, names: [&str; N]) -> Vec<[String; N]> {
        let lines = std::mem::take(&mut *self.0.lock().expect("no panic"));
        let values = |line: Line| names.map(|name| line.0.get(name).cloned().unwrap_or_default());
        lines.into_iter().map(values).collect()
    }
}

/// An MQTT 3.1 client, whose CONNECT rumqttc cannot write.
const CONNECT_3_1: &[u8] = b"\x10\x11\0\x06MQIsdp\x03\x02\0\x3c\0\x03old";

// The server of each test runs on the thread of the test, which has the log and the metrics.

#[tokio::test]
async fn refusals_are_logged_with_their_client() {
    let lines = RefusalLines::default();
    let _log = tracing::subscriber::set_default(lines.clone());
    let world = World::start_with(MqttSettings {
        packet_bytes_max: 1024,
        ..MqttSettings::default()
    })
    .await;
    let (key_id, key) = world.key_of("telemetry", ["v1"]).await;
    let (of_sensors, sensors_key) = world.key_of("sensors", []).await;
    let (key_id, of_sensors) = (key_id.to_string(), of_sensors.to_string());
    let fields = ["kind", "client", "client_id", "key_id", "topic", "reason"];
    let expected = |kind: &str, client_id: &str, key_id: &str, topic: &str, reason: &str| {
        [kind, "127.0.0.1", client_id, key_id, topic, reason].map(str::to_owned)
    };

    let wrong = ("device", "0000");
    let (mut client, _) =
        Client::<V5>::try_connect(&world, "guesser", wrong, Options5::default()).await;
    client.expect_end().await;
    let other = ("device", sensors_key.as_str());
    let (mut client, _) =
        Client::<V5>::try_connect(&world, "sensor", other, Options5::default()).await;
    client.expect_end().await;
    let mut client = Client::<V3>::open(&world).await;
    client.send_bytes(CONNECT_3_1).await;
    let v4::Packet::ConnAck(answer) = client.receive().await else {
        panic!("no answer");
    };
    assert_eq!(answer.code, v4::ConnectReturnCode::RefusedProtocolVersion);
    client.expect_end().await;
    assert_eq!(
        lines.take(fields),
        [
            expected("connection", "guesser", "", "", "bad_credentials"),
            expected("connection", "sensor", &of_sensors, "", "not_authorized"),
            expected("connection", "old", "", "", "unsupported_version"),
        ]
    );

    let mut client = Client::<V5>::connect(&world, "c", &key).await;
    client.publish("van/v2/telemetry", "{}", 4).await;
    client.receive().await;
    client.subscribe("$SYS/#").await;
    let mut publish = message("van/v1/telemetry", "{}", 5);
    publish.qos = QoS::ExactlyOnce;
    client.send(&Packet::Publish(publish)).await;
    client.receive().await;
    client.expect_end().await;
    let mut client = Client::<V5>::connect(&world, "c", &key).await;
    client
        .publish("van/v1/telemetry", &"x".repeat(2000), 6)
        .await;
    client.receive().await;
    client.expect_end().await;
    let (forbidden, topic) = ("van/v2/telemetry", "van/v1/telemetry");
    assert_eq!(
        lines.take(fields),
        [
            expected("publish", "c", &key_id, forbidden, "not_authorized"),
            expected("subscription", "c", &key_id, "$SYS/#", "filter_invalid"),
            expected("connection", "c", &key_id, topic, "qos_not_supported"),
            expected("connection", "c", &key_id, "", "packet_too_large"),
        ]
    );
}

#[tokio::test]
async fn refusals_are_all_counted_but_few_are_logged() {
    let lines = RefusalLines::default();
    let _log = tracing::subscriber::set_default(lines.clone());
    let recorder = PrometheusBuilder::new().build_recorder();
    let _metrics = metrics::set_default_local_recorder(&recorder);
    let world = World::start().await;
    let key = world.key(["v1"]).await;
    let mut client = Client::<V5>::connect(&world, "c", &key).await;
    let mut refuse = async |count: u16| {
        for id in 1..=count {
            client.publish("van/v2/telemetry", "{}", id).await;
            client.receive().await;
        }
    };
    refuse(30).await;
    assert_eq!(lines.take(["client_id"]).len(), 10);
    world.clock.advance_ms(10_000);
    refuse(1).await;
    assert_eq!(lines.take(["unlogged"]), [["20".to_owned()]]);
    let metrics = recorder.handle().render();
    let counted = r#"homeport_mqtt_refused_total{kind="publish",reason="not_authorized"} 31"#;
    assert!(metrics.contains(counted), "{metrics}");
}
