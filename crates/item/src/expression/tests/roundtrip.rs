//! Printing a tree and parsing the text gives the same tree.

use proptest::collection::vec;
use proptest::prelude::*;

use crate::KeyKind;
use crate::expression::{
    Comparator, Condition, KeyCondition, Operand, Path, Placeholders, Printer, Projection,
    SortCondition, Update, UpdateOperand,
};
use crate::item::Item;
use crate::schema::{KeyAttribute, KeySchema};
use crate::value::arbitrary::{any_item, any_number, any_value};
use crate::value::{Value, ValueKind};

fn reading(printer: Printer) -> Placeholders {
    let (names, values) = printer.into_parts();
    Placeholders::new(names, values).expect("placeholders")
}

fn any_path() -> impl Strategy<Value = Path> {
    let step = prop_oneof!["[a-e]|name|\\PC{1,4}".prop_map(Ok), (0..4u32).prop_map(Err)];
    let name = "[a-f]|size|\\PC{1,6}";
    (name, vec(step, 0..3)).prop_map(|(name, steps)| {
        steps
            .into_iter()
            .fold(Path::new(name), |path, step| match step {
                Ok(name) => path.member(name),
                Err(index) => path.element(index),
            })
    })
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        any_number().prop_map(Value::N),
        "[a-c]{0,3}".prop_map(Value::S),
        vec(any::<u8>(), 0..3).prop_map(Value::B),
    ]
}

fn any_operand(value: impl Strategy<Value = Value>) -> impl Strategy<Value = Operand> {
    prop_oneof![
        any_path().prop_map(Operand::Path),
        value.prop_map(Operand::Value),
        any_path().prop_map(Operand::Size),
    ]
}

fn any_kind() -> impl Strategy<Value = ValueKind> {
    use ValueKind::{B, Bool, Bs, L, M, N, Ns, Null, S, Ss};
    proptest::sample::select(vec![S, N, B, Bool, Null, M, L, Ss, Ns, Bs])
}

fn any_comparison() -> impl Strategy<Value = Condition> {
    use Comparator::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
    let any_order = proptest::sample::select(vec![Less, LessOrEqual, Greater, GreaterOrEqual]);
    let any_equality = proptest::sample::select(vec![Equal, NotEqual]);
    let text = || {
        prop_oneof![
            any_path().prop_map(Operand::Path),
            "[a-c]{0,2}".prop_map(Operand::from)
        ]
    };
    let compare = |(left, comparator, right)| Condition::Compare(left, comparator, right);
    prop_oneof![
        (
            any_operand(any_value()),
            any_equality,
            any_operand(any_value())
        )
            .prop_map(compare),
        (any_operand(scalar()), any_order, any_operand(scalar())).prop_map(compare),
        (any_operand(scalar()), any::<i32>(), any::<i32>()).prop_map(|(operand, one, two)| {
            Condition::Between(operand, one.min(two).into(), one.max(two).into())
        }),
        (
            any_operand(any_value()),
            vec(any_operand(any_value()), 1..4)
        )
            .prop_map(|(operand, choices)| Condition::In(operand, choices)),
        any_path().prop_map(Condition::Exists),
        any_path().prop_map(Condition::NotExists),
        (any_path(), any_kind()).prop_map(|(path, kind)| Condition::IsType(path, kind)),
        (text(), text()).prop_map(|(text, prefix)| Condition::BeginsWith(text, prefix)),
        (any_operand(any_value()), any_operand(any_value()))
            .prop_map(|(whole, part)| Condition::Contains(whole, part)),
    ]
    // The language rejects a path compared with itself.
    .prop_filter("compares a path with itself", |condition| match condition {
        Condition::Compare(Operand::Path(one), _, Operand::Path(two))
        | Condition::BeginsWith(Operand::Path(one), Operand::Path(two))
        | Condition::Contains(Operand::Path(one), Operand::Path(two)) => one != two,
        Condition::In(first @ Operand::Path(_), choices) => !choices.contains(first),
        _ => true,
    })
}

fn any_condition() -> impl Strategy<Value = Condition> {
    any_comparison().prop_recursive(5, 16, 2, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(left, right)| left.and(right)),
            (inner.clone(), inner.clone()).prop_map(|(left, right)| left.or(right)),
            inner.prop_map(|condition| !condition),
        ]
    })
}

