//! Further attributes, external ids, groups of other programs, and the policies of devices.

use std::sync::Arc;

use homeport_item::{Item, Map, Value};
use homeport_store::{Delete, Put};
use homeport_systems::reactions::Reactions;
use homeport_systems::records::{
    Attributes, Change, DeviceChange, ExternalId, GroupChange, GroupId, GroupReaction,
    JournalChange, NewDevice, NewGroup, NewJournal, PolicyDocument, RecordRange, Records,
    RecordsError,
};
use serde_json::json;

use super::support::NOW_MS;
use super::world::{new_device, new_group, new_journal, new_record, world};

fn attributes(members: &[(&str, Value)]) -> Attributes {
    let members = members.iter().cloned();
    let members = members.map(|(name, value)| (name.to_owned(), value));
    Attributes::new(members.collect()).expect("attributes")
}

#[tokio::test]
async fn further_attributes_are_attributes_of_the_item() {
    let world = world().await;
    let records = &world.records;
    let site = || attributes(&[("site", "north".into()), ("floor", 3.into())]);
    let new = NewGroup {
        attributes: site(),
        ..new_group()
    };
    let group = records.add_group(new).await.expect("a group").id;
    let new = NewDevice {
        attributes: site(),
        ..new_device()
    };
    let device = records.add_device(group, new).await.expect("a device").id;
    let new = NewJournal {
        attributes: site(),
        ..new_journal()
    };
    let journal = records.add_journal(group, device, new).await;
    let journal = journal.expect("a journal").id;
    for sort in ["Group#1#", "Device#1#", "Journal#1#1#"] {
        let stored = world.stored(group, sort).await;
        assert_eq!(stored["site"], json!({"S": "north"}), "{sort}");
    }
    let change = || attributes(&[("floor", Value::Null), ("room", "7a".into())]);
    let changed = attributes(&[("site", "north".into()), ("room", "7a".into())]);
    let altered = GroupChange {
        attributes: change(),
        ..GroupChange::default()
    };
    let altered = records.alter_group(group, altered).await;
    assert_eq!(altered.expect("altered").attributes, changed);
    let altered = DeviceChange {
        attributes: change(),
        ..DeviceChange::default()
    };
    let altered = records.alter_device(group, device, altered).await;
    assert_eq!(altered.expect("altered").attributes, changed);
    let altered = JournalChange {
        attributes: change(),
        ..JournalChange::default()
    };
    let altered = records.alter_journal(group, device, journal, altered).await;
    assert_eq!(altered.expect("altered").attributes, changed);
}

#[tokio::test]
async fn external_id_finds_its_group() {
    let world = world().await;
    let records = &world.records;
    let id = |text: &str| text.parse::<ExternalId>().expect("an id");
    let new = |text| NewGroup {
        external_id: Some(id(text)),
        ..new_group()
    };
    let first = records.add_group(new("user-1")).await.expect("a group");
    let taken = records.add_group(new("user-1")).await;
    assert_eq!(taken, Err(RecordsError::ExternalIdTaken));
    let found = async |text| {
        let found = records.group_by_external_id(&id(text)).await;
        found.map(|group| group.id)
    };
    assert_eq!(found("user-1").await, Ok(first.id));
    let change = GroupChange {
        external_id: Change::Set(id("user-2")),
        ..GroupChange::default()
    };
    records
        .alter_group(first.id, change)
        .await
        .expect("altered");
    assert_eq!(found("user-1").await, Err(RecordsError::GroupMissing));
    assert_eq!(found("user-2").await, Ok(first.id));
    let second = records.add_group(new("user-1")).await.expect("free again");
    assert_eq!(found("user-1").await, Ok(second.id));
    records.remove_group(first.id).await.expect("removed");
    assert_eq!(found("user-2").await, Err(RecordsError::GroupMissing));
    let third = records.add_group(new("user-2")).await.expect("free again");
    assert_eq!(found("user-2").await, Ok(third.id));
    // Another program may remove a group with the document's own DeleteItem.
    let key = Item::new()
        .with("PK", third.id.to_string())
        .with("SK", format!("Group#{}#", third.id));
    let delete = Delete::new("awsh-recordstore-dev", key);
    world.store().delete(delete).await.expect("deleted");
    assert_eq!(found("user-2").await, Err(RecordsError::GroupMissing));
    records.add_group(new("user-2")).await.expect("free again");
}

