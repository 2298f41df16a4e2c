//! Key conditions of queries.

use super::{item, placeholders};
use crate::KeyKind;
use crate::expression::{KeyCondition, SortCondition};
use crate::schema::{KeyAttribute, KeySchema};
use crate::value::Value;

fn schema(sort: bool) -> KeySchema {
    let sort = sort.then(|| KeyAttribute::new("b", KeyKind::N));
    KeySchema::new(KeyAttribute::new("a", KeyKind::S), sort)
}

fn parse(text: &str, schema: &KeySchema) -> Result<KeyCondition, String> {
    let values = [
        (":s", Value::from("x")),
        (":e", Value::from("")),
        (":n", Value::from(1)),
        (":m", Value::from(2)),
        (":t", Value::Bool(true)),
    ];
    let mut placeholders = placeholders(&[("#a", "a")], &values);
    KeyCondition::parse(text, &mut placeholders, schema).map_err(|error| error.to_string())
}

#[test]
fn key_conditions_are_accepted_in_any_order() {
    let key = || KeyCondition::new("a", "x");
    let sorted = |condition| key().with_sort("b", condition);
    let one = || Value::from(1);
    for (text, expect) in [
        ("a = :s", key()),
        (":s = #a", key()),
        ("a = :s AND b = :n", sorted(SortCondition::Equal(one()))),
        ("b < :n AND a = :s", sorted(SortCondition::Less(one()))),
        (
            "(a = :s) and (:n < b)",
            sorted(SortCondition::Greater(one())),
        ),
        (
            ":n >= b AND a = :s",
            sorted(SortCondition::LessOrEqual(one())),
        ),
        (
            "a = :s AND b >= :n",
            sorted(SortCondition::GreaterOrEqual(one())),
        ),
        (
            "b between :n and :m AND a = :s",
            sorted(SortCondition::Between(one(), Value::from(2))),
        ),
    ] {
        assert_eq!(parse(text, &schema(true)), Ok(expect), "{text}");
    }
}

fn several() -> KeySchema {
    let [text, number] = [KeyKind::S, KeyKind::N];
    let partition = [("a", text), ("c", text)];
    let sort = [("b", number), ("d", number), ("e", text)];
    let attribute = |(name, kind)| KeyAttribute::new(name, kind);
    KeySchema::from_attributes(partition.map(attribute), sort.map(attribute))
        .expect("a partition key")
}

#[test]
fn multi_attribute_keys_accept_equalities_then_one_condition() {
    let texts = |names: &[&str]| -> Vec<(String, Value)> {
        let value = |name: &str| match name {
            "b" => Value::from(1),
            "d" => Value::from(2),
            _ => Value::from("x"),
        };
        names
            .iter()
            .map(|name| ((*name).to_owned(), value(name)))
            .collect()
    };
    let greater = SortCondition::Greater(Value::from(1));
    let equal = SortCondition::Equal(Value::from(2));
    let begins = SortCondition::BeginsWith(Value::from("x"));
    for (text, rest, sort) in [
        ("a = :s AND c = :s", &["c"][..], None),
        ("c = :s AND b > :n AND a = :s", &["c"], Some(("b", greater))),
        (
            "d = :m AND a = :s AND c = :s AND b = :n",
            &["c", "b"],
            Some(("d", equal)),
        ),
        (
            "a = :s AND c = :s AND b = :n AND d = :m AND begins_with(e, :s)",
            &["c", "b", "d"],
            Some(("e", begins)),
        ),
    ] {
        let expect = KeyCondition {
            rest: texts(rest),
            sort: sort.map(|(name, condition)| (name.to_owned(), condition)),
            ..KeyCondition::new("a", "x")
        };
        assert_eq!(parse(text, &several()), Ok(expect), "{text}");
    }
}

#[test]
fn multi_attribute_keys_reject_gaps() {
    let range = "must have equality conditions specified in the query because a condition is present on key attribute";
    for (text, expect) in [
        (
            "a = :s",
            "HASH key attributes c must have equality conditions specified in the query".to_owned(),
        ),
        (
            "b = :n AND c > :s",
            "HASH key attributes a, c must have equality conditions specified in the query"
                .to_owned(),
        ),
        (
            "a = :s AND c = :s AND d = :n",
            format!("RANGE key attributes b {range} d"),
        ),
        (
            "a = :s AND c = :s AND b < :n AND e = :s",
            format!("RANGE key attributes b, d {range} e"),
        ),
        (
            "a = :s AND c = :s AND f = :n",
            "Query condition missed key schema element: b".to_owned(),
        ),
        (
            "a = :s AND c = :s AND b = :n AND f = :n",
            "Query key condition not supported".to_owned(),
        ),
        (
            "a = :s AND c = :s AND b = :s",
            "One or more parameter values were invalid: Condition parameter type does not match schema type"
                .to_owned(),
        ),
    ] {
        assert_eq!(parse(text, &several()), Err(expect), "{text}");
    }
}

