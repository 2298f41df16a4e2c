//! Push tokens leave the store with their devices.

use homeport_store::Scan;
use homeport_systems::outbox::SendError;
use homeport_systems::push::{Erased, IdempotencyKey, Receipt, Settings, schema};

use crate::world::{Answer, World, message, user, world};

/// All items of all tables of push, as JSON.
async fn stored(world: &World) -> String {
    let mut stored = String::new();
    for table in schema::tables(&Settings::default().table, false) {
        let mut scan = Scan::new(&table.name);
        loop {
            let page = world.fixture.store.scan(scan.clone()).await;
            let page = page.expect("a page");
            stored.push_str(&serde_json::to_string(&page.items).expect("JSON"));
            scan.start = page.next;
            if scan.start.is_none() {
                break;
            }
        }
    }
    stored
}

#[tokio::test]
async fn no_token_outlives_its_device() {
    let world = world().await;
    for device in ["ticket", "receipt", "refused"] {
        world.register("user-1", device, device).await;
    }
    world.notify("user-1").await;
    let named = "400: ExpoPushToken[refused] and ExpoPushToken[tick";
    world.script([Answer::Fail(SendError::Unanswered(named.to_owned()))]);
    let mut worker = world.worker();
    worker.turn().await.expect("a turn");
    world.fixture.clock.advance_ms(60_000);
    world.script([Answer::Ticket("ticket", "DeviceNotRegistered")]);
    assert_eq!(worker.turn().await.expect("a turn").messages, 3);
    let gone = Receipt::Error {
        code: "ProviderError".to_owned(),
        message: "ExpoPushToken[receipt] failed".to_owned(),
    };
    let id = "ticket of ExpoPushToken[receipt]".to_owned();
    world.add_receipts([(id, gone)]);
    world.fixture.clock.advance_ms(15 * 60 * 1000);
    worker.turn().await.expect("a turn");
    assert!(stored(&world).await.contains("PushToken["));
    for device in ["ticket", "receipt", "refused"] {
        let device = device.parse().expect("a device");
        let deleted = world.push.delete(&user("user-1"), &device).await;
        deleted.expect("deleted");
    }
    let left = stored(&world).await;
    // The ids of the scripted tickets are no tokens of Expo.
    let left = left.replace("ticket of ExpoPushToken[", "");
    assert!(
        left.contains("ProviderError: the push token failed"),
        "{left}"
    );
    assert!(!left.contains("PushToken["), "{left}");
    assert!(!left.contains("token#"), "{left}");
}

#[tokio::test]
async fn erased_user_leaves_nothing() {
    let world = world().await;
    for user_id in ["user-1", "user-2"] {
        for device in ["a", "b"] {
            let token = format!("{user_id}-{device}");
            world.register(user_id, device, &token).await;
        }
    }
    let key: IdempotencyKey = "job-7".parse().expect("a key");
    for user_id in ["user-1", "user-2"] {
        let user = user(user_id);
        let sent = world.push.notify(&user, message("Ready"), Some(&key)).await;
        sent.expect("accepted");
    }
    let mut worker = world.worker();
    worker.turn().await.expect("a turn");
    world.notify("user-1").await;
    assert_eq!(world.open().await, 3);
    let erased = world.push.erase_user(&user("user-1")).await;
    let expected = Erased {
        devices: 2,
        notifications: 2,
    };
    assert_eq!(erased, Ok(expected));
    let left = stored(&world).await;
    assert!(!left.contains("user-1"), "{left}");
    assert!(left.contains("user-2"));
    assert_eq!(world.open().await, 1);
    let again = world.push.erase_user(&user("user-1")).await;
    assert_eq!(again, Ok(Erased::default()));
    worker.turn().await.expect("a turn");
    assert!(!stored(&world).await.contains("user-1"));
}
