//! Any text as every kind of expression. A parsed expression must print to text that parses to the same, and evaluation must
//! not panic.

#![no_main]

use homeport_item::expression::{
    Condition, ExpressionError, KeyCondition, Placeholders, Printer, ExpressionProblem, Projection, Update,
};
use homeport_item::schema::{KeyAttribute, KeySchema};
use homeport_item::{Item, KeyKind, Map, Value};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let placeholders = &mut placeholders();
    let item = item();
    let sort = KeyAttribute::new("n", KeyKind::N);
    let schema = KeySchema::new(KeyAttribute::new("s", KeyKind::S), Some(sort));
    if let Ok(condition) = Condition::parse(text, placeholders) {
        let read = reread(|printer| condition.print(printer), Condition::parse);
        if let Some(read) = read {
            assert_eq!(read, condition);
        }
        condition
            .matches(&item)
            .expect("an item in memory is never damaged");
    }
    if let Ok(update) = Update::parse(text, placeholders) {
        let read = reread(|printer| update.print(printer), Update::parse);
        if let Some(read) = read {
            assert_eq!(read, update);
        }
        assert_eq!(update.check(), Ok(()));
        let mut after = item.clone();
        if update.apply(&mut after).is_err() {
            assert_eq!(after, item);
        }
    }
    if let Ok(projection) = Projection::parse(text, placeholders) {
        let read = reread(|printer| projection.print(printer), Projection::parse);
        if let Some(read) = read {
            assert_eq!(read, projection);
        }
        assert_eq!(projection.read(&item), Ok(projection.apply(&item)));
    }
    if let Ok(condition) = KeyCondition::parse(text, placeholders, &schema) {
        let parse = |text: &str, placeholders: &mut Placeholders| {
            KeyCondition::parse(text, placeholders, &schema)
        };
        let read = reread(|printer| condition.print(printer), parse);
        if let Some(read) = read {
            assert_eq!(read, condition);
        }
        condition
            .matches(&item)
            .expect("an item in memory is never damaged");
    }
});

/// Prints and parses again. With placeholders for all names the text can become too long, and with parentheses around a NOT
/// of a NOT too deep; then there is nothing to compare.
fn reread<T>(
    print: impl Fn(&mut Printer) -> String,
    parse: impl Fn(&str, &mut Placeholders) -> Result<T, ExpressionError>,
) -> Option<T> {
    let mut printer = Printer::new();
    let text = print(&mut printer);
    let (names, values) = printer.into_parts();
    let mut placeholders =
        Placeholders::new(names, values).expect("only placeholders are allotted");
    match parse(&text, &mut placeholders) {
        Ok(read) => {
            assert_eq!(placeholders.check_all_used(), Ok(()));
            Some(read)
        }
        Err(ExpressionError::Invalid {
            problem: ExpressionProblem::TooLong(_) | ExpressionProblem::TooDeep(_),
            ..
        }) => None,
        Err(error) => panic!("{error}: {text}"),
    }
}

fn placeholders() -> Placeholders {
    let names = [("#a", "a"), ("#m", "m"), ("#x", "x y")];
    let names = names.map(|(key, name)| (key.to_owned(), name.to_owned()));
    let set = Value::string_set(["p", "q"]).expect("two members");
    let values = [
        (":n", Value::from(1)),
        (":o", Value::from(7)),
        (":s", Value::from("S")),
        (":b", Value::B(vec![1, 2])),
        (":t", Value::Bool(true)),
        (":l", Value::L(vec![Value::from(1)])),
        (":e", set),
    ];
    let values = values.map(|(key, value)| (key.to_owned(), value));
    Placeholders::new(names, values).expect("placeholders")
}

fn item() -> Item {
    let list = Value::L(vec![Value::from(1), Value::from("x"), Value::L(vec![])]);
    let inner = Map::from([
        ("a".to_owned(), Value::from(3)),
        ("l".to_owned(), list.clone()),
    ]);
    Item::new()
        .with("a", list)
        .with("m", Value::M(inner))
        .with("n", 5)
        .with("s", "S")
        .with("e", Value::string_set(["p"]).expect("one member"))
}
