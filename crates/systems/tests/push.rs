//! Push: the frozen table, patterns 1 to 6, the clean-up and the counters behind the alarms.

mod support;

use std::sync::Arc;

use homeport_item::KeyKind;
use homeport_item::schema::KeyAttribute;
use homeport_store::{Get, Put};
use homeport_systems::push::{
    CleanedUp, Device, DeviceId, DeviceVerdict, NewDevice, Platform, Push, PushError, Registered,
    Settings, UserId, schema,
};
use homeport_systems::time::EpochSeconds;
use metrics_exporter_prometheus::PrometheusBuilder;
use serde_json::json;
use support::{Fixture, NOW_MS};

const DAY_MS: i64 = 24 * 60 * 60 * 1000;
const TABLE: &str = "photoeditor-dev-device-tokens";

struct World {
    push: Push,
    fixture: Fixture,
}

async fn world() -> World {
    let fixture = support::fixture(&schema::tables(TABLE, false)).await;
    let push = Push::new(
        Arc::clone(&fixture.store),
        Arc::clone(&fixture.clock) as _,
        Settings::default(),
    );
    World { push, fixture }
}

fn user(id: &str) -> UserId {
    id.parse().expect("a user")
}

fn device(id: &str) -> DeviceId {
    id.parse().expect("a device")
}

fn new(user_id: &str, device_id: &str, token: &str) -> NewDevice {
    NewDevice {
        user_id: user(user_id),
        device_id: device(device_id),
        expo_push_token: format!("ExponentPushToken[{token}]")
            .parse()
            .expect("a token"),
        platform: Platform::Ios,
    }
}

impl World {
    async fn register(&self, user_id: &str, device_id: &str, token: &str) -> Registered {
        let registered = self.push.register(new(user_id, device_id, token)).await;
        registered.expect("registered")
    }

    /// The item in DynamoDB's JSON.
    async fn stored(&self, user_id: &str, device_id: &str) -> serde_json::Value {
        let key = homeport_item::Item::new()
            .with("userId", user_id)
            .with("deviceId", device_id);
        let item = self.fixture.store.get(Get::new(TABLE, key)).await;
        serde_json::to_value(item.expect("a store")).expect("JSON")
    }

    /// Deactivates a device of user-1.
    async fn off(&self, device_id: &str) -> Result<Device, PushError> {
        let (user, device) = (user("user-1"), device(device_id));
        self.push.deactivate(&user, &device).await
    }

    /// Deletes a device of user-1.
    async fn delete(&self, device_id: &str) -> Result<(), PushError> {
        let (user, device) = (user("user-1"), device(device_id));
        self.push.delete(&user, &device).await
    }

    async fn active(&self, user_id: &str) -> Vec<String> {
        let (mut ids, mut cursor) = (Vec::new(), None);
        loop {
            let page = self.push.active_devices(&user(user_id), 2, cursor).await;
            let page = page.expect("devices");
            ids.extend(page.items.iter().map(|one| one.device_id.to_string()));
            cursor = page.next;
            if cursor.is_none() {
                return ids;
            }
            assert_eq!(page.items.len(), 2, "a page is full or the last");
        }
    }
}

#[test]
fn table_matches_the_design_document() {
    assert_eq!(Settings::default().table, TABLE);
    assert_eq!(schema::table_of("prod"), "photoeditor-prod-device-tokens");
    let table = schema::device_tokens(TABLE, false);
    assert_eq!(table.name, TABLE);
    assert_eq!(table.key.partition, KeyAttribute::new("userId", KeyKind::S));
    assert_eq!(
        table.key.sort,
        Some(KeyAttribute::new("deviceId", KeyKind::S))
    );
    assert_eq!(table.ttl_attribute.as_deref(), Some("expiresAt"));
    assert!(table.indexes.is_empty(), "no index is required");
}

