//! The rules of API keys, one test each.

mod support;

use std::collections::BTreeSet;
use std::sync::Arc;

use homeport_item::{Item, Value};
use homeport_store::{Delete, Get, Put};
use homeport_systems::api_keys::{
    ApiKeyError, ApiKeys, KeyId, KeyPermission, NewApiKey, Pepper, UNKNOWN_KEY_CACHE_SECS, schema,
};
use sha2::{Digest as _, Sha256};
use support::Fixture;

async fn keys() -> (Arc<ApiKeys>, Fixture) {
    let fixture = support::fixture(&schema::tables()).await;
    (Arc::new(another(&fixture)), fixture)
}

/// Another process on the same store.
fn another(fixture: &Fixture) -> ApiKeys {
    let pepper = Pepper::new("pepper".to_owned());
    ApiKeys::new(
        Arc::clone(&fixture.store),
        Arc::clone(&fixture.clock) as _,
        pepper,
    )
}

async fn stored(fixture: &Fixture, key_id: KeyId) -> Item {
    let key = Item::new().with("key_id", key_id.to_string());
    let item = fixture.store.get(Get::new("api_keys", key)).await;
    item.expect("a get").expect("a key")
}

#[tokio::test]
async fn stored_key_has_the_documented_form() {
    let (keys, fixture) = keys().await;
    let new = NewApiKey {
        description: Some("greenhouse".to_owned()),
        ..NewApiKey::for_all_of("sensors")
    };
    let (key, raw) = keys.create(new).await.expect("a key");
    let item = stored(&fixture, key.key_id).await;
    let hash = item
        .get("api_key_hash")
        .and_then(Value::as_str)
        .expect("a hash");
    assert_eq!(hash.len(), 64);
    assert_eq!(
        serde_json::to_value(&item).expect("json"),
        serde_json::json!({
            "key_id": {"S": key.key_id.to_string()},
            "api_key_hash": {"S": hash},
            "created_at": {"S": "2027-01-15T08:00:00Z"},
            "is_active": {"BOOL": true},
            "description": {"S": "greenhouse"},
            "gsi1pk": {"S": "api_keys"},
            "gsi1sk": {"S": "2027-01-15T08:00:00Z"},
        })
    );
    assert!(
        !serde_json::to_string(&item)
            .expect("json")
            .contains(raw.reveal())
    );
}

#[tokio::test]
async fn only_the_raw_key_is_accepted() {
    let (keys, _fixture) = keys().await;
    let (key, raw) = keys
        .create(NewApiKey::for_all_of("sensors"))
        .await
        .expect("a key");
    let verified = keys
        .verify(raw.reveal())
        .await
        .expect("verifies")
        .expect("a key");
    assert_eq!(verified.key_id, key.key_id);
    for wrong in ["", "x", &"0".repeat(64), &raw.reveal()[1..]] {
        assert_eq!(keys.verify(wrong).await, Ok(None), "{wrong}");
    }
}

#[tokio::test]
async fn new_key_works_before_the_index_has_it() {
    let (keys, fixture) = keys().await;
    let (key, raw) = keys
        .create(NewApiKey::for_all_of("sensors"))
        .await
        .expect("a key");
    assert_eq!(keys.cached(), 1);
    // Like an index that lags.
    let row = Item::new().with("key_id", key.key_id.to_string());
    let delete = Delete::new("api_keys", row);
    fixture.store.delete(delete).await.expect("deleted");
    assert!(keys.verify(raw.reveal()).await.expect("verifies").is_some());
    let elsewhere = another(&fixture);
    assert_eq!(elsewhere.verify(raw.reveal()).await, Ok(None));
}

#[tokio::test]
async fn revoked_key_is_rejected() {
    let (keys, fixture) = keys().await;
    let (key, raw) = keys
        .create(NewApiKey::for_all_of("sensors"))
        .await
        .expect("a key");
    assert!(keys.verify(raw.reveal()).await.expect("verifies").is_some());
    let revoked = keys.revoke(key.key_id).await.expect("revokes");
    assert!(revoked.was_active && !revoked.key.is_active);
    let again = keys.revoke(key.key_id).await.expect("revokes");
    assert!(!again.was_active && !again.key.is_active);
    assert_eq!(keys.verify(raw.reveal()).await, Ok(None));
    let item = stored(&fixture, key.key_id).await;
    assert_eq!(item.get("is_active"), Some(&Value::Bool(false)));
}