fn any_update_operand() -> impl Strategy<Value = UpdateOperand> {
    let list = || {
        prop_oneof![
            any_path().prop_map(UpdateOperand::Path),
            vec(any_value(), 0..3).prop_map(|list| UpdateOperand::Value(Value::L(list))),
        ]
    };
    let number = || {
        prop_oneof![
            any_path().prop_map(UpdateOperand::Path),
            any_number().prop_map(UpdateOperand::from),
            (any_path(), any_number())
                .prop_map(|(path, number)| UpdateOperand::if_not_exists(path, number)),
        ]
    };
    prop_oneof![
        any_path().prop_map(UpdateOperand::Path),
        any_value().prop_map(UpdateOperand::Value),
        (list(), list()).prop_map(|(left, right)| UpdateOperand::list_append(left, right)),
        (any_path(), list(), list()).prop_map(|(path, left, right)| {
            UpdateOperand::if_not_exists(path, UpdateOperand::list_append(left, right))
        }),
        (number(), number()).prop_map(|(left, right)| left.plus(right)),
        (number(), number()).prop_map(|(left, right)| left.minus(right)),
    ]
}

fn any_update() -> impl Strategy<Value = Update> {
    let members = || proptest::collection::btree_set("[a-c]{1,2}", 1..3);
    let action = prop_oneof![
        (any_path(), any_update_operand())
            .prop_map(|(path, operand)| Update::new().set(path, operand)),
        any_path().prop_map(|path| Update::new().remove(path)),
        (any_path(), any_number()).prop_map(|(path, number)| Update::new().add(path, number)),
        (any_path(), members()).prop_map(|(path, members)| {
            Update::new().delete(path, Value::string_set(members).expect("a set"))
        }),
    ];
    // Leave out actions whose paths overlap earlier ones.
    vec(action, 1..6).prop_map(|actions| {
        actions
            .into_iter()
            .fold(Update::new(), |mut update, action| {
                let before = update.clone();
                update.set.extend(action.set);
                update.remove.extend(action.remove);
                update.add.extend(action.add);
                update.delete.extend(action.delete);
                if update.check().is_ok() {
                    update
                } else {
                    before
                }
            })
    })
}

fn any_key_condition() -> impl Strategy<Value = KeyCondition> {
    let number = || any::<i32>().prop_map(Value::from);
    let sort = prop_oneof![
        number().prop_map(SortCondition::Equal),
        number().prop_map(SortCondition::Less),
        number().prop_map(SortCondition::LessOrEqual),
        number().prop_map(SortCondition::Greater),
        number().prop_map(SortCondition::GreaterOrEqual),
        (any::<i32>(), any::<i32>()).prop_map(|(one, two)| {
            SortCondition::Between(one.min(two).into(), one.max(two).into())
        }),
    ];
    ("[a-c]{1,3}", proptest::option::of(sort)).prop_map(|(partition, sort)| KeyCondition {
        partition_name: "pk".into(),
        partition: Value::S(partition),
        rest: Vec::new(),
        sort: sort.map(|sort| ("sk".into(), sort)),
    })
}

