//! Random requests on a few tables with so few keys that they often collide.

use homeport_item::expression::{
    Condition, KeyCondition, Path, SortCondition, Update as Changes, UpdateOperand,
};
use homeport_item::schema::{IndexProjection, IndexSchema, KeyAttribute, StreamView, TableSchema};
use homeport_item::{Item, KeyKind, Number, Value};
use homeport_store::{
    Action, BatchWrite, ConditionCheck, Delete, Put, Query, ReturnValues, Transaction, Update,
    WriteRequest,
};

use crate::dice::Dice;

pub(crate) const TABLES: [&str; 3] = ["texts", "numbers", "bytes"];
pub(crate) const TTL_ATTRIBUTE: &str = "expires";

pub(crate) fn tables() -> Vec<TableSchema> {
    vec![
        TableSchema::new("texts", "pk", KeyKind::S)
            .with_sort("sk", KeyKind::N)
            .with_index(IndexSchema {
                local: true,
                ..IndexSchema::global("local", text("pk"), Some(text("a")))
            })
            .with_ttl(TTL_ATTRIBUTE)
            .with_stream(StreamView::NewAndOldImages),
        TableSchema::new("numbers", "pk", KeyKind::N).with_stream(StreamView::NewAndOldImages),
        TableSchema::new("bytes", "pk", KeyKind::B)
            .with_sort("sk", KeyKind::S)
            .with_ttl(TTL_ATTRIBUTE)
            .with_stream(StreamView::NewAndOldImages),
    ]
}

fn text(name: &str) -> KeyAttribute {
    KeyAttribute::new(name, KeyKind::S)
}

fn number(name: &str) -> KeyAttribute {
    KeyAttribute::new(name, KeyKind::N)
}

/// The indexes that are added and deleted.
pub(crate) fn indexes() -> Vec<IndexSchema> {
    vec![
        IndexSchema::global("by-a", text("a"), Some(number("n"))),
        IndexSchema::global("by-n", number("n"), None).projecting(IndexProjection::KeysOnly),
        IndexSchema::global("by-n-a", number("n"), Some(text("a")))
            .projecting(IndexProjection::Include(vec!["x".to_owned()])),
    ]
}

fn decimal(dice: &mut Dice) -> Value {
    let choices = ["-7", "-0.5", "0", "0.01", "3", "3.5", "1e20", "12"];
    Value::N(dice.pick(&choices).parse::<Number>().unwrap())
}

fn word(dice: &mut Dice) -> Value {
    Value::from(*dice.pick(&["a", "ab", "a\0b", "b", "\u{1F3E0}"]))
}

fn binary(dice: &mut Dice) -> Value {
    Value::B(
        dice.pick(&[&b"\x00"[..], b"\x00\x00", b"\x00\xFF", b"\xFF", b"x"])
            .to_vec(),
    )
}

/// A value for a key attribute.
pub(crate) fn key_value(dice: &mut Dice, kind: KeyKind) -> Value {
    match kind {
        KeyKind::S => word(dice),
        KeyKind::N => decimal(dice),
        KeyKind::B => binary(dice),
    }
}

pub(crate) fn key(dice: &mut Dice, schema: &TableSchema) -> Item {
    schema
        .key
        .attributes()
        .map(|attribute| {
            let value = key_value(dice, attribute.kind);
            (attribute.name.clone(), value)
        })
        .collect()
}

fn item(dice: &mut Dice, schema: &TableSchema, now_secs: i64) -> Item {
    let mut item = key(dice, schema);
    if !dice.one_in(4) {
        // Sometimes of a type that no index accepts.
        let value = if dice.one_in(20) {
            decimal(dice)
        } else {
            word(dice)
        };
        item.insert("a", value);
    }
    if !dice.one_in(4) {
        let value = if dice.one_in(20) {
            word(dice)
        } else {
            decimal(dice)
        };
        item.insert("n", value);
    }
    if dice.one_in(2) {
        item.insert("x", anything(dice));
    }
    if dice.one_in(3) {
        item.insert(TTL_ATTRIBUTE, expiry(dice, now_secs));
    }
    item
}

fn anything(dice: &mut Dice) -> Value {
    match dice.below(6) {
        0 => Value::Null,
        1 => Value::from(dice.one_in(2)),
        2 => Value::L(vec![word(dice), decimal(dice)]),
        3 => Value::M([("in".to_owned(), decimal(dice))].into()),
        4 => Value::from("x".repeat(dice.below(6000))),
        _ => decimal(dice),
    }
}

fn expiry(dice: &mut Dice, now_secs: i64) -> Value {
    match dice.below(6) {
        0 => Value::from(now_secs - 5),
        1 => Value::from("never"),
        // Too long ago to be meant as a time.
        2 => Value::from(12),
        _ => Value::from(now_secs + dice.below(300) as i64),
    }
}

fn condition(dice: &mut Dice) -> Condition {
    let path = |name: &str| Path::new(name);
    match dice.below(8) {
        0 => Condition::exists("pk"),
        1 => Condition::not_exists("pk"),
        2 => Condition::exists("x"),
        3 => path("n").less_than(decimal(dice)),
        4 => path("a").equals(word(dice)),
        5 => path("a").begins_with("a"),
        6 => path("sk")
            .at_least(decimal(dice))
            .or(Condition::exists("n")),
        _ => !Condition::exists("a").and(path("x").size().greater_than(2)),
    }
}