#[tokio::test]
async fn revocation_reaches_other_processes_within_cache_time() {
    let (keys, fixture) = keys().await;
    let elsewhere = another(&fixture);
    let (key, raw) = keys
        .create(NewApiKey::for_all_of("sensors"))
        .await
        .expect("a key");
    assert!(
        elsewhere
            .verify(raw.reveal())
            .await
            .expect("verifies")
            .is_some()
    );
    keys.revoke(key.key_id).await.expect("revokes");
    fixture
        .clock
        .advance_ms(homeport_systems::api_keys::CACHE_SECS * 1000);
    assert_eq!(elsewhere.verify(raw.reveal()).await, Ok(None));
}

#[tokio::test(flavor = "multi_thread")]
async fn verification_under_way_does_not_undo_revocation() {
    let (keys, _fixture) = keys().await;
    for _ in 0..20 {
        let (key, raw) = keys
            .create(NewApiKey::for_all_of("sensors"))
            .await
            .expect("a key");
        let users: Vec<_> = (0..4)
            .map(|_| {
                let (keys, raw) = (Arc::clone(&keys), raw.clone());
                tokio::spawn(async move { keys.verify(raw.reveal()).await })
            })
            .collect();
        keys.revoke(key.key_id).await.expect("revokes");
        for user in users {
            user.await.expect("no panic").expect("verifies");
        }
        assert_eq!(keys.verify(raw.reveal()).await, Ok(None));
    }
}

#[tokio::test]
async fn last_use_is_written_every_five_minutes() {
    let (keys, fixture) = keys().await;
    let (key, raw) = keys
        .create(NewApiKey::for_all_of("sensors"))
        .await
        .expect("a key");
    let last_used = || async {
        let item = stored(&fixture, key.key_id).await;
        item.get("last_used_at")
            .and_then(Value::as_str)
            .map(str::to_owned)
    };
    assert_eq!(last_used().await, None);
    for (advance_secs, expected) in [
        (10, "2027-01-15T08:00:10Z"),
        (299, "2027-01-15T08:00:10Z"),
        (1, "2027-01-15T08:05:10Z"),
        (60, "2027-01-15T08:05:10Z"),
    ] {
        fixture.clock.advance_ms(advance_secs * 1000);
        keys.verify(raw.reveal()).await.expect("verifies");
        assert_eq!(last_used().await.as_deref(), Some(expected));
    }
}

#[tokio::test]
async fn scopes_limit_the_subjects_of_a_key() {
    let (keys, _fixture) = keys().await;
    let new = NewApiKey {
        scopes: BTreeSet::from(["AA:BB:CC:DD:EE:FF".to_owned()]),
        ..NewApiKey::default()
    };
    let (_, raw) = keys.create(new).await.expect("a key");
    let key = keys
        .verify(raw.reveal())
        .await
        .expect("verifies")
        .expect("a key");
    assert!(key.allows("sensors", "AA:BB:CC:DD:EE:FF"));
    assert!(!key.allows("sensors", "AA:BB:CC:DD:EE:00"));
    assert!(!key.allows("telemetry", "AA:BB:CC:DD:EE:FF"));
    let (_, raw) = keys
        .create(NewApiKey::for_all_of("sensors"))
        .await
        .expect("a key");
    let open = keys
        .verify(raw.reveal())
        .await
        .expect("verifies")
        .expect("a key");
    assert!(open.allows("sensors", "AA:BB:CC:DD:EE:00"));
    assert!(!open.allows("chargers", "SC-00000000"));
}

#[tokio::test]
async fn permissions_are_stored_with_the_key() {
    let (keys, fixture) = keys().await;
    let permissions = BTreeSet::from([KeyPermission::SendCommands, KeyPermission::SubscribeFleet]);
    let new = NewApiKey {
        permissions: permissions.clone(),
        ..NewApiKey::for_all_of("telemetry")
    };
    let (key, _) = keys.create(new).await.expect("a key");
    assert_eq!(key.permissions, permissions);
    let listed = keys.list(10, None).await.expect("a page").items;
    assert_eq!(listed[0].permissions, permissions);
    let item = stored(&fixture, key.key_id).await;
    let names = ["send_commands", "subscribe_fleet"].map(str::to_owned);
    assert_eq!(
        item.get("permissions"),
        Some(&Value::string_set(names).expect("a set"))
    );
}

#[tokio::test]
async fn keys_are_listed_newest_first() {
    let (keys, fixture) = keys().await;
    let mut made = Vec::new();
    for _ in 0..5 {
        made.push(
            keys.create(NewApiKey::for_all_of("sensors"))
                .await
                .expect("a key")
                .0
                .key_id,
        );
        fixture.clock.advance_ms(1000);
    }
    made.reverse();
    let first = keys.list(3, None).await.expect("a page");
    let second = keys.list(3, first.next.clone()).await.expect("a page");
    let listed: Vec<_> = first
        .items
        .iter()
        .chain(&second.items)
        .map(|key| key.key_id)
        .collect();
    assert_eq!(listed, made);
    assert_eq!(second.next, None);
}

