//! Invalid requests and limits, which every operation rejects in the same way.

use homeport_item::expression::{Condition, Update as Changes};
use homeport_item::item::ITEM_SIZE_MAX_BYTES;
use homeport_item::key::{PARTITION_KEY_MAX_BYTES, SORT_KEY_MAX_BYTES};
use homeport_item::value::DEPTH_MAX;
use homeport_item::{Item, KeyKind, Value};

use super::case::{Case, item, partition, sorted_item};
use super::outcome::Outcome;
use crate::{
    Action, BatchGet, BatchWrite, ConditionCheck, Delete, Get, Put, Query, Scan, TableKeys,
    Transaction, Update, WriteRequest,
};

pub async fn missing_table_is_an_error(case: &Case) {
    let table = case.name("absent");
    for (operation, outcome) in with_key(case, &table, &item("a")).await {
        assert_eq!(outcome, Outcome::TableNotFound, "{operation}");
    }
    let query = Query::new(&table, partition("a"));
    assert_eq!(
        Outcome::of(case.store.query(query).await),
        Outcome::TableNotFound
    );
    assert_eq!(
        Outcome::of(case.store.scan(Scan::new(&table)).await),
        Outcome::TableNotFound
    );
}

pub async fn missing_index_is_an_error(case: &Case) {
    let table = case.keyed().await;
    let query = Query::new(&table, partition("a")).on_index("absent");
    assert_eq!(
        Outcome::of(case.store.query(query).await),
        Outcome::IndexNotFound
    );
    let scan = Scan::new(&table).on_index("absent");
    assert_eq!(
        Outcome::of(case.store.scan(scan).await),
        Outcome::IndexNotFound
    );
}

pub async fn transaction_with_missing_table_writes_nothing(case: &Case) {
    let table = case.keyed().await;
    let transaction = Transaction::new(vec![
        Put::new(&table, item("a")).into(),
        Put::new(case.name("absent"), item("a")).into(),
    ]);
    assert_eq!(
        Outcome::of(case.store.transact(transaction).await),
        Outcome::TableNotFound
    );
    assert_eq!(case.get(&table, item("a")).await, None);
}

pub async fn mismatched_keys_are_rejected(case: &Case) {
    let table = case.sorted(KeyKind::N).await;
    for key in [
        Item::new(),
        item("a"),
        Item::new().with("sk", 1),
        Item::new().with("other", "a").with("sk", 1),
        sorted_item("a", "1"),
        sorted_item("a", Value::Null),
        Item::new().with("pk", 1).with("sk", 1),
    ] {
        for (operation, outcome) in with_key(case, &table, &key).await {
            assert_eq!(outcome, Outcome::Invalid, "{operation} {key:?}");
        }
    }
}

pub async fn keys_with_extra_attributes_are_rejected(case: &Case) {
    let table = case.keyed().await;
    let key = item("a").with("n", 1);
    let operations = with_key(case, &table, &key).await;
    for (operation, outcome) in operations {
        // For a put, this is a whole item.
        let expected = if operation.contains("put") {
            Outcome::Success
        } else {
            Outcome::Invalid
        };
        assert_eq!(outcome, expected, "{operation}");
    }
}

pub async fn empty_keys_are_rejected(case: &Case) {
    let strings = case.sorted(KeyKind::S).await;
    let schema = homeport_item::schema::TableSchema::new(case.name("bytes"), "pk", KeyKind::B);
    let binaries = case.ensure(schema).await;
    for (table, key) in [
        (&strings, sorted_item("", "a")),
        (&strings, sorted_item("a", "")),
        (&binaries, Item::new().with("pk", Value::B(vec![]))),
    ] {
        for (operation, outcome) in with_key(case, table, &key).await {
            assert_eq!(outcome, Outcome::Invalid, "{operation} {key:?}");
        }
    }
}

pub async fn key_length_is_limited(case: &Case) {
    let table = case.sorted(KeyKind::S).await;
    let key = |pk_len: usize, sk_len: usize| sorted_item(&"x".repeat(pk_len), "y".repeat(sk_len));
    let (pk_max, sk_max) = (PARTITION_KEY_MAX_BYTES, SORT_KEY_MAX_BYTES);
    case.put(&table, key(pk_max, sk_max)).await;
    let found = case.get(&table, key(pk_max, sk_max)).await;
    assert_eq!(found, Some(key(pk_max, sk_max)));
    for (pk_len, sk_len) in [(pk_max + 1, 1), (1, sk_max + 1)] {
        for (operation, outcome) in with_key(case, &table, &key(pk_len, sk_len)).await {
            assert_eq!(outcome, Outcome::Invalid, "{operation} {pk_len} {sk_len}");
        }
    }
}

