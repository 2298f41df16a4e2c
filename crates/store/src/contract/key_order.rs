//! The order of sort keys, and the keys that each key condition selects.

use homeport_item::expression::SortCondition;
use homeport_item::{KeyKind, Value};

use super::case::{Case, number, partition, sorted_item, values};
use crate::Query;

use SortCondition::{BeginsWith, Between, Equal, Greater, GreaterOrEqual, Less, LessOrEqual};

/// Strings in the order of their UTF-8 bytes, which differs from UTF-16 and language order.
const STRINGS: [&str; 12] = [
    "\0",
    "\0\0",
    "10",
    "9",
    "A",
    "a",
    "a\0",
    "a\0b",
    "aa",
    "é",
    "\u{ffff}",
    "\u{10ffff}",
];
/// Numbers in order, with neighbours that only exact arithmetic can distinguish.
const NUMBERS: [&str; 17] = [
    "-9.9999999999999999999999999999999999999E125",
    "-1E125",
    "-100",
    "-10",
    "-9.5",
    "-9",
    "-0.001",
    "-1E-130",
    "0",
    "1E-130",
    "0.5",
    "9",
    "9.00000000000000000000000000000000001",
    "10",
    "9007199254740992",
    "9007199254740993",
    "1E125",
];
/// Binaries in the order of unsigned bytes.
const BINARIES: [&[u8]; 11] = [
    &[0],
    &[0, 0],
    &[0, 1],
    &[0, 255],
    &[1],
    &[1, 255],
    &[127],
    &[128],
    &[255],
    &[255, 0],
    &[255, 255],
];

pub async fn string_sort_keys_come_in_byte_order(case: &Case) {
    comes_in_order(case, KeyKind::S, strings()).await;
}

pub async fn number_sort_keys_come_in_numeric_order(case: &Case) {
    comes_in_order(case, KeyKind::N, numbers()).await;
}

pub async fn binary_sort_keys_come_in_unsigned_byte_order(case: &Case) {
    comes_in_order(case, KeyKind::B, binaries()).await;
}

pub async fn comparators_select_strings(case: &Case) {
    comparators_select(case, KeyKind::S, strings()).await;
}

pub async fn comparators_select_numbers(case: &Case) {
    comparators_select(case, KeyKind::N, numbers()).await;
}

pub async fn comparators_select_binaries(case: &Case) {
    comparators_select(case, KeyKind::B, binaries()).await;
}

pub async fn bounds_need_not_be_existing_keys(case: &Case) {
    let table = filled(case, KeyKind::N, &numbers()).await;
    for (condition, expected) in [
        (Equal(number("1")), &NUMBERS[0..0]),
        (Less(number("-1E124")), &NUMBERS[0..2]),
        (GreaterOrEqual(number("1E124")), &NUMBERS[16..]),
        (Between(number("-0.01"), number("0.1")), &NUMBERS[6..10]),
        (Greater(number("2E125")), &NUMBERS[0..0]),
    ] {
        let expected: Vec<_> = expected.iter().map(|text| number(text)).collect();
        selects(case, &table, condition, &expected).await;
    }
}

pub async fn begins_with_matches_strings_by_bytes(case: &Case) {
    let table = filled(case, KeyKind::S, &strings()).await;
    for (prefix, expected) in [
        ("\0", vec!["\0", "\0\0"]),
        ("a", vec!["a", "a\0", "a\0b", "aa"]),
        ("a\0", vec!["a\0", "a\0b"]),
        ("aaa", vec![]),
        ("1", vec!["10"]),
        ("\u{10ffff}", vec!["\u{10ffff}"]),
    ] {
        let expected: Vec<Value> = expected.into_iter().map(Value::from).collect();
        selects(case, &table, BeginsWith(prefix.into()), &expected).await;
    }
}

pub async fn begins_with_matches_lowest_and_highest_bytes(case: &Case) {
    let table = filled(case, KeyKind::B, &binaries()).await;
    for (prefix, expected) in [
        (vec![0], &BINARIES[0..4]),
        (vec![0, 0], &BINARIES[1..2]),
        (vec![0, 255], &BINARIES[3..4]),
        (vec![1], &BINARIES[4..6]),
        (vec![255], &BINARIES[8..]),
        (vec![255, 255], &BINARIES[10..]),
        (vec![255, 255, 255], &BINARIES[0..0]),
    ] {
        let expected: Vec<_> = expected.iter().map(|bytes| binary(bytes)).collect();
        selects(case, &table, BeginsWith(Value::B(prefix)), &expected).await;
    }
}

fn strings() -> Vec<Value> {
    STRINGS.into_iter().map(Value::from).collect()
}

fn numbers() -> Vec<Value> {
    NUMBERS.into_iter().map(number).collect()
}

fn binaries() -> Vec<Value> {
    BINARIES.into_iter().map(binary).collect()
}

fn binary(bytes: &[u8]) -> Value {
    Value::B(bytes.to_vec())
}

/// Creates a table with the sort keys, written out of order, between those of other partitions.
async fn filled(case: &Case, kind: KeyKind, keys: &[Value]) -> String {
    let table = case.sorted(kind).await;
    let (even, odd): (Vec<_>, Vec<_>) = keys.iter().enumerate().partition(|(at, _)| at % 2 == 0);
    let shuffled = odd.into_iter().rev().chain(even);
    for (_, key) in shuffled {
        let items = ["o", "p", "p\0", "q"].map(|pk| sorted_item(pk, key.clone()));
        case.put_all(&table, items).await;
    }
    table
}

async fn comes_in_order(case: &Case, kind: KeyKind, keys: Vec<Value>) {
    let table = filled(case, kind, &keys).await;
    let ascending = case.query(Query::new(&table, partition("p"))).await;
    assert_eq!(values(&ascending, "sk"), keys);
    let descending = case
        .query(Query::new(&table, partition("p")).descending())
        .await;
    let backwards: Vec<_> = keys.into_iter().rev().collect();
    assert_eq!(values(&descending, "sk"), backwards);
}

/// Checks each comparator with each key as its operand.
async fn comparators_select(case: &Case, kind: KeyKind, keys: Vec<Value>) {
    let table = filled(case, kind, &keys).await;
    for (at, bound) in keys.iter().enumerate() {
        let upper = (at + 3).min(keys.len() - 1);
        for (condition, expected) in [
            (Equal(bound.clone()), &keys[at..=at]),
            (Less(bound.clone()), &keys[..at]),
            (LessOrEqual(bound.clone()), &keys[..=at]),
            (Greater(bound.clone()), &keys[at + 1..]),
            (GreaterOrEqual(bound.clone()), &keys[at..]),
            (
                Between(bound.clone(), keys[upper].clone()),
                &keys[at..=upper],
            ),
        ] {
            selects(case, &table, condition, expected).await;
        }
    }
}

/// Checks which keys a condition selects, in both directions.
async fn selects(case: &Case, table: &str, condition: SortCondition, expected: &[Value]) {
    let query = Query::new(table, partition("p").with_sort("sk", condition.clone()));
    let ascending = values(&case.query(query.clone()).await, "sk");
    assert_eq!(ascending, expected, "{condition:?}");
    let mut descending = values(&case.query(query.descending()).await, "sk");
    descending.reverse();
    assert_eq!(descending, expected, "{condition:?}, descending");
}
