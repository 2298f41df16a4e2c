//! Conditions: when they are true, and that a write whose condition fails has no effect.

use homeport_item::expression::{Condition, Path, Update as Changes};
use homeport_item::{Item, Value, ValueKind};

use super::case::{Case, item, number};
use super::outcome::Outcome;
use crate::{ConditionCheck, Delete, Put, Scan, Transaction, Update};

pub async fn conditional_put_creates_a_new_item(case: &Case) {
    let table = case.keyed().await;
    let put = Put::new(&table, item("a").with("n", 1)).when(Condition::not_exists("pk"));
    assert_eq!(case.store.put(put).await, Ok(None));
    assert_eq!(
        case.get(&table, item("a")).await,
        Some(item("a").with("n", 1))
    );
}

pub async fn duplicate_conditional_put_writes_nothing(case: &Case) {
    let table = case.keyed().await;
    case.put(&table, item("a").with("n", 1)).await;
    let put = Put::new(&table, item("a").with("n", 2)).when(Condition::not_exists("pk"));
    assert_eq!(
        Outcome::of(case.store.put(put).await),
        Outcome::ConditionFailed
    );
    assert_eq!(
        case.get(&table, item("a")).await,
        Some(item("a").with("n", 1))
    );
}

pub async fn put_replaces_the_whole_item(case: &Case) {
    let table = case.keyed().await;
    case.put(&table, item("a").with("n", 1).with("m", 1)).await;
    case.put(&table, item("a").with("n", 2)).await;
    assert_eq!(
        case.get(&table, item("a")).await,
        Some(item("a").with("n", 2))
    );
}

pub async fn failed_conditional_update_changes_nothing(case: &Case) {
    let table = case.keyed().await;
    case.put(&table, item("a").with("n", 1)).await;
    let add = |condition| {
        let changes = Changes::new().add("n", 1);
        Update::new(&table, item("a"), changes).when(condition)
    };
    let refused = case.store.update(add(at("n").greater_than(1))).await;
    assert_eq!(Outcome::of(refused), Outcome::ConditionFailed);
    assert_eq!(
        case.get(&table, item("a")).await,
        Some(item("a").with("n", 1))
    );
    let done = case.store.update(add(at("n").equals(1))).await;
    assert_eq!(done, Ok(None));
    assert_eq!(
        case.get(&table, item("a")).await,
        Some(item("a").with("n", 2))
    );
}

pub async fn failed_conditional_update_creates_nothing(case: &Case) {
    let table = case.keyed().await;
    let update = Update::new(&table, item("a"), Changes::default()).when(Condition::exists("pk"));
    assert_eq!(
        Outcome::of(case.store.update(update).await),
        Outcome::ConditionFailed
    );
    assert_eq!(case.get(&table, item("a")).await, None);
}

pub async fn failed_conditional_delete_keeps_the_item(case: &Case) {
    let table = case.keyed().await;
    case.put(&table, item("a").with("n", 1)).await;
    let delete = |n: i32| Delete::new(&table, item("a")).when(at("n").equals(n));
    assert_eq!(
        Outcome::of(case.store.delete(delete(2)).await),
        Outcome::ConditionFailed
    );
    assert_eq!(
        case.get(&table, item("a")).await,
        Some(item("a").with("n", 1))
    );
    assert_eq!(case.store.delete(delete(1)).await, Ok(None));
    assert_eq!(case.get(&table, item("a")).await, None);
}

pub async fn deleting_missing_item_succeeds_without_condition(case: &Case) {
    let table = case.keyed().await;
    assert_eq!(
        case.store.delete(Delete::new(&table, item("a"))).await,
        Ok(None)
    );
    let delete = Delete::new(&table, item("a")).when(Condition::exists("pk"));
    assert_eq!(
        Outcome::of(case.store.delete(delete).await),
        Outcome::ConditionFailed
    );
}

pub async fn missing_item_has_no_attributes(case: &Case) {
    let table = case.keyed().await;
    for (condition, expected) in [
        (Condition::not_exists("pk"), true),
        (Condition::exists("pk"), false),
        (at("n").equals(1), false),
        (at("n").not_equals(1), true),
        (at("n").less_than(1), false),
        (!at("n").less_than(1), true),
    ] {
        assert_eq!(
            holds(case, &table, &condition).await,
            expected,
            "{condition:?}"
        );
    }
}

pub async fn comparisons_depend_on_type_and_value(case: &Case) {
    decide(
        case,
        vec![
            (at("n").equals(number("5.0")), true),
            (at("n").equals("5"), false),
            (at("n").not_equals("5"), true),
            (at("n").less_than(10), true),
            (at("n").less_than(5), false),
            (at("n").at_most(5), true),
            (at("n").greater_than(number("4.9999999999999999999")), true),
            (at("n").greater_than(number("-1E125")), true),
            (at("n").at_least(6), false),
            (at("n").less_than("9"), false),
            (at("n").at_least("1"), false),
            // By bytes, not by case or language: "hello" is greater than "Z".
            (at("s").greater_than("Z"), true),
            (at("s").less_than("hello!"), true),
            (at("b").greater_than(Value::B(vec![0])), true),
            (at("b").less_than(Value::B(vec![1])), true),
            (at("yes").equals(true), true),
            (at("yes").not_equals(false), true),
            (at("nothing").equals(Value::Null), true),
            (at("absent").equals(Value::Null), false),
            (at("absent").not_equals(1), true),
            (at("n").between(5, 6), true),
            (at("n").between(1, 5), true),
            (at("n").between(6, 7), false),
            (at("s").between("a", "i"), true),
            (at("n").is_in([1, 5]), true),
            (at("n").is_in([Value::from(1), "5".into()]), false),
        ],
    )
    .await;
}

