//! Wills of lost clients.

use homeport_store::{Scan, Store as _};
use homeport_systems::messages::schema;
use rumqttc::v5::mqttbytes::QoS;
use rumqttc::v5::mqttbytes::v5::{
    ConnectReturnCode, Disconnect, DisconnectReasonCode, LastWill, LastWillProperties, Packet,
};

use crate::client::{Client, Options5, V5};
use crate::world::{World, until};

fn will(delay_secs: u32) -> Option<LastWill> {
    let properties = LastWillProperties {
        delay_interval: Some(delay_secs),
        payload_format_indicator: None,
        message_expiry_interval: None,
        content_type: Some("text/plain".to_owned()),
        response_topic: None,
        correlation_data: None,
        user_properties: Vec::new(),
    };
    Some(LastWill {
        topic: "van/v1/status".into(),
        message: "lost".into(),
        qos: QoS::AtLeastOnce,
        retain: false,
        properties: Some(properties),
    })
}

async fn watcher(world: &World, key: &str) -> Client<V5> {
    let mut watcher = Client::<V5>::connect(world, "watcher", key).await;
    watcher.subscribe("van/+/status").await;
    watcher
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_connection_publishes_the_will() {
    let world = World::start().await;
    let key = world.key([]).await;
    let mut watcher = watcher(&world, &key).await;
    let options = Options5 {
        will: will(0),
        ..Options5::default()
    };
    let (device, _) = Client::<V5>::connect_with(&world, "v1", &key, options).await;
    drop(device);
    let lost = watcher.receive_publish().await;
    assert_eq!(&lost.payload[..], b"lost");
    let said = lost.properties.expect("properties");
    assert_eq!(said.content_type.as_deref(), Some("text/plain"));
    assert_eq!(world.taken().await.len(), 1, "rules see it too");
}

#[tokio::test(flavor = "multi_thread")]
async fn disconnect_discards_the_will() {
    let world = World::start().await;
    let key = world.key([]).await;
    let mut watcher = watcher(&world, &key).await;
    let options = Options5 {
        will: will(0),
        ..Options5::kept(true)
    };
    let (device, _) = Client::<V5>::connect_with(&world, "v1", &key, options).await;
    device.disconnect().await;
    // A will would be published before the end of the session is stored.
    until("the session waits", || async {
        let page = world.engine.scan(Scan::new(schema::SESSIONS)).await;
        let items = page.expect("a page").items;
        items
            .iter()
            .any(|item| item.get(schema::EXPIRES_AT).is_some())
    })
    .await;
    assert_eq!(world.taken().await, []);
    // Unless the client requests it.
    let options = Options5 {
        will: will(0),
        ..Options5::default()
    };
    let (mut device, _) = Client::<V5>::connect_with(&world, "v1", &key, options).await;
    let bye = Disconnect::new(DisconnectReasonCode::DisconnectWithWillMessage);
    device.send(&Packet::Disconnect(bye)).await;
    assert_eq!(watcher.take().await, "lost");
}

#[tokio::test(flavor = "multi_thread")]
async fn reconnect_discards_a_delayed_will() {
    let world = World::start().await;
    let key = world.key([]).await;
    let mut watcher = watcher(&world, &key).await;
    let delayed = || Options5 {
        will: will(60),
        ..Options5::kept(false)
    };
    let device = Client::<V5>::connect_with(&world, "v1", &key, delayed())
        .await
        .0;
    drop(device);
    // Reconnected in time: the will of the previous connection is dropped.
    let device = Client::<V5>::connect_with(&world, "v1", &key, delayed())
        .await
        .0;
    world.clock.advance_ms(61_000);
    watcher.publish_and_wait("van/v1/status", "first").await;
    assert_eq!(watcher.take().await, "first");
    drop(device);
    until("the session waits", || async {
        world.clock.advance_ms(1000);
        world.taken().await.len() == 2
    })
    .await;
    assert_eq!(watcher.take().await, "lost");
}

#[tokio::test(flavor = "multi_thread")]
async fn clock_jump_expires_no_session() {
    const DAYS_400_MS: i64 = 400 * 24 * 60 * 60 * 1000;
    let world = World::start().await;
    let key = world.key([]).await;
    let mut watcher = watcher(&world, &key).await;
    let kept = Options5::kept(true);
    let (mut client, _) = Client::<V5>::connect_with(&world, "a", &key, kept).await;
    client.subscribe("van/v1/x").await;
    client.disconnect().await;
    watcher.publish_and_wait("van/v1/x", "kept").await;
    // Its will is due when its session ends, and after the first session.
    let delayed = Options5 {
        will: will(3600),
        ..Options5::kept(true)
    };
    let (device, _) = Client::<V5>::connect_with(&world, "b", &key, delayed).await;
    drop(device);
    until("both sessions wait", || async {
        world.broker.scheduled_len() == 2
    })
    .await;
    world.clock.advance_ms(DAYS_400_MS);
    assert_eq!(watcher.take().await, "lost");
    world.clock.advance_ms(-DAYS_400_MS);
    let kept = Options5::kept(false);
    let (mut client, answer) = Client::<V5>::connect_with(&world, "a", &key, kept).await;
    assert!(answer.session_present);
    assert_eq!(client.take().await, "kept");
}

#[tokio::test(flavor = "multi_thread")]
async fn message_hidden_by_a_clock_jump_is_delivered_later() {
    const DAYS_400_MS: i64 = 400 * 24 * 60 * 60 * 1000;
    let world = World::start().await;
    let key = world.key([]).await;
    let kept = || Options5::kept(false);
    let (mut client, _) = Client::<V5>::connect_with(&world, "a", &key, kept()).await;
    client.subscribe("van/v1/x").await;
    client.disconnect().await;
    let mut publisher = watcher(&world, &key).await;
    publisher.publish_and_wait("van/v1/x", "hidden").await;
    world.clock.advance_ms(DAYS_400_MS);
    let (mut client, answer) = Client::<V5>::connect_with(&world, "a", &key, kept()).await;
    assert!(answer.session_present);
    // The queue was read with the wrong clock before this message arrives.
    publisher.publish_and_wait("van/v1/x", "visible").await;
    assert_eq!(client.take().await, "visible");
    world.clock.advance_ms(-DAYS_400_MS);
    assert_eq!(client.take().await, "hidden");
}

#[tokio::test(flavor = "multi_thread")]
async fn session_end_publishes_a_delayed_will() {
    let world = World::start().await;
    let key = world.key([]).await;
    let mut watcher = watcher(&world, &key).await;
    let delayed = Options5 {
        will: will(60),
        ..Options5::kept(true)
    };
    let device = Client::<V5>::connect_with(&world, "v1", &key, delayed)
        .await
        .0;
    drop(device);
    let _anew = Client::<V5>::connect_with(&world, "v1", &key, Options5::kept(true)).await;
    assert_eq!(watcher.take().await, "lost");
}

#[tokio::test(flavor = "multi_thread")]
async fn will_on_a_foreign_topic_is_refused() {
    let world = World::start().await;
    let key = world.key(["v2"]).await;
    let options = Options5 {
        will: will(0),
        ..Options5::default()
    };
    let (_, answer) = Client::<V5>::try_connect(&world, "v2", ("x", &key), options).await;
    assert_eq!(answer.code, ConnectReturnCode::NotAuthorized);
}
