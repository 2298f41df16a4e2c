//! The access patterns of the design document, each under its own name, and its key schema.

use homeport_item::{KeyKind, Map, Value};
use homeport_systems::records::{
    Change, DeviceChange, DeviceId, GroupChange, GroupId, JournalId, NewDevice, PolicyDocument,
    RecordsError, Settings, schema,
};
use serde_json::json;

use super::world::{World, new_device, new_group, new_journal, shown, world};

#[test]
fn table_has_the_documented_name_and_keys() {
    assert_eq!(Settings::for_stage("test").table, "awsh-recordstore-test");
    assert_eq!(Settings::default().table, "awsh-recordstore-dev");
    let table = schema::table("awsh-recordstore-test");
    let key: Vec<_> = table
        .key
        .attributes()
        .map(|attribute| (attribute.name.as_str(), attribute.kind))
        .collect();
    assert_eq!(key, [("PK", KeyKind::S), ("SK", KeyKind::S)]);
    assert!(table.indexes.is_empty());
    assert_eq!(table.ttl_attribute, None);
    let sort_keys = [
        schema::GROUP,
        schema::DEVICE,
        schema::JOURNAL,
        schema::RECORD,
        schema::LATEST_RECORD,
    ];
    assert_eq!(
        sort_keys,
        ["Group#", "Device#", "Journal#", "Record#", "LatestRecord#"]
    );
}

/// Group 1 with device 1, journal 1 and two records.
async fn filled() -> World {
    let world = world().await;
    let ids = world.one_of_each().await;
    world.add(ids, 20, 1_600_000_000_000).await;
    world.add(ids, 21, 1_600_000_060_000).await;
    world
}

#[tokio::test]
async fn items_have_the_documented_attributes() {
    let world = filled().await;
    let group = GroupId(1);
    let partition = world.partition("1").await;
    assert_eq!(
        partition.keys().map(String::as_str).collect::<Vec<_>>(),
        [
            "Device#1#",
            "Group#1#",
            "Journal#1#1#",
            "LatestRecord#1#1#",
            "Record#1#1#1600000000000#",
            "Record#1#1#1600000060000#",
        ]
    );
    assert_eq!(
        world.stored(group, "Group#1#").await,
        json!({"PK": {"S": "1"}, "SK": {"S": "Group#1#"}, "name": {"S": "home"}})
    );
    assert_eq!(
        world.stored(group, "Device#1#").await,
        json!({"PK": {"S": "1"}, "SK": {"S": "Device#1#"}, "name": {"S": "roof"}})
    );
    assert_eq!(
        world.stored(group, "Journal#1#1#").await,
        json!({"PK": {"S": "1"}, "SK": {"S": "Journal#1#1#"}, "name": {"S": "outside"},
               "data_type": {"S": "number"}})
    );
    let record = |sort: &str, value: &str, at: &str| {
        json!({"PK": {"S": "1"}, "SK": {"S": sort}, "value": {"N": value}, "unit": {"S": "C"},
               "type": {"S": "temperature"}, "timestamp": {"N": at}})
    };
    for (sort, value, at) in [
        ("Record#1#1#1600000000000#", "20", "1600000000000"),
        ("Record#1#1#1600000060000#", "21", "1600000060000"),
        ("LatestRecord#1#1#", "21", "1600000060000"),
    ] {
        assert_eq!(world.stored(group, sort).await, record(sort, value, at));
    }
}

#[tokio::test]
async fn device_adds_journal_record() {
    let world = world().await;
    let ids = world.one_of_each().await;
    let record = world.add(ids, 20, 7).await;
    assert_eq!(record.timestamp.millis(), 7);
    let partition = world.partition("1").await;
    assert!(partition.contains_key("Record#1#1#0000000000007#"));
    assert!(partition.contains_key("LatestRecord#1#1#"));
}

