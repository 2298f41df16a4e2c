//! Many messages at a time: their order, and the limits of the windows.

use homeport_server::MqttSettings;
use rumqttc::v5::mqttbytes::v5::{Packet, PingReq, PingResp};

use crate::client::{Client, Options5, V5, acknowledged};
use crate::world::World;

#[tokio::test(flavor = "multi_thread")]
async fn messages_keep_their_order() {
    let world = World::start().await;
    let key = world.key([]).await;
    let mut live = Client::<V5>::connect(&world, "live", &key).await;
    live.subscribe("van/#").await;
    let kept = Options5::kept(true);
    let mut durable = Client::<V5>::connect_with(&world, "durable", &key, kept)
        .await
        .0;
    durable.subscribe("van/#").await;
    let mut publisher = Client::<V5>::connect(&world, "p", &key).await;
    let reader = tokio::spawn(async move {
        let mut got = (Vec::new(), Vec::new());
        for _ in 0..300 {
            got.0.push(live.take().await);
            got.1.push(durable.take().await);
        }
        got
    });
    for id in 1..=300 {
        publisher.publish("van/v1/x", &id.to_string(), id).await;
    }
    for id in 1..=300 {
        publisher.expect(acknowledged(id)).await;
    }
    let expected: Vec<_> = (1..=300).map(|id: u16| id.to_string()).collect();
    let (live, durable) = reader.await.expect("no panic");
    assert_eq!(live, expected);
    assert_eq!(durable, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn connection_with_full_window_is_not_read() {
    let settings = MqttSettings {
        inflight_max: 4,
        ..MqttSettings::default()
    };
    let world = World::start_with(settings).await;
    let key = world.key([]).await;
    let (mut publisher, answer) =
        Client::<V5>::connect_with(&world, "p", &key, Options5::default()).await;
    let said = answer.properties.expect("properties");
    assert_eq!(said.receive_max, Some(4));
    world.intake.open_gate(false);
    for id in 1..=10 {
        publisher.publish("van/v1/x", &id.to_string(), id).await;
    }
    // Four messages at a time.
    world.intake.until_waiting(4).await;
    publisher.send(&Packet::PingReq(PingReq)).await;
    world.intake.open_gate(true);
    let mut answers = Vec::new();
    for _ in 0..11 {
        answers.push(publisher.receive().await);
    }
    let ping = Packet::PingResp(PingResp);
    let ping_at = answers.iter().position(|packet| *packet == ping);
    let ping_at = ping_at.expect("an answer to the ping");
    // It was read when the tenth message was in the window, so seven had left it by then.
    assert!(ping_at >= 7, "{answers:?}");
    answers.remove(ping_at);
    let expected: Vec<_> = (1..=10).map(acknowledged).collect();
    assert_eq!(answers, expected);
    assert_eq!(world.taken().await.len(), 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn subscriber_receive_maximum_is_respected() {
    let world = World::start().await;
    let key = world.key([]).await;
    let mut options = Options5::default();
    options.properties.receive_maximum = Some(2);
    let mut subscriber = Client::<V5>::connect_with(&world, "s", &key, options)
        .await
        .0;
    subscriber.subscribe("van/v1/x").await;
    let mut publisher = Client::<V5>::connect(&world, "p", &key).await;
    for number in 0..5 {
        publisher
            .publish_and_wait("van/v1/x", &number.to_string())
            .await;
    }
    let first = subscriber.receive_publish().await;
    let second = subscriber.receive_publish().await;
    assert_ne!(first.pkid, second.pkid);
    subscriber.ping().await;
    subscriber.acknowledge(first.pkid).await;
    let third = subscriber.receive_publish().await;
    assert_eq!(&third.payload[..], b"2");
    subscriber.ping().await;
}
