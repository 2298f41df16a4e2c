//! Authentication and permissions of clients.

use std::sync::Arc;
use std::time::Duration;

use homeport_server::MqttSettings;
use homeport_systems::api_keys::{ApiKeys, Pepper};
use rumqttc::mqttbytes::v4;
use rumqttc::v5::mqttbytes::QoS;
use rumqttc::v5::mqttbytes::v5::{
    ConnectReturnCode, DisconnectReasonCode, Packet, PubAckReason, SubscribeReasonCode,
};

use crate::client::{Client, Options5, V3, V5, message};
use crate::world::{ADMIN, REFUSED, World};

#[tokio::test(flavor = "multi_thread")]
async fn only_keys_of_topics_and_operators_connect() {
    let world = World::start().await;
    let key = world.key(["v1"]).await;
    let (_, of_sensors) = world.key_of("sensors", []).await;
    let (_, of_chargers) = world.key_of("chargers", []).await;
    let unknown = "0".repeat(64);
    for (login, expected) in [
        (("v1", key.as_str()), ConnectReturnCode::Success),
        (("admin", ADMIN), ConnectReturnCode::Success),
        (("aws", of_chargers.as_str()), ConnectReturnCode::Success),
        (
            ("admin", key.as_str()),
            ConnectReturnCode::BadUserNamePassword,
        ),
        (("v1", ADMIN), ConnectReturnCode::BadUserNamePassword),
        (
            ("v1", unknown.as_str()),
            ConnectReturnCode::BadUserNamePassword,
        ),
        (("v1", ""), ConnectReturnCode::BadUserNamePassword),
        (
            ("v1", of_sensors.as_str()),
            ConnectReturnCode::NotAuthorized,
        ),
    ] {
        let options = Options5::default();
        let (_, answer) = Client::<V5>::try_connect(&world, "c", login, options).await;
        assert_eq!(answer.code, expected, "{}", login.0);
    }
    let (mut old, answer) = Client::<V3>::try_connect(&world, "c3", &unknown, true).await;
    assert_eq!(answer.code, v4::ConnectReturnCode::BadUserNamePassword);
    old.expect_end().await;
    let mut nobody = Client::<V3>::open(&world).await;
    nobody
        .send(&v4::Packet::Connect(v4::Connect::new("c")))
        .await;
    let v4::Packet::ConnAck(answer) = nobody.receive().await else {
        panic!("no answer");
    };
    assert_eq!(answer.code, v4::ConnectReturnCode::BadUserNamePassword);
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_admin_tokens_are_limited() {
    let world = World::start().await;
    let connect = async |password: &str| {
        let login = ("admin", password);
        let (_, answer) = Client::<V5>::try_connect(&world, "c", login, Options5::default()).await;
        answer.code
    };
    for _ in 0..10 {
        let wrong = connect("a guess").await;
        assert_eq!(wrong, ConnectReturnCode::BadUserNamePassword);
    }
    let limited = connect("a guess").await;
    assert_eq!(limited, ConnectReturnCode::ConnectionRateExceeded);
    // Wrong tokens of others cannot lock operators out.
    assert_eq!(connect(ADMIN).await, ConnectReturnCode::Success);
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_keys_are_limited() {
    let world = World::start().await;
    let key = world.key(["v1"]).await;
    let connect = async |password: &str| {
        let login = ("v1", password);
        let (_, answer) = Client::<V5>::try_connect(&world, "c", login, Options5::default()).await;
        answer.code
    };
    for number in 0..100 {
        let unknown = connect(&format!("{number:064x}")).await;
        assert_eq!(unknown, ConnectReturnCode::BadUserNamePassword);
    }
    let limited = connect(&format!("{:064x}", 100)).await;
    assert_eq!(limited, ConnectReturnCode::ConnectionRateExceeded);
    assert_eq!(connect(&key).await, ConnectReturnCode::Success);
}

#[tokio::test(flavor = "multi_thread")]
async fn denied_publish_ends_only_mqtt_3_connections() {
    let world = World::start().await;
    let key = world.key(["v1"]).await;
    let mut device = Client::<V5>::connect(&world, "c", &key).await;
    device.publish("van/v2/telemetry", "{}", 4).await;
    let Packet::PubAck(answer) = device.receive().await else {
        panic!("no answer");
    };
    assert_eq!(
        (answer.pkid, answer.reason),
        (4, PubAckReason::NotAuthorized)
    );
    device.publish_and_wait("van/v1/telemetry", "{}").await;
    let mut publish = message("van/v2/telemetry", "{}", 0);
    publish.qos = QoS::AtMostOnce;
    device.send(&Packet::Publish(publish)).await;
    device
        .expect_disconnect(DisconnectReasonCode::NotAuthorized)
        .await;
    let mut old = Client::<V3>::connect(&world, "c", &key).await;
    let qos = rumqttc::mqttbytes::QoS::AtLeastOnce;
    let mut publish = v4::Publish::new("van/v2/telemetry", qos, "{}");
    publish.pkid = 1;
    old.send(&v4::Packet::Publish(publish)).await;
    old.expect_end().await;
    assert_eq!(world.taken().await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_denied_filter_gets_its_reason() {
    let world = World::start().await;
    let key = world.key(["v1"]).await;
    let mut old = Client::<V3>::connect(&world, "c", &key).await;
    let qos = rumqttc::mqttbytes::QoS::AtMostOnce;
    let filters = ["van/v1/#", "van/v2/#", "#", "van/+/x", "van/v1/#/x"];
    let filters = filters.map(|path| v4::SubscribeFilter::new(path.to_owned(), qos));
    let mut subscribe = v4::Subscribe::new_many(filters);
    subscribe.pkid = 2;
    old.send(&v4::Packet::Subscribe(subscribe)).await;
    let mut codes = vec![v4::SubscribeReasonCode::Failure; 5];
    codes[0] = v4::SubscribeReasonCode::Success(qos);
    old.expect(v4::Packet::SubAck(v4::SubAck::new(2, codes)))
        .await;
    let mut new = Client::<V5>::connect(&world, "c5", &key).await;
    assert_eq!(new.subscribe("#").await, SubscribeReasonCode::NotAuthorized);
    assert_eq!(
        new.subscribe("van/v1/#/x").await,
        SubscribeReasonCode::TopicFilterInvalid
    );
    let mut operator = Client::<V5>::operator(&world, "o").await;
    assert_eq!(
        operator.subscribe("#").await,
        SubscribeReasonCode::Success(QoS::AtLeastOnce)
    );
    operator.publish_and_wait("anything/at/all", "1").await;
    assert_eq!(operator.take().await, "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn server_topics_reject_subscribers() {
    let world = World::start().await;
    let mut operator = Client::<V5>::operator(&world, "o").await;
    for filter in ["$SYS/#", "$aws/things/+/shadow", "$share/group/$SYS/#"] {
        let answer = operator.subscribe_answer(filter).await;
        let reason = answer.properties.and_then(|said| said.reason_string);
        assert_eq!(
            answer.return_codes,
            [SubscribeReasonCode::TopicFilterInvalid],
            "{filter}"
        );
        let reason = reason.expect("a reason");
        assert!(reason.contains("begin with $"), "{reason}");
    }
    let key = world.key([]).await;
    let mut old = Client::<V3>::connect(&world, "c", &key).await;
    let mut subscribe = v4::Subscribe::new("$SYS/#", rumqttc::mqttbytes::QoS::AtMostOnce);
    subscribe.pkid = 2;
    old.send(&v4::Packet::Subscribe(subscribe)).await;
    let codes = vec![v4::SubscribeReasonCode::Failure];
    old.expect(v4::Packet::SubAck(v4::SubAck::new(2, codes)))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reason_string_respects_the_clients_limits() {
    let world = World::start().await;
    for (problem_information, packet_size) in [(Some(0), None), (None, Some(40))] {
        let mut options = Options5::default();
        options.properties.request_problem_info = problem_information;
        options.properties.max_packet_size = packet_size;
        let login = ("admin", ADMIN);
        let (mut client, _) = Client::<V5>::try_connect(&world, "o", login, options).await;
        let answer = client.subscribe_answer("$SYS/#").await;
        assert_eq!(answer.properties, None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bridged_server_topics_accept_subscribers() {
    let settings = MqttSettings {
        is_bridged: true,
        ..MqttSettings::default()
    };
    let world = World::start_with(settings).await;
    let mut operator = Client::<V5>::operator(&world, "o").await;
    let answer = operator.subscribe("$aws/things/#").await;
    assert_eq!(answer, SubscribeReasonCode::Success(QoS::AtLeastOnce));
}

#[tokio::test(flavor = "multi_thread")]
async fn server_topics_reject_publishers() {
    let world = World::start().await;
    let mut operator = Client::<V5>::operator(&world, "o").await;
    operator.publish("$SYS/broker/load", "1", 4).await;
    let Packet::PubAck(answer) = operator.receive().await else {
        panic!("no answer");
    };
    assert_eq!(answer.reason, PubAckReason::NotAuthorized);
}

#[tokio::test(flavor = "multi_thread")]
async fn revoking_a_key_disconnects_its_clients() {
    let world = World::start().await;
    let (key_id, key) = world.key_of("telemetry", ["v1"]).await;
    let other = world.key(["v1"]).await;
    let mut device = Client::<V5>::connect(&world, "c", &key).await;
    let mut unharmed = Client::<V5>::connect(&world, "o", &other).await;
    world.api_keys.revoke(key_id).await.expect("revoked");
    device
        .expect_disconnect(DisconnectReasonCode::NotAuthorized)
        .await;
    unharmed.ping().await;
    let options = Options5::default();
    let (_, answer) = Client::<V5>::try_connect(&world, "c", ("x", &key), options).await;
    assert_eq!(answer.code, ConnectReturnCode::BadUserNamePassword);
}

#[tokio::test(flavor = "multi_thread")]
async fn key_revoked_elsewhere_ends_its_connection() {
    let world = World::start_with(checking_keys_often()).await;
    let (key_id, key) = world.key_of("telemetry", ["v1"]).await;
    let other = world.key(["v1"]).await;
    let mut device = Client::<V5>::connect(&world, "c", &key).await;
    let mut unharmed = Client::<V5>::connect(&world, "o", &other).await;
    let pepper = Pepper::new("pepper".to_owned());
    let store = Arc::new(world.engine.clone());
    let elsewhere = ApiKeys::new(store, Arc::clone(&world.clock) as _, pepper);
    elsewhere.revoke(key_id).await.expect("revoked");
    device
        .expect_disconnect(DisconnectReasonCode::NotAuthorized)
        .await;
    unharmed.ping().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_key_check_does_not_delay_revocations() {
    let world = World::start_with(checking_keys_often()).await;
    let (key_id, key) = world.key_of("telemetry", ["v1"]).await;
    let mut device = Client::<V5>::connect(&world, "c", &key).await;
    world.key_store.hold(true);
    world.key_store.until_held().await;
    world.api_keys.revoke(key_id).await.expect("revoked");
    device
        .expect_disconnect(DisconnectReasonCode::NotAuthorized)
        .await;
    world.key_store.hold(false);
}

fn checking_keys_often() -> MqttSettings {
    MqttSettings {
        key_check_every: Duration::from_millis(5),
        ..MqttSettings::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_of_chargers_publish_only_uplinks() {
    const UUID: &str = "b319d001-6b08-4d88-b4ca-4d2d98a6d43c";
    let world = World::start().await;
    let (_, all) = world.key_of("chargers", []).await;
    let (_, scoped) = world.key_of("chargers", [UUID]).await;
    let own = format!("chargers/uplinks/{UUID}");
    let other = format!("chargers/uplinks/{}", UUID.replace("43c", "43d"));
    for (key, topic, expected) in [
        (&all, "chargers/uplinks", PubAckReason::Success),
        (&all, &own, PubAckReason::Success),
        (&scoped, &own, PubAckReason::Success),
        (&scoped, "chargers/uplinks", PubAckReason::NotAuthorized),
        (&scoped, &other, PubAckReason::NotAuthorized),
        (
            &all,
            "chargers/uplinks/SC-C014EA63",
            PubAckReason::NotAuthorized,
        ),
        (&all, "chargers/uplinks-other", PubAckReason::NotAuthorized),
        (&all, "van/v1/telemetry", PubAckReason::NotAuthorized),
    ] {
        let mut charger = Client::<V5>::connect(&world, "c", key).await;
        charger.publish(topic, "{}", 4).await;
        let Packet::PubAck(answer) = charger.receive().await else {
            panic!("no answer");
        };
        // A message without subscribers may have its own code of success.
        let is_success = answer.reason != PubAckReason::NotAuthorized;
        assert_eq!(is_success, expected == PubAckReason::Success, "{topic}");
    }
    let mut charger = Client::<V5>::connect(&world, "c", &all).await;
    for filter in ["chargers/uplinks", "chargers/#", "van/v1/#"] {
        let code = charger.subscribe(filter).await;
        assert_eq!(code, SubscribeReasonCode::NotAuthorized, "{filter}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_message_gets_a_reason_and_no_subscriber() {
    let world = World::start().await;
    let mut operator = Client::<V5>::operator(&world, "o").await;
    operator.subscribe("van/#").await;
    let key = world.key(["v1"]).await;
    let mut device = Client::<V5>::connect(&world, "c", &key).await;
    let refused = std::str::from_utf8(REFUSED).expect("text");
    device.publish("van/v1/telemetry", refused, 4).await;
    let Packet::PubAck(answer) = device.receive().await else {
        panic!("no answer");
    };
    assert_eq!(
        (answer.pkid, answer.reason),
        (4, PubAckReason::PayloadFormatInvalid)
    );
    // MQTT 3.1.1 cannot say it, and must not send the message again.
    let mut old = Client::<V3>::connect(&world, "c3", &key).await;
    let qos = rumqttc::mqttbytes::QoS::AtLeastOnce;
    let mut publish = v4::Publish::new("van/v1/telemetry", qos, REFUSED);
    publish.pkid = 1;
    old.send(&v4::Packet::Publish(publish)).await;
    old.expect(v4::Packet::PubAck(v4::PubAck::new(1))).await;
    device.publish_and_wait("van/v1/telemetry", "good").await;
    assert_eq!(operator.take().await, "good");
}