#[tokio::test]
async fn groups_of_other_programs_are_listed_and_kept_up() {
    let world = world().await;
    let feed = world.fixture.feed();
    let clock = Arc::clone(&world.fixture.clock) as _;
    let reactions = Reactions::new(Arc::clone(&world.fixture.store), feed, clock);
    let reaction = GroupReaction::new(world.records.clone());
    let listed = async || {
        let page = world.records.list_groups(10, None).await.expect("groups");
        let groups = page.items.into_iter();
        groups.map(|group| group.id).collect::<Vec<_>>()
    };
    let put = async |group: &str, name: Option<&str>| {
        let mut item = Item::new()
            .with("PK", group)
            .with("SK", format!("Group#{group}#"))
            .with("retention_secs", 60);
        if let Some(name) = name {
            item.insert("name", name);
        }
        let put = Put::new("awsh-recordstore-dev", item);
        world.store().put(put).await.expect("a put");
    };
    put("40", Some("before")).await;
    reactions.catch_up(&reaction).await.expect("followed");
    assert_eq!(listed().await, [GroupId(40)]);
    put("41", Some("after")).await;
    put("42", None).await;
    put("site-a", Some("not a number")).await;
    reactions.catch_up(&reaction).await.expect("followed");
    assert_eq!(listed().await, [GroupId(40), GroupId(41)]);
    // Housekeeping knows its retention.
    let device = world.device(GroupId(41)).await.id;
    let journal = world.journal(GroupId(41), device).await.id;
    world.add((GroupId(41), device, journal), 1, 100).await;
    world.add((GroupId(41), device, journal), 2, NOW_MS).await;
    let housekept = world.records.housekeep(100).await.expect("kept up");
    assert_eq!(housekept.records, 1);
    let key = Item::new().with("PK", "40").with("SK", "Group#40#");
    let delete = Delete::new("awsh-recordstore-dev", key);
    world.store().delete(delete).await.expect("deleted");
    world
        .records
        .remove_group(GroupId(41))
        .await
        .expect("removed");
    reactions.catch_up(&reaction).await.expect("followed");
    assert!(world.partition("Groups#").await.keys().eq(["Groups#42#"]));
}

#[tokio::test]
async fn device_policy_restricts_keys() {
    let world = world().await;
    let (group, device, journal) = world.one_of_each().await;
    let open = world.device(group).await.id;
    let statement = Value::M(Map::from([
        ("Effect".to_owned(), "Allow".into()),
        ("Action".to_owned(), "read".into()),
        ("Principal".to_owned(), "reader".into()),
    ]));
    let policy = Map::from([("Statement".to_owned(), Value::L(vec![statement]))]);
    let change = DeviceChange {
        acl_policy: Change::Set(PolicyDocument::new(policy).expect("a policy")),
        ..DeviceChange::default()
    };
    let altered = world.records.alter_device(group, device, change).await;
    altered.expect("altered");
    world.add((group, device, journal), 1, 100).await;
    let (reader, other) = (
        world.records.for_key("reader"),
        world.records.for_key("other"),
    );
    let denied = Err(RecordsError::PolicyDenied);
    for key in [&reader, &other] {
        let added = key
            .add_record(group, device, journal, new_record(2, 200))
            .await;
        assert_eq!(added.map(drop), denied);
    }
    let range = RecordRange::default();
    let records = async |key: &Records| {
        let page = key.records(group, device, None, range, 9, None).await;
        page.map(|page| page.items.len())
    };
    assert_eq!(records(&reader).await, Ok(1));
    assert_eq!(records(&other).await, Err(RecordsError::PolicyDenied));
    for (key, devices, others) in [(&reader, vec![device, open], 1), (&other, vec![open], 0)] {
        let listed = key.list_devices(group, 9, None).await.expect("devices");
        let listed: Vec<_> = listed.items.iter().map(|one| one.id).collect();
        assert_eq!(listed, devices);
        let journals = key.list_journals(group, None, 9, None).await;
        assert_eq!(journals.expect("journals").items.len(), others);
        let latest = key.latest(group, None, 9, None).await;
        assert_eq!(latest.expect("latest").items.len(), others);
    }
}