pub async fn item_size_is_limited(case: &Case) {
    let table = case.keyed().await;
    // The key counts for "pk" and "a", the rest for "text" and its value.
    let text_max = ITEM_SIZE_MAX_BYTES - "pka".len() - "text".len();
    let largest = item("a").with("text", "x".repeat(text_max));
    case.put(&table, largest.clone()).await;
    assert_eq!(case.get(&table, item("a")).await, Some(largest.clone()));
    let too_large = || item("b").with("text", "x".repeat(text_max + 1));
    let put = Put::new(&table, too_large());
    assert_eq!(
        Outcome::of(case.store.put(put.clone()).await),
        Outcome::Invalid
    );
    let transaction = Transaction::new(vec![put.into()]);
    assert_eq!(
        Outcome::of(case.store.transact(transaction).await),
        Outcome::Invalid
    );
    let grow = Update::new(&table, item("a"), set("n", 1));
    assert_eq!(Outcome::of(case.store.update(grow).await), Outcome::Invalid);
    assert_eq!(case.get(&table, item("a")).await, Some(largest));
    assert_eq!(case.get(&table, item("b")).await, None);
}

pub async fn document_depth_is_limited(case: &Case) {
    let table = case.keyed().await;
    let nested = |levels: usize| (0..levels).fold(Value::Null, |inner, _| Value::L(vec![inner]));
    let deepest = item("a").with("list", nested(DEPTH_MAX));
    case.put(&table, deepest.clone()).await;
    assert_eq!(case.get(&table, item("a")).await, Some(deepest));
    let too_deep = item("b").with("list", nested(DEPTH_MAX + 1));
    assert_eq!(
        Outcome::of(case.store.put(Put::new(&table, too_deep)).await),
        Outcome::Invalid
    );
    let deepen = Update::new(&table, item("b"), set("list", nested(DEPTH_MAX + 1)));
    assert_eq!(
        Outcome::of(case.store.update(deepen).await),
        Outcome::Invalid
    );
    assert_eq!(case.get(&table, item("b")).await, None);
}

pub async fn every_value_type_round_trips(case: &Case) {
    let table = case.keyed().await;
    let numbers = [
        "-1E125",
        "0",
        "1E-130",
        "12345678901234567890.123456789012345678",
    ];
    let numbers = numbers.map(|text| text.parse().expect("a number"));
    let whole = item("a")
        .with("empty", "")
        .with("text", "\0é\u{10ffff}")
        .with("n", numbers[3])
        .with("b", Value::B((0..=255).collect()))
        .with("no-bytes", Value::B(vec![]))
        .with("no", false)
        .with("null", Value::Null)
        .with("no-list", Value::L(vec![]))
        .with("no-map", Value::M(homeport_item::Map::new()))
        .with("strings", Value::string_set(["b", "a", ""]).expect("a set"))
        .with(
            "numbers",
            Value::Ns(homeport_item::Set::new(numbers.into()).expect("a set")),
        )
        .with(
            "binaries",
            Value::Bs(homeport_item::Set::new(vec![vec![255], vec![0]]).expect("a set")),
        )
        .with("mixed", Value::L(vec![1.into(), "x".into(), Value::Null]));
    case.put(&table, whole.clone()).await;
    assert_eq!(case.get(&table, item("a")).await, Some(whole));
}

/// Runs every operation that takes a key with `key`.
async fn with_key(case: &Case, table: &str, key: &Item) -> Vec<(&'static str, Outcome)> {
    let store = &case.store;
    let put = || Put::new(table, key.clone());
    let update = || Update::new(table, key.clone(), set("x", 1));
    let delete = || Delete::new(table, key.clone());
    let get = || Get::new(table, key.clone());
    let check = ConditionCheck::new(table, key.clone(), Condition::not_exists("absent"));
    let mut outcomes = vec![
        ("get", Outcome::of(store.get(get()).await)),
        ("put", Outcome::of(store.put(put()).await)),
        ("update", Outcome::of(store.update(update()).await)),
        ("delete", Outcome::of(store.delete(delete()).await)),
        (
            "transact get",
            Outcome::of(store.transact_get(vec![get()]).await),
        ),
    ];
    let actions: [(_, Action); 4] = [
        ("transact put", put().into()),
        ("transact update", update().into()),
        ("transact delete", delete().into()),
        ("transact check", check.into()),
    ];
    for (operation, action) in actions {
        let result = store.transact(Transaction::new(vec![action])).await;
        outcomes.push((operation, Outcome::of(result)));
    }
    let (table, key) = (table.to_owned(), key.clone());
    let keys = TableKeys {
        table: table.clone(),
        keys: vec![key.clone()],
        projection: None,
        consistent: true,
    };
    let tables = vec![keys];
    let result = store.batch_get(BatchGet { tables }).await;
    outcomes.push(("batch get", Outcome::of(result)));
    let item = key.clone();
    for (operation, write) in [
        (
            "batch put",
            WriteRequest::Put {
                table: table.clone(),
                item,
            },
        ),
        ("batch delete", WriteRequest::Delete { table, key }),
    ] {
        let writes = vec![write];
        let result = store.batch_write(BatchWrite { writes }).await;
        outcomes.push((operation, Outcome::of(result)));
    }
    outcomes
}

fn set(name: &str, value: impl Into<Value>) -> Changes {
    Changes::new().set(name, value.into())
}
