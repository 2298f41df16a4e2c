//! Updates: the effect of every action, and what is rejected.

use homeport_item::expression::{Condition, Path, Update as Changes, UpdateOperand};
use homeport_item::{Item, Value};

use super::case::{Case, item, number};
use super::outcome::Outcome;
use crate::{Put, ReturnValues, Transaction, Update};

pub async fn update_creates_a_missing_item(case: &Case) {
    check_results(
        case,
        vec![
            (None, Changes::default(), item("a")),
            (None, set("n", 1), item("a").with("n", 1)),
            (None, set("n", 1).remove("m"), item("a").with("n", 1)),
            (None, add("n", 3), item("a").with("n", 3)),
            (
                None,
                add("tags", tags(&["x"])),
                item("a").with("tags", tags(&["x"])),
            ),
        ],
    )
    .await;
}

pub async fn remove_only_update_creates_no_item(case: &Case) {
    let table = case.keyed().await;
    for changes in [
        remove("n"),
        remove(Path::new("map").member("x")),
        remove(Path::new("list").element(0)),
        delete("tags", tags(&["x"])),
        remove("n").delete("tags", tags(&["x"])),
    ] {
        for returning in [
            ReturnValues::None,
            ReturnValues::AllOld,
            ReturnValues::AllNew,
            ReturnValues::UpdatedOld,
            ReturnValues::UpdatedNew,
        ] {
            let update = Update::new(&table, item("a"), changes.clone()).returning(returning);
            assert_eq!(case.store.update(update).await, Ok(None), "{changes:?}");
            assert_eq!(case.get(&table, item("a")).await, None, "{changes:?}");
        }
        let update = Update::new(&table, item("a"), changes.clone());
        let actions = vec![update.into(), Put::new(&table, item("b")).into()];
        let outcome = case.store.transact(Transaction::new(actions)).await;
        assert_eq!(outcome, Ok(()), "{changes:?}");
        assert_eq!(case.get(&table, item("a")).await, None, "{changes:?}");
    }
    let wanted = || Condition::exists("pk");
    let update = Update::new(&table, item("a"), remove("n")).when(wanted());
    let outcome = Outcome::of(case.store.update(update).await);
    assert_eq!(outcome, Outcome::ConditionFailed);
}

pub async fn set_writes_attributes_and_keeps_the_others(case: &Case) {
    let before = || item("a").with("n", 1).with("s", "x");
    check_results(
        case,
        vec![
            (Some(before()), set("n", 2), before().with("n", 2)),
            (Some(before()), set("n", "text"), before().with("n", "text")),
            (Some(before()), set("m", true), before().with("m", true)),
            (Some(before()), Changes::default(), before()),
        ],
    )
    .await;
}

pub async fn set_writes_nested_values(case: &Case) {
    let before = || document(&[1, 2], &[("x", 1)]);
    let list = || Path::new("list");
    check_results(
        case,
        vec![
            (
                Some(before()),
                set(Path::new("map").member("x"), 5),
                document(&[1, 2], &[("x", 5)]),
            ),
            (
                Some(before()),
                set(Path::new("map").member("y"), 5),
                document(&[1, 2], &[("x", 1), ("y", 5)]),
            ),
            (
                Some(before()),
                set(list().element(0), 5),
                document(&[5, 2], &[("x", 1)]),
            ),
            // A write past the end of a list appends one element, at whatever index.
            (
                Some(before()),
                set(list().element(9), 5),
                document(&[1, 2, 5], &[("x", 1)]),
            ),
        ],
    )
    .await;
}

pub async fn set_reads_the_original_item(case: &Case) {
    let before = || item("a").with("n", 10).with("m", 3);
    let swap = Changes::new().set("n", at("m")).set("m", at("n"));
    check_results(
        case,
        vec![
            (Some(before()), swap, item("a").with("n", 3).with("m", 10)),
            (
                Some(before()),
                set("n", at("n").plus(number("0.1"))),
                before().with("n", number("10.1")),
            ),
            (
                Some(before()),
                set("n", at("m").minus(at("n"))),
                before().with("n", -7),
            ),
            (
                Some(before()),
                set("n", at("n").plus(number("1E-36"))),
                before().with("n", number("10.000000000000000000000000000000000001")),
            ),
        ],
    )
    .await;
}

