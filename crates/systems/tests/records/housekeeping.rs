//! Old history is deleted, and latest records are kept.

use std::sync::Arc;

use homeport_store::ManualClock;
use homeport_systems::records::{Attributes, Change, GroupChange, Housekept, NewGroup};

use super::support::NOW_MS;
use super::world::{World, new_group, shown, world};

const DAY_MS: i64 = 86_400_000;

async fn with_a_day(world: &World) -> homeport_systems::records::GroupId {
    let new = NewGroup {
        retention: Some(86_400.try_into().expect("a day")),
        external_id: None,
        attributes: Attributes::default(),
        ..new_group()
    };
    world.records.add_group(new).await.expect("a group").id
}

#[tokio::test]
async fn history_older_than_retention_is_deleted() {
    let world = world().await;
    let group = with_a_day(&world).await;
    let device = world.device(group).await.id;
    let journal = world.journal(group, device).await.id;
    let ids = (group, device, journal);
    for at in [5, NOW_MS - DAY_MS - 1, NOW_MS - DAY_MS, NOW_MS] {
        world.add(ids, 1, at).await;
    }
    let other = world.one_of_each().await;
    world.add(other, 7, 5).await;
    let done = world
        .records
        .housekeep(usize::MAX)
        .await
        .expect("housekeeps");
    assert_eq!(
        done,
        Housekept {
            records: 2,
            is_finished: true
        }
    );
    let left = world.history((group, device), None, (0, NOW_MS), 9).await;
    assert_eq!(left, Ok(vec![(1, NOW_MS - DAY_MS), (1, NOW_MS)]));
    // A group without a retention keeps everything.
    let kept = world
        .history((other.0, other.1), None, (0, NOW_MS), 9)
        .await;
    assert_eq!(kept, Ok(vec![(7, 5)]));
}

#[tokio::test]
async fn latest_record_outlives_its_history() {
    let world = world().await;
    let group = with_a_day(&world).await;
    let device = world.device(group).await.id;
    let journal = world.journal(group, device).await.id;
    world.add((group, device, journal), 1, 100).await;
    world
        .records
        .housekeep(usize::MAX)
        .await
        .expect("housekeeps");
    assert_eq!(
        world.history((group, device), None, (0, NOW_MS), 9).await,
        Ok(vec![])
    );
    let latest = || async {
        shown(
            &world
                .records
                .latest(group, None, 9, None)
                .await
                .expect("latest"),
        )
    };
    assert_eq!(latest().await, [(1, 100)]);
    world.add((group, device, journal), 2, 50).await;
    assert_eq!(latest().await, [(1, 100)]);
    world.add((group, device, journal), 3, 200).await;
    assert_eq!(latest().await, [(3, 200)]);
}

#[tokio::test]
async fn housekeeping_continues_where_it_stopped() {
    let world = world().await;
    let group = with_a_day(&world).await;
    for _ in 0..3 {
        let device = world.device(group).await.id;
        let journal = world.journal(group, device).await.id;
        for at in 0..30 {
            world.add((group, device, journal), at, at).await;
        }
    }
    let mut calls = 0;
    let mut deleted = 0;
    loop {
        let done = world.records.housekeep(1).await.expect("housekeeps");
        assert!(done.records <= 25, "a batch");
        deleted += done.records;
        calls += 1;
        if done.is_finished {
            break;
        }
        assert!(calls < 100, "it does not end");
    }
    assert_eq!(deleted, 90);
    let latest = world
        .records
        .latest(group, None, 9, None)
        .await
        .expect("latest");
    assert_eq!(shown(&latest), [(29, 29); 3]);
}

#[tokio::test]
async fn housekeeping_follows_retention_and_clock() {
    let world = world().await;
    let ids = world.one_of_each().await;
    world.add(ids, 1, NOW_MS).await;
    let deleted = || async {
        world
            .records
            .housekeep(usize::MAX)
            .await
            .expect("housekeeps")
            .records
    };
    world.fixture.clock.advance_ms(DAY_MS);
    assert_eq!(deleted().await, 0);
    let change = GroupChange {
        retention: Change::Set(86_400.try_into().expect("a day")),
        ..GroupChange::default()
    };
    world
        .records
        .alter_group(ids.0, change)
        .await
        .expect("alters");
    assert_eq!(deleted().await, 0);
    world.fixture.clock.advance_ms(1);
    assert_eq!(deleted().await, 1);
}

#[tokio::test]
async fn malformed_group_does_not_block_housekeeping() {
    let world = world().await;
    let group = with_a_day(&world).await;
    let device = world.device(group).await.id;
    let journal = world.journal(group, device).await.id;
    world.add((group, device, journal), 1, 5).await;
    for (sort, retention) in [("Groups#0#", "long"), ("Groups#?#", "long")] {
        let junk = homeport_item::Item::new()
            .with("PK", "Groups#")
            .with("SK", sort)
            .with("retention_secs", retention);
        let put = homeport_store::Put::new("awsh-recordstore-dev", junk);
        world.store().put(put).await.expect("a put");
    }
    let done = world.records.housekeep(usize::MAX).await;
    assert_eq!(done.expect("housekeeps").records, 1);
}

#[tokio::test]
async fn clock_jump_deletes_no_history() {
    let world = world().await;
    let group = with_a_day(&world).await;
    let device = world.device(group).await.id;
    let journal = world.journal(group, device).await.id;
    world.add((group, device, journal), 1, NOW_MS).await;
    world.fixture.clock.advance_ms(400 * DAY_MS);
    let steady = ManualClock::at_ms(NOW_MS);
    let records = world.records.clone().with_removal_clock(Arc::new(steady));
    let done = records.housekeep(usize::MAX).await.expect("housekeeps");
    assert_eq!(done.records, 0);
    let done = world.records.housekeep(usize::MAX).await;
    assert_eq!(done.expect("housekeeps").records, 1);
}
