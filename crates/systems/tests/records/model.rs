//! Random histories compared with a plain map: after late, simultaneous and removed records, the latest record
//! is always the newest visible one.

use std::collections::BTreeMap;

use homeport_systems::records::{DeviceId, GroupId, JournalId, RecordsError};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::world::{World, new_record, shown, value, world};

const DEVICES: usize = 3;
const JOURNALS: usize = 2;

#[derive(Debug, Clone)]
enum Step {
    /// A record for a journal. There are few times, so some records collide and many are late.
    Add {
        device: usize,
        journal: usize,
        at: i64,
    },
    RemoveJournal {
        device: usize,
        journal: usize,
    },
    RemoveDevice {
        device: usize,
    },
    /// The background work processes some batches.
    Sweep {
        batches: usize,
    },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        20 => (0..DEVICES, 0..JOURNALS, 0..12_i64)
            .prop_map(|(device, journal, at)| Step::Add { device, journal, at }),
        1 => (0..DEVICES, 0..JOURNALS)
            .prop_map(|(device, journal)| Step::RemoveJournal { device, journal }),
        1 => (0..DEVICES).prop_map(|device| Step::RemoveDevice { device }),
        2 => (0..3_usize).prop_map(|batches| Step::Sweep { batches }),
    ]
}

/// The records of each visible journal by their times.
type Model = BTreeMap<(DeviceId, JournalId), BTreeMap<i64, i64>>;

#[test]
fn latest_is_the_newest_visible_record() {
    let config = Config {
        cases: 24,
        failure_persistence: None,
        ..Config::default()
    };
    let seed = [7; 32];
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runner
        .run(&proptest::collection::vec(step(), 1..60), |steps| {
            runtime.block_on(check(steps));
            Ok(())
        })
        .expect("every history holds");
}

async fn check(steps: Vec<Step>) {
    let world = world().await;
    let group = world.group().await.id;
    let mut ids = Vec::new();
    let mut model = Model::new();
    for _ in 0..DEVICES {
        let device = world.device(group).await.id;
        let mut journals = Vec::new();
        for _ in 0..JOURNALS {
            let journal = world.journal(group, device).await.id;
            model.insert((device, journal), BTreeMap::new());
            journals.push(journal);
        }
        ids.push((device, journals));
    }
    for (number, step) in (0..).zip(steps) {
        take(&world, group, &ids, &mut model, number, step).await;
        compare_latest(&world, group, &model).await;
    }
    compare_histories(&world, group, &model).await;
    let swept = world.records.continue_removals(usize::MAX).await;
    assert!(swept.expect("sweeps").is_finished);
    compare_latest(&world, group, &model).await;
    compare_histories(&world, group, &model).await;
    // Only visible items are stored.
    let expected: usize = model.values().map(BTreeMap::len).sum();
    let partition = world.partition(&group.to_string()).await;
    let records = partition.keys().filter(|sort| sort.starts_with("Record#"));
    assert_eq!(records.count(), expected);
}

async fn take(
    world: &World,
    group: GroupId,
    ids: &[(DeviceId, Vec<JournalId>)],
    model: &mut Model,
    number: i64,
    step: Step,
) {
    match step {
        Step::Add {
            device,
            journal,
            at,
        } => {
            let (device, journal) = (ids[device].0, ids[device].1[journal]);
            let new = new_record(number, at);
            let added = world.records.add_record(group, device, journal, new).await;
            match model.get_mut(&(device, journal)) {
                Some(records) => {
                    let mut free = at;
                    while records.contains_key(&free) {
                        free += 1;
                    }
                    let added = added.expect("a record").into_record();
                    assert_eq!((value(&added), added.timestamp.millis()), (number, free));
                    records.insert(free, number);
                }
                None => assert!(matches!(
                    added,
                    Err(RecordsError::DeviceMissing | RecordsError::JournalMissing)
                )),
            }
        }
        Step::RemoveJournal { device, journal } => {
            let (device, journal) = (ids[device].0, ids[device].1[journal]);
            let removed = world.records.remove_journal(group, device, journal).await;
            let was_there = model.remove(&(device, journal)).is_some();
            assert_eq!(removed.is_ok(), was_there);
        }
        Step::RemoveDevice { device } => {
            let device = ids[device].0;
            // A second removal finds nothing. In both cases none of its journals exists.
            let _ = world.records.remove_device(group, device).await;
            model.retain(|(other, _), _| *other != device);
        }
        Step::Sweep { batches } => {
            let swept = world.records.continue_removals(batches).await;
            swept.expect("sweeps");
        }
    }
}

async fn compare_latest(world: &World, group: GroupId, model: &Model) {
    let latest = world
        .records
        .latest(group, None, 999, None)
        .await
        .expect("latest");
    let expected: Vec<_> = model
        .values()
        .filter_map(|records| records.last_key_value())
        .map(|(at, value)| (*value, *at))
        .collect();
    assert_eq!(shown(&latest), expected);
}

async fn compare_histories(world: &World, group: GroupId, model: &Model) {
    for ((device, journal), records) in model {
        let history = world
            .history((group, *device), Some(*journal), (0, 999), 5)
            .await;
        let expected: Vec<_> = records.iter().map(|(at, value)| (*value, *at)).collect();
        assert_eq!(history, Ok(expected));
    }
}
