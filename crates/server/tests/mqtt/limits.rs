//! Limits: sizes, counts and rates; slow and silent clients.

use std::time::Duration;

use homeport_server::{ConnectionLimits, Connections, MqttSettings, RateLimit, TrustedProxies};
use rumqttc::v5::mqttbytes::QoS;
use rumqttc::v5::mqttbytes::v5::{
    ConnectReturnCode, DisconnectReasonCode, Filter, Packet, PubAckReason, PublishProperties,
    SubscribeReasonCode,
};

use crate::client::{Client, Options5, V3, V5, acknowledged, message};
use crate::world::{World, until};

#[tokio::test(flavor = "multi_thread")]
async fn silent_client_is_disconnected_after_its_keep_alive() {
    let world = World::start().await;
    let key = world.key([]).await;
    let options = Options5 {
        keep_alive: 1,
        ..Options5::default()
    };
    let started = std::time::Instant::now();
    let (mut client, _) = Client::<V5>::connect_with(&world, "c", &key, options).await;
    client
        .expect_disconnect(DisconnectReasonCode::KeepAliveTimeout)
        .await;
    assert!(started.elapsed() >= Duration::from_millis(1500));
}

#[tokio::test(flavor = "multi_thread")]
async fn connection_without_connect_is_closed() {
    let settings = MqttSettings {
        connect_timeout: Duration::from_millis(200),
        ..MqttSettings::default()
    };
    let world = World::start_with(settings).await;
    Client::<V5>::open(&world).await.expect_end().await;
    let mut half = Client::<V5>::open(&world).await;
    half.send_bytes(&[0x10, 0x20, 0, 4]).await;
    half.expect_end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn oversized_packet_ends_the_connection() {
    let settings = MqttSettings {
        packet_bytes_max: 1024,
        ..MqttSettings::default()
    };
    let world = World::start_with(settings).await;
    let key = world.key([]).await;
    let mut client = Client::<V5>::connect(&world, "c", &key).await;
    client.publish_and_wait("van/v1/x", &"x".repeat(900)).await;
    // The length is enough: the server does not wait for the rest.
    client.send_bytes(&[0x30, 0xff, 0xff, 0x7f]).await;
    client
        .expect_disconnect(DisconnectReasonCode::PacketTooLarge)
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn subscriptions_have_a_limit() {
    let settings = MqttSettings {
        subscriptions_max: 2,
        ..MqttSettings::default()
    };
    let world = World::start_with(settings).await;
    let key = world.key([]).await;
    let mut client = Client::<V5>::connect(&world, "c", &key).await;
    let granted = SubscribeReasonCode::Success(QoS::AtLeastOnce);
    for (filter, expected) in [
        ("van/v1/a", granted),
        ("van/v1/b", granted),
        ("van/v1/c", SubscribeReasonCode::QuotaExceeded),
        ("van/v1/a", granted),
    ] {
        assert_eq!(client.subscribe(filter).await, expected, "{filter}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_have_a_limit() {
    let settings = MqttSettings {
        sessions_max: 1,
        ..MqttSettings::default()
    };
    let world = World::start_with(settings).await;
    let key = world.key([]).await;
    let first = Client::<V5>::connect(&world, "a", &key).await;
    let options = Options5::default();
    let (_, answer) = Client::<V5>::try_connect(&world, "b", ("x", &key), options).await;
    assert_eq!(answer.code, ConnectReturnCode::QuotaExceeded);
    first.disconnect().await;
    until("there is room", || async {
        let options = Options5::default();
        let (_, answer) = Client::<V5>::try_connect(&world, "b", ("x", &key), options).await;
        answer.code == ConnectReturnCode::Success
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_beyond_the_limit_get_server_busy() {
    let settings = MqttSettings {
        connections_max: 1,
        ..MqttSettings::default()
    };
    let of_all_ports = ConnectionLimits {
        total_max: 1,
        ..ConnectionLimits::default()
    };
    let of_one_address = ConnectionLimits {
        per_address_max: 1,
        ..ConnectionLimits::default()
    };
    let sharing = |limits| Connections::new(limits, TrustedProxies::default());
    for world in [
        World::start_with(settings).await,
        World::start_sharing(sharing(of_all_ports)).await,
        World::start_sharing(sharing(of_one_address)).await,
    ] {
        let key = world.key([]).await;
        let first = Client::<V5>::connect(&world, "a", &key).await;
        let options = Options5::default();
        let (mut second, answer) =
            Client::<V5>::try_connect(&world, "b", ("x", &key), options).await;
        assert_eq!(answer.code, ConnectReturnCode::ServerBusy);
        second.expect_end().await;
        let (_, answer) = Client::<V3>::try_connect(&world, "b", &key, true).await;
        assert_eq!(
            answer.code,
            rumqttc::mqttbytes::v4::ConnectReturnCode::ServiceUnavailable
        );
        first.disconnect().await;
        until("there is room", || async {
            let options = Options5::default();
            let (_, answer) = Client::<V5>::try_connect(&world, "b", ("x", &key), options).await;
            answer.code == ConnectReturnCode::Success
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_user_properties_are_refused() {
    let world = World::start().await;
    let key = world.key([]).await;
    let mut client = Client::<V5>::connect(&world, "c", &key).await;
    let mut publish = message("van/v1/x", "1", 3);
    publish.properties = Some(PublishProperties {
        user_properties: vec![("a".to_owned(), "b".to_owned()); 65],
        ..PublishProperties::default()
    });
    client.send(&Packet::Publish(publish)).await;
    let Packet::PubAck(answer) = client.receive().await else {
        panic!("no answer");
    };
    assert_eq!(answer.reason, PubAckReason::QuotaExceeded);
}

/// Sends many times what a subscriber that reads nothing can hold.
async fn flood(world: &World, key: &str, qos: QoS) {
    let mut publisher = Client::<V5>::connect(world, "p", key).await;
    let payload = "x".repeat(50_000);
    for round in 0..400_u16 {
        let mut publish = message("van/v1/x", &payload, round % 200 + 1);
        publish.qos = qos;
        publisher.send(&Packet::Publish(publish)).await;
        if qos == QoS::AtLeastOnce {
            assert!(matches!(publisher.receive().await, Packet::PubAck(_)));
        }
    }
    publisher.publish_and_wait("van/v1/done", "done").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_qos_0_subscriber_loses_only_its_messages() {
    let world = World::start().await;
    let key = world.key([]).await;
    let mut slow = Client::<V5>::connect(&world, "slow", &key).await;
    slow.subscribe_with(Filter::new("van/v1/x", QoS::AtMostOnce), None)
        .await;
    let mut quick = Client::<V5>::connect(&world, "quick", &key).await;
    quick.subscribe("van/v1/done").await;
    flood(&world, &key, QoS::AtMostOnce).await;
    assert_eq!(quick.take().await, "done");
    // It is still connected, and gets the messages that fitted.
    let mut got = 0;
    slow.send(&Packet::PingReq(rumqttc::v5::mqttbytes::v5::PingReq))
        .await;
    while let Packet::Publish(_) = slow.receive().await {
        got += 1;
    }
    assert!((1..400).contains(&got), "{got}");
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_qos_1_subscriber_without_session_is_disconnected() {
    let world = World::start().await;
    let key = world.key([]).await;
    let mut slow = Client::<V5>::connect(&world, "slow", &key).await;
    slow.subscribe("van/v1/x").await;
    flood(&world, &key, QoS::AtLeastOnce).await;
    // Messages in flight come first; the reason, if it still fits, comes last.
    let mut last = None;
    while let Some(packet) = slow.next().await {
        last = Some(packet);
    }
    match last {
        Some(Packet::Publish(_)) | None => {}
        Some(Packet::Disconnect(said)) => {
            assert_eq!(said.reason_code, DisconnectReasonCode::QuotaExceeded);
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_subscriber_with_a_session_loses_nothing() {
    let world = World::start().await;
    let key = world.key([]).await;
    let kept = Options5::kept(true);
    let mut slow = Client::<V5>::connect_with(&world, "slow", &key, kept)
        .await
        .0;
    slow.subscribe("van/v1/x").await;
    flood(&world, &key, QoS::AtLeastOnce).await;
    for _ in 0..400 {
        slow.take().await;
    }
    slow.ping().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn client_id_length_is_limited() {
    let world = World::start().await;
    let key = world.key([]).await;
    for id in ["x".repeat(257), "a\u{7}b".to_owned()] {
        let options = Options5::default();
        let (_, answer) = Client::<V5>::try_connect(&world, &id, ("x", &key), options).await;
        assert_eq!(answer.code, ConnectReturnCode::ClientIdentifierNotValid);
    }
    let (_, answer) = Client::<V3>::try_connect(&world, "", &key, false).await;
    assert_eq!(
        answer.code,
        rumqttc::mqttbytes::v4::ConnectReturnCode::BadClientId
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn rate_limit_delays_messages_and_loses_none() {
    let limit = RateLimit {
        per_second: 20.0,
        burst: 2.0,
    };
    let world = World::start_limited(limit).await;
    let key = world.key([]).await;
    let mut client = Client::<V5>::connect(&world, "c", &key).await;
    let started = std::time::Instant::now();
    for number in 1..=5 {
        client
            .publish("van/v1/x", &number.to_string(), number)
            .await;
    }
    // Messages of operators and of other keys do not wait.
    let other_key = world.key([]).await;
    let mut other = Client::<V5>::connect(&world, "o", &other_key).await;
    other.publish_and_wait("van/v2/x", "mine").await;
    for number in 1..=5 {
        client.expect(acknowledged(number)).await;
    }
    // The clock stands still: the third message waits for one token, the fourth for two.
    assert!(started.elapsed() >= Duration::from_millis(50 + 100 + 150));
    let taken = world.taken().await.into_iter();
    let taken: Vec<_> = taken.filter(|(topic, _)| topic == "van/v1/x").collect();
    let expected: Vec<_> = (1..=5)
        .map(|n| ("van/v1/x".to_owned(), n.to_string()))
        .collect();
    assert_eq!(taken, expected);
    let mut operator = Client::<V5>::operator(&world, "op").await;
    for _ in 0..5 {
        operator.publish_and_wait("van/v3/x", "at once").await;
    }
}