#[tokio::test]
async fn pattern_1_creates_a_device_with_all_attributes() {
    let world = world().await;
    let registered = world.register("user-1", "device-1", "one").await;
    assert!(matches!(registered, Registered::New(_)));
    assert_eq!(
        world.stored("user-1", "device-1").await,
        json!({
            "userId": {"S": "user-1"},
            "deviceId": {"S": "device-1"},
            "expoPushToken": {"S": "ExponentPushToken[one]"},
            "platform": {"S": "ios"},
            "registeredAt": {"S": "2027-01-15T08:00:00.000Z"},
            "updatedAt": {"S": "2027-01-15T08:00:00.000Z"},
            "isActive": {"BOOL": true},
            "expiresAt": {"N": (NOW_MS / 1000 + 90 * 24 * 60 * 60).to_string()},
        })
    );
}

#[tokio::test]
async fn pattern_2_refreshes_a_known_device() {
    let world = world().await;
    world.register("user-1", "device-1", "one").await;
    let off = world.off("device-1");
    off.await.expect("off");
    world.fixture.clock.advance_ms(10 * DAY_MS + 7);
    let mut refresh = new("user-1", "device-1", "two");
    refresh.platform = Platform::Android;
    let refreshed = world.push.register(refresh).await.expect("refreshed");
    assert!(matches!(refreshed, Registered::Refreshed(_)));
    assert_eq!(
        world.stored("user-1", "device-1").await,
        json!({
            "userId": {"S": "user-1"},
            "deviceId": {"S": "device-1"},
            "expoPushToken": {"S": "ExponentPushToken[two]"},
            "platform": {"S": "android"},
            "registeredAt": {"S": "2027-01-15T08:00:00.000Z"},
            "updatedAt": {"S": "2027-01-25T08:00:00.007Z"},
            "isActive": {"BOOL": true},
            "expiresAt": {"N": (NOW_MS / 1000 + 100 * 24 * 60 * 60).to_string()},
        })
    );
}

#[tokio::test]
async fn pattern_3_reads_one_device() {
    let world = world().await;
    let Registered::New(registered) = world.register("user-1", "device-1", "one").await else {
        panic!("it is new");
    };
    let read = world
        .push
        .device(&user("user-1"), &device("device-1"))
        .await;
    assert_eq!(read, Ok(registered));
    for (user_id, device_id) in [("user-1", "device-2"), ("user-2", "device-1")] {
        let read = world.push.device(&user(user_id), &device(device_id)).await;
        assert_eq!(read, Err(PushError::DeviceMissing));
    }
}

#[tokio::test]
async fn pattern_4_lists_active_devices_of_a_user() {
    let world = world().await;
    for id in ["a", "b", "c", "d", "e"] {
        world.register("user-1", id, id).await;
    }
    world.register("user-10", "x", "x").await;
    for id in ["b", "c"] {
        let off = world.off(id).await;
        off.expect("off");
    }
    assert_eq!(world.active("user-1").await, ["a", "d", "e"]);
    assert_eq!(world.active("user-10").await, ["x"]);
    assert!(world.active("nobody").await.is_empty());
}

#[tokio::test]
async fn pattern_5_deactivates_a_device() {
    let world = world().await;
    world.register("user-1", "device-1", "one").await;
    let before = world.stored("user-1", "device-1").await;
    world.fixture.clock.advance_ms(1000);
    let off = world.off("device-1");
    assert!(!off.await.expect("off").is_active);
    let mut expected = before;
    expected["isActive"] = json!({"BOOL": false});
    expected["updatedAt"] = json!({"S": "2027-01-15T08:00:01.000Z"});
    assert_eq!(world.stored("user-1", "device-1").await, expected);
    assert!(world.active("user-1").await.is_empty());
    let missing = world.off("device-2");
    assert_eq!(missing.await, Err(PushError::DeviceMissing));
    let made = world.stored("user-1", "device-2").await;
    assert_eq!(made, json!(null), "deactivating makes no device");
}

