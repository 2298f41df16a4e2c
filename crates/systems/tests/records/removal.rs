//! Removal: items disappear at once, and deletion completes whatever happens.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use homeport_item::Item;
use homeport_item::schema::TableSchema;
use homeport_store::{
    BatchGet, BatchGetOutput, BatchWrite, BatchWriteOutput, Delete, Get, Page, Put, Query, Scan,
    Store, StoreError, TransactError, Transaction, Update, WriteError,
};
use homeport_systems::records::{
    DeviceChange, DeviceId, GroupId, JournalId, RecordRange, RecordsError, Removal,
};

use super::world::{World, new_device, new_journal, new_record, open, shown, world};

/// The longest wait for background work.
const WAIT_MAX: Duration = Duration::from_secs(30);

type Ids = (GroupId, DeviceId, JournalId);

/// A group with two devices of two journals, `count` records each; the journals' ids.
async fn busy_group(world: &World, count: i64) -> Vec<Ids> {
    let group = world.group().await.id;
    let mut all = Vec::new();
    for _ in 0..2 {
        let device = world.device(group).await.id;
        for _ in 0..2 {
            let journal = world.journal(group, device).await.id;
            for at in 0..count {
                world.add((group, device, journal), at, at).await;
            }
            all.push((group, device, journal));
        }
    }
    all
}

/// Asserts that no read shows anything of a device and that nothing can be written below it.
async fn assert_device_is_gone(world: &World, (group, device, journal): Ids) {
    let records = &world.records;
    let gone = RecordsError::DeviceMissing;
    assert_eq!(records.device(group, device).await, Err(gone.clone()));
    assert_eq!(
        records.journal(group, device, journal).await,
        Err(gone.clone())
    );
    let devices = records
        .list_devices(group, 999, None)
        .await
        .expect("devices");
    assert!(devices.items.iter().all(|other| other.id != device));
    let journals = records.list_journals(group, None, 999, None).await;
    let journals = journals.expect("journals").items;
    assert!(journals.iter().all(|other| other.device != device));
    let of_device = records.list_journals(group, Some(device), 999, None).await;
    assert_eq!(of_device, Err(gone.clone()));
    let latest = records
        .latest(group, None, 999, None)
        .await
        .expect("latest");
    assert!(latest.items.iter().all(|other| other.device != device));
    let of_device = records.latest(group, Some(device), 999, None).await;
    assert_eq!(of_device, Err(gone.clone()));
    for journal in [Some(journal), None] {
        let range = RecordRange::default();
        let read = records.records(group, device, journal, range, 999, None);
        assert_eq!(read.await, Err(gone.clone()));
    }
    let added = records
        .add_record(group, device, journal, new_record(1, 1))
        .await;
    assert_eq!(added, Err(gone.clone()));
    let added = records.add_journal(group, device, new_journal()).await;
    assert_eq!(added, Err(gone.clone()));
    let change = DeviceChange {
        name: Some("x".parse().expect("a name")),
        ..DeviceChange::default()
    };
    let altered = records.alter_device(group, device, change).await;
    assert_eq!(altered, Err(gone.clone()));
    assert_eq!(records.remove_device(group, device).await, Err(gone));
}

async fn assert_group_is_gone(world: &World, (group, device, journal): Ids) {
    let records = &world.records;
    let gone = RecordsError::GroupMissing;
    assert_eq!(records.group(group).await, Err(gone.clone()));
    assert_eq!(records.device(group, device).await, Err(gone.clone()));
    let listed = records.list_groups(999, None).await.expect("groups").items;
    assert!(listed.iter().all(|other| other.id != group));
    let devices = records.list_devices(group, 9, None).await;
    assert_eq!(devices, Err(gone.clone()));
    let journals = records.list_journals(group, None, 9, None).await;
    assert_eq!(journals, Err(gone.clone()));
    let latest = records.latest(group, None, 9, None).await;
    assert_eq!(latest, Err(gone.clone()));
    let range = RecordRange::default();
    let read = records.records(group, device, Some(journal), range, 9, None);
    assert_eq!(read.await, Err(gone.clone()));
    let added = records.add_device(group, new_device()).await;
    assert_eq!(added, Err(gone.clone()));
    let added = records.add_journal(group, device, new_journal()).await;
    assert_eq!(added, Err(gone.clone()));
    let added = records
        .add_record(group, device, journal, new_record(1, 1))
        .await;
    assert_eq!(added, Err(gone.clone()));
    assert_eq!(
        records.remove_device(group, device).await,
        Err(gone.clone())
    );
    assert_eq!(records.remove_group(group).await, Err(gone));
}

