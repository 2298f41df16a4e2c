//! Persistent sessions, across connections and restarts.

use homeport_server::MqttSettings;
use homeport_systems::messages::schema;
use rumqttc::v5::mqttbytes::v5::{Disconnect, DisconnectProperties, DisconnectReasonCode, Packet};

use crate::client::{Client, Options5, V3, V5};
use crate::world::{World, until};

/// A session with a subscription to `van/v1/#` and without a connection.
async fn waiting(world: &World, key: &str) {
    let mut client = Client::<V5>::connect_with(world, "s", key, Options5::kept(true))
        .await
        .0;
    client.subscribe("van/v1/#").await;
    client.disconnect().await;
}

async fn back(world: &World, key: &str) -> Client<V5> {
    let (client, answer) = Client::<V5>::connect_with(world, "s", key, Options5::kept(false)).await;
    assert!(answer.session_present);
    client
}

#[tokio::test(flavor = "multi_thread")]
async fn queued_messages_survive_a_restart() {
    let world = World::start().await;
    let key = world.key([]).await;
    waiting(&world, &key).await;
    let mut publisher = Client::<V5>::connect(&world, "p", &key).await;
    for number in 0..150 {
        publisher
            .publish_and_wait("van/v1/x", &number.to_string())
            .await;
    }
    drop(publisher);
    let world = world.restart().await;
    let mut client = back(&world, &key).await;
    for number in 0..150 {
        assert_eq!(client.take().await, number.to_string());
    }
    until("the queue is empty", || async {
        world.count(schema::QUEUE).await == 0
    })
    .await;
    // Later messages reach it too, in order and once.
    let mut publisher = Client::<V5>::connect(&world, "p", &key).await;
    publisher.publish_and_wait("van/v1/x", "new").await;
    assert_eq!(client.take().await, "new");
    client.ping().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn message_is_stored_until_it_is_acknowledged() {
    let world = World::start().await;
    let key = world.key([]).await;
    let kept = Options5::kept(true);
    let mut client = Client::<V5>::connect_with(&world, "s", &key, kept).await.0;
    client.subscribe("van/v1/#").await;
    let mut publisher = Client::<V5>::connect(&world, "p", &key).await;
    publisher.publish_and_wait("van/v1/x", "1").await;
    assert_eq!(world.count(schema::QUEUE).await, 1);
    let publish = client.receive_publish().await;
    drop((client, publisher));
    let world = world.restart().await;
    let mut client = back(&world, &key).await;
    let again = client.receive_publish().await;
    assert_eq!(again.payload, publish.payload);
    client.acknowledge(again.pkid).await;
    until("it is forgotten", || async {
        world.count(schema::QUEUE).await == 0
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unacknowledged_message_is_resent_as_duplicate() {
    let world = World::start().await;
    let key = world.key([]).await;
    let kept = Options5::kept(true);
    let mut client = Client::<V5>::connect_with(&world, "s", &key, kept).await.0;
    client.subscribe("van/v1/#").await;
    let mut publisher = Client::<V5>::connect(&world, "p", &key).await;
    for number in ["1", "2"] {
        publisher.publish_and_wait("van/v1/x", number).await;
    }
    let first = client.receive_publish().await;
    let second = client.receive_publish().await;
    assert!(!first.dup);
    client.acknowledge(first.pkid).await;
    client.ping().await;
    drop(client);
    publisher.publish_and_wait("van/v1/x", "3").await;
    let mut client = back(&world, &key).await;
    let again = client.receive_publish().await;
    assert_eq!((again.pkid, again.dup), (second.pkid, true));
    assert_eq!(again.payload, second.payload);
    let third = client.receive_publish().await;
    assert_eq!((&third.payload[..], third.dup), (&b"3"[..], false));
}

#[tokio::test(flavor = "multi_thread")]
async fn clean_start_discards_the_session() {
    let world = World::start().await;
    let key = world.key([]).await;
    waiting(&world, &key).await;
    let mut publisher = Client::<V5>::connect(&world, "p", &key).await;
    publisher.publish_and_wait("van/v1/x", "1").await;
    assert_eq!(world.count(schema::QUEUE).await, 1);
    let (mut client, answer) =
        Client::<V5>::connect_with(&world, "s", &key, Options5::kept(true)).await;
    assert!(!answer.session_present);
    assert_eq!(world.count(schema::QUEUE).await, 0);
    publisher.publish_and_wait("van/v1/x", "2").await;
    client.ping().await;
    client.disconnect().await;
    // A client without a persistent session leaves none in the store.
    let client = Client::<V5>::connect(&world, "s", &key).await;
    client.disconnect().await;
    let world = world.restart().await;
    let options = Options5::kept(false);
    let (_, answer) = Client::<V5>::connect_with(&world, "s", &key, options).await;
    assert!(!answer.session_present);
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_of_mqtt_3_are_kept_unless_they_are_clean() {
    let world = World::start().await;
    let key = world.key([]).await;
    let (client, answer) = Client::<V3>::try_connect(&world, "s", &key, false).await;
    assert!(!answer.session_present);
    drop(client);
    let (client, answer) = Client::<V3>::try_connect(&world, "s", &key, false).await;
    assert!(answer.session_present);
    drop(client);
    let (client, _) = Client::<V3>::try_connect(&world, "s", &key, true).await;
    drop(client);
    let (_, answer) = Client::<V3>::try_connect(&world, "s", &key, false).await;
    assert!(!answer.session_present);
}

#[tokio::test(flavor = "multi_thread")]
async fn new_connection_takes_over_the_session() {
    let world = World::start().await;
    let key = world.key([]).await;
    let kept = Options5::kept(true);
    let mut first = Client::<V5>::connect_with(&world, "s", &key, kept).await.0;
    first.subscribe("van/v1/#").await;
    let mut second = back(&world, &key).await;
    first
        .expect_disconnect(DisconnectReasonCode::SessionTakenOver)
        .await;
    second
        .publish_and_wait("van/v1/x", "still subscribed")
        .await;
    assert_eq!(second.take().await, "still subscribed");
}

#[tokio::test(flavor = "multi_thread")]
async fn other_keys_cannot_take_over_a_session() {
    let world = World::start().await;
    let mine = world.key(["v1"]).await;
    let other = world.key(["v2"]).await;
    let kept = Options5::kept(true);
    let mut client = Client::<V5>::connect_with(&world, "s", &mine, kept).await.0;
    let (mut thief, answer) =
        Client::<V5>::connect_with(&world, "s", &other, Options5::kept(false)).await;
    assert!(!answer.session_present);
    client.ping().await;
    thief.ping().await;
    // Another key for the same thing has the same owner.
    let renewed = world.key(["v1"]).await;
    let (_, answer) =
        Client::<V5>::connect_with(&world, "s", &renewed, Options5::kept(false)).await;
    assert!(answer.session_present);
}

#[tokio::test(flavor = "multi_thread")]
async fn session_expires_after_its_interval() {
    let world = World::start().await;
    let key = world.key([]).await;
    waiting(&world, &key).await;
    let mut publisher = Client::<V5>::connect(&world, "p", &key).await;
    publisher.publish_and_wait("van/v1/x", "1").await;
    assert_eq!(world.count(schema::QUEUE).await, 1);
    world.clock.advance_ms(3_601_000);
    until("the queue is gone", || async {
        world.count(schema::QUEUE).await == 0
    })
    .await;
    let (_, answer) = Client::<V5>::connect_with(&world, "s", &key, Options5::kept(false)).await;
    assert!(!answer.session_present);
}

#[tokio::test(flavor = "multi_thread")]
async fn disconnect_can_shorten_the_session_expiry() {
    let world = World::start().await;
    let key = world.key([]).await;
    let kept = Options5::kept(true);
    let mut client = Client::<V5>::connect_with(&world, "s", &key, kept).await.0;
    let bye = Disconnect {
        reason_code: DisconnectReasonCode::NormalDisconnection,
        properties: Some(DisconnectProperties {
            session_expiry_interval: Some(0),
            reason_string: None,
            user_properties: Vec::new(),
            server_reference: None,
        }),
    };
    client.send(&Packet::Disconnect(bye)).await;
    client.expect_end().await;
    let (_, answer) = Client::<V5>::connect_with(&world, "s", &key, Options5::kept(false)).await;
    assert!(!answer.session_present);
}

#[tokio::test(flavor = "multi_thread")]
async fn full_queue_keeps_its_messages() {
    let settings = MqttSettings {
        queue_len_max: 3,
        ..MqttSettings::default()
    };
    let world = World::start_with(settings).await;
    let key = world.key([]).await;
    waiting(&world, &key).await;
    let mut publisher = Client::<V5>::connect(&world, "p", &key).await;
    for number in 0..2 {
        publisher
            .publish_and_wait("van/v1/x", &number.to_string())
            .await;
    }
    drop(publisher);
    // The length is counted again after a restart.
    let world = world.restart().await;
    let mut publisher = Client::<V5>::connect(&world, "p", &key).await;
    for number in 2..6 {
        publisher
            .publish_and_wait("van/v1/x", &number.to_string())
            .await;
    }
    let mut client = back(&world, &key).await;
    for number in 0..3 {
        assert_eq!(client.take().await, number.to_string());
    }
    client.ping().await;
    until("there is room", || async {
        world.count(schema::QUEUE).await == 0
    })
    .await;
    publisher.publish_and_wait("van/v1/x", "room").await;
    assert_eq!(client.take().await, "room");
}

#[tokio::test(flavor = "multi_thread")]
async fn qos_0_is_not_queued() {
    let world = World::start().await;
    let key = world.key([]).await;
    waiting(&world, &key).await;
    let mut publisher = Client::<V5>::connect(&world, "p", &key).await;
    let mut publish = crate::client::message("van/v1/x", "0", 0);
    publish.qos = rumqttc::v5::mqttbytes::QoS::AtMostOnce;
    publisher.send(&Packet::Publish(publish)).await;
    publisher.publish_and_wait("van/v1/x", "1").await;
    let mut client = back(&world, &key).await;
    assert_eq!(client.take().await, "1");
    client.ping().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn shutdown_processes_accepted_messages() {
    let world = World::start().await;
    let key = world.key([]).await;
    let mut client = Client::<V5>::connect(&world, "c", &key).await;
    world.intake.open_gate(false);
    client.publish("van/v1/x", "1", 1).await;
    world.intake.until_waiting(1).await;
    world.stop();
    world.intake.open_gate(true);
    client.expect(crate::client::acknowledged(1)).await;
    client
        .expect_disconnect(DisconnectReasonCode::ServerShuttingDown)
        .await;
    assert_eq!(world.restart().await.taken().await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn expired_messages_free_a_full_queue() {
    let settings = MqttSettings {
        queue_len_max: 2,
        ..MqttSettings::default()
    };
    let world = World::start_with(settings).await;
    let key = world.key([]).await;
    waiting(&world, &key).await;
    let mut publisher = Client::<V5>::connect(&world, "p", &key).await;
    for id in 1..=3 {
        let mut publish = crate::client::message("van/v1/x", "short-lived", id);
        publish.properties = Some(rumqttc::v5::mqttbytes::v5::PublishProperties {
            message_expiry_interval: Some(5),
            ..Default::default()
        });
        publisher.send(&Packet::Publish(publish)).await;
        publisher.expect(crate::client::acknowledged(id)).await;
    }
    assert_eq!(world.count(schema::QUEUE).await, 2);
    world.clock.advance_ms(11_000);
    publisher.publish_and_wait("van/v1/x", "lasting").await;
    let mut client = back(&world, &key).await;
    assert_eq!(client.take().await, "lasting");
    client.ping().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn expired_message_frees_its_packet_id() {
    let world = World::start().await;
    let key = world.key([]).await;
    waiting(&world, &key).await;
    let mut publisher = Client::<V5>::connect(&world, "p", &key).await;
    for round in 0..3 {
        let mut client = back(&world, &key).await;
        let mut publish = crate::client::message("van/v1/x", "short-lived", 9);
        publish.properties = Some(rumqttc::v5::mqttbytes::v5::PublishProperties {
            message_expiry_interval: Some(1),
            ..Default::default()
        });
        publisher.send(&Packet::Publish(publish)).await;
        publisher.expect(crate::client::acknowledged(9)).await;
        let received = client.receive_publish().await;
        assert_eq!(received.pkid, 1, "round {round}");
        // The client disconnects without an acknowledgement, and the message expires meanwhile.
        client.disconnect().await;
        world.clock.advance_ms(2000);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reconnects_leave_no_scheduled_work() {
    let world = World::start().await;
    let key = world.key([]).await;
    waiting(&world, &key).await;
    for _ in 0..3 {
        world.clock.advance_ms(1000);
        back(&world, &key).await.disconnect().await;
    }
    let client = back(&world, &key).await;
    assert_eq!(world.broker.scheduled_len(), 0);
    client.disconnect().await;
    until("one session waits", || async {
        world.broker.scheduled_len() == 1
    })
    .await;
}
