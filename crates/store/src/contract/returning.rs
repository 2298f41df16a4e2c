//! The return values of writes, both on success and if the condition fails.

use homeport_item::Item;
use homeport_item::expression::{Condition, Path, Update as Changes};
use homeport_item::{Map, Value};

use super::case::{Case, item};
use super::outcome::Outcome;
use crate::{Delete, Put, ReturnValues, Update, WriteError};

use ReturnValues::{AllNew, AllOld, None as NoValues, UpdatedNew, UpdatedOld};

pub async fn put_returns_the_replaced_item(case: &Case) {
    let table = case.keyed().await;
    let put = |n: i32, returning| Put::new(&table, item("a").with("n", n)).returning(returning);
    assert_eq!(case.store.put(put(1, AllOld)).await, Ok(None));
    let old = case.store.put(put(2, AllOld)).await;
    assert_eq!(old, Ok(Some(item("a").with("n", 1))));
    assert_eq!(case.store.put(put(3, NoValues)).await, Ok(None));
}

pub async fn delete_returns_the_deleted_item(case: &Case) {
    let table = case.keyed().await;
    case.put(&table, item("a").with("n", 1)).await;
    let delete = || Delete::new(&table, item("a")).returning(AllOld);
    let old = case.store.delete(delete()).await;
    assert_eq!(old, Ok(Some(item("a").with("n", 1))));
    assert_eq!(case.store.delete(delete()).await, Ok(None));
}

pub async fn update_returns_the_requested_values(case: &Case) {
    let before = || item("a").with("n", 1).with("s", "x");
    let after = || item("a").with("n", 2).with("s", "x").with("m", 5);
    let changes = || Changes::new().set("m", 5).add("n", 1);
    check_return_values(
        case,
        vec![
            (Some(before()), changes(), NoValues, None),
            (Some(before()), changes(), AllOld, Some(before())),
            (Some(before()), changes(), AllNew, Some(after())),
            (
                Some(before()),
                changes(),
                UpdatedOld,
                Some(Item::new().with("n", 1)),
            ),
            (
                Some(before()),
                changes(),
                UpdatedNew,
                Some(Item::new().with("n", 2).with("m", 5)),
            ),
        ],
    )
    .await;
}

pub async fn update_returns_nothing_if_nothing_exists(case: &Case) {
    let add = || Changes::new().add("n", 1);
    let remove = || Changes::new().remove("n");
    let before = || item("a").with("n", 1);
    check_return_values(
        case,
        vec![
            (None, add(), AllOld, None),
            (None, add(), UpdatedOld, None),
            (None, add(), UpdatedNew, Some(Item::new().with("n", 1))),
            (None, add(), AllNew, Some(before())),
            (Some(before()), remove(), UpdatedNew, None),
            (
                Some(before()),
                remove(),
                UpdatedOld,
                Some(Item::new().with("n", 1)),
            ),
            (Some(before()), remove(), AllNew, Some(item("a"))),
        ],
    )
    .await;
}

pub async fn update_returns_the_updated_nested_part(case: &Case) {
    let map = |members: &[(&str, i32)]| {
        let members = members
            .iter()
            .map(|(name, n)| ((*name).to_owned(), Value::from(*n)));
        Value::M(members.collect::<Map>())
    };
    let before = || item("a").with("map", map(&[("x", 1), ("y", 2)]));
    let changes = || Changes::new().set(Path::new("map").member("x"), 5);
    check_return_values(
        case,
        vec![
            (
                Some(before()),
                changes(),
                UpdatedOld,
                Some(Item::new().with("map", map(&[("x", 1)]))),
            ),
            (
                Some(before()),
                changes(),
                UpdatedNew,
                Some(Item::new().with("map", map(&[("x", 5)]))),
            ),
        ],
    )
    .await;
}

pub async fn put_and_delete_reject_new_return_values(case: &Case) {
    let table = case.keyed().await;
    for returning in [AllNew, UpdatedOld, UpdatedNew] {
        let put = Put::new(&table, item("a")).returning(returning);
        let outcome = Outcome::of(case.store.put(put).await);
        assert_eq!(outcome, Outcome::Invalid, "put, {returning:?}");
        let delete = Delete::new(&table, item("a")).returning(returning);
        let outcome = Outcome::of(case.store.delete(delete).await);
        assert_eq!(outcome, Outcome::Invalid, "delete, {returning:?}");
    }
    assert_eq!(case.get(&table, item("a")).await, None);
}

pub async fn failed_condition_returns_item_on_request(case: &Case) {
    let table = case.keyed().await;
    let there = item("a").with("n", 1);
    case.put(&table, there.clone()).await;
    for (pk, asked, old) in [
        ("a", true, Some(there)),
        ("a", false, None),
        ("absent", true, None),
    ] {
        let expected = Err(WriteError::ConditionFailed {
            old: old.map(Box::new),
        });
        let condition = || Condition::exists("absent");
        let mut put = Put::new(&table, item(pk)).when(condition());
        put.old_on_failure = asked;
        assert_eq!(case.store.put(put).await, expected, "put {pk} {asked}");
        let mut update = Update::new(&table, item(pk), Changes::default()).when(condition());
        update.old_on_failure = asked;
        assert_eq!(
            case.store.update(update).await,
            expected,
            "update {pk} {asked}"
        );
        let mut delete = Delete::new(&table, item(pk)).when(condition());
        delete.old_on_failure = asked;
        assert_eq!(
            case.store.delete(delete).await,
            expected,
            "delete {pk} {asked}"
        );
    }
}

/// Applies each change to the given item, or to none, and compares the returned values.
async fn check_return_values(
    case: &Case,
    updates: Vec<(Option<Item>, Changes, ReturnValues, Option<Item>)>,
) {
    let table = case.keyed().await;
    for (before, changes, returning, expected) in updates {
        case.put(&table, before.clone().unwrap_or(item("a"))).await;
        if before.is_none() {
            let delete = Delete::new(&table, item("a"));
            assert_eq!(case.store.delete(delete).await, Ok(None));
        }
        let update = Update::new(&table, item("a"), changes.clone()).returning(returning);
        let answer = case.store.update(update).await;
        assert_eq!(
            answer,
            Ok(expected),
            "{returning:?} of {changes:?} on {before:?}"
        );
    }
}