#[tokio::test]
async fn pattern_6_deletes_a_device_once() {
    let world = world().await;
    world.register("user-1", "device-1", "one").await;
    let (one, id) = (user("user-1"), device("device-1"));
    assert_eq!(world.push.delete(&one, &id).await, Ok(()));
    assert_eq!(world.stored("user-1", "device-1").await, json!(null));
    let again = world.push.delete(&one, &id).await;
    assert_eq!(again, Err(PushError::DeviceMissing));
}

#[tokio::test]
async fn registration_expires_after_ninety_days() {
    let world = world().await;
    world.register("user-1", "device-1", "one").await;
    world.fixture.clock.advance_ms(90 * DAY_MS - 1000);
    assert_eq!(world.active("user-1").await, ["device-1"]);
    world.fixture.clock.advance_ms(1000);
    assert!(world.active("user-1").await.is_empty());
    let read = world
        .push
        .device(&user("user-1"), &device("device-1"))
        .await;
    assert_eq!(read, Err(PushError::DeviceMissing));
    let again = world.register("user-1", "device-1", "two").await;
    let Registered::New(Device {
        registered_at,
        expires_at,
        ..
    }) = again
    else {
        panic!("it is new again: {again:?}");
    };
    assert_eq!(registered_at, "2027-04-15T08:00:00.000Z");
    let expires = NOW_MS / 1000 + 180 * 24 * 60 * 60;
    assert_eq!(expires_at, Some(EpochSeconds(expires)));
}

#[tokio::test]
async fn concurrent_registrations_create_one_device() {
    let world = world().await;
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..16 {
        let push = world.push.clone();
        let token = number.to_string();
        tasks.spawn(async move { push.register(new("user-1", "device-1", &token)).await });
    }
    let outcomes = tasks.join_all().await;
    let new = outcomes
        .iter()
        .filter(|one| matches!(one, Ok(Registered::New(_))));
    assert_eq!(new.count(), 1);
    assert!(outcomes.iter().all(Result::is_ok));
    assert_eq!(world.active("user-1").await, ["device-1"]);
}

#[tokio::test]
async fn concurrent_deletion_never_fails_a_registration() {
    let world = world().await;
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..8 {
        let push = world.push.clone();
        tasks.spawn(async move {
            let registered = push.register(new("user-1", "device-1", &number.to_string()));
            registered.await.map(|_| ())
        });
        let push = world.push.clone();
        tasks.spawn(async move {
            match push.delete(&user("user-1"), &device("device-1")).await {
                Ok(()) | Err(PushError::DeviceMissing) => Ok(()),
                Err(error) => Err(error),
            }
        });
    }
    for outcome in tasks.join_all().await {
        assert_eq!(outcome, Ok(()));
    }
}

#[tokio::test]
async fn token_leaves_its_first_user() {
    let world = world().await;
    for device in ["phone", "restored-phone"] {
        world.register("user-1", device, "shared").await;
    }
    world.register("user-1", "tablet", "other").await;
    let both = world.active("user-1").await;
    assert_eq!(both, ["phone", "restored-phone", "tablet"]);
    world.register("user-2", "phone", "shared").await;
    assert_eq!(world.active("user-1").await, ["tablet"]);
    assert_eq!(world.active("user-2").await, ["phone"]);
    // A device that has another token by now stays.
    world.register("user-2", "phone", "new").await;
    world.register("user-1", "phone", "shared").await;
    assert_eq!(world.active("user-2").await, ["phone"]);
    assert_eq!(world.active("user-1").await, ["phone", "tablet"]);
}

#[tokio::test]
async fn concurrent_users_share_no_token() {
    let world = world().await;
    let users = ["user-1", "user-2", "user-3", "user-4"];
    let mut tasks = tokio::task::JoinSet::new();
    for user_id in users {
        let push = world.push.clone();
        tasks.spawn(async move { push.register(new(user_id, "phone", "shared")).await });
    }
    assert!(tasks.join_all().await.iter().all(Result::is_ok));
    let mut active = 0;
    for user_id in users {
        active += world.active(user_id).await.len();
    }
    assert_eq!(active, 1);
}