#[tokio::test]
async fn removed_device_is_invisible_with_its_records() {
    let world = world().await;
    let ids = busy_group(&world, 40).await;
    let (group, removed, _) = ids[0];
    world
        .records
        .remove_device(group, removed)
        .await
        .expect("removes");
    assert_device_is_gone(&world, ids[0]).await;
    let mut steps = 0;
    loop {
        let swept = world.records.continue_removals(1).await.expect("sweeps");
        assert!(swept.items <= 25, "a batch");
        assert_device_is_gone(&world, ids[0]).await;
        if swept.is_finished {
            break;
        }
        steps += 1;
        assert!(steps < 100, "it does not end");
    }
    assert!(steps > 3, "the removal was not cut into steps");
    // The other device is unchanged.
    let (_, kept, _) = ids[2];
    let left = world.history((group, kept), None, (0, 999), 50).await;
    assert_eq!(left.expect("history").len(), 80);
    let partition = world.partition(&group.to_string()).await;
    let of_removed = format!("#{removed}#");
    assert!(
        partition
            .keys()
            .all(|sort| !sort[4..].contains(&of_removed) || sort.starts_with("Group#"))
    );
}

#[tokio::test]
async fn removed_group_is_invisible_with_its_devices() {
    let world = world().await;
    let ids = busy_group(&world, 40).await;
    world.records.remove_group(ids[0].0).await.expect("removes");
    assert_group_is_gone(&world, ids[0]).await;
    while !world
        .records
        .continue_removals(1)
        .await
        .expect("sweeps")
        .is_finished
    {
        assert_group_is_gone(&world, ids[3]).await;
    }
    assert_group_is_gone(&world, ids[0]).await;
    assert!(world.partition(&ids[0].0.to_string()).await.is_empty());
    // Only the three id tags are left.
    assert_eq!(world.count().await, 3);
}

#[tokio::test]
async fn removed_journal_is_invisible() {
    let world = world().await;
    let ids = busy_group(&world, 30).await;
    let (group, device, journal) = ids[0];
    world
        .records
        .remove_journal(group, device, journal)
        .await
        .expect("removes");
    loop {
        let read = world
            .history((group, device), Some(journal), (0, 999), 9)
            .await;
        assert_eq!(read, Err(RecordsError::JournalMissing));
        let whole = world.history((group, device), None, (0, 999), 9).await;
        assert_eq!(whole.expect("history").len(), 30);
        let latest = world.records.latest(group, Some(device), 9, None).await;
        assert_eq!(shown(&latest.expect("latest")), [(29, 29)]);
        let added = world
            .records
            .add_record(group, device, journal, new_record(1, 99));
        assert_eq!(added.await, Err(RecordsError::JournalMissing));
        if world
            .records
            .continue_removals(1)
            .await
            .expect("sweeps")
            .is_finished
        {
            break;
        }
    }
    let again = world.records.remove_journal(group, device, journal).await;
    assert_eq!(again, Err(RecordsError::JournalMissing));
}

