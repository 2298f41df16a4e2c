//! Time to live in writes and in indexes without the attribute: an expired item is absent there
//! too. This is a separate group because a backend that only filters its reads cannot guarantee it.

use homeport_item::expression::{Condition, Update as Changes};
use homeport_item::schema::{IndexProjection, IndexSchema, KeyAttribute, TableSchema};
use homeport_item::{Item, KeyKind};

use super::case::{Case, item, now_secs, partition_of};
use super::outcome::Outcome;
use crate::{
    CancelReason, ConditionCheck, Delete, Put, Query, ReturnValues, TransactError, Transaction,
    Update, WriteError,
};

pub async fn put_if_absent_replaces_expired_item(case: &Case) {
    let table = expired(case).await;
    let fresh = item("a").with("n", 2);
    let put = Put::new(&table, fresh.clone()).when(Condition::not_exists("pk"));
    assert_eq!(case.store.put(put).await, Ok(None));
    assert_eq!(case.get(&table, item("a")).await, Some(fresh));
}

pub async fn existence_condition_fails_on_expired_item(case: &Case) {
    let table = expired(case).await;
    let exists = || Condition::exists("pk");
    let failed = Err(WriteError::ConditionFailed { old: None });
    let mut put = Put::new(&table, item("a")).when(exists());
    put.old_on_failure = true;
    assert_eq!(case.store.put(put).await, failed);
    let mut update = Update::new(&table, item("a"), Changes::default()).when(exists());
    update.old_on_failure = true;
    assert_eq!(case.store.update(update).await, failed);
    let mut delete = Delete::new(&table, item("a")).when(exists());
    delete.old_on_failure = true;
    assert_eq!(case.store.delete(delete).await, failed);
}

pub async fn condition_checks_do_not_see_expired_items(case: &Case) {
    let table = expired(case).await;
    let check = |condition| {
        let mut check = ConditionCheck::new(&table, item("a"), condition);
        check.old_on_failure = true;
        case.store.transact(Transaction::new(vec![check.into()]))
    };
    let absent = check(Condition::not_exists("pk")).await;
    assert_eq!(Outcome::of(absent), Outcome::Success);
    assert_eq!(
        check(Condition::exists("pk")).await,
        Err(TransactError::Cancelled(vec![
            CancelReason::ConditionFailed { old: None }
        ]))
    );
}

pub async fn update_of_expired_item_creates_new_item(case: &Case) {
    let table = expired(case).await;
    let changes = Changes::new().add("n", 1);
    let update = Update::new(&table, item("a"), changes).returning(ReturnValues::AllNew);
    let fresh: Item = item("a").with("n", 1);
    assert_eq!(case.store.update(update).await, Ok(Some(fresh.clone())));
    assert_eq!(case.get(&table, item("a")).await, Some(fresh));
}

pub async fn remove_only_update_keeps_expired_item_absent(case: &Case) {
    let table = expired(case).await;
    let changes = || Changes::new().remove("n");
    let update = Update::new(&table, item("a"), changes()).returning(ReturnValues::AllNew);
    assert_eq!(case.store.update(update).await, Ok(None));
    assert_eq!(case.get(&table, item("a")).await, None);
    let update = Update::new(&table, item("a"), changes());
    let actions = vec![update.into(), Put::new(&table, item("b")).into()];
    assert_eq!(case.store.transact(Transaction::new(actions)).await, Ok(()));
    assert_eq!(case.get(&table, item("a")).await, None);
    assert_eq!(case.get(&table, item("b")).await, Some(item("b")));
}

pub async fn writes_do_not_return_expired_items(case: &Case) {
    let table = expired(case).await;
    let delete = Delete::new(&table, item("a")).returning(ReturnValues::AllOld);
    assert_eq!(case.store.delete(delete).await, Ok(None));
    let table = expired(case).await;
    let put = Put::new(&table, item("a")).returning(ReturnValues::AllOld);
    assert_eq!(case.store.put(put).await, Ok(None));
}

pub async fn index_without_ttl_attribute_hides_expired_items(case: &Case) {
    let index = IndexSchema::global("by-group", KeyAttribute::new("g", KeyKind::S), None)
        .projecting(IndexProjection::KeysOnly);
    let schema = TableSchema::new(case.name("narrow"), "pk", KeyKind::S)
        .with_ttl("expires")
        .with_index(index);
    let table = case.ensure(schema).await;
    for (pk, expires) in [("past", -60), ("future", 3600)] {
        let item = item(pk)
            .with("g", "g")
            .with("expires", now_secs() + expires);
        case.put(&table, item).await;
    }
    let query = Query::new(&table, partition_of("g", "g")).on_index("by-group");
    case.index_gives(query, &[item("future").with("g", "g")])
        .await;
}

/// A table with time to live and the expired item `a`.
async fn expired(case: &Case) -> String {
    let schema = TableSchema::new(case.name("expiring"), "pk", KeyKind::S).with_ttl("expires");
    let table = case.ensure(schema).await;
    case.put(
        &table,
        item("a").with("n", 1).with("expires", now_secs() - 60),
    )
    .await;
    table
}
