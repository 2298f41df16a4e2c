//! The properties of MQTT 5.

use rumqttc::v5::mqttbytes::QoS;
use rumqttc::v5::mqttbytes::v5::{
    ConnectReturnCode, DisconnectReasonCode, Filter, Packet, PublishProperties,
};

use crate::client::{Client, Options5, V5, acknowledged, message};
use crate::world::World;

#[tokio::test(flavor = "multi_thread")]
async fn message_properties_reach_the_subscriber() {
    let world = World::start().await;
    let key = world.key([]).await;
    let mut client = Client::<V5>::connect_with(&world, "c", &key, Options5::kept(true))
        .await
        .0;
    client.subscribe("van/v1/x").await;
    let properties = PublishProperties {
        payload_format_indicator: Some(1),
        message_expiry_interval: Some(100),
        topic_alias: None,
        response_topic: Some("van/v1/answers".to_owned()),
        correlation_data: Some("\u{1}\u{2}".into()),
        user_properties: vec![
            ("a".to_owned(), "1".to_owned()),
            ("a".to_owned(), "2".to_owned()),
        ],
        subscription_identifiers: Vec::new(),
        content_type: Some("text/plain".to_owned()),
    };
    let mut publish = message("van/v1/x", "hello", 3);
    publish.properties = Some(properties.clone());
    client.send(&Packet::Publish(publish.clone())).await;
    // The message and the answer may come in either order.
    let mut got = None;
    for _ in 0..2 {
        match client.receive().await {
            Packet::Publish(publish) => got = Some(publish),
            packet => assert_eq!(packet, acknowledged(3)),
        }
    }
    let got = got.expect("a message");
    assert_eq!(got.properties.as_ref(), Some(&properties));
    // From the store they are the same, except for the elapsed time.
    drop(client);
    world.clock.advance_ms(10_000);
    let mut client = Client::<V5>::connect_with(&world, "c", &key, Options5::kept(false))
        .await
        .0;
    let again = client.receive_publish().await;
    let expected = PublishProperties {
        message_expiry_interval: Some(90),
        ..properties
    };
    assert_eq!(again.properties, Some(expected));
    drop(client);
    world.clock.advance_ms(90_000);
    let mut client = Client::<V5>::connect_with(&world, "c", &key, Options5::kept(false))
        .await
        .0;
    client.ping().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn topic_aliases_replace_topics() {
    let world = World::start().await;
    let key = world.key([]).await;
    let (mut client, answer) =
        Client::<V5>::connect_with(&world, "c", &key, Options5::default()).await;
    let aliases = answer.properties.expect("properties").topic_alias_max;
    assert_eq!(aliases, Some(16));
    let with_alias = |topic: &str, alias| {
        let mut publish = message(topic, "1", 3);
        publish.properties = Some(PublishProperties {
            topic_alias: Some(alias),
            ..PublishProperties::default()
        });
        Packet::Publish(publish)
    };
    for topic in ["van/v1/x", "", "van/v1/y", ""] {
        client.send(&with_alias(topic, 16)).await;
        client.expect(acknowledged(3)).await;
    }
    let topics: Vec<_> = world
        .taken()
        .await
        .into_iter()
        .map(|(topic, _)| topic)
        .collect();
    assert_eq!(topics, ["van/v1/x", "van/v1/x", "van/v1/y", "van/v1/y"]);
    client.send(&with_alias("", 15)).await;
    client
        .expect_disconnect(DisconnectReasonCode::TopicAliasInvalid)
        .await;
    let mut client = Client::<V5>::connect(&world, "c", &key).await;
    client.send(&with_alias("van/v1/x", 17)).await;
    client
        .expect_disconnect(DisconnectReasonCode::TopicAliasInvalid)
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_copy_carries_the_identifiers_of_all_subscriptions() {
    let world = World::start().await;
    let key = world.key([]).await;
    let mut client = Client::<V5>::connect(&world, "c", &key).await;
    for (filter, qos, id) in [
        ("van/v1/#", QoS::AtMostOnce, 7),
        ("van/+/x", QoS::AtLeastOnce, 300),
    ] {
        client
            .subscribe_with(Filter::new(filter, qos), Some(id))
            .await;
    }
    let mut publisher = Client::<V5>::connect(&world, "p", &key).await;
    publisher.publish_and_wait("van/v1/x", "1").await;
    let publish = client.receive_publish().await;
    assert_eq!(publish.qos, QoS::AtLeastOnce);
    let mut identifiers = publish
        .properties
        .expect("properties")
        .subscription_identifiers;
    identifiers.sort_unstable();
    assert_eq!(identifiers, [7, 300]);
    client.ping().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_local_omits_the_clients_own_messages() {
    let world = World::start().await;
    let key = world.key([]).await;
    let mut client = Client::<V5>::connect(&world, "c", &key).await;
    let mut filter = Filter::new("van/v1/x", QoS::AtLeastOnce);
    filter.nolocal = true;
    client.subscribe_with(filter, None).await;
    client.publish_and_wait("van/v1/x", "mine").await;
    client.ping().await;
    let mut other = Client::<V5>::connect(&world, "o", &key).await;
    other.publish_and_wait("van/v1/x", "theirs").await;
    assert_eq!(client.take().await, "theirs");
}

#[tokio::test(flavor = "multi_thread")]
async fn connack_reports_changed_settings() {
    let world = World::start().await;
    let key = world.key([]).await;
    let mut options = Options5 {
        keep_alive: 0,
        ..Options5::default()
    };
    options.properties.session_expiry_interval = Some(u32::MAX);
    let (_, answer) = Client::<V5>::connect_with(&world, "", &key, options).await;
    let said = answer.properties.expect("properties");
    assert!(said.assigned_client_identifier.is_some());
    assert_eq!(said.server_keep_alive, Some(1200));
    assert_eq!(said.session_expiry_interval, Some(7 * 24 * 60 * 60));
    assert_eq!(said.max_qos, Some(1));
    assert_eq!(said.max_packet_size, Some(256 * 1024));
    assert_eq!(said.receive_max, Some(256));
}

#[tokio::test(flavor = "multi_thread")]
async fn client_maximum_packet_size_is_respected() {
    let world = World::start().await;
    let key = world.key([]).await;
    let mut options = Options5::kept(true);
    options.properties.max_packet_size = Some(100);
    let mut client = Client::<V5>::connect_with(&world, "c", &key, options)
        .await
        .0;
    client.subscribe("van/v1/x").await;
    let mut publisher = Client::<V5>::connect(&world, "p", &key).await;
    publisher
        .publish_and_wait("van/v1/x", &"x".repeat(200))
        .await;
    publisher.publish_and_wait("van/v1/x", "small").await;
    assert_eq!(client.take().await, "small");
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_authentication_method_is_refused() {
    let world = World::start().await;
    let key = world.key([]).await;
    let mut options = Options5::default();
    options.properties.authentication_method = Some("SCRAM-SHA-256".to_owned());
    let (_, answer) = Client::<V5>::try_connect(&world, "c", ("x", &key), options).await;
    assert_eq!(answer.code, ConnectReturnCode::BadAuthenticationMethod);
}