#[test]
fn other_conditions_are_rejected() {
    let several = "Invalid condition in KeyConditionExpression: Multiple attribute names used in one condition";
    let nested = "KeyConditionExpressions cannot have conditions on nested attributes";
    let nameless = "Invalid condition in KeyConditionExpression: No key attribute specified";
    for (text, expect) in [
        (
            "",
            "Invalid KeyConditionExpression: The expression can not be empty;",
        ),
        (
            "a > 4",
            "Invalid KeyConditionExpression: Syntax error; token: \"4\", near: \"> 4\"",
        ),
        (
            "a = :s AND b BETWEEN :m AND :n",
            "Invalid KeyConditionExpression: The BETWEEN operator requires upper bound to be greater than or equal to lower bound; lower bound operand: AttributeValue: {N:2}, upper bound operand: AttributeValue: {N:1}",
        ),
        (
            "begins_with(b, :n) AND a = :s",
            "Invalid KeyConditionExpression: Incorrect operand type for operator or function; operator or function: begins_with, operand type: N",
        ),
        (
            "a > b and size(b) > c or a > c",
            "Invalid operator used in KeyConditionExpression: OR",
        ),
        (
            "a in (b, size(c), d)",
            "Invalid operator used in KeyConditionExpression: IN",
        ),
        (
            "not a > b",
            "Invalid operator used in KeyConditionExpression: NOT",
        ),
        (
            "a <> b",
            "Invalid operator used in KeyConditionExpression: <>",
        ),
        (
            "contains(a.d, b)",
            "Invalid operator used in KeyConditionExpression: contains",
        ),
        (
            ":s between size(b) and size(a) and b > :n",
            "Invalid condition in KeyConditionExpression: BETWEEN operator must have the key attribute as its first operand",
        ),
        (
            "begins_with(:s, b) and a > :n",
            "Invalid condition in KeyConditionExpression: begins_with operator must have the key attribute as its first operand",
        ),
        (
            "size(b) > a AND a.b > b AND b > c",
            "KeyConditionExpressions cannot contain nested operations",
        ),
        (
            "a between size(b) and size(a)",
            "KeyConditionExpressions cannot contain nested operations",
        ),
        ("b > a.b", several),
        ("a between b and size(a)", several),
        ("begins_with(a, b)", several),
        ("b.d > a AND c.d > e.f", nested),
        ("b[0] > a", nested),
        (":n > :m AND a < :m", nameless),
        (
            "b > :n AND b < :n and c = :n and d = :n",
            "Invalid KeyConditionExpression: KeyConditionExpressions must only contain one condition per key",
        ),
        (
            ":s = a and b = :n and :n = c",
            "The number of query conditions (3) exceeds the number of key attributes defined in the schema (2)",
        ),
        ("b = :n", "Query condition missed key schema element: a"),
        (
            "a = :s AND c = :n",
            "Query condition missed key schema element: b",
        ),
        ("a > :s", "Query key condition not supported"),
        (
            "a = :n",
            "One or more parameter values were invalid: Condition parameter type does not match schema type",
        ),
        (
            "a = :s AND b > :s",
            "One or more parameter values were invalid: Condition parameter type does not match schema type",
        ),
        (
            "a = :e",
            "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty string value. Key: a",
        ),
    ] {
        assert_eq!(parse(text, &schema(true)), Err(expect.to_owned()), "{text}");
    }
    assert_eq!(
        parse("a = :s AND b = :n", &schema(false)),
        Err("Query key condition not supported".to_owned())
    );
}

#[test]
fn key_condition_matches_items() {
    let matches = |text: &str, b: i32| {
        let condition = parse(text, &schema(true)).expect("a condition");
        condition
            .matches(&item(r#"{"a": {"S":"x"}}"#).with("b", b))
            .expect("an answer")
    };
    assert!(matches("a = :s", 7));
    assert!(matches("a = :s AND b = :n", 1));
    assert!(!matches("a = :s AND b = :n", 2));
    assert!(matches("a = :s AND b BETWEEN :n AND :m", 2));
    assert!(!matches("a = :s AND b BETWEEN :n AND :m", 3));
    let other = KeyCondition::new("a", "y");
    assert_eq!(other.matches(&item(r#"{"a": {"S":"x"}}"#)), Ok(false));
    let prefix =
        KeyCondition::new("a", "x").with_sort("c", SortCondition::BeginsWith("pre".into()));
    assert_eq!(
        prefix.matches(&item(r#"{"a": {"S":"x"}, "c": {"S":"prefix"}}"#)),
        Ok(true)
    );
    assert_eq!(prefix.matches(&item(r#"{"a": {"S":"x"}}"#)), Ok(false));
}