/// The example of the design document, whose id is a UUID of version 7.
fn documented_key(hash: &str) -> Item {
    Item::new()
        .with("key_id", "a1b2c3d4-e5f6-7890-abcd-ef1234567890")
        .with("api_key_hash", hash)
        .with("created_at", "2024-01-10T08:00:00Z")
        .with("last_used_at", "2024-01-15T14:22:00Z")
        .with("is_active", true)
        .with("description", "Production devices - greenhouse cluster")
        .with("gsi1pk", "api_keys")
        .with("gsi1sk", "2024-01-10T08:00:00Z")
}

#[tokio::test]
async fn documented_key_works() {
    let (keys, fixture) = keys().await;
    let raw = "0".repeat(64);
    let hash = hex::encode(Sha256::digest(format!("pepper{raw}")));
    let put = Put::new("api_keys", documented_key(&hash));
    fixture.store.put(put).await.expect("a put");
    let verified = keys.verify(&raw).await.expect("verifies").expect("a key");
    assert!(verified.allows("sensors", "AA:BB:CC:DD:EE:FF"));
    let page = keys.list(10, None).await.expect("a page");
    assert_eq!(page.items.len(), 1);
    assert!(
        keys.revoke(page.items[0].key_id)
            .await
            .expect("revokes")
            .was_active
    );
    assert_eq!(keys.verify(&raw).await, Ok(None));
}

#[tokio::test]
async fn unreadable_key_is_rejected_and_hides_nothing() {
    let (keys, fixture) = keys().await;
    let (good, _) = keys
        .create(NewApiKey::for_all_of("sensors"))
        .await
        .expect("a key");
    let raw = "0".repeat(64);
    let hash = hex::encode(Sha256::digest(format!("pepper{raw}")));
    let put = Put::new("api_keys", documented_key(&hash).with("scopes", "a text"));
    fixture.store.put(put).await.expect("a put");
    let opened = keys.verify(&raw).await;
    assert!(
        matches!(opened, Err(ApiKeyError::Malformed(_))),
        "{opened:?}"
    );
    let page = keys.list(10, None).await.expect("a page");
    let listed: Vec<_> = page.items.iter().map(|key| key.key_id).collect();
    assert_eq!(listed, [good.key_id]);
}

#[tokio::test]
async fn unreadable_key_can_be_revoked() {
    let (keys, fixture) = keys().await;
    let (key, raw) = keys
        .create(NewApiKey::for_all_of("sensors"))
        .await
        .expect("a key");
    assert!(keys.verify(raw.reveal()).await.expect("verifies").is_some());
    let damaged = stored(&fixture, key.key_id).await.with("scopes", "a text");
    let put = Put::new("api_keys", damaged);
    fixture.store.put(put).await.expect("a put");
    let revoked = keys.revoke(key.key_id).await;
    assert!(
        matches!(revoked, Err(ApiKeyError::Malformed(_))),
        "{revoked:?}"
    );
    // Not from the cache either.
    let opened = keys.verify(raw.reveal()).await;
    assert!(
        matches!(opened, Err(ApiKeyError::Malformed(_))),
        "{opened:?}"
    );
    let item = stored(&fixture, key.key_id).await;
    assert_eq!(item.get("is_active"), Some(&Value::Bool(false)));
}

#[tokio::test]
async fn invalid_keys_are_rejected() {
    let (keys, _fixture) = keys().await;
    for new in [
        NewApiKey {
            description: Some(String::new()),
            ..NewApiKey::for_all_of("sensors")
        },
        NewApiKey {
            system: Some("toasters".to_owned()),
            ..NewApiKey::for_all_of("sensors")
        },
        // Neither scopes nor the whole system, and both.
        NewApiKey::default(),
        NewApiKey {
            scopes: BTreeSet::from(["AA:BB:CC:DD:EE:FF".to_owned()]),
            ..NewApiKey::for_all_of("sensors")
        },
        NewApiKey {
            permissions: BTreeSet::from([KeyPermission::SendCommands]),
            ..NewApiKey::for_all_of("sensors")
        },
        NewApiKey {
            system: Some("telemetry".to_owned()),
            scopes: BTreeSet::from(["van-1".to_owned()]),
            permissions: BTreeSet::from([KeyPermission::SubscribeFleet]),
            ..NewApiKey::default()
        },
    ] {
        assert!(matches!(
            keys.create(new).await,
            Err(ApiKeyError::Invalid(_))
        ));
    }
    let lower_case = NewApiKey {
        scopes: BTreeSet::from(["aa:bb:cc:dd:ee:ff".to_owned()]),
        ..NewApiKey::default()
    };
    assert!(matches!(
        keys.create(lower_case).await,
        Err(ApiKeyError::InvalidScope { .. })
    ));
    let nobody = KeyId::random();
    assert_eq!(keys.revoke(nobody).await, Err(ApiKeyError::Missing(nobody)));
}

