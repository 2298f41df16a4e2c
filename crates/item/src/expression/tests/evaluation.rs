//! Evaluation of conditions and projections.

use super::{item, placeholders, value};
use crate::expression::{Condition, Operand, Path, Projection};
use crate::value::{Value, ValueKind};
use crate::{ItemRef, binary};

const ITEM: &str = r#"{
    "s": {"S": "hello"}, "u": {"S": "é𝄞"}, "n": {"N": "5"}, "b": {"B": "aGkgdGhlcmU="},
    "t": {"BOOL": true}, "z": {"NULL": true},
    "l": {"L": [{"N": "1"}, {"S": "x"}, {"SS": ["p", "q"]}]},
    "m": {"M": {"k": {"S": "v"}, "l": {"L": [{"N": "7"}]}}},
    "ss": {"SS": ["a", "b"]}, "ns": {"NS": ["1", "2.5"]}, "bs": {"BS": ["YQ=="]}
}"#;

/// Evaluates `text` on the item and on its stored form.
fn check(text: &str, json: &str, expect: bool) {
    let mut placeholders = placeholders(&[], &[(":v", value(json))]);
    let condition = Condition::parse(text, &mut placeholders).expect("a condition");
    let item = item(ITEM);
    assert_eq!(condition.matches(&item), Ok(expect), "{text}");
    let mut stored = Vec::new();
    binary::encode_item(item.iter(), &mut stored);
    let stored = ItemRef::new(&stored).expect("a view");
    assert_eq!(condition.matches(&stored), Ok(expect), "{text}, stored");
}