#[tokio::test]
async fn removing_device_one_keeps_device_ten() {
    let world = world().await;
    let group = world.group().await.id;
    let mut ids = Vec::new();
    for number in 1..=12 {
        let device = world.device(group).await.id;
        let journal = world.journal(group, device).await.id;
        assert_eq!((device.0, journal.0), (number, number));
        world.add((group, device, journal), 1, 1).await;
        ids.push((device, journal));
    }
    world
        .records
        .remove_device(group, DeviceId(1))
        .await
        .expect("removes");
    world
        .records
        .continue_removals(usize::MAX)
        .await
        .expect("sweeps");
    let (ten, its_journal) = ids[9];
    for (device, _) in &ids[1..] {
        let history = world.history((group, *device), None, (0, 9), 9).await;
        assert_eq!(history, Ok(vec![(1, 1)]), "{device}");
    }
    // Removing journal 1 does not remove journal 10 of the same device.
    let device = ids[1].0;
    let first = world.journal(group, device).await.id;
    world
        .records
        .remove_journal(group, ten, its_journal)
        .await
        .expect("removes");
    world.add((group, device, first), 5, 5).await;
    world
        .records
        .continue_removals(usize::MAX)
        .await
        .expect("sweeps");
    let latest = world.records.latest(group, None, 99, None).await;
    assert_eq!(latest.expect("latest").items.len(), 11);
}

#[tokio::test]
async fn removal_completes_after_failure_at_any_write() {
    for healthy_writes in 0..60 {
        let world = world().await;
        let ids = busy_group(&world, 30).await;
        let (group, device, _) = ids[0];
        world
            .records
            .remove_device(group, device)
            .await
            .expect("removes");
        let failing = Failing {
            inner: Arc::clone(&world.fixture.store),
            writes_left: AtomicUsize::new(healthy_writes),
        };
        let dying = open(Arc::new(failing), &world.fixture);
        let died = dying.continue_removals(usize::MAX).await.is_err();
        assert_device_is_gone(&world, ids[0]).await;
        let open_removals = world.records.open_removals().await.expect("jobs");
        let expected = died.then_some(Removal::Device(group, device));
        assert_eq!(open_removals, expected.into_iter().collect::<Vec<_>>());
        // The next start.
        let restarted = open(Arc::clone(&world.fixture.store), &world.fixture);
        let swept = restarted
            .continue_removals(usize::MAX)
            .await
            .expect("sweeps");
        assert!(swept.is_finished);
        assert_device_is_gone(&world, ids[0]).await;
        let left = world.partition(&group.to_string()).await;
        // The group, the other device, its journals, their latest records and their history.
        assert_eq!(left.len(), 1 + 1 + 2 + 2 + 60);
        if !died {
            assert!(healthy_writes > 3, "the store never failed");
            return;
        }
    }
    panic!("the removal never ended by itself");
}

