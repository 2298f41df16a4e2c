//! Error messages of invalid conditions.

use super::{placeholders, value};
use crate::expression::{Condition, OPERATORS_MAX};
use crate::value::Value;

/// `#a` is `a`; `:a` is `v`, and `:b`, `:s`, `:n` are the string "b", the string "a" and 1.
fn check_with(v: &Value, text: &str, expect: &str) {
    let values = [
        (":a", v.clone()),
        (":b", Value::from("b")),
        (":s", Value::from("a")),
        (":n", Value::from(1)),
    ];
    let mut placeholders = placeholders(&[("#a", "a")], &values);
    let found = match Condition::parse_filter(text, &mut placeholders) {
        Ok(_) => "fine".to_owned(),
        Err(error) => error.to_string(),
    };
    let expect = match expect {
        "fine" => expect.to_owned(),
        _ => format!("Invalid FilterExpression: {expect}"),
    };
    assert_eq!(found, expect, "{text}");
}

fn check(text: &str, expect: &str) {
    check_with(&Value::from("x"), text, expect);
}

#[test]
fn valid_conditions_are_accepted() {
    for text in [
        "a = :a",
        "#a.b[0].c<>:a",
        "(a) between (:s) and (:b)",
        "a IN (:a, b, size(c))",
        "a in ((:a))",
        "attribute_exists (a)",
        "not attribute_exists(a)",
        "NOT NOT a = :a",
        "((a = :a) OR (b = :a))",
        "a = :a AND (b = :a AND c = :a)",
        "(a = :a) AND NOT (b = :a OR c = :a)",
        "(attribute_exists(a))",
        "size(a) > :n AND size((a)) > :n",
        "size(:a) = :n",
        "(b.c).d = :a",
        "(b)[1] = :a",
        ":a > :a",
        "contains(a, size(b))",
        "a.\tb\n[ 3 ]\r= :a",
    ] {
        check(text, "fine");
    }
    check_with(&Value::from("NS"), "attribute_type(b, :a)", "fine");
    check_with(&Value::from("S"), "attribute_type(:a, :a)", "fine");
}

#[test]
fn syntax_errors_show_token_and_context() {
    let check = |text, token, near| {
        check(
            text,
            &format!("Syntax error; token: \"{token}\", near: \"{near}\""),
        );
    };
    check("foo", "<EOF>", "foo");
    check("attribute_not_exists(", "<EOF>", "(");
    check("a = ", "<EOF>", "=");
    check("a == :a", "=", "== :a");
    check("a = 1", "1", "= 1");
    check("_a = :a", "_", "_a");
    check("a != :a", "!", "a !=");
    check("a > between", "between", "> between");
    check("a in b, c", "b", "in b,");
    check("a in ()", ")", "()");
    check("a in (b,c,)", ")", ",)");
    check("(a)between(b.(c.d))and(c)", "(", ".(c");
    check("#$.b > a", "#", "#$");
    check("a > :things.stuff", ".", ":things.stuff");
    check("b[:a] > a", ":a", "[:a]");
    check("b[#_] > a", "#_", "[#_]");
    check("b[01] > a", "01", "[01]");
    check("ü > a", "ü", "ü >");
    check("size(a).b > a", ".", ").b");
    check("(size(a)).b > a", ".", ").b");
    check("(size(a))[0] > a", "[", ")[0");
    check("(a = :a", "<EOF>", ":a");
    check("a = :a)", ")", ":a)");
    check("a = (b = c)", "=", "b = c");
    check("a = :a b", "b", ":a b");
    check("a AND b", "AND", "a AND b");
    check("NOT a", "<EOF>", "a");
    check("a.and = :a", "and", ".and =");
    check(")", ")", ")");
    check("[1 = :a", "[", "[1");
}

#[test]
fn empty_and_overlong_texts_are_rejected() {
    check("", "The expression can not be empty;");
    check(" \n", "The expression can not be empty;");
    let text = format!("a = :a{}", " ".repeat(4090));
    check(&text, "fine");
    check(
        &format!("{text} "),
        "Expression size has exceeded the maximum allowed size; expression size: 4097",
    );
}