#[test]
fn comparisons_work_within_a_type() {
    check("n = :v", r#"{"N":"5.0"}"#, true);
    check("n <> :v", r#"{"N":"5"}"#, false);
    check("n < :v", r#"{"N":"10"}"#, true);
    check("n <= :v", r#"{"N":"5"}"#, true);
    check("n > :v", r#"{"N":"5"}"#, false);
    check("n >= :v", r#"{"N":"-5"}"#, true);
    check("s < :v", r#"{"S":"help"}"#, true);
    check("b > :v", r#"{"B":"aGg="}"#, true);
    check("ss = :v", r#"{"SS":["b","a"]}"#, true);
    check("m.l[0] = :v", r#"{"N":"7"}"#, true);
    check(":v = n", r#"{"N":"5"}"#, true);
}

#[test]
fn different_types_are_only_unequal() {
    let text = r#"{"S":"5"}"#;
    check("n = :v", text, false);
    check("n <> :v", text, true);
    check("n < :v", text, false);
    check("n > :v", text, false);
    check("n IN (:v)", text, false);
    check("n IN (:v, m.l[0], t)", text, false);
    check("l < :v", text, false);
}

#[test]
fn missing_values_are_only_unequal() {
    let one = r#"{"N":"1"}"#;
    for text in [
        "q = :v",
        "q < :v",
        ":v >= q",
        "q BETWEEN :v AND :v",
        "q IN (:v)",
    ] {
        check(text, one, false);
    }
    for text in ["q <> :v", "q <> r", "size(q) <> :v", "NOT q = :v"] {
        check(text, one, true);
    }
    check("size(n) = :v", one, false);
    check("q = r OR n = :v", r#"{"N":"5"}"#, true);
}

#[test]
fn between_and_in_match_listed_values() {
    check("n BETWEEN :v AND m.l[0]", r#"{"N":"5"}"#, true);
    check("n BETWEEN m.l[0] AND :v", r#"{"N":"9"}"#, false);
    check("s BETWEEN :v AND n", r#"{"S":"a"}"#, false);
    check("n IN (s, :v)", r#"{"N":"5"}"#, true);
    check("l[2] IN (ns, :v)", r#"{"SS":["q","p"]}"#, true);
}

#[test]
fn functions_read_the_item() {
    let any = r#"{"S":"N"}"#;
    check("attribute_exists(m.k) AND n <> :v", any, true);
    check("attribute_exists(m.x) AND n <> :v", any, false);
    check("attribute_not_exists(l[3]) AND n <> :v", any, true);
    check("attribute_type(n, :v)", any, true);
    check("attribute_type(s, :v)", any, false);
    check("attribute_type(q, :v)", any, false);
    check("attribute_type(:v, :v)", any, false);
    check("attribute_type(:v, :v)", r#"{"S":"S"}"#, true);
    check("begins_with(s, :v)", r#"{"S":"hell"}"#, true);
    check("begins_with(b, :v)", r#"{"B":"aGk="}"#, true);
    check("begins_with(b, :v)", r#"{"S":"hi"}"#, false);
    check("begins_with(n, :v)", r#"{"S":"5"}"#, false);
    check("contains(s, :v)", r#"{"S":"ell"}"#, true);
    check("contains(b, :v)", r#"{"B":"aGVyZQ=="}"#, true);
    check("contains(ss, :v)", r#"{"S":"b"}"#, true);
    check("contains(ns, :v)", r#"{"N":"2.50"}"#, true);
    check("contains(bs, :v)", r#"{"B":"YQ=="}"#, true);
    check("contains(l, :v)", r#"{"SS":["p","q"]}"#, true);
    check("contains(l, :v)", r#"{"N":"2"}"#, false);
    check("contains(n, :v)", r#"{"N":"5"}"#, false);
    check("contains(m, :v)", r#"{"S":"v"}"#, false);
}

#[test]
fn size_depends_on_the_type() {
    for (path, size) in [
        ("s", 5),
        ("u", 3),
        ("b", 8),
        ("l", 3),
        ("m", 2),
        ("ss", 2),
        ("ns", 2),
        ("bs", 1),
    ] {
        check(
            &format!("size({path}) = :v"),
            &format!(r#"{{"N":"{size}"}}"#),
            true,
        );
    }
    check("size(:v) = n", r#"{"S":"12345"}"#, true);
}

#[test]
fn connectives_have_documented_precedence() {
    // OR has the lowest precedence, NOT the highest.
    check("n = :v OR n = :v AND n <> :v", r#"{"N":"5"}"#, true);
    check("(n = :v OR n = :v) AND n <> :v", r#"{"N":"5"}"#, false);
    check("NOT n <> :v AND n = :v", r#"{"N":"5"}"#, true);
    check("NOT n = :v OR n = :v", r#"{"N":"5"}"#, true);
    check("NOT (n = :v OR n = :v)", r#"{"N":"5"}"#, false);
    check("n BETWEEN :v AND :v AND n = :v", r#"{"N":"5"}"#, true);
}

#[test]
fn built_conditions_equal_parsed_ones() {
    let mut placeholders = placeholders(
        &[],
        &[
            (":v", Value::from(1)),
            (":w", Value::from("x")),
            (":t", Value::from("S")),
        ],
    );
    let text = "NOT (a = :v AND size(b.c[1]) >= :v) OR attribute_not_exists(pk) \
                AND d IN (:v, :w) AND begins_with(e, :w) AND attribute_type(f, :t) AND g < h";
    let parsed = Condition::parse(text, &mut placeholders).expect("a condition");
    let size = Path::new("b").member("c").element(1).size();
    let built = (!Path::new("a").equals(1).and(size.at_least(1))).or(Condition::not_exists("pk")
        .and(Path::new("d").is_in([Operand::from(1), Operand::from("x")]))
        .and(Path::new("e").begins_with("x"))
        .and(Condition::is_type("f", ValueKind::S))
        .and(Path::new("g").less_than(Path::new("h"))));
    assert_eq!(parsed, built);
    assert_eq!(placeholders.check_all_used(), Ok(()));
}

#[test]
fn projections_keep_only_selected_parts() {
    let check = |text: &str, expect: &str| {
        let projection = Projection::parse(text, &mut placeholders(&[], &[])).expect("paths");
        let whole = item(ITEM);
        assert_eq!(projection.apply(&whole), item(expect), "{text}");
        assert_eq!(projection.read(&whole), Ok(item(expect)), "{text}");
    };
    check("n, q", r#"{"n": {"N": "5"}}"#);
    check("m.k", r#"{"m": {"M": {"k": {"S": "v"}}}}"#);
    check("m.q, n.q, s[0], l.a", "{}");
    check(
        "l[2], l[0], l[9]",
        r#"{"l": {"L": [{"N": "1"}, {"SS": ["p", "q"]}]}}"#,
    );
    check(
        "m.l[0], m.k",
        r#"{"m": {"M": {"k": {"S": "v"}, "l": {"L": [{"N": "7"}]}}}}"#,
    );
}

#[test]
fn overlapping_projections_are_rejected() {
    let check = |text: &str, expect: &str| {
        let refused = Projection::parse(text, &mut placeholders(&[("#n", "n")], &[]));
        let refused = refused.expect_err("an overlap").to_string();
        assert_eq!(refused, format!("Invalid ProjectionExpression: {expect}"));
    };
    let overlap =
        "Two document paths overlap with each other; must remove or rewrite one of these paths";
    check("n, #n", &format!("{overlap}; path one: [n], path two: [n]"));
    check(
        "n.a[1], n",
        &format!("{overlap}; path one: [n, a, [1]], path two: [n]"),
    );
    check(
        "a.b, a[1]",
        "Two document paths conflict with each other; must remove or rewrite one of these paths; path one: [a, b], path two: [a, [1]]",
    );
    check("", "The expression can not be empty;");
    check("a,", "Syntax error; token: \"<EOF>\", near: \",\"");
    check("a b", "Syntax error; token: \"b\", near: \"a b\"");
    check(":v", "Syntax error; token: \":v\", near: \":v\"");
    check(
        "a, status",
        "Attribute name is a reserved keyword; reserved keyword: status",
    );
    assert!(Projection::new(["a", "b"]).check().is_ok());
    assert!(Projection::new(["a", "a"]).check().is_err());
}