proptest! {
    #[test]
    fn printed_conditions_parse_back_and_match_equally(condition in any_condition(), item in any_item()) {
        let mut printer = Printer::new();
        let text = condition.print(&mut printer);
        let mut placeholders = reading(printer);
        let read = Condition::parse(&text, &mut placeholders);
        prop_assert_eq!(read.as_ref(), Ok(&condition), "{}", text);
        prop_assert_eq!(placeholders.check_all_used(), Ok(()));
        prop_assert_eq!(read.expect("read").matches(&item), condition.matches(&item));
    }

    #[test]
    fn printed_updates_parse_back_and_apply_equally(update in any_update(), item in any_item()) {
        let mut printer = Printer::new();
        let text = update.print(&mut printer);
        let mut placeholders = reading(printer);
        if update.is_empty() {
            prop_assert_eq!(text, "");
            return Ok(());
        }
        let read = Update::parse(&text, &mut placeholders);
        prop_assert_eq!(read.as_ref(), Ok(&update), "{}", text);
        prop_assert_eq!(placeholders.check_all_used(), Ok(()));
        let (mut one, mut two) = (item.clone(), item.clone());
        prop_assert_eq!(read.expect("read").apply(&mut one), update.apply(&mut two));
        prop_assert_eq!(one, two);
    }

    #[test]
    fn update_changes_only_its_paths(update in any_update(), item in any_item()) {
        let mut after = item.clone();
        let applied = update.apply(&mut after);
        if applied.is_err() {
            prop_assert_eq!(&after, &item);
        }
        let touched: Vec<_> = update.paths().map(Path::name).collect();
        let others = |item: &Item| -> Vec<(String, Value)> {
            let others = item.iter().filter(|(name, _)| !touched.contains(name));
            others.map(|(name, value)| (name.to_owned(), value.clone())).collect()
        };
        prop_assert_eq!(others(&after), others(&item));
    }

    #[test]
    fn printed_projections_parse_back(paths in vec(any_path(), 1..5)) {
        let projection = Projection { paths };
        let mut printer = Printer::new();
        let text = projection.print(&mut printer);
        let read = Projection::parse(&text, &mut reading(printer));
        match projection.check() {
            Ok(()) => prop_assert_eq!(read, Ok(projection), "{}", text),
            Err(refusal) => prop_assert_eq!(read, Err(refusal)),
        }
    }

    #[test]
    fn printed_key_conditions_parse_back(condition in any_key_condition()) {
        let sort = KeyAttribute::new("sk", KeyKind::N);
        let schema = KeySchema::new(KeyAttribute::new("pk", KeyKind::S), Some(sort));
        let mut printer = Printer::new();
        let text = condition.print(&mut printer);
        let read = KeyCondition::parse(&text, &mut reading(printer), &schema);
        prop_assert_eq!(read, Ok(condition), "{}", text);
    }

    #[test]
    fn projection_returns_only_existing_parts(item in any_item(), paths in vec(any_path(), 0..5)) {
        let picked = Projection { paths }.apply(&item);
        prop_assert!(picked.size() <= item.size());
        prop_assert!(picked.iter().all(|(name, _)| item.get(name).is_some()));
        let names: Vec<&str> = item.iter().map(|(name, _)| name).collect();
        prop_assert_eq!(Projection::new(names).apply(&item), item);
    }
}

#[test]
fn equal_names_and_values_share_placeholders() {
    let mut printer = Printer::new();
    let condition = Path::new("a")
        .equals(1)
        .and(Path::new("b").member("a").greater_than(1));
    assert_eq!(condition.print(&mut printer), "#n0 = :v0 AND #n1.#n0 > :v0");
    let update = Update::new().set("a", 2).remove(Path::new("c").element(3));
    assert_eq!(update.print(&mut printer), "SET #n0 = :v1 REMOVE #n2[3]");
    let (names, values) = printer.into_parts();
    assert_eq!(names.len(), 3);
    assert_eq!(names["#n2"], "c");
    assert_eq!(values[":v1"], Value::from(2));
    assert_eq!(values.len(), 2);
}

#[test]
fn parentheses_are_printed_only_where_needed() {
    let leaf = |name: &str| Condition::exists(name);
    let print = |condition: Condition| {
        let text = condition.print(&mut Printer::new());
        text.replace("attribute_exists", "")
            .replace("(#n", "")
            .replace("0)", "0")
    };
    let (a, b, c) = (leaf("a"), leaf("a"), leaf("a"));
    assert_eq!(
        print(a.clone().and(b.clone()).and(c.clone())),
        "0 AND 0 AND 0"
    );
    assert_eq!(
        print(a.clone().and(b.clone().and(c.clone()))),
        "0 AND (0 AND 0)"
    );
    assert_eq!(
        print(a.clone().or(b.clone()).and(c.clone())),
        "(0 OR 0) AND 0"
    );
    assert_eq!(
        print(a.clone().and(b.clone()).or(c.clone())),
        "0 AND 0 OR 0"
    );
    assert_eq!(print(!a.clone().or(b)), "NOT (0 OR 0)");
    assert_eq!(print(!!a), "NOT (NOT 0)");
}