pub async fn if_not_exists_provides_initial_value(case: &Case) {
    let first = |name: &str| UpdateOperand::if_not_exists(name, 0);
    let count = first("n").plus(1);
    check_results(
        case,
        vec![
            (None, set("n", count.clone()), item("a").with("n", 1)),
            (
                Some(item("a").with("n", 7)),
                set("n", count),
                item("a").with("n", 8),
            ),
            (
                Some(item("a").with("n", 7)),
                set("n", first("n")),
                item("a").with("n", 7),
            ),
        ],
    )
    .await;
}

pub async fn list_append_concatenates_lists(case: &Case) {
    let more = || UpdateOperand::from(list(&[3]));
    let fresh = UpdateOperand::if_not_exists("list", list(&[]));
    let before = || item("a").with("list", list(&[1, 2]));
    check_results(
        case,
        vec![
            (
                Some(before()),
                set("list", UpdateOperand::list_append(at("list"), more())),
                item("a").with("list", list(&[1, 2, 3])),
            ),
            (
                Some(before()),
                set("list", UpdateOperand::list_append(more(), at("list"))),
                item("a").with("list", list(&[3, 1, 2])),
            ),
            (
                None,
                set("list", UpdateOperand::list_append(fresh, more())),
                item("a").with("list", list(&[3])),
            ),
        ],
    )
    .await;
}

pub async fn remove_deletes_attributes_members_and_elements(case: &Case) {
    let before = || document(&[1, 2, 3], &[("x", 1), ("y", 2)]);
    let two_elements = remove(Path::new("list").element(0)).remove(Path::new("list").element(1));
    check_results(
        case,
        vec![
            (
                Some(before()),
                remove("list"),
                item("a").with("map", map(&[("x", 1), ("y", 2)])),
            ),
            (
                Some(before()),
                remove(Path::new("map").member("y")),
                document(&[1, 2, 3], &[("x", 1)]),
            ),
            (
                Some(before()),
                remove(Path::new("list").element(1)),
                document(&[1, 3], &[("x", 1), ("y", 2)]),
            ),
            // The indexes refer to the original list.
            (
                Some(before()),
                two_elements,
                document(&[3], &[("x", 1), ("y", 2)]),
            ),
            (Some(before()), remove("absent"), before()),
            (
                Some(before()),
                remove(Path::new("list").element(7)),
                before(),
            ),
        ],
    )
    .await;
}

pub async fn add_is_exact(case: &Case) {
    let with = |n: &str| item("a").with("n", number(n));
    check_results(
        case,
        vec![
            (Some(with("1")), add("n", -5), with("-4")),
            (Some(with("0.1")), add("n", number("0.2")), with("0.3")),
            (
                Some(with("9007199254740993")),
                add("n", 2),
                with("9007199254740995"),
            ),
            (
                Some(with("99999999999999999999999999999999999998")),
                add("n", 1),
                with("99999999999999999999999999999999999999"),
            ),
        ],
    )
    .await;
}

pub async fn add_and_delete_change_set_members(case: &Case) {
    let with = |members: &[&str]| item("a").with("tags", tags(members));
    check_results(
        case,
        vec![
            (
                Some(with(&["x"])),
                add("tags", tags(&["x", "y"])),
                with(&["x", "y"]),
            ),
            (
                Some(with(&["x", "y"])),
                delete("tags", tags(&["y", "z"])),
                with(&["x"]),
            ),
            // A set is never empty: removing its last member removes the attribute.
            (Some(with(&["x"])), delete("tags", tags(&["x"])), item("a")),
        ],
    )
    .await;
}

pub async fn all_update_actions_work_together(case: &Case) {
    let before = item("a")
        .with("n", 1)
        .with("old", "x")
        .with("tags", tags(&["x", "y"]));
    let changes = Changes::new()
        .set("new", at("old"))
        .remove("old")
        .add("n", 1)
        .delete("tags", tags(&["x"]));
    let after = item("a")
        .with("n", 2)
        .with("new", "x")
        .with("tags", tags(&["y"]));
    check_results(case, vec![(Some(before), changes, after)]).await;
}