#[test]
fn redundant_parentheses_are_reported_first() {
    for text in [
        "a=a and a > ((b))",
        "(a)between(((b.c)).d)and(c)",
        "a > whatever((:things), ((a)))",
        "a=a AND ((a=a AND a=a)) AND a=a",
        "a=a OR ((a=a OR (a=a OR a=a)))",
        "((a)) = :a",
        "NOT ((a = :a))",
        "((attribute_exists(a)))",
    ] {
        check(text, "The expression has redundant parentheses;");
    }
}

#[test]
fn unknown_and_misplaced_functions_are_rejected() {
    check(
        "whatever((:x)) > a",
        "Invalid function name; function: whatever",
    );
    check("Size(a) > :n", "Invalid function name; function: Size");
    check(
        "attRIbute_exIsts((views), #b)",
        "Invalid function name; function: attRIbute_exIsts",
    );
    check(
        "if_not_exists(a, :a) = :a",
        "The function is not allowed in a condition expression; function: if_not_exists",
    );
    for (text, function) in [
        (
            "a=a and attribute_exists((views), (#a)) > b",
            "attribute_exists",
        ),
        ("attribute_type(things, :a) > b", "attribute_type"),
        ("begins_with(things, a) > b", "begins_with"),
        ("(contains(:things, c)) > b", "contains"),
        ("size(contains(a, b)) > a", "contains"),
        ("size(things)", "size"),
        ("size(things) AND a = :a", "size"),
        (
            "a between b and attribute_exists(things)",
            "attribute_exists",
        ),
        ("a in (b, attribute_exists(things))", "attribute_exists"),
    ] {
        check(
            text,
            &format!(
                "The function is not allowed to be used this way in an expression; function: {function}"
            ),
        );
    }
}

#[test]
fn reserved_words_are_reported_as_written() {
    let check = |text, word| {
        check(
            text,
            &format!("Attribute name is a reserved keyword; reserved keyword: {word}"),
        );
    };
    check("attribute_exists(views, #b)", "views");
    check(":x < abOrT", "abOrT");
    check("a.Name = :a", "Name");
}

#[test]
fn undefined_placeholders_are_reported() {
    for (text, name) in [
        ("attribute_exists(#P.RearView, :a) and a=a", "#P"),
        ("begins_with(Pictures.#RearView)", "#RearView"),
        ("#4g > a", "#4g"),
        ("(a)between(b.c[45].#d)and(:x)", "#d"),
    ] {
        check(
            text,
            &format!(
                "An expression attribute name used in the document path is not defined; attribute name: {name}"
            ),
        );
    }
    for (text, value) in [
        ("begins_with(:x, #b, #c)", ":x"),
        (":x < :y", ":x"),
        (":_ > a", ":_"),
    ] {
        check(
            text,
            &format!(
                "An expression attribute value used in expression is not defined; attribute value: {value}"
            ),
        );
    }
}

#[test]
fn operands_are_counted() {
    for (text, function, count) in [
        ("attribute_exists(things, a) and a=a", "attribute_exists", 2),
        ("attribute_type(things)", "attribute_type", 1),
        ("begins_with(things, size(a), b)", "begins_with", 3),
        ("contains(things)", "contains", 1),
        ("size(things, a) > b", "size", 2),
    ] {
        check(
            text,
            &format!(
                "Incorrect number of operands for operator or function; operator or function: {function}, number of operands: {count}"
            ),
        );
    }
    let list = |count: usize| format!("a IN (:a{})", ",b".repeat(count - 1));
    check(&list(100), "fine");
    check(
        &list(101),
        "The IN operator is provided with too many operands; number of operands: 101",
    );
}

