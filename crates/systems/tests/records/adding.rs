//! Record ids, batches, data types and the deletion of one record.

use homeport_systems::records::{
    AddedRecord, DeviceId, JournalId, NewRecord, RecordValue, RecordsError,
};

use super::support::NOW_MS;
use super::world::{new_record, shown, time, world};

fn with_id(value: i64, at: Option<i64>, id: &str) -> NewRecord {
    NewRecord {
        timestamp: at.map(time),
        id: Some(id.parse().expect("an id")),
        ..new_record(value, 0)
    }
}

#[tokio::test]
async fn repeated_record_id_stores_once() {
    let world = world().await;
    let (group, device, journal) = world.one_of_each().await;
    let add = |new| world.records.add_record(group, device, journal, new);
    let first = add(with_id(1, None, "a")).await.expect("added");
    assert!(matches!(first, AddedRecord::New(_)));
    world.fixture.clock.advance_ms(5000);
    let again = add(with_id(1, None, "a")).await.expect("known");
    assert_eq!(again, AddedRecord::Before(first.into_record()));
    // Also if its millisecond was occupied, so that it was stored at the next one.
    let moved = add(with_id(2, Some(NOW_MS), "b")).await.expect("added");
    let moved = moved.into_record();
    assert_eq!(moved.timestamp, time(NOW_MS + 1));
    let again = add(with_id(2, Some(NOW_MS), "b")).await;
    assert_eq!(again, Ok(AddedRecord::Before(moved)));
    let other = add(with_id(3, None, "a")).await;
    assert_eq!(other, Err(RecordsError::RecordIdReused));
    // An id belongs to its journal.
    let second = world.journal(group, device).await.id;
    let new = with_id(3, None, "a");
    let elsewhere = world.records.add_record(group, device, second, new).await;
    assert!(
        matches!(elsewhere, Ok(AddedRecord::New(_))),
        "{elsewhere:?}"
    );
    let range = (0, NOW_MS + 9999);
    let history = world.history((group, device), Some(journal), range, 9);
    assert_eq!(history.await, Ok(vec![(1, NOW_MS), (2, NOW_MS + 1)]));
}

#[tokio::test]
async fn concurrent_repeats_store_once() {
    let world = world().await;
    let (group, device, journal) = world.one_of_each().await;
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let records = world.records.clone();
        tasks.spawn(async move {
            let new = with_id(1, Some(100), "a");
            records.add_record(group, device, journal, new).await
        });
    }
    let added = tasks.join_all().await;
    let is_new = |added: &&Result<AddedRecord, _>| matches!(added, Ok(AddedRecord::New(_)));
    assert_eq!(added.iter().filter(is_new).count(), 1);
    assert!(added.iter().all(Result::is_ok), "{added:?}");
    let history = world.history((group, device), Some(journal), (0, 999), 9);
    assert_eq!(history.await, Ok(vec![(1, 100)]));
}

#[tokio::test]
async fn records_of_a_batch_have_their_own_results() {
    let world = world().await;
    let (group, device, journal) = world.one_of_each().await;
    let text = NewRecord {
        value: RecordValue::text("warm".to_owned()).expect("a text"),
        ..new_record(0, 300)
    };
    let batch = vec![
        (journal, with_id(1, Some(200), "a")),
        (journal, with_id(1, Some(200), "a")),
        (JournalId(9), new_record(1, 200)),
        (journal, text),
        (journal, new_record(2, 100)),
        (journal, new_record(3, 200)),
    ];
    let results = world
        .records
        .add_records(group, device, batch.clone())
        .await;
    let results = results.expect("results");
    let times: Vec<_> = results
        .iter()
        .map(|result| match result {
            Ok(AddedRecord::New(record)) => Ok(("new", record.timestamp.millis())),
            Ok(AddedRecord::Before(record)) => Ok(("before", record.timestamp.millis())),
            Err(error) => Err(error.to_string()),
        })
        .collect();
    assert_eq!(
        times,
        [
            Ok(("new", 200)),
            Ok(("before", 200)),
            Err("the device has no such journal".to_owned()),
            Err("value must be a number: the journal's data type".to_owned()),
            Ok(("new", 100)),
            Ok(("new", 201)),
        ]
    );
    let history = world.history((group, device), Some(journal), (0, 999), 9);
    assert_eq!(history.await, Ok(vec![(2, 100), (1, 200), (3, 201)]));
    let latest = world.records.latest(group, None, 9, None).await;
    assert_eq!(shown(&latest.expect("latest")), [(3, 201)]);
    let missing = world.records.add_records(group, DeviceId(9), batch).await;
    assert_eq!(missing, Err(RecordsError::DeviceMissing));
}

#[tokio::test]
async fn deleted_latest_record_gives_way_to_the_previous() {
    let world = world().await;
    let ids = world.one_of_each().await;
    let (group, device, journal) = ids;
    for (value, at) in [(1, 100), (2, 200), (3, 300)] {
        world.add(ids, value, at).await;
    }
    let delete = async |at| {
        let deleted = world
            .records
            .delete_record(group, device, journal, time(at));
        deleted.await
    };
    let latest = async || {
        let latest = world.records.latest(group, None, 9, None).await;
        shown(&latest.expect("latest"))
    };
    assert_eq!(delete(200).await, Ok(()));
    assert_eq!(latest().await, [(3, 300)]);
    assert_eq!(delete(200).await, Err(RecordsError::RecordMissing));
    assert_eq!(delete(300).await, Ok(()));
    assert_eq!(latest().await, [(1, 100)]);
    assert_eq!(delete(100).await, Ok(()));
    assert_eq!(latest().await, []);
    world.add(ids, 4, 50).await;
    assert_eq!(latest().await, [(4, 50)]);
}