#[tokio::test]
async fn background_work_removes_jobs_and_stops() {
    let world = world().await;
    let ids = busy_group(&world, 30).await;
    let (group, first, _) = ids[0];
    let (_, second, _) = ids[2];
    // A job of a process that has ended.
    world
        .records
        .remove_device(group, first)
        .await
        .expect("removes");
    let worker = open(Arc::clone(&world.fixture.store), &world.fixture);
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = tokio::spawn({
        let worker = worker.clone();
        async move {
            worker
                .run_until(async move {
                    let _ = stopped.await;
                })
                .await;
        }
    });
    let until_none = || async {
        while !worker.open_removals().await.expect("jobs").is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(WAIT_MAX, until_none())
        .await
        .expect("in time");
    worker.remove_device(group, second).await.expect("removes");
    tokio::time::timeout(WAIT_MAX, until_none())
        .await
        .expect("in time");
    let left = world.partition(&group.to_string()).await;
    assert_eq!(left.len(), 1, "{:?}", left.keys());
    stop.send(()).expect("it still runs");
    tokio::time::timeout(WAIT_MAX, running)
        .await
        .expect("in time")
        .expect("no panic");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn additions_racing_with_removal_leave_nothing() {
    for round in 0..10 {
        let world = world().await;
        let ids = busy_group(&world, 3).await;
        let (group, device, journal) = ids[0];
        let writers: Vec<_> = (0..8)
            .map(|writer| {
                let records = world.records.clone();
                tokio::spawn(async move {
                    for at in 0..20 {
                        let new = new_record(writer, 1000 + at);
                        let added = records.add_record(group, device, journal, new).await;
                        let journal_added = records.add_journal(group, device, new_journal()).await;
                        for error in [added.map(drop).err(), journal_added.map(drop).err()] {
                            assert!(
                                matches!(
                                    error,
                                    None | Some(
                                        RecordsError::GroupMissing
                                            | RecordsError::DeviceMissing
                                            | RecordsError::JournalMissing
                                    )
                                ),
                                "{error:?}"
                            );
                        }
                    }
                })
            })
            .collect();
        for _ in 0..round {
            tokio::task::yield_now().await;
        }
        if round % 2 == 0 {
            world
                .records
                .remove_device(group, device)
                .await
                .expect("removes");
            assert_device_is_gone(&world, ids[0]).await;
        } else {
            world.records.remove_group(group).await.expect("removes");
            assert_group_is_gone(&world, ids[0]).await;
        }
        let swept = world.records.continue_removals(usize::MAX).await;
        swept.expect("sweeps");
        for writer in writers {
            writer.await.expect("no panic");
        }
        let left = world.partition(&group.to_string()).await;
        let of_device = format!("#{device}#");
        let orphans: Vec<_> = left
            .keys()
            .filter(|sort| !sort.starts_with("Group#") && sort.contains(&of_device))
            .filter(|sort| {
                let (_, ids) = sort.split_once('#').expect("a word");
                ids.starts_with(&of_device[1..])
            })
            .collect();
        assert!(orphans.is_empty(), "{orphans:?}");
    }
}

#[tokio::test]
async fn malformed_job_does_not_block_others() {
    let world = world().await;
    let ids = busy_group(&world, 3).await;
    let junk = Item::new().with("PK", "Removal#").with("SK", "Removal#?#");
    let put = Put::new("awsh-recordstore-dev", junk);
    world.store().put(put).await.expect("a put");
    world.records.remove_group(ids[0].0).await.expect("removes");
    let swept = world.records.continue_removals(usize::MAX).await;
    assert!(swept.expect("sweeps").is_finished);
    assert!(world.partition(&ids[0].0.to_string()).await.is_empty());
}

/// A store whose writes fail after a number of successes, like a machine that stops.
struct Failing {
    inner: Arc<dyn Store>,
    writes_left: AtomicUsize,
}

impl Failing {
    fn write(&self) -> Result<(), StoreError> {
        let left = self
            .writes_left
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
                left.checked_sub(1)
            });
        left.map(drop)
            .map_err(|_| StoreError::Unavailable("the machine stopped".to_owned()))
    }
}

#[async_trait]
impl Store for Failing {
    async fn ensure_tables(&self, tables: &[TableSchema]) -> Result<(), StoreError> {
        self.inner.ensure_tables(tables).await
    }

    async fn get(&self, request: Get) -> Result<Option<Item>, StoreError> {
        self.inner.get(request).await
    }

    async fn put(&self, request: Put) -> Result<Option<Item>, WriteError> {
        self.write()?;
        self.inner.put(request).await
    }

    async fn update(&self, request: Update) -> Result<Option<Item>, WriteError> {
        self.write()?;
        self.inner.update(request).await
    }

    async fn delete(&self, request: Delete) -> Result<Option<Item>, WriteError> {
        self.write()?;
        self.inner.delete(request).await
    }

    async fn query(&self, request: Query) -> Result<Page, StoreError> {
        self.inner.query(request).await
    }

    async fn scan(&self, request: Scan) -> Result<Page, StoreError> {
        self.inner.scan(request).await
    }

    async fn batch_get(&self, request: BatchGet) -> Result<BatchGetOutput, StoreError> {
        self.inner.batch_get(request).await
    }

    async fn batch_write(&self, request: BatchWrite) -> Result<BatchWriteOutput, StoreError> {
        self.write()?;
        self.inner.batch_write(request).await
    }

    async fn transact_get(&self, requests: Vec<Get>) -> Result<Vec<Option<Item>>, TransactError> {
        self.inner.transact_get(requests).await
    }

    async fn transact(&self, transaction: Transaction) -> Result<(), TransactError> {
        self.write()?;
        self.inner.transact(transaction).await
    }

    async fn transact_each(
        &self,
        transactions: Vec<Transaction>,
    ) -> Vec<Result<(), TransactError>> {
        self.inner.transact_each(transactions).await
    }
}