fn maybe_condition(dice: &mut Dice) -> Option<Condition> {
    dice.one_in(2).then(|| condition(dice))
}

fn changes(dice: &mut Dice, now_secs: i64) -> Changes {
    let path = |name: &str| Path::new(name);
    let changes = Changes::new();
    match dice.below(8) {
        0 => changes.set("a", word(dice)).remove("x"),
        1 => changes.add("n", decimal(dice)),
        2 => changes.set("n", decimal(dice)).set("x", anything(dice)),
        3 => changes.remove("a").remove("n"),
        4 => changes.set(
            "x",
            UpdateOperand::list_append(
                UpdateOperand::if_not_exists("x", Value::L(Vec::new())),
                Value::L(vec![word(dice)]),
            ),
        ),
        5 => changes.set(TTL_ATTRIBUTE, expiry(dice, now_secs)),
        6 => changes.set("y", path("a")).remove(TTL_ATTRIBUTE),
        _ => changes.set("a", UpdateOperand::if_not_exists("a", word(dice))),
    }
}

pub(crate) fn action(dice: &mut Dice, schema: &TableSchema, now_secs: i64) -> Action {
    let table = schema.name.clone();
    let old_on_failure = dice.one_in(2);
    match dice.below(10) {
        0..=3 => Action::Put(Put {
            table,
            item: item(dice, schema, now_secs),
            condition: maybe_condition(dice),
            returning: *dice.pick(&[ReturnValues::None, ReturnValues::AllOld]),
            old_on_failure,
        }),
        4..=6 => Action::Update(Update {
            table,
            key: key(dice, schema),
            update: changes(dice, now_secs),
            condition: maybe_condition(dice),
            returning: *dice.pick(&[
                ReturnValues::None,
                ReturnValues::AllOld,
                ReturnValues::AllNew,
                ReturnValues::UpdatedOld,
                ReturnValues::UpdatedNew,
            ]),
            old_on_failure,
        }),
        7 | 8 => Action::Delete(Delete {
            table,
            key: key(dice, schema),
            condition: maybe_condition(dice),
            returning: *dice.pick(&[ReturnValues::None, ReturnValues::AllOld]),
            old_on_failure,
        }),
        _ => Action::Check(ConditionCheck {
            table,
            key: key(dice, schema),
            condition: condition(dice),
            old_on_failure,
        }),
    }
}

pub(crate) fn transaction(dice: &mut Dice, schemas: &[TableSchema], now_secs: i64) -> Transaction {
    let mut transaction = Transaction::default();
    for _ in 0..=dice.below(10) {
        let schema = dice.pick(schemas).clone();
        let mut action = action(dice, &schema, now_secs);
        match &mut action {
            Action::Put(put) => put.returning = ReturnValues::None,
            Action::Update(update) => update.returning = ReturnValues::None,
            Action::Delete(delete) => delete.returning = ReturnValues::None,
            Action::Check(_) => {}
        }
        transaction.actions.push(action);
    }
    if dice.one_in(3) {
        transaction.token = Some(format!("token-{}", dice.below(12)));
    }
    transaction
}

pub(crate) fn batch(dice: &mut Dice, schemas: &[TableSchema], now_secs: i64) -> BatchWrite {
    let writes = (0..=dice.below(8)).map(|_| {
        let schema = dice.pick(schemas).clone();
        let table = schema.name.clone();
        if dice.one_in(3) {
            let key = key(dice, &schema);
            WriteRequest::Delete { table, key }
        } else {
            let item = item(dice, &schema, now_secs);
            WriteRequest::Put { table, item }
        }
    });
    BatchWrite {
        writes: writes.collect(),
    }
}

pub(crate) fn query(dice: &mut Dice, schema: &TableSchema) -> Query {
    let index = if schema.indexes.is_empty() || dice.one_in(2) {
        None
    } else {
        Some(dice.pick(&schema.indexes))
    };
    let keys = index.map_or(&schema.key, |index| &index.key);
    let partition = key_value(dice, keys.partition.kind);
    let mut condition = KeyCondition::new(keys.partition.name.clone(), partition);
    if let Some(sort) = keys.sort.as_ref().filter(|_| dice.one_in(2)) {
        let value = key_value(dice, sort.kind);
        let sort_condition = match dice.below(7) {
            0 => SortCondition::Equal(value),
            1 => SortCondition::Less(value),
            2 => SortCondition::LessOrEqual(value),
            3 => SortCondition::Greater(value),
            4 => SortCondition::GreaterOrEqual(value),
            5 if sort.kind != KeyKind::N => SortCondition::BeginsWith(value),
            _ => {
                let other = key_value(dice, sort.kind);
                if crate::model::in_order(&value, &other) {
                    SortCondition::Between(value, other)
                } else {
                    SortCondition::Between(other, value)
                }
            }
        };
        condition = condition.with_sort(sort.name.clone(), sort_condition);
    }
    let mut query = Query::new(schema.name.clone(), condition);
    query.index = index.map(|index| index.name.clone());
    query.descending = dice.one_in(2);
    query.limit = dice.one_in(2).then(|| 1 + dice.below(4));
    query.filter = match dice.below(6) {
        0 => Some(Condition::exists("x")),
        1 => Some(Path::new("x").size().greater_than(1)),
        _ => None,
    };
    query
}