#[tokio::test]
async fn clock_jump_deletes_no_device() {
    let world = world().await;
    world.register("user-1", "device-1", "a").await;
    world.off("device-1").await.expect("off");
    let steady = homeport_store::ManualClock::at_ms(NOW_MS);
    let push = world.push.clone().with_removal_clock(Arc::new(steady));
    world.fixture.clock.advance_ms(400 * DAY_MS);
    assert_eq!(push.clean_up(30, false).await, Ok(CleanedUp::default()));
}

#[tokio::test]
async fn cleanup_deletes_devices_inactive_before_the_cutoff() {
    let world = world().await;
    for id in ["old", "back", "young", "active"] {
        world.register("user-1", id, id).await;
    }
    let off = async |id: &str| {
        world.off(id).await.expect("off");
    };
    off("old").await;
    off("back").await;
    world.fixture.clock.advance_ms(1);
    off("young").await;
    world.fixture.clock.advance_ms(30 * DAY_MS);
    world.register("user-1", "back", "back").await;
    let dry = world.push.clean_up(30, true).await;
    let found = CleanedUp {
        found: 1,
        deleted: 0,
    };
    assert_eq!(dry, Ok(found));
    assert_ne!(world.stored("user-1", "old").await, json!(null));
    let cleaned = world.push.clean_up(30, false).await;
    assert_eq!(
        cleaned,
        Ok(CleanedUp {
            deleted: 1,
            ..found
        })
    );
    assert_eq!(world.stored("user-1", "old").await, json!(null));
    for kept in ["back", "young", "active"] {
        assert_ne!(world.stored("user-1", kept).await, json!(null), "{kept}");
    }
}

#[tokio::test]
async fn only_unknown_devices_count_as_failed_conditions() {
    let world = world().await;
    let recorder = PrometheusBuilder::new().build_recorder();
    let handle = recorder.handle();
    // The test runs on one thread, which is this one.
    let _local = metrics::set_default_local_recorder(&recorder);
    let failed = || {
        let text = handle.render();
        let line = text.lines().find_map(|line| {
            line.strip_prefix("homeport_push_conditional_check_failed_total ")
                .map(str::to_owned)
        });
        line.map_or(0, |count| count.parse::<u64>().expect("a count"))
    };
    for _ in 0..3 {
        world.register("user-1", "device-1", "one").await;
    }
    assert_eq!(failed(), 0);
    let missing = world.off("device-2");
    assert_eq!(missing.await, Err(PushError::DeviceMissing));
    let missing = world.delete("device-2");
    assert_eq!(missing.await, Err(PushError::DeviceMissing));
    assert_eq!(failed(), 2);
}

#[tokio::test]
async fn checks_show_why_a_user_gets_nothing() {
    let world = world().await;
    world.register("user-1", "device-1", "one").await;
    let off = world.off("device-1");
    off.await.expect("off");
    // As another program would write it: no expiry, and a token of another service.
    let foreign = homeport_item::Item::new()
        .with("userId", "user-1")
        .with("deviceId", "device-2")
        .with("expoPushToken", "fcm:abc")
        .with("isActive", true);
    let put = world.fixture.store.put(Put::new(TABLE, foreign)).await;
    put.expect("written");
    let found = world.push.check_user(&user("user-1")).await.expect("found");
    let shown: Vec<_> = found
        .iter()
        .map(|one| (one.device_id.as_str(), one.verdict, one.has_valid_token))
        .collect();
    assert_eq!(
        shown,
        [
            ("device-1", DeviceVerdict::Inactive, true),
            ("device-2", DeviceVerdict::InvalidToken, false)
        ]
    );
    assert_eq!(found[1].expires_at, None);
    let table = world.push.check_table().await.expect("found");
    assert_eq!(
        (
            table.devices,
            table.active,
            table.without_expiry,
            table.wrong_token
        ),
        (2, 1, 1, 1)
    );
}
