//! Parsing and writing of valid and invalid JSON.

use super::*;

use proptest::prelude::*;

fn round(text: &str) -> String {
    Value::from_json(text)
        .unwrap_or_else(|error| panic!("{text}: {error}"))
        .to_json()
}

#[test]
fn order_digits_and_escapes_survive() {
    let text = r#"{"z":1,"a":[true,false,null,"x\"\\\n\t\u0001é€😀"],"n":-12.5,"o":{}}"#;
    assert_eq!(round(text), text);
    assert_eq!(round(" [ 1 , 2 ] \n"), "[1,2]");
    assert_eq!(
        round(r#""\u00e9\ud83d\ude00\/\b\f\r""#),
        "\"é😀/\\u0008\\u000c\\r\""
    );
    assert_eq!(round("1E5"), "100000");
}

#[test]
fn last_duplicate_name_wins() {
    assert_eq!(round(r#"{"a":1,"b":2,"a":3}"#), r#"{"a":3,"b":2}"#);
}

#[test]
fn invalid_json_is_reported_with_its_position() {
    for (text, offset, problem) in [
        ("", 0, JsonProblem::EndsEarly),
        ("{", 1, JsonProblem::EndsEarly),
        ("[1,]", 3, JsonProblem::Unexpected),
        (r#"{"a":1,}"#, 7, JsonProblem::Unexpected),
        (r#"{"a" 1}"#, 5, JsonProblem::Unexpected),
        ("{a:1}", 1, JsonProblem::Unexpected),
        ("'a'", 0, JsonProblem::Unexpected),
        ("tru", 0, JsonProblem::Unexpected),
        ("nul", 0, JsonProblem::Unexpected),
        ("01", 0, JsonProblem::BadNumber),
        ("1.", 0, JsonProblem::BadNumber),
        ("-", 0, JsonProblem::BadNumber),
        ("1E1000", 0, JsonProblem::BadNumber),
        ("NaN", 0, JsonProblem::Unexpected),
        ("1 2", 2, JsonProblem::Trailing),
        ("\"a", 2, JsonProblem::EndsEarly),
        ("\"\n\"", 1, JsonProblem::BadString),
        (r#""\x""#, 1, JsonProblem::BadString),
        (r#""\u12g4""#, 1, JsonProblem::BadString),
        (r#""\ud800""#, 1, JsonProblem::BadString),
        (r#""\ud800\u0041""#, 1, JsonProblem::BadString),
        (r#""\udc00""#, 1, JsonProblem::BadString),
        ("\"\\", 1, JsonProblem::BadString),
    ] {
        let expected = JsonError { offset, problem };
        assert_eq!(Value::from_json(text), Err(expected), "{text}");
    }
    let expected = JsonError {
        offset: 1,
        problem: JsonProblem::NotUtf8,
    };
    assert_eq!(parse_bytes(b"\"\xff\""), Err(expected));
}

#[test]
fn nesting_is_limited() {
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    assert!(Value::from_json(&nested(JSON_DEPTH_MAX)).is_ok());
    let error = Value::from_json(&nested(JSON_DEPTH_MAX + 1)).expect_err("too deep");
    assert_eq!(error.problem, JsonProblem::TooDeep);
    assert!(Value::from_json(&"[".repeat(1_000_000)).is_err());
}

#[test]
fn undefined_is_left_out() {
    let members = [("a", Value::Undefined), ("b", Value::from(1))];
    let value = Value::Array(vec![
        Value::Undefined,
        Value::Object(members.into_iter().collect()),
        Value::Undefined,
    ]);
    assert_eq!(value.to_json(), r#"[{"b":1}]"#);
    assert_eq!(Value::Undefined.to_json(), "");
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Boolean),
        (any::<i64>(), 0u32..20).prop_map(|(value, places)| {
            Value::number(Decimal::parse(&format!("{value}e-{places}")).expect("a number"))
        }),
        any::<String>().prop_map(Value::String),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
            prop::collection::vec((any::<String>(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn written_json_parses_back(value in any_value()) {
        prop_assert_eq!(Value::from_json(&value.to_json()), Ok(value));
    }

    #[test]
    fn random_texts_do_not_panic(text in any::<String>()) {
        let _ = Value::from_json(&text);
    }

    #[test]
    fn json_like_texts_do_not_panic(text in r#"[\[\]{},:"\\u0-9eEtrfalsn.+ -]{0,40}"#) {
        if let Ok(value) = Value::from_json(&text) {
            prop_assert_eq!(Value::from_json(&value.to_json()), Ok(value));
        }
    }
}