#[tokio::test]
async fn listeners_are_notified_of_revocations() {
    let (keys, _fixture) = keys().await;
    let (key, _) = keys
        .create(NewApiKey::for_all_of("sensors"))
        .await
        .expect("a key");
    let mut revocations = keys.revocations();
    keys.revoke(key.key_id).await.expect("revokes");
    assert_eq!(revocations.try_recv(), Ok(key.key_id));
}

#[tokio::test]
async fn unknown_key_is_looked_up_once() {
    let (keys, fixture) = keys().await;
    let raw = "0".repeat(64);
    assert_eq!(keys.verify(&raw).await, Ok(None));
    // Another process creates the key.
    let hash = hex::encode(Sha256::digest(format!("pepper{raw}")));
    let put = Put::new("api_keys", documented_key(&hash));
    fixture.store.put(put).await.expect("a put");
    assert_eq!(keys.verify(&raw).await, Ok(None));
    fixture.clock.advance_ms(UNKNOWN_KEY_CACHE_SECS * 1000);
    assert!(keys.verify(&raw).await.expect("verifies").is_some());
}

#[tokio::test]
async fn status_of_many_keys_is_read() {
    let (keys, _fixture) = keys().await;
    let mut all = BTreeSet::new();
    for _ in 0..205 {
        let (key, _) = keys
            .create(NewApiKey::for_all_of("sensors"))
            .await
            .expect("a key");
        all.insert(key.key_id);
    }
    assert_eq!(keys.inactive(&all).await, Ok(BTreeSet::new()));
    let mut inactive = BTreeSet::from([KeyId::random()]);
    for key_id in all.iter().step_by(50) {
        keys.revoke(*key_id).await.expect("revokes");
        inactive.insert(*key_id);
    }
    all.extend(&inactive);
    assert_eq!(keys.inactive(&all).await, Ok(inactive));
    assert_eq!(keys.inactive(&BTreeSet::new()).await, Ok(BTreeSet::new()));
}

/// A process with another pepper.
fn with_pepper(fixture: &Fixture, pepper: &str) -> ApiKeys {
    let pepper = Pepper::new(pepper.to_owned());
    ApiKeys::new(
        Arc::clone(&fixture.store),
        Arc::clone(&fixture.clock) as _,
        pepper,
    )
}

async fn forget_check(fixture: &Fixture) {
    let key = Item::new().with(schema::SECRET, schema::PEPPER);
    let delete = Delete::new(schema::SECRET_CHECKS, key);
    fixture.store.delete(delete).await.expect("deleted");
}

#[tokio::test]
async fn wrong_pepper_is_recognized_after_the_first_key() {
    let (keys, fixture) = keys().await;
    let wrong = with_pepper(&fixture, "wrong");
    assert_eq!(wrong.check_pepper().await, Ok(()), "nothing is hashed yet");
    let new = NewApiKey::for_all_of("sensors");
    let (key, _) = keys.create(new).await.expect("a key");
    assert_eq!(wrong.check_pepper().await, Err(ApiKeyError::WrongPepper));
    assert_eq!(another(&fixture).check_pepper().await, Ok(()));
    // Without active keys nothing is lost, and the new pepper counts.
    keys.revoke(key.key_id).await.expect("revoked");
    assert_eq!(wrong.check_pepper().await, Ok(()));
    wrong
        .create(NewApiKey::for_all_of("sensors"))
        .await
        .expect("a key");
    let earlier = another(&fixture).check_pepper().await;
    assert_eq!(earlier, Err(ApiKeyError::WrongPepper));
}

#[tokio::test]
async fn older_store_gets_its_check_with_a_proven_pepper() {
    let (keys, fixture) = keys().await;
    let new = NewApiKey::for_all_of("sensors");
    let (_, raw) = keys.create(new.clone()).await.expect("a key");
    forget_check(&fixture).await;
    let wrong = with_pepper(&fixture, "wrong");
    // Neither a rejected key nor a new one proves that a pepper is right.
    assert_eq!(wrong.verify(raw.reveal()).await, Ok(None));
    wrong.create(new).await.expect("a key");
    assert_eq!(another(&fixture).check_pepper().await, Ok(()));
    let right = another(&fixture);
    let verified = right.verify(raw.reveal()).await.expect("a lookup");
    assert!(verified.is_some());
    assert_eq!(wrong.check_pepper().await, Err(ApiKeyError::WrongPepper));
}
