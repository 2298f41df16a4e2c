//! The id dispenser.

use std::collections::BTreeSet;

use homeport_systems::records::{DispensedId, GroupId, IdTag, NewIdTag, RecordsError};

use super::world::{new_group, open, world};

fn tag(text: &str) -> IdTag {
    text.parse().expect("a tag")
}

fn agreed(text: &str) -> NewIdTag {
    NewIdTag {
        tag: tag(text),
        salt: Some("sdfjkl34j234j".to_owned()),
        min_length: Some(8),
        next_id: None,
    }
}

#[tokio::test]
async fn ids_are_sequential_and_encoded_as_documented() {
    let world = world().await;
    world.records.init_tag(agreed("gid")).await.expect("a tag");
    for expected in 1..10 {
        let dispensed = world.records.dispense(&tag("gid")).await.expect("an id");
        assert_eq!(dispensed.id, expected);
    }
    let tenth = DispensedId {
        id: 10,
        tag: tag("gid"),
        encoded: "5YXd4XZ0".to_owned(),
    };
    assert_eq!(world.records.dispense(&tag("gid")).await, Ok(tenth.clone()));
    assert_eq!(
        world.records.decode(&tag("gid"), "5YXd4XZ0").await,
        Ok(tenth)
    );
}

#[tokio::test]
async fn tag_is_stored_with_salt_and_length() {
    let world = world().await;
    world.records.init_tag(agreed("gid")).await.expect("a tag");
    world.records.dispense(&tag("gid")).await.expect("an id");
    let stored = world.partition("IdTag#gid#").await;
    assert_eq!(
        serde_json::to_value(&stored["IdTag#gid#"]).expect("JSON"),
        serde_json::json!({
            "PK": {"S": "IdTag#gid#"}, "SK": {"S": "IdTag#gid#"}, "idtag": {"S": "gid"},
            "salt": {"S": "sdfjkl34j234j"}, "min_length": {"N": "8"}, "last_id": {"N": "1"},
        })
    );
}

#[tokio::test]
async fn concurrent_callers_get_different_ids() {
    let world = world().await;
    world.records.init_tag(agreed("gid")).await.expect("a tag");
    let tasks: Vec<_> = (0..50)
        .map(|_| {
            let records = world.records.clone();
            tokio::spawn(async move { records.dispense(&tag("gid")).await.expect("an id").id })
        })
        .collect();
    let mut ids = BTreeSet::new();
    for task in tasks {
        ids.insert(task.await.expect("no panic"));
    }
    assert_eq!(ids, (1..=50).collect());
}

#[tokio::test]
async fn invalid_requests_have_distinct_errors() {
    let world = world().await;
    let records = &world.records;
    records.init_tag(agreed("gid")).await.expect("a tag");
    assert_eq!(
        records.decode(&tag("gid"), "5YXd4XZ1").await,
        Err(RecordsError::EncodedId)
    );
    let missing = RecordsError::TagMissing(tag("other"));
    assert_eq!(records.dispense(&tag("other")).await, Err(missing.clone()));
    assert_eq!(
        records.decode(&tag("other"), "5YXd4XZ0").await,
        Err(missing)
    );
    let again = NewIdTag {
        salt: Some("another".to_owned()),
        ..agreed("gid")
    };
    assert_eq!(
        records.init_tag(again).await,
        Err(RecordsError::TagExists(tag("gid")))
    );
    // The rejected init changed nothing.
    assert_eq!(
        records
            .decode(&tag("gid"), "5YXd4XZ0")
            .await
            .expect("ten")
            .id,
        10
    );
}

#[tokio::test]
async fn salt_and_length_out_of_bounds_are_rejected() {
    let world = world().await;
    for (salt, min_length) in [("", 8), ("salt", 0), ("salt", 13)] {
        let new = NewIdTag {
            tag: tag("gid"),
            salt: Some(salt.to_owned()),
            min_length: Some(min_length),
            next_id: None,
        };
        let answer = world.records.init_tag(new).await;
        assert!(
            matches!(answer, Err(RecordsError::Invalid(_))),
            "{answer:?}"
        );
    }
    for text in ["", "a#b", "a b", &"x".repeat(65)] {
        assert!(text.parse::<IdTag>().is_err(), "{text}");
    }
}

#[tokio::test]
async fn groups_use_an_existing_tag() {
    let world = world().await;
    world.records.init_tag(agreed("gid")).await.expect("a tag");
    for _ in 0..9 {
        world.records.dispense(&tag("gid")).await.expect("an id");
    }
    let group = world.records.add_group(new_group()).await.expect("a group");
    assert_eq!(group.id, GroupId(10));
    let ids = world.records.ids().await.expect("ids");
    assert_eq!(ids.group(group.id), "5YXd4XZ0");
    // Another process encodes it in the same way.
    let other = open(world.fixture.store.clone(), &world.fixture);
    let ids = other.ids().await.expect("ids");
    assert_eq!(ids.parse_group("5YXd4XZ0"), Ok(GroupId(10)));
}

#[tokio::test]
async fn encodings_are_missing_before_the_first_group() {
    let world = world().await;
    let answer = world.records.ids().await.map(drop);
    assert_eq!(answer, Err(RecordsError::TagMissing(tag("gid"))));
    assert_eq!(world.count().await, 0, "reading wrote something");
}
