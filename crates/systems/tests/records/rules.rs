//! Rules of records and their parents, one test each.

use homeport_systems::cursor::CursorError;
use homeport_systems::records::{
    DeviceChange, DeviceId, GroupChange, GroupId, JournalChange, JournalId, NewRecord, RecordRange,
    RecordsError,
};

use super::support::NOW_MS;
use super::world::{new_device, new_journal, new_record, shown, time, value, world};

#[tokio::test]
async fn late_record_does_not_replace_the_latest() {
    let world = world().await;
    let ids = world.one_of_each().await;
    let (group, device, journal) = ids;
    world.add(ids, 2, 200).await;
    world.add(ids, 1, 100).await;
    let latest = world.records.latest(group, Some(device), 9, None).await;
    assert_eq!(shown(&latest.expect("latest")), [(2, 200)]);
    let history = world
        .history((group, device), Some(journal), (0, 999), 9)
        .await;
    assert_eq!(history, Ok(vec![(1, 100), (2, 200)]));
}

#[tokio::test]
async fn records_of_one_millisecond_are_both_kept() {
    let world = world().await;
    let ids = world.one_of_each().await;
    let (group, device, journal) = ids;
    assert_eq!(world.add(ids, 1, 100).await.timestamp, time(100));
    assert_eq!(world.add(ids, 2, 101).await.timestamp, time(101));
    // The next free millisecond, which the answer contains.
    assert_eq!(world.add(ids, 3, 100).await.timestamp, time(102));
    assert_eq!(world.add(ids, 1, 100).await.timestamp, time(103));
    let history = world
        .history((group, device), Some(journal), (0, 999), 9)
        .await;
    assert_eq!(history, Ok(vec![(1, 100), (2, 101), (3, 102), (1, 103)]));
    let latest = world.records.latest(group, Some(device), 9, None).await;
    assert_eq!(shown(&latest.expect("latest")), [(1, 103)]);
}

#[tokio::test]
async fn late_record_does_not_overtake_a_newer_one() {
    let world = world().await;
    let ids = world.one_of_each().await;
    for (value, at) in [(1, 100), (2, 500), (3, 100)] {
        world.add(ids, value, at).await;
    }
    let latest = world.records.latest(ids.0, None, 9, None).await;
    assert_eq!(shown(&latest.expect("latest")), [(2, 500)]);
}

#[tokio::test]
async fn concurrent_records_of_one_millisecond_are_kept() {
    let world = world().await;
    let (group, device, journal) = world.one_of_each().await;
    let tasks: Vec<_> = (0..20)
        .map(|value| {
            let records = world.records.clone();
            tokio::spawn(async move {
                let new = new_record(value, 100);
                records.add_record(group, device, journal, new).await
            })
        })
        .collect();
    let mut newest = None;
    for task in tasks {
        let record = task.await.expect("no panic");
        let record = record.expect("a record").into_record();
        newest = newest.max(Some((record.timestamp, value(&record))));
    }
    let history = world
        .history((group, device), Some(journal), (0, 999), 9)
        .await;
    let times: Vec<i64> = history
        .expect("history")
        .iter()
        .map(|(_, at)| *at)
        .collect();
    assert_eq!(times, (100..120).collect::<Vec<_>>());
    let latest = world
        .records
        .latest(group, None, 9, None)
        .await
        .expect("latest");
    let (at, value) = newest.expect("a record");
    assert_eq!(shown(&latest), [(value, at.millis())]);
}

#[tokio::test]
async fn journal_without_free_millisecond_rejects_records() {
    let world = world().await;
    let ids = world.one_of_each().await;
    let (group, device, journal) = ids;
    let last = 9_999_999_999_999;
    world.add(ids, 1, last).await;
    let answer = world
        .records
        .add_record(group, device, journal, new_record(2, last))
        .await;
    assert_eq!(answer, Err(RecordsError::TimeOccupied));
    let history = world
        .history((group, device), Some(journal), (0, last), 9)
        .await;
    assert_eq!(history, Ok(vec![(1, last)]));
}

#[tokio::test]
async fn record_without_time_gets_server_time() {
    let world = world().await;
    let (group, device, journal) = world.one_of_each().await;
    let new = NewRecord {
        timestamp: None,
        ..new_record(0, 0)
    };
    let added = world.records.add_record(group, device, journal, new).await;
    let added = added.expect("a record").into_record();
    assert_eq!(added.timestamp, time(NOW_MS));
    let latest = world
        .records
        .latest(group, None, 9, None)
        .await
        .expect("latest");
    assert_eq!(latest.items, [added]);
}