pub async fn documents_and_sets_compare_by_content(case: &Case) {
    let set = |members: [&str; 2]| Value::string_set(members).expect("a set");
    let list = |members: &[i32]| Value::L(members.iter().map(|n| Value::from(*n)).collect());
    decide(
        case,
        vec![
            (at("tags").equals(set(["y", "x"])), true),
            (at("tags").equals(set(["x", "z"])), false),
            (at("list").equals(list(&[10, 20])), true),
            (at("list").equals(list(&[20, 10])), false),
            (
                at("map").equals(Value::M([("in".to_owned(), Value::from(1))].into())),
                true,
            ),
        ],
    )
    .await;
}

pub async fn functions_test_types_sizes_and_contents(case: &Case) {
    let size = |name: &str, value: i32| at(name).size().equals(value);
    decide(
        case,
        vec![
            (Condition::exists("nothing"), true),
            (Condition::exists("absent"), false),
            (Condition::not_exists("absent"), true),
            (Condition::is_type("n", ValueKind::N), true),
            (Condition::is_type("n", ValueKind::S), false),
            (Condition::is_type("tags", ValueKind::Ss), true),
            (Condition::is_type("nothing", ValueKind::Null), true),
            (Condition::is_type("absent", ValueKind::S), false),
            (at("s").begins_with("he"), true),
            (at("s").begins_with("lo"), false),
            (at("b").begins_with(Value::B(vec![0])), true),
            (at("n").begins_with("5"), false),
            (at("s").contains("ell"), true),
            (at("s").contains("elk"), false),
            (at("tags").contains("x"), true),
            (at("tags").contains("z"), false),
            (at("list").contains(20), true),
            (at("list").contains("20"), false),
            (size("s", 5), true),
            (size("b", 2), true),
            (size("tags", 2), true),
            (size("list", 2), true),
            (size("map", 1), true),
            (size("absent", 0), false),
        ],
    )
    .await;
}

pub async fn paths_select_nested_values(case: &Case) {
    let list = || at("list");
    decide(
        case,
        vec![
            (at("map").member("in").equals(1), true),
            (at("map").member("out").equals(1), false),
            (list().element(1).equals(20), true),
            (list().element(2).equals(20), false),
            (Condition::NotExists(list().element(2)), true),
            (Condition::NotExists(list().member("in")), true),
            (Condition::Exists(at("map").element(0)), false),
            // A dot in a name is part of the name.
            (at("a.b").equals(7), true),
            (Condition::Exists(at("a").member("b")), false),
            (list().element(0).less_than(list().element(1)), true),
        ],
    )
    .await;
}

pub async fn and_or_not_combine(case: &Case) {
    let yes = || at("n").equals(5);
    let no = || at("n").equals(6);
    decide(
        case,
        vec![
            (yes().and(yes()), true),
            (yes().and(no()), false),
            (no().or(yes()), true),
            (no().or(no()), false),
            (!no(), true),
            (no().and(yes().or(yes())), false),
            (no().and(yes()).or(yes()), true),
            (!at("absent").equals(1), true),
        ],
    )
    .await;
}

/// Checks each condition on an item with attributes of most types, once as a condition check in a
/// transaction and once as a scan filter.
async fn decide(case: &Case, conditions: Vec<(Condition, bool)>) {
    let table = case.keyed().await;
    case.put(&table, subject()).await;
    for (condition, expected) in conditions {
        assert_eq!(
            holds(case, &table, &condition).await,
            expected,
            "{condition:?}"
        );
        let found = case.scan(Scan::new(&table).filter(condition.clone())).await;
        assert_eq!(found.len() == 1, expected, "as a filter: {condition:?}");
    }
}

fn subject() -> Item {
    item("a")
        .with("n", 5)
        .with("s", "hello")
        .with("b", Value::B(vec![0, 255]))
        .with("yes", true)
        .with("nothing", Value::Null)
        .with("tags", Value::string_set(["x", "y"]).expect("a set"))
        .with("list", Value::L(vec![10.into(), 20.into()]))
        .with("map", Value::M([("in".to_owned(), Value::from(1))].into()))
        .with("a.b", 7)
}

async fn holds(case: &Case, table: &str, condition: &Condition) -> bool {
    let check = ConditionCheck::new(table, item("a"), condition.clone());
    let outcome = case
        .store
        .transact(Transaction::new(vec![check.into()]))
        .await;
    match Outcome::of(outcome) {
        Outcome::Success => true,
        Outcome::Cancelled => false,
        other => panic!("{condition:?} ended as {other:?}"),
    }
}

/// The path of a top-level attribute.
fn at(name: &str) -> Path {
    Path::new(name)
}
