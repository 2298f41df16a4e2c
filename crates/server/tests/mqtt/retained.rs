//! Retained messages.

use homeport_server::MqttSettings;
use homeport_systems::messages::schema;
use rumqttc::v5::mqttbytes::QoS;
use rumqttc::v5::mqttbytes::v5::{Filter, Packet, PubAckReason, RetainForwardRule};

use crate::client::{Client, V5, acknowledged, message};
use crate::world::World;

async fn retain(client: &mut Client<V5>, topic: &str, payload: &str) {
    let mut publish = message(topic, payload, 11);
    publish.retain = true;
    client.send(&Packet::Publish(publish)).await;
    client.expect(acknowledged(11)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn retained_messages_are_durable() {
    let world = World::start().await;
    let key = world.key([]).await;
    let mut publisher = Client::<V5>::connect(&world, "p", &key).await;
    retain(&mut publisher, "van/v1/status", "old").await;
    retain(&mut publisher, "van/v1/status", "on").await;
    retain(&mut publisher, "van/v2/status", "off").await;
    retain(&mut publisher, "van/v3/status", "gone soon").await;
    retain(&mut publisher, "van/v3/status", "").await;
    drop(publisher);
    let world = world.restart().await;
    let mut client = Client::<V5>::connect(&world, "s", &key).await;
    client.subscribe("van/+/status").await;
    let mut got = Vec::new();
    for _ in 0..2 {
        let publish = client.receive_publish().await;
        assert!(publish.retain);
        client.acknowledge(publish.pkid).await;
        got.push(publish.payload);
    }
    got.sort();
    assert_eq!(got, ["off", "on"]);
    client.ping().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn last_retained_message_wins() {
    let world = World::start().await;
    let key = world.key([]).await;
    let mut publisher = Client::<V5>::connect(&world, "p", &key).await;
    // All in one window: they reach the store in any order.
    for id in 1..=100 {
        let mut publish = message("van/v1/status", &id.to_string(), id);
        publish.retain = true;
        publisher.send(&Packet::Publish(publish)).await;
    }
    for id in 1..=100 {
        publisher.expect(acknowledged(id)).await;
    }
    publisher.subscribe("van/v1/status").await;
    assert_eq!(publisher.take().await, "100");
    publisher.ping().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn retain_flag_is_kept_only_if_requested() {
    let world = World::start().await;
    let key = world.key([]).await;
    let mut plain = Client::<V5>::connect(&world, "plain", &key).await;
    plain.subscribe("van/v1/status").await;
    let mut exact = Client::<V5>::connect(&world, "exact", &key).await;
    let mut filter = Filter::new("van/v1/status", QoS::AtLeastOnce);
    filter.preserve_retain = true;
    exact.subscribe_with(filter, None).await;
    let mut publisher = Client::<V5>::connect(&world, "p", &key).await;
    retain(&mut publisher, "van/v1/status", "on").await;
    assert!(!plain.receive_publish().await.retain);
    assert!(exact.receive_publish().await.retain);
}

#[tokio::test(flavor = "multi_thread")]
async fn retain_handling_option_is_respected() {
    let world = World::start().await;
    let key = world.key([]).await;
    let mut client = Client::<V5>::connect(&world, "c", &key).await;
    retain(&mut client, "van/v1/status", "on").await;
    let with = |rule| {
        let mut filter = Filter::new("van/v1/status", QoS::AtMostOnce);
        filter.retain_forward_rule = rule;
        filter
    };
    client
        .subscribe_with(with(RetainForwardRule::Never), None)
        .await;
    client.ping().await;
    client
        .subscribe_with(with(RetainForwardRule::OnNewSubscribe), None)
        .await;
    client.ping().await;
    client
        .subscribe_with(with(RetainForwardRule::OnEverySubscribe), None)
        .await;
    assert_eq!(client.take().await, "on");
    // Shared subscriptions get none.
    client.subscribe("$share/group/van/v1/status").await;
    client.ping().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn retained_messages_beyond_the_limit_are_refused() {
    let settings = MqttSettings {
        retained_max: 2,
        ..MqttSettings::default()
    };
    let world = World::start_with(settings).await;
    let key = world.key([]).await;
    let mut client = Client::<V5>::connect(&world, "c", &key).await;
    for topic in ["van/v1/a", "van/v1/b", "van/v1/a"] {
        retain(&mut client, topic, "1").await;
    }
    let mut publish = message("van/v1/c", "1", 12);
    publish.retain = true;
    client.send(&Packet::Publish(publish)).await;
    let Packet::PubAck(answer) = client.receive().await else {
        panic!("no answer");
    };
    assert_eq!(answer.reason, PubAckReason::QuotaExceeded);
    assert_eq!(world.count(schema::RETAINED).await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_retained_messages_are_all_delivered() {
    let world = World::start().await;
    let key = world.key([]).await;
    let mut client = Client::<V5>::connect(&world, "c", &key).await;
    for number in 0..300_u16 {
        let mut publish = message(&format!("van/v{number}/status"), "1", number + 1);
        publish.retain = true;
        client.send(&Packet::Publish(publish)).await;
    }
    for number in 0..300_u16 {
        client.expect(acknowledged(number + 1)).await;
    }
    client.subscribe("van/+/status").await;
    let mut topics = std::collections::BTreeSet::new();
    for _ in 0..300 {
        let publish = client.receive_publish().await;
        client.acknowledge(publish.pkid).await;
        topics.insert(publish.topic);
    }
    assert_eq!(topics.len(), 300);
    client.ping().await;
}
