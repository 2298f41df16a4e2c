//! Any text as a PartiQL statement, with and without parameters. Parsing and evaluating must not panic, and a rejected update
//! must change nothing.

#![no_main]

use homeport_item::expression::Condition;
use homeport_item::{Item, Value};
use homeport_partiql::Statement;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let parameters = [Value::from(1), Value::from("a"), Value::Bool(true)];
    for count in 0..=parameters.len() {
        if let Ok(statement) = Statement::parse(text, &parameters[..count]) {
            evaluate(&statement, &item());
        }
    }
});

fn evaluate(statement: &Statement, item: &Item) {
    match statement {
        Statement::Select(select) | Statement::Exists(select) => {
            evaluate_condition(select.condition.as_ref(), item);
        }
        Statement::Delete(delete) => evaluate_condition(delete.condition.as_ref(), item),
        Statement::Update(update) => {
            evaluate_condition(update.condition.as_ref(), item);
            let mut after = item.clone();
            if update.update.check().is_ok() && update.update.apply(&mut after).is_err() {
                assert_eq!(&after, item);
            }
        }
        Statement::Insert(insert) => assert!(!insert.item.is_empty(), "an item without a key"),
    }
}

fn evaluate_condition(condition: Option<&Condition>, item: &Item) {
    if let Some(condition) = condition {
        condition
            .matches(item)
            .expect("an item in memory is never damaged");
    }
}

fn item() -> Item {
    let list = Value::L(vec![Value::from(1), Value::from("x"), Value::L(vec![])]);
    Item::new()
        .with("a", list)
        .with("n", 5)
        .with("s", "S")
        .with("e", Value::string_set(["p"]).expect("one member"))
}