pub async fn updates_that_do_not_fit_are_rejected(case: &Case) {
    check_rejected(
        case,
        vec![
            add("s", 1),
            add("n", tags(&["x"])),
            add("tags", 1),
            delete("n", tags(&["x"])),
            set("n", at("absent")),
            set("n", at("s").plus(1)),
            set("n", at("absent").plus(1)),
            set("n", UpdateOperand::list_append(at("s"), list(&[1]))),
            set(Path::new("absent").member("x"), 1),
            set(Path::new("s").member("x"), 1),
            set(Path::new("map").element(0), 1),
            add("huge", number("9E125")),
        ],
    )
    .await;
}

pub async fn updates_of_key_attributes_are_rejected(case: &Case) {
    check_rejected(
        case,
        vec![
            set("pk", "b"),
            set("pk", "a"),
            remove("pk"),
            add("pk", 1),
            delete("pk", tags(&["a"])),
        ],
    )
    .await;
}

pub async fn overlapping_paths_are_rejected(case: &Case) {
    let both = |first: Path, second: Path| set(first, 1).remove(second);
    check_rejected(
        case,
        vec![
            both("n".into(), "n".into()),
            both("map".into(), Path::new("map").member("x")),
            both(Path::new("map").member("x"), "map".into()),
        ],
    )
    .await;
}

/// Applies each change to the given item, or to none, and compares the result.
async fn check_results(case: &Case, changes: Vec<(Option<Item>, Changes, Item)>) {
    let table = case.keyed().await;
    for (before, changes, after) in changes {
        match before {
            Some(before) => case.put(&table, before).await,
            None => {
                let delete = crate::Delete::new(&table, item("a"));
                assert_eq!(case.store.delete(delete).await, Ok(None));
            }
        }
        let update = Update::new(&table, item("a"), changes.clone());
        assert_eq!(case.store.update(update).await, Ok(None), "{changes:?}");
        let found = case.get(&table, item("a")).await;
        assert_eq!(found, Some(after), "{changes:?}");
    }
}

/// Tries each change on one item, which must stay unchanged.
async fn check_rejected(case: &Case, changes: Vec<Changes>) {
    let table = case.keyed().await;
    let before = document(&[1], &[("x", 1)])
        .with("n", 1)
        .with("s", "x")
        .with("tags", tags(&["x"]))
        .with("huge", number("9E125"));
    case.put(&table, before.clone()).await;
    for changes in changes {
        let update = Update::new(&table, item("a"), changes.clone());
        let outcome = Outcome::of(case.store.update(update).await);
        assert_eq!(outcome, Outcome::Invalid, "{changes:?}");
        let found = case.get(&table, item("a")).await;
        assert_eq!(found.as_ref(), Some(&before), "{changes:?}");
    }
}

fn set(path: impl Into<Path>, operand: impl Into<UpdateOperand>) -> Changes {
    Changes::new().set(path, operand)
}

fn remove(path: impl Into<Path>) -> Changes {
    Changes::new().remove(path)
}

fn add(path: impl Into<Path>, value: impl Into<Value>) -> Changes {
    Changes::new().add(path, value)
}

fn delete(path: impl Into<Path>, members: impl Into<Value>) -> Changes {
    Changes::new().delete(path, members)
}

/// The value of a top-level attribute.
fn at(name: &str) -> UpdateOperand {
    Path::new(name).into()
}

fn tags(members: &[&str]) -> Value {
    Value::string_set(members.iter().copied()).expect("a set")
}

fn list(elements: &[i32]) -> Value {
    Value::L(elements.iter().map(|n| Value::from(*n)).collect())
}

fn map(members: &[(&str, i32)]) -> Value {
    let members = members.iter();
    Value::M(
        members
            .map(|(name, n)| ((*name).to_owned(), Value::from(*n)))
            .collect(),
    )
}

fn document(elements: &[i32], members: &[(&str, i32)]) -> Item {
    item("a")
        .with("list", list(elements))
        .with("map", map(members))
}
