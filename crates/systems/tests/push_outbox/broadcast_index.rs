//! The optional index of active devices by platform.

use homeport_item::{Item, Value};
use homeport_store::{Get, Put, Update};
use homeport_systems::push::{Platform, Push, Settings, schema};
use std::sync::Arc;

use crate::world::{World, user, world, world_with};

async fn indexed() -> World {
    world_with(Settings {
        broadcast_index: true,
        ..Settings::default()
    })
    .await
}

impl World {
    async fn stored(&self, user: &str, device: &str) -> Item {
        let key = Item::new().with("userId", user).with("deviceId", device);
        let get = Get::new(Settings::default().table, key);
        let item = self.fixture.store.get(get).await.expect("read");
        item.expect("a device")
    }

    async fn active_platform(&self, user: &str, device: &str) -> Option<String> {
        let item = self.stored(user, device).await;
        let value = item.get("activePlatform").and_then(Value::as_str);
        value.map(str::to_owned)
    }

    /// Writes a device as the design document's own program does.
    async fn put_foreign(&self, user: &str, token: &str, platform: &str) {
        let item = Item::new()
            .with("userId", user)
            .with("deviceId", "phone")
            .with("expoPushToken", format!("ExponentPushToken[{token}]"))
            .with("platform", platform)
            .with("registeredAt", "2026-12-01T00:00:00.000Z")
            .with("updatedAt", "2026-12-01T00:00:00.000Z")
            .with("isActive", true)
            .with("expiresAt", 1_900_000_000);
        let put = Put::new(Settings::default().table, item);
        self.fixture.store.put(put).await.expect("stored");
    }
}

#[tokio::test]
async fn items_have_only_documented_attributes_by_default() {
    let world = world().await;
    world.register("user-1", "phone", "a").await;
    world.register("user-1", "phone", "b").await;
    let item = world.stored("user-1", "phone").await;
    let names: Vec<_> = item.iter().map(|(name, _)| name.to_owned()).collect();
    let mut expected = [
        "userId",
        "deviceId",
        "expoPushToken",
        "platform",
        "registeredAt",
        "updatedAt",
        "isActive",
        "expiresAt",
    ];
    expected.sort_unstable();
    assert_eq!(names, expected);
}

#[tokio::test]
async fn only_active_devices_are_in_the_index() {
    let world = indexed().await;
    let phone = "phone".parse().expect("a device");
    let one = user("user-1");
    world
        .register_on(Platform::Ios, "user-1", "phone", "a")
        .await;
    assert_eq!(
        world.active_platform("user-1", "phone").await.as_deref(),
        Some("ios")
    );
    world.push.deactivate(&one, &phone).await.expect("off");
    assert_eq!(world.active_platform("user-1", "phone").await, None);
    world
        .register_on(Platform::Android, "user-1", "phone", "a")
        .await;
    assert_eq!(
        world.active_platform("user-1", "phone").await.as_deref(),
        Some("android")
    );
}

#[tokio::test]
async fn devices_of_other_programs_are_added() {
    /// More than one page.
    const FOREIGN: usize = 520;
    let world = indexed().await;
    for number in 0..FOREIGN {
        let user = format!("user-{number}");
        world.put_foreign(&user, &number.to_string(), "ios").await;
    }
    world.put_foreign("user-web", "web", "web").await;
    world.broadcast(None).await;
    world.run(&mut world.worker()).await;
    assert_eq!(world.reached().len(), FOREIGN);
    let indexed = world.active_platform("user-7", "phone").await;
    assert_eq!(indexed.as_deref(), Some("ios"));
    // A later process looks again. A device that its own program switched off gets nothing.
    world.put_foreign("user-new", "new", "android").await;
    let key = Item::new()
        .with("userId", "user-7")
        .with("deviceId", "phone");
    let off = homeport_item::expression::Update::new().set("isActive", false);
    let off = Update::new(Settings::default().table, key, off);
    world.fixture.store.update(off).await.expect("off");
    world.broadcast(None).await;
    world.run(&mut world.worker()).await;
    let tokens = world.tokens();
    let later = &tokens[FOREIGN..];
    assert_eq!(later.len(), FOREIGN);
    assert!(later.contains(&"ExponentPushToken[new]".to_owned()));
    assert!(!later.contains(&"ExponentPushToken[7]".to_owned()));
}

#[tokio::test]
async fn index_can_be_switched_on_during_a_broadcast() {
    let world = world_with(Settings::default()).await;
    world.register_pairs(200).await;
    world.broadcast(None).await;
    let mut worker = world.worker();
    while world.sent().is_empty() {
        worker.turn().await.expect("a turn");
    }
    drop(worker);
    let settings = Settings {
        broadcast_index: true,
        ..Settings::default()
    };
    let store = Arc::clone(&world.fixture.store);
    let tables = schema::tables(&settings.table, true);
    store.ensure_tables(&tables).await.expect("the index");
    let world = World {
        push: Push::new(store, Arc::clone(&world.fixture.clock) as _, settings),
        ..world
    };
    world.run(&mut world.worker()).await;
    let reached = world.reached();
    assert_eq!(reached.len(), 400);
    assert!(reached.is_sorted_by(|one, next| one < next));
}