#[tokio::test]
async fn range_includes_both_ends_newest_first() {
    let world = world().await;
    let ids = world.one_of_each().await;
    let (group, device, journal) = ids;
    for at in [99, 100, 150, 200, 201] {
        world.add(ids, at, at).await;
    }
    let range = RecordRange {
        from: time(100),
        to: time(200),
        ..RecordRange::default()
    };
    let read = |limit, cursor| {
        world
            .records
            .records(group, device, Some(journal), range, limit, cursor)
    };
    let first = read(2, None).await.expect("a page");
    assert_eq!(shown(&first), [(200, 200), (150, 150)]);
    let second = read(2, first.next.clone()).await.expect("a page");
    assert_eq!(shown(&second), [(100, 100)]);
    assert_eq!(second.next, None);
    // A cursor belongs to one range.
    let other = RecordRange::default();
    let answer = world
        .records
        .records(group, device, Some(journal), other, 2, first.next)
        .await;
    assert_eq!(answer, Err(RecordsError::Cursor(CursorError)));
}

#[tokio::test]
async fn device_range_spans_many_journals() {
    let world = world().await;
    let (group, device, _empty) = world.one_of_each().await;
    let mut expected = Vec::new();
    for number in 0..205 {
        let journal = world.journal(group, device).await.id;
        world.add((group, device, journal), number, 100).await;
        expected.push((journal.to_string(), (number, 100)));
    }
    expected.sort();
    let expected: Vec<_> = expected.into_iter().map(|(_, shown)| shown).collect();
    for limit in [1, 7, 205, 1000] {
        let history = world.history((group, device), None, (0, 999), limit).await;
        assert_eq!(history.as_ref(), Ok(&expected), "{limit}");
    }
}

#[tokio::test]
async fn missing_parent_rejects_additions() {
    let world = world().await;
    let (group, device, _) = world.one_of_each().await;
    let before = world.partition(&group.to_string()).await;
    let records = &world.records;
    let (no_group, no_device, no_journal) = (GroupId(9), DeviceId(9), JournalId(9));
    let new = || new_record(1, 1);
    for (added, error) in [
        (
            records
                .add_record(no_group, device, no_journal, new())
                .await,
            RecordsError::GroupMissing,
        ),
        (
            records
                .add_record(group, no_device, no_journal, new())
                .await,
            RecordsError::DeviceMissing,
        ),
        (
            records.add_record(group, device, no_journal, new()).await,
            RecordsError::JournalMissing,
        ),
    ] {
        assert_eq!(added, Err(error));
    }
    assert_eq!(
        records.add_device(no_group, new_device()).await,
        Err(RecordsError::GroupMissing)
    );
    assert_eq!(
        records.add_journal(group, no_device, new_journal()).await,
        Err(RecordsError::DeviceMissing)
    );
    assert_eq!(world.partition(&group.to_string()).await, before);
    assert!(world.partition("9").await.is_empty());
}

#[tokio::test]
async fn missing_items_cannot_be_changed() {
    let world = world().await;
    let (group, device, journal) = world.one_of_each().await;
    let name = || Some("new".parse().expect("a name"));
    let group_change = GroupChange {
        name: name(),
        ..GroupChange::default()
    };
    assert_eq!(
        world.records.alter_group(GroupId(9), group_change).await,
        Err(RecordsError::GroupMissing)
    );
    let device_change = DeviceChange {
        name: name(),
        ..DeviceChange::default()
    };
    assert_eq!(
        world
            .records
            .alter_device(group, DeviceId(9), device_change)
            .await,
        Err(RecordsError::DeviceMissing)
    );
    let journal_change = JournalChange {
        name: name(),
        ..JournalChange::default()
    };
    let records = &world.records;
    assert_eq!(
        records
            .alter_journal(group, device, JournalId(9), journal_change.clone())
            .await,
        Err(RecordsError::JournalMissing)
    );
    let altered = records.alter_journal(group, device, journal, journal_change);
    let altered = altered.await.expect("alters");
    assert_eq!(altered.name.as_str(), "new");
    assert_eq!(altered.data_type.as_str(), "number");
    assert!(world.partition("9").await.is_empty());
    // An empty change only reads, and fails for missing items.
    let nothing = GroupChange::default();
    assert_eq!(
        records.alter_group(GroupId(9), nothing).await,
        Err(RecordsError::GroupMissing)
    );
}

#[tokio::test]
async fn concurrent_additions_get_different_ids() {
    let world = world().await;
    let group = world.group().await.id;
    let (one, two) = tokio::join!(
        world.records.add_device(group, new_device()),
        world.records.add_device(group, new_device())
    );
    assert_ne!(one.expect("a device").id, two.expect("a device").id);
    let listed = world.records.list_devices(group, 9, None).await;
    assert_eq!(listed.expect("a list").items.len(), 2);
}

#[tokio::test]
async fn used_id_is_skipped() {
    let world = world().await;
    let group = world.group().await.id;
    let item = homeport_item::Item::new()
        .with("PK", group.to_string())
        .with("SK", "Device#1#")
        .with("name", "by hand");
    let put = homeport_store::Put::new("awsh-recordstore-dev", item);
    world.store().put(put).await.expect("a put");
    assert_eq!(world.device(group).await.id, DeviceId(2));
    let kept = world.records.device(group, DeviceId(1)).await;
    assert_eq!(kept.expect("a device").name.as_str(), "by hand");
}