#[test]
fn the_first_operand_must_differ_from_the_others() {
    for (text, operator, path) in [
        ("a = a AND #a = b AND :views > a", "=", "[a]"),
        ("#a <> a", "<>", "[a]"),
        ("((a=a) OR (a=a))", "=", "[a]"),
        (
            "contains(ab.bc[1].a, ab.bc[1].#a)",
            "contains",
            "[ab, bc, [1], a]",
        ),
        (
            "attribute_type(ab.bc[1].#a, ab.bc[1].a)",
            "attribute_type",
            "[ab, bc, [1], a]",
        ),
        ("a IN (:a, a)", "IN", "[a]"),
    ] {
        check(
            text,
            &format!(
                "The first operand must be distinct from the remaining operands for this operator or function; operator: {operator}, first operand: {path}"
            ),
        );
    }
}

#[test]
fn operand_types_are_checked() {
    for (text, operator, json) in [
        ("attribute_type(b, :a)", "attribute_type", r#"{"N":"1"}"#),
        (
            "attribute_type(b, :a)",
            "attribute_type",
            r#"{"BS":["YQ=="]}"#,
        ),
        ("begins_with(b, :a)", "begins_with", r#"{"N":"1"}"#),
        ("begins_with(:a, b)", "begins_with", r#"{"L":[]}"#),
        ("size(:a) > b", "size", r#"{"BOOL":true}"#),
        ("size(size(b)) > :a", "size", r#"{"N":"1"}"#),
        ("b <= :a", "<=", r#"{"BOOL":true}"#),
        (":a > b", ">", r#"{"SS":["x"]}"#),
        ("b BETWEEN :a AND c", "BETWEEN", r#"{"M":{}}"#),
    ] {
        let value = value(json);
        check_with(
            &value,
            text,
            &format!(
                "Incorrect operand type for operator or function; operator or function: {operator}, operand type: {}",
                value.kind().name()
            ),
        );
    }
    check(
        "attribute_type(a, b)",
        "Incorrect operand type for operator or function; operator or function: attribute_type, operand type: {NS,SS,L,BS,N,M,B,BOOL,NULL,S}",
    );
    check(
        "attribute_type(a, :b)",
        "Invalid attribute type name found; type: b, valid types: {B,NULL,SS,BOOL,L,BS,N,NS,S,M}",
    );
    for function in ["attribute_exists", "attribute_not_exists"] {
        check(
            &format!("{function}(:a)"),
            &format!(
                "Operator or function requires a document path; operator or function: {function}"
            ),
        );
    }
}

#[test]
fn bounds_must_match_and_be_ordered() {
    check(
        "a BETWEEN :b AND :s",
        "The BETWEEN operator requires upper bound to be greater than or equal to lower bound; lower bound operand: AttributeValue: {S:b}, upper bound operand: AttributeValue: {S:a}",
    );
    check(
        "a BETWEEN :n AND :s",
        "The BETWEEN operator requires same data type for lower and upper bounds; lower bound operand: AttributeValue: {N:1}, upper bound operand: AttributeValue: {S:a}",
    );
}

#[test]
fn operators_are_limited() {
    // Each further condition adds an AND and an `=`.
    let chain = |count: usize| vec!["a=:a"; count].join(" OR ");
    check(&chain(OPERATORS_MAX / 2), "fine");
    check(
        &chain(OPERATORS_MAX / 2 + 1),
        "The expression contains too many operators; operator count: 301",
    );
}

#[test]
fn paths_are_limited() {
    check(&format!("a{} = :a", ".b".repeat(31)), "fine");
    check(
        &format!("a{} = :a", ".b".repeat(32)),
        "The document path has too many nesting levels; nesting levels: 33",
    );
    check("a[4294967294] = :a", "fine");
    for index in ["4294967295", "99999999999999999999"] {
        check(
            &format!("a[{index}] = :a"),
            &format!("List index is not within the allowable range; index: [{index}]"),
        );
    }
}

#[test]
fn messages_name_the_expression_kind() {
    let refused = Condition::parse("", &mut placeholders(&[], &[])).expect_err("empty");
    assert_eq!(
        refused.to_string(),
        "Invalid ConditionExpression: The expression can not be empty;"
    );
}
