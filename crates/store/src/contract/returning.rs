//! What writes answer with, when they succeed and when their condition fails.

use homeport_item::Item;
use homeport_item::expression::{Condition, Path, Update as Changes};
use homeport_item::{Map, Value};

use super::case::{Case, item};
use super::outcome::Outcome;
use crate::{Delete, Put, Returning, Update, WriteError};

use Returning::{AllNew, AllOld, Nothing, UpdatedNew, UpdatedOld};

pub async fn put_answers_with_the_item_it_replaced(case: &Case) {
    let table = case.keyed().await;
    let put = |n: i32, returning| Put::new(&table, item("a").with("n", n)).returning(returning);
    assert_eq!(case.store.put(put(1, AllOld)).await, Ok(None));
    let old = case.store.put(put(2, AllOld)).await;
    assert_eq!(old, Ok(Some(item("a").with("n", 1))));
    assert_eq!(case.store.put(put(3, Nothing)).await, Ok(None));
}

pub async fn delete_answers_with_the_item_it_removed(case: &Case) {
    let table = case.keyed().await;
    case.put(&table, item("a").with("n", 1)).await;
    let delete = || Delete::new(&table, item("a")).returning(AllOld);
    let old = case.store.delete(delete()).await;
    assert_eq!(old, Ok(Some(item("a").with("n", 1))));
    assert_eq!(case.store.delete(delete()).await, Ok(None));
}

pub async fn update_answers_with_what_was_asked_for(case: &Case) {
    let before = || item("a").with("n", 1).with("s", "x");
    let after = || item("a").with("n", 2).with("s", "x").with("m", 5);
    let changes = || Changes::new().set("m", 5).add("n", 1);
    answers(
        case,
        vec![
            (Some(before()), changes(), Nothing, None),
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

pub async fn update_answers_with_nothing_where_there_is_nothing(case: &Case) {
    let add = || Changes::new().add("n", 1);
    let remove = || Changes::new().remove("n");
    let before = || item("a").with("n", 1);
    answers(
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

pub async fn update_answers_with_the_nested_part_it_touched(case: &Case) {
    let map = |members: &[(&str, i32)]| {
        let members = members
            .iter()
            .map(|(name, n)| ((*name).to_owned(), Value::from(*n)));
        Value::M(members.collect::<Map>())
    };
    let before = || item("a").with("map", map(&[("x", 1), ("y", 2)]));
    let changes = || Changes::new().set(Path::new("map").member("x"), 5);
    answers(
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

pub async fn put_and_delete_cannot_answer_with_new_attributes(case: &Case) {
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

pub async fn a_failed_condition_answers_with_the_item_where_asked(case: &Case) {
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

/// Applies each change to the item before, or to none, and compares what the update answers.
async fn answers(case: &Case, updates: Vec<(Option<Item>, Changes, Returning, Option<Item>)>) {
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
