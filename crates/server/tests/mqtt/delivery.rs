//! Messages from publisher to subscriber, and their acknowledgement.

use rumqttc::mqttbytes::v4;
use rumqttc::v5::mqttbytes::QoS as QoS5;
use rumqttc::v5::mqttbytes::v5::{
    DisconnectReasonCode, Filter, Packet, PubAckReason, SubscribeReasonCode,
};

use crate::client::{Client, V3, V5, acknowledged, message};
use crate::world::World;

#[tokio::test(flavor = "multi_thread")]
async fn puback_follows_the_durable_intake() {
    let world = World::start().await;
    let key = world.key([]).await;
    let mut publisher = Client::<V5>::connect(&world, "p", &key).await;
    world.intake.open_gate(false);
    publisher.publish("van/v1/telemetry", "{}", 1).await;
    world.intake.until_waiting(1).await;
    // The next packet is the answer to the ping, so the message is not acknowledged.
    publisher.ping().await;
    assert_eq!(world.taken().await, []);
    world.intake.open_gate(true);
    publisher.expect(acknowledged(1)).await;
    let expected = ("van/v1/telemetry".to_owned(), "{}".to_owned());
    assert_eq!(world.taken().await, [expected]);
}

#[tokio::test(flavor = "multi_thread")]
async fn subscribers_get_a_message_after_the_intake() {
    let world = World::start().await;
    let key = world.key([]).await;
    let mut subscriber = Client::<V5>::connect(&world, "s", &key).await;
    subscriber.subscribe("van/+/telemetry").await;
    let mut publisher = Client::<V5>::connect(&world, "p", &key).await;
    world.intake.open_gate(false);
    publisher.publish("van/v1/telemetry", "1", 1).await;
    world.intake.until_waiting(1).await;
    subscriber.ping().await;
    world.intake.open_gate(true);
    publisher.expect(acknowledged(1)).await;
    assert_eq!(subscriber.take().await, "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn unstorable_message_is_not_acknowledged() {
    let world = World::start().await;
    let key = world.key([]).await;
    let mut publisher = Client::<V5>::connect(&world, "p", &key).await;
    world.intake.fail(true);
    publisher.publish("van/v1/telemetry", "1", 1).await;
    let busy = DisconnectReasonCode::ServerBusy;
    publisher.expect_disconnect(busy).await;
    let mut old = Client::<V3>::connect(&world, "p3", &key).await;
    let mut publish = v4::Publish::new("van/v1/x", rumqttc::mqttbytes::QoS::AtLeastOnce, "1");
    publish.pkid = 1;
    old.send(&v4::Packet::Publish(publish)).await;
    old.expect_end().await;
    assert_eq!(world.taken().await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn republished_messages_are_delivered_before_their_cause() {
    let world = World::start().await;
    let key = world.key([]).await;
    let mut subscriber = Client::<V5>::connect(&world, "s", &key).await;
    subscriber.subscribe("van/v1/x").await;
    let mut publisher = Client::<V5>::connect(&world, "p", &key).await;
    world.intake.republish();
    publisher.publish_and_wait("van/v1/x", "1").await;
    for expected in ["1.1", "1.1.1", "1.1.2", "1.2", "1.2.1", "1.2.2", "1"] {
        assert_eq!(subscriber.take().await, expected);
    }
    assert_eq!(world.taken().await.len(), 7, "rules see all of them");
}

#[tokio::test(flavor = "multi_thread")]
async fn failing_republished_message_prevents_the_acknowledgement() {
    let world = World::start().await;
    let key = world.key([]).await;
    let mut publisher = Client::<V5>::connect(&world, "p", &key).await;
    world.intake.republish();
    world.intake.fail_from(2);
    publisher.publish("van/v1/x", "1", 1).await;
    let busy = DisconnectReasonCode::ServerBusy;
    publisher.expect_disconnect(busy).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn qos_is_the_lower_of_publisher_and_subscriber() {
    let world = World::start().await;
    let key = world.key([]).await;
    let mut zero = Client::<V5>::connect(&world, "zero", &key).await;
    let filter = Filter::new("van/v1/x", QoS5::AtMostOnce);
    assert_eq!(
        zero.subscribe_with(filter, None).await,
        SubscribeReasonCode::Success(QoS5::AtMostOnce)
    );
    let mut one = Client::<V5>::connect(&world, "one", &key).await;
    let filter = Filter::new("van/v1/x", QoS5::ExactlyOnce);
    assert_eq!(
        one.subscribe_with(filter, None).await,
        SubscribeReasonCode::Success(QoS5::AtLeastOnce),
        "QoS 2 is granted as 1"
    );
    let mut publisher = Client::<V5>::connect(&world, "p", &key).await;
    for (sent, gets_zero, gets_one) in [
        (QoS5::AtMostOnce, QoS5::AtMostOnce, QoS5::AtMostOnce),
        (QoS5::AtLeastOnce, QoS5::AtMostOnce, QoS5::AtLeastOnce),
    ] {
        let mut publish = message("van/v1/x", "1", 3);
        publish.qos = sent;
        publisher.send(&Packet::Publish(publish)).await;
        assert_eq!(zero.receive_publish().await.qos, gets_zero);
        let got = one.receive_publish().await;
        assert_eq!(got.qos, gets_one);
        if got.qos == QoS5::AtLeastOnce {
            one.acknowledge(got.pkid).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn qos_2_is_refused_as_each_version_allows() {
    let world = World::start().await;
    let key = world.key([]).await;
    let mut publisher = Client::<V5>::connect(&world, "p", &key).await;
    let mut publish = message("van/v1/x", "1", 3);
    publish.qos = QoS5::ExactlyOnce;
    publisher.send(&Packet::Publish(publish)).await;
    let reason = DisconnectReasonCode::QoSNotSupported;
    publisher.expect_disconnect(reason).await;
    let mut old = Client::<V3>::connect(&world, "p3", &key).await;
    let mut publish = v4::Publish::new("van/v1/x", rumqttc::mqttbytes::QoS::ExactlyOnce, "1");
    publish.pkid = 1;
    old.send(&v4::Packet::Publish(publish)).await;
    old.expect_end().await;
    assert_eq!(world.taken().await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_of_both_versions_exchange_messages() {
    let world = World::start().await;
    let key = world.key([]).await;
    let mut old = Client::<V3>::connect(&world, "old", &key).await;
    let qos = rumqttc::mqttbytes::QoS::AtLeastOnce;
    let mut subscribe = v4::Subscribe::new("van/+/x", qos);
    subscribe.pkid = 5;
    old.send(&v4::Packet::Subscribe(subscribe)).await;
    let granted = vec![v4::SubscribeReasonCode::Success(qos)];
    old.expect(v4::Packet::SubAck(v4::SubAck::new(5, granted)))
        .await;
    let mut new = Client::<V5>::connect(&world, "new", &key).await;
    new.subscribe("van/v1/y").await;
    new.publish("van/v1/x", "to the old", 8).await;
    new.expect(acknowledged(8)).await;
    let v4::Packet::Publish(got) = old.receive().await else {
        panic!("no message");
    };
    assert_eq!(
        (got.topic.as_str(), &got.payload[..]),
        ("van/v1/x", &b"to the old"[..])
    );
    old.send(&v4::Packet::PubAck(v4::PubAck::new(got.pkid)))
        .await;
    let mut publish = v4::Publish::new("van/v1/y", qos, "to the new");
    publish.pkid = 2;
    old.send(&v4::Packet::Publish(publish)).await;
    old.expect(v4::Packet::PubAck(v4::PubAck::new(2))).await;
    assert_eq!(new.take().await, "to the new");
}

#[tokio::test(flavor = "multi_thread")]
async fn shared_subscriptions_take_turns() {
    let world = World::start().await;
    let key = world.key([]).await;
    let mut workers = Vec::new();
    for name in ["a", "b", "c"] {
        let mut worker = Client::<V5>::connect(&world, name, &key).await;
        worker.subscribe("$share/workers/van/+/x").await;
        workers.push(worker);
    }
    let mut publisher = Client::<V5>::connect(&world, "p", &key).await;
    for number in 0..9 {
        publisher
            .publish_and_wait("van/v1/x", &number.to_string())
            .await;
    }
    let mut all = Vec::new();
    for worker in &mut workers {
        for _ in 0..3 {
            all.push(worker.take().await);
        }
        worker.ping().await;
    }
    all.sort();
    let expected: Vec<_> = (0..9).map(|number| number.to_string()).collect();
    assert_eq!(all, expected);
    // Whoever leaves gets nothing more.
    workers.remove(0).disconnect().await;
    for number in 0..4 {
        publisher
            .publish_and_wait("van/v1/x", &number.to_string())
            .await;
    }
    for worker in &mut workers {
        worker.take().await;
        worker.take().await;
        worker.ping().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn message_from_outside_mqtt_reaches_subscribers() {
    use homeport_systems::messages::{Delivery, Message, Properties, Publish as _, Publisher};
    let world = World::start().await;
    let key = world.key(["v1"]).await;
    let mut device = Client::<V5>::connect(&world, "v1", &key).await;
    device.subscribe("van/v1/commands").await;
    let command = Message {
        topic: "van/v1/commands".to_owned(),
        payload: "stop".into(),
        delivery: Delivery::AtLeastOnce,
        retain: false,
        publisher: Publisher::default(),
        received_at: homeport_systems::time::EpochMillis(crate::world::NOW_MS),
        properties: Properties::default(),
        hops: 0,
    };
    world.broker.publish(command).await.expect("published");
    assert_eq!(device.take().await, "stop");
    assert_eq!(world.taken().await.len(), 1, "rules see it too");
}

#[tokio::test(flavor = "multi_thread")]
async fn message_before_a_disconnect_is_processed() {
    let world = World::start().await;
    let key = world.key([]).await;
    let mut publisher = Client::<V5>::connect(&world, "p", &key).await;
    world.intake.open_gate(false);
    let mut publish = message("van/v1/x", "last words", 0);
    publish.qos = QoS5::AtMostOnce;
    publisher.send(&Packet::Publish(publish)).await;
    publisher.publish("van/v1/x", "truly", 4).await;
    world.intake.until_waiting(2).await;
    let bye =
        rumqttc::v5::mqttbytes::v5::Disconnect::new(DisconnectReasonCode::NormalDisconnection);
    publisher.send(&Packet::Disconnect(bye)).await;
    world.intake.open_gate(true);
    publisher.expect(acknowledged(4)).await;
    publisher.expect_end().await;
    assert_eq!(world.taken().await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn unsuback_reports_whether_a_subscription_existed() {
    use rumqttc::v5::mqttbytes::v5::{UnsubAckReason, Unsubscribe};
    let world = World::start().await;
    let key = world.key([]).await;
    let mut client = Client::<V5>::connect(&world, "c", &key).await;
    client.subscribe("van/v1/x").await;
    let mut unsubscribe = Unsubscribe::new("van/v1/x", None);
    unsubscribe.pkid = 6;
    unsubscribe.filters.push("van/v1/y".to_owned());
    client.send(&Packet::Unsubscribe(unsubscribe)).await;
    let Packet::UnsubAck(answer) = client.receive().await else {
        panic!("no answer");
    };
    let expected = [
        UnsubAckReason::Success,
        UnsubAckReason::NoSubscriptionExisted,
    ];
    assert_eq!(answer.reasons, expected);
    client.publish_and_wait("van/v1/x", "nobody").await;
    client.ping().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_topic_does_not_end_the_connection() {
    let world = World::start().await;
    let mut client = Client::<V5>::operator(&world, "c").await;
    client.publish("van/+/x", "1", 3).await;
    let Packet::PubAck(answer) = client.receive().await else {
        panic!("no answer");
    };
    assert_eq!(
        (answer.pkid, answer.reason),
        (3, PubAckReason::TopicNameInvalid)
    );
    client.ping().await;
}