#[tokio::test]
async fn list_all_devices_in_group() {
    let world = world().await;
    let group = world.group().await.id;
    let other = world.group().await.id;
    let mut added = Vec::new();
    for _ in 0..12 {
        added.push(world.device(group).await);
    }
    world.device(other).await;
    added.sort_by_key(|device| device.id.to_string());
    let (mut listed, mut cursor) = (Vec::new(), None);
    loop {
        let page = world.records.list_devices(group, 5, cursor).await;
        let page = page.expect("a page");
        listed.extend(page.items);
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(listed, added);
}

#[tokio::test]
async fn list_all_journals_in_group() {
    let world = world().await;
    let group = world.group().await.id;
    let mut added = Vec::new();
    for _ in 0..3 {
        let device = world.device(group).await.id;
        for _ in 0..2 {
            added.push(world.journal(group, device).await);
        }
    }
    let first = world.records.list_journals(group, None, 4, None).await;
    let first = first.expect("a page");
    let second = world
        .records
        .list_journals(group, None, 4, first.next)
        .await;
    let second = second.expect("a page");
    assert_eq!([first.items, second.items].concat(), added);
    assert_eq!(second.next, None);
    let device = added[2].device;
    let one = world
        .records
        .list_journals(group, Some(device), 9, None)
        .await;
    assert_eq!(one.expect("a page").items, added[2..4]);
}

#[tokio::test]
async fn get_one_device_records_in_a_certain_time_range() {
    let world = world().await;
    let (group, device, journal) = world.one_of_each().await;
    let second = world.journal(group, device).await.id;
    for at in [100, 200, 300, 400] {
        world.add((group, device, journal), at + 1, at).await;
        world.add((group, device, second), at + 2, at).await;
    }
    let of = |journal| world.history((group, device), journal, (200, 300), 3);
    assert_eq!(of(Some(journal)).await, Ok(vec![(201, 200), (301, 300)]));
    // A whole device: journal by journal, both ends included, over several pages.
    assert_eq!(
        of(None).await,
        Ok(vec![(201, 200), (301, 300), (202, 200), (302, 300)])
    );
    let reversed = world.history((group, device), None, (300, 200), 3).await;
    assert_eq!(reversed, Ok(Vec::new()));
}

#[tokio::test]
async fn get_latest_records_for_all_devices_in_group() {
    let world = world().await;
    let group = world.group().await.id;
    for number in 0..3 {
        let device = world.device(group).await.id;
        let journal = world.journal(group, device).await.id;
        world.add((group, device, journal), number, 100).await;
        world.add((group, device, journal), number + 10, 200).await;
    }
    let first = world.records.latest(group, None, 2, None).await;
    let first = first.expect("a page");
    assert_eq!(shown(&first), [(10, 200), (11, 200)]);
    let second = world.records.latest(group, None, 2, first.next).await;
    let second = second.expect("a page");
    assert_eq!(shown(&second), [(12, 200)]);
    assert_eq!(second.next, None);
}

#[tokio::test]
async fn get_latest_record_for_a_device() {
    let world = world().await;
    let (group, device, journal) = world.one_of_each().await;
    let silent = world.device(group).await.id;
    let second = world.journal(group, device).await.id;
    world.add((group, device, journal), 1, 100).await;
    world.add((group, device, second), 2, 200).await;
    let latest = world.records.latest(group, Some(device), 9, None).await;
    assert_eq!(shown(&latest.expect("a page")), [(1, 100), (2, 200)]);
    let none = world.records.latest(group, Some(silent), 9, None).await;
    assert_eq!(shown(&none.expect("a page")), []);
}

#[tokio::test]
async fn add_device() {
    let world = world().await;
    let group = world.group().await.id;
    let allow = Map::from([
        ("Effect".to_owned(), Value::from("Allow")),
        ("Action".to_owned(), Value::from("write")),
    ]);
    let statement = Value::L(vec![Value::M(allow)]);
    let policy = Map::from([("Statement".to_owned(), statement)]);
    let new = NewDevice {
        model: Some("BME280".parse().expect("a model")),
        acl_policy: Some(PolicyDocument::new(policy).expect("a policy")),
        ..new_device()
    };
    let added = world
        .records
        .add_device(group, new)
        .await
        .expect("a device");
    assert_eq!(world.records.device(group, added.id).await, Ok(added));
    assert_eq!(
        world.stored(group, "Device#1#").await,
        json!({"PK": {"S": "1"}, "SK": {"S": "Device#1#"}, "name": {"S": "roof"},
               "model": {"S": "BME280"},
               "acl_policy": {"M": {"Statement": {"L": [
                   {"M": {"Effect": {"S": "Allow"}, "Action": {"S": "write"}}}]}}}})
    );
}

#[tokio::test]
async fn remove_device() {
    let world = filled().await;
    let (group, device) = (GroupId(1), DeviceId(1));
    world
        .records
        .remove_device(group, device)
        .await
        .expect("removes");
    let swept = world.records.continue_removals(usize::MAX).await;
    let swept = swept.expect("sweeps");
    assert!(swept.is_finished);
    let left = world.partition("1").await;
    assert_eq!(left.keys().collect::<Vec<_>>(), ["Group#1#"]);
    assert!(world.partition("Removal#").await.is_empty());
}

/// The document names this pattern after its operation. Among all removals, only that of a journal has no
/// pattern of its own.
#[tokio::test]
async fn delete_item() {
    let world = filled().await;
    let (group, device) = (GroupId(1), DeviceId(1));
    let kept = world.journal(group, device).await.id;
    world.add((group, device, kept), 30, 5).await;
    let removed = JournalId(1);
    let answer = world.records.remove_journal(group, device, removed).await;
    answer.expect("removes");
    world
        .records
        .continue_removals(usize::MAX)
        .await
        .expect("sweeps");
    let left = world.partition("1").await;
    assert_eq!(
        left.keys().map(String::as_str).collect::<Vec<_>>(),
        [
            "Device#1#",
            "Group#1#",
            "Journal#1#2#",
            "LatestRecord#1#2#",
            "Record#1#2#0000000000005#",
        ]
    );
}

#[tokio::test]
async fn alter_device() {
    let world = world().await;
    let group = world.group().await.id;
    let device = world.device(group).await;
    let change = DeviceChange {
        model: Change::Set("BME680".parse().expect("a model")),
        ..DeviceChange::default()
    };
    let altered = world.records.alter_device(group, device.id, change).await;
    let altered = altered.expect("alters");
    assert_eq!(altered.name, device.name);
    assert_eq!(altered.model.expect("a model").as_str(), "BME680");
    let change = DeviceChange {
        name: Some("cellar".parse().expect("a name")),
        model: Change::Remove,
        ..DeviceChange::default()
    };
    let altered = world.records.alter_device(group, device.id, change).await;
    let altered = altered.expect("alters");
    assert_eq!((altered.name.as_str(), altered.model), ("cellar", None));
}

#[tokio::test]
async fn add_group() {
    let world = world().await;
    let first = world.records.add_group(new_group()).await.expect("a group");
    let second = world.records.add_group(new_group()).await.expect("a group");
    assert_eq!((first.id.0, second.id.0), (1, 2));
    assert_eq!(world.records.group(second.id).await, Ok(second.clone()));
    let listed = world.records.list_groups(9, None).await.expect("a list");
    assert_eq!(listed.items, [first, second]);
}

#[tokio::test]
async fn alter_group() {
    let world = world().await;
    let group = world.group().await;
    let day = 86_400.try_into().expect("a retention");
    let change = GroupChange {
        retention: Change::Set(day),
        ..GroupChange::default()
    };
    let altered = world.records.alter_group(group.id, change).await;
    let altered = altered.expect("alters");
    assert_eq!((&altered.name, altered.retention), (&group.name, Some(day)));
    assert_eq!(
        world.stored(group.id, "Group#1#").await["retention_secs"],
        json!({"N": "86400"})
    );
    let change = GroupChange {
        name: Some("office".parse().expect("a name")),
        retention: Change::Remove,
        ..GroupChange::default()
    };
    let altered = world.records.alter_group(group.id, change).await;
    let altered = altered.expect("alters");
    assert_eq!((altered.name.as_str(), altered.retention), ("office", None));
}

#[tokio::test]
async fn remove_group() {
    let world = filled().await;
    let group = GroupId(1);
    let other = world.group().await;
    world.records.remove_group(group).await.expect("removes");
    world
        .records
        .continue_removals(usize::MAX)
        .await
        .expect("sweeps");
    assert!(world.partition("1").await.is_empty());
    let listed = world.records.list_groups(9, None).await.expect("a list");
    assert_eq!(listed.items, [other]);
    let again = world.records.add_journal(group, DeviceId(1), new_journal());
    assert_eq!(again.await, Err(RecordsError::GroupMissing));
}
