//! Every text is parsed or rejected without a panic.

use proptest::prelude::*;

use super::{item, placeholders};
use crate::KeyKind;
use crate::expression::{
    Condition, ExpressionError, ExpressionProblem, KeyCondition, NESTING_MAX, OPERATORS_MAX,
    Placeholders, Projection, Update,
};
use crate::schema::{KeyAttribute, KeySchema};
use crate::value::{Value, arbitrary::any_item};

fn any_placeholders() -> Placeholders {
    placeholders(
        &[("#a", "a"), ("#b", "b c")],
        &[
            (":n", Value::from(1)),
            (":s", Value::from("S")),
            (":l", Value::L(vec![])),
        ],
    )
}

fn read_as_everything(text: &str) {
    let placeholders = &mut any_placeholders();
    let schema = KeySchema::new(KeyAttribute::new("a", KeyKind::S), None);
    let mut item = item(r#"{"a": {"L": [{"N":"1"}]}, "b": {"N":"2"}, "c": {"M": {}}}"#);
    if let Ok(condition) = Condition::parse(text, placeholders) {
        condition.matches(&item).expect("whole");
    }
    if let Ok(projection) = Projection::parse(text, placeholders) {
        let _ = projection.apply(&item);
    }
    let _ = KeyCondition::parse(text, placeholders, &schema);
    if let Ok(update) = Update::parse(text, placeholders) {
        let _ = update.apply(&mut item);
    }
}

fn problem<T: std::fmt::Debug>(outcome: Result<T, ExpressionError>) -> ExpressionProblem {
    match outcome.expect_err("a refusal") {
        ExpressionError::Invalid { problem, .. } => problem,
        other => panic!("{other}"),
    }
}

#[test]
fn nesting_is_limited_before_stack_overflow() {
    for (open, inner, close) in [
        ("(", "a = :n", ")"),
        ("NOT ", "a = :n", ""),
        ("NOT (", "a = :n", ")"),
        ("size(", "a", ")"),
        ("(", "a", ")"),
        ("a = (", "b", ")"),
        ("a IN (", "b", ")"),
    ] {
        for levels in [NESTING_MAX - 1, NESTING_MAX, NESTING_MAX + 1, 1000, 100_000] {
            read_as_everything(&format!(
                "{}{inner}{}",
                open.repeat(levels),
                close.repeat(levels)
            ));
            read_as_everything(&open.repeat(levels));
        }
    }
    let operand = |levels| {
        let text = format!("a = {}b{}", "(".repeat(levels), ")".repeat(levels));
        problem(Condition::parse(&text, &mut any_placeholders()))
    };
    assert_eq!(
        operand(NESTING_MAX),
        ExpressionProblem::RedundantParentheses
    );
    assert_eq!(
        operand(NESTING_MAX + 1),
        ExpressionProblem::TooDeep(NESTING_MAX)
    );
    let calls = |levels| {
        let text = format!(
            "SET a = {}b{}",
            "if_not_exists(b, ".repeat(levels),
            ")".repeat(levels)
        );
        Update::parse(&text, &mut any_placeholders())
    };
    assert!(calls(NESTING_MAX).is_ok());
    assert_eq!(
        problem(calls(NESTING_MAX + 1)),
        ExpressionProblem::TooDeep(NESTING_MAX)
    );
}

#[test]
fn condition_nesting_is_limited_by_operators_only() {
    let nested = |open: &str, levels| {
        let text = format!("{}a = :n{}", open.repeat(levels), ")".repeat(levels));
        Condition::parse(&text, &mut any_placeholders())
    };
    let document = item(r#"{"a": {"N":"1"}}"#);
    for (open, levels) in [("a = :n OR (", 149), ("a = :n AND (", 149), ("NOT (", 298)] {
        let condition = nested(open, levels).expect("valid");
        assert_eq!(condition.matches(&document), Ok(true), "{open}");
        assert_eq!(condition.clone(), condition);
        assert_eq!(condition.paths().len(), if levels == 149 { 150 } else { 1 });
    }
    let refused = nested("a = :n OR (", 150);
    assert_eq!(problem(refused), ExpressionProblem::TooManyOperators(301));
    let refused = nested("NOT (", 300);
    assert_eq!(problem(refused), ExpressionProblem::TooManyOperators(301));
    assert_eq!(
        problem(nested("(", 2040)),
        ExpressionProblem::RedundantParentheses
    );
}

#[test]
fn longest_chain_is_evaluated_and_dropped() {
    let text = vec!["a=:n"; OPERATORS_MAX / 2].join(" AND ");
    let chain = Condition::parse(&text, &mut any_placeholders()).expect("a chain");
    assert_eq!(chain.matches(&item(r#"{"a": {"N":"1"}}"#)), Ok(true));
}

#[test]
fn megabyte_is_rejected_before_tokenizing() {
    let text = "(".repeat(1 << 20);
    let outcome = Condition::parse(&text, &mut any_placeholders());
    assert_eq!(problem(outcome), ExpressionProblem::TooLong(1 << 20));
}

#[test]
fn maximum_number_of_paths_is_compared() {
    let paths: Vec<String> = (0..700).map(|index| format!("a[{index}]")).collect();
    read_as_everything(&format!("REMOVE {}", paths[..500].join(",")));
    read_as_everything(&paths[..550].join(","));
}

/// Texts made of random expression tokens.
fn token_soup() -> impl Strategy<Value = String> {
    let words = proptest::sample::select(vec![
        "a",
        "b",
        "c",
        "a.b",
        "a[0]",
        "#a",
        "#b",
        "#x",
        ":n",
        ":s",
        ":l",
        ":x",
        "=",
        "<>",
        "<",
        "<=",
        ">",
        ">=",
        "(",
        ")",
        "((",
        "))",
        "[",
        "]",
        ",",
        ".",
        "+",
        "-",
        "AND",
        "OR",
        "NOT",
        "BETWEEN",
        "IN",
        "SET",
        "REMOVE",
        "ADD",
        "DELETE",
        "size(",
        "size(a)",
        "contains(",
        "begins_with(a,:s)",
        "attribute_exists(a)",
        "attribute_type(",
        "if_not_exists(a,",
        "list_append(",
        "name",
        "0",
        "7",
        "_",
        "é",
        "a = :n",
        "b > c",
    ]);
    proptest::collection::vec(words, 0..24).prop_map(|words| words.join(" "))
}

proptest! {
    #[test]
    fn random_texts_do_not_panic(text in "\\PC{0,64}") {
        read_as_everything(&text);
    }

    #[test]
    fn random_tokens_do_not_panic(text in token_soup()) {
        read_as_everything(&text);
        read_as_everything(&format!("SET a = {text}"));
        read_as_everything(&format!("a = {text}"));
    }

    #[test]
    fn random_updates_succeed_or_change_nothing(text in token_soup(), before in any_item()) {
        let Ok(update) = Update::parse(&format!("SET a = {text}"), &mut any_placeholders()) else {
            return Ok(());
        };
        let mut after = before.clone();
        if update.apply(&mut after).is_err() {
            prop_assert_eq!(after, before);
        }
    }
}
