//! The writes of the child processes: transactions over several tables with indexes, expiry and a change log,
//! such that partial transactions are detected.
//!
//! The transactions of a writer have increasing numbers. Each writes its number to three items of one slot in
//! two tables, and leaves a mark under that number.

use homeport_engine::Engine;
use homeport_item::expression::{Condition, KeyCondition};
use homeport_item::schema::{IndexProjection, IndexSchema, KeyAttribute, StreamView, TableSchema};
use homeport_item::{Item, KeyKind, Value};
use homeport_store::{Delete, Put, Query, Store, TransactError, Transaction};

pub(crate) const PAIRS: &str = "pairs";
pub(crate) const MIRRORS: &str = "mirrors";
pub(crate) const MARKS: &str = "marks";
pub(crate) const BRIEF: &str = "brief";

/// The number of slots per writer.
pub(crate) const SLOTS: u64 = 4;
/// The distance between the two mirrors of a slot.
pub(crate) const SECOND_MIRROR: u64 = 100;
/// Each writer's numbers start at its own multiple of this.
pub(crate) const NUMBERS_PER_WRITER: u64 = 1_000_000;

pub(crate) fn tables() -> Vec<TableSchema> {
    let number = |name: &str| KeyAttribute::new(name, KeyKind::N);
    vec![
        TableSchema::new(PAIRS, "owner", KeyKind::S)
            .with_sort("slot", KeyKind::N)
            .with_index(IndexSchema::global(
                "by-group",
                number("group"),
                Some(number("value")),
            ))
            .with_stream(StreamView::NewAndOldImages),
        TableSchema::new(MIRRORS, "owner", KeyKind::S)
            .with_sort("slot", KeyKind::N)
            .with_index(
                IndexSchema::global("by-value", number("value"), None)
                    .projecting(IndexProjection::KeysOnly),
            ),
        TableSchema::new(MARKS, "slot", KeyKind::S).with_sort("number", KeyKind::N),
        TableSchema::new(BRIEF, "owner", KeyKind::S)
            .with_ttl("expires")
            .with_index(
                IndexSchema::global("by-group", number("group"), None)
                    .projecting(IndexProjection::Include(vec!["value".to_owned()])),
            )
            .with_stream(StreamView::NewAndOldImages),
    ]
}

pub(crate) fn owner(writer: u64) -> String {
    format!("writer-{writer}")
}

pub(crate) fn slot_name(writer: u64, slot: u64) -> String {
    format!("{writer}/{slot}")
}

/// The slot of a number.
pub(crate) fn slot_of(number: u64) -> u64 {
    number % SLOTS
}

pub(crate) fn writer_of(number: u64) -> u64 {
    number / NUMBERS_PER_WRITER
}

/// The transaction with this number.
pub(crate) fn transaction(number: u64, now_secs: i64) -> Transaction {
    let writer = writer_of(number);
    let slot = slot_of(number);
    let place = |slot: u64| {
        Item::new()
            .with("owner", owner(writer))
            .with("slot", slot)
            .with("value", number)
    };
    let mut pair = place(slot).with("group", number % 5);
    if number % 16 == 3 {
        // Long enough for the journal to compress it.
        pair.insert("padding", "long and dull ".repeat(500));
    }
    let mark = Item::new()
        .with("slot", slot_name(writer, slot))
        .with("number", number);
    let brief_key = Item::new().with("owner", slot_name(writer, slot));
    let brief = if number.is_multiple_of(3) {
        Delete::new(BRIEF, brief_key).into()
    } else {
        let expires = now_secs + i64::try_from(number % 3).unwrap();
        let item = brief_key
            .with("group", number % 7)
            .with("value", number)
            .with("expires", expires);
        Put::new(BRIEF, item).into()
    };
    Transaction::new(vec![
        Put::new(PAIRS, pair).into(),
        Put::new(MIRRORS, place(slot)).into(),
        Put::new(MIRRORS, place(slot + SECOND_MIRROR)).into(),
        Put::new(MARKS, mark)
            .when(Condition::not_exists("number"))
            .into(),
        brief,
    ])
}

/// The newest number that a writer has left a mark of.
pub(crate) async fn newest_mark(engine: &Engine, writer: u64) -> u64 {
    let mut newest = writer * NUMBERS_PER_WRITER;
    for slot in 0..SLOTS {
        let marks = KeyCondition::new("slot", slot_name(writer, slot));
        let page = engine
            .query(Query::new(MARKS, marks).descending().limit(1))
            .await
            .unwrap();
        if let Some(item) = page.items.first() {
            newest = newest.max(number_in(item, "number"));
        }
    }
    newest
}

/// Writes the transaction with this number.
pub(crate) async fn write(engine: &Engine, number: u64) -> Result<(), TransactError> {
    let now_secs = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_secs();
    engine
        .transact(transaction(number, i64::try_from(now_secs).unwrap()))
        .await
}

pub(crate) fn number_in(item: &Item, name: &str) -> u64 {
    match item.get(name) {
        Some(Value::N(number)) => u64::try_from(number.floor_i64()).unwrap(),
        other => panic!("{name} is {other:?} in {item:?}"),
    }
}
