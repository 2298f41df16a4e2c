//! Time to live, as writes and narrow indexes see it: an expired item is absent there too. A group
//! of its own, because a backend that only filters what it reads cannot promise it.

use homeport_item::expression::{Condition, Update as Changes};
use homeport_item::schema::{IndexProjection, IndexSchema, KeyAttribute, TableSchema};
use homeport_item::{Item, KeyKind};

use super::case::{Case, item, now_secs, partition_of};
use super::outcome::Outcome;
use crate::{
    CancelReason, Check, Delete, Put, Query, Returning, TransactError, Transaction, Update,
    WriteError,
};

pub async fn a_put_that_wants_no_item_replaces_an_expired_one(case: &Case) {
    let table = expired(case).await;
    let fresh = item("a").with("n", 2);
    let put = Put::new(&table, fresh.clone()).when(Condition::not_exists("pk"));
    assert_eq!(case.store.put(put).await, Ok(None));
    assert_eq!(case.get(&table, item("a")).await, Some(fresh));
}

pub async fn a_condition_that_wants_the_item_fails_on_an_expired_one(case: &Case) {
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

pub async fn checks_of_transactions_do_not_see_expired_items(case: &Case) {
    let table = expired(case).await;
    let check = |condition| {
        let mut check = Check::new(&table, item("a"), condition);
        check.old_on_failure = true;
        case.store.transact(Transaction::new(vec![check.into()]))
    };
    let absent = check(Condition::not_exists("pk")).await;
    assert_eq!(Outcome::of(absent), Outcome::Done);
    assert_eq!(
        check(Condition::exists("pk")).await,
        Err(TransactError::Cancelled(vec![
            CancelReason::ConditionFailed { old: None }
        ]))
    );
}

pub async fn an_update_of_an_expired_item_starts_anew(case: &Case) {
    let table = expired(case).await;
    let changes = Changes::new().add("n", 1);
    let update = Update::new(&table, item("a"), changes).returning(Returning::AllNew);
    let fresh: Item = item("a").with("n", 1);
    assert_eq!(case.store.update(update).await, Ok(Some(fresh.clone())));
    assert_eq!(case.get(&table, item("a")).await, Some(fresh));
}

pub async fn removing_update_leaves_an_expired_item_absent(case: &Case) {
    let table = expired(case).await;
    let changes = || Changes::new().remove("n");
    let update = Update::new(&table, item("a"), changes()).returning(Returning::AllNew);
    assert_eq!(case.store.update(update).await, Ok(None));
    assert_eq!(case.get(&table, item("a")).await, None);
    let update = Update::new(&table, item("a"), changes());
    let actions = vec![update.into(), Put::new(&table, item("b")).into()];
    assert_eq!(case.store.transact(Transaction::new(actions)).await, Ok(()));
    assert_eq!(case.get(&table, item("a")).await, None);
    assert_eq!(case.get(&table, item("b")).await, Some(item("b")));
}

pub async fn writes_do_not_answer_with_expired_items(case: &Case) {
    let table = expired(case).await;
    let delete = Delete::new(&table, item("a")).returning(Returning::AllOld);
    assert_eq!(case.store.delete(delete).await, Ok(None));
    let table = expired(case).await;
    let put = Put::new(&table, item("a")).returning(Returning::AllOld);
    assert_eq!(case.store.put(put).await, Ok(None));
}

pub async fn an_index_without_the_attribute_does_not_show_expired_items(case: &Case) {
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
