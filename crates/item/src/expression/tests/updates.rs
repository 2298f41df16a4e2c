//! Error messages of invalid updates, and effects of valid ones.

use super::{item, placeholders, value};
use crate::expression::{Path, Projection, Update, UpdateError, UpdateOperand};
use crate::item::Item;
use crate::value::Value;

fn parse(text: &str, value: &Value) -> Result<Update, String> {
    let names = [("#c", "c"), ("#d", "[3]")];
    let mut placeholders = placeholders(&names, &[(":a", value.clone()), (":n", Value::from(1))]);
    Update::parse(text, &mut placeholders).map_err(|error| error.to_string())
}

fn refuse(text: &str, expect: &str) {
    let found = parse(text, &Value::from("x")).expect_err(text);
    assert_eq!(
        found,
        format!("Invalid UpdateExpression: {expect}"),
        "{text}"
    );
}

#[test]
fn syntax_errors_show_token_and_context() {
    for (text, token, near) in [
        ("whatever", "whatever", "whatever"),
        ("set a", "<EOF>", "a"),
        ("add a", "<EOF>", "a"),
        ("set a=set", "set", "=set"),
        ("remove a = b", "=", "a = b"),
        ("add a b", "b", "a b"),
        (
            "delete a if_not_exist(b)",
            "if_not_exist",
            "a if_not_exist(",
        ),
        ("remove a b", "b", "a b"),
        ("set a b", "b", "a b"),
        ("set :a = b", ":a", "set :a ="),
        ("set a = b / c", "/", "b / c"),
        ("set a[1] = \"eight\"", "\"", "= \"eight"),
        ("set a[1] = 1", "1", "= 1"),
        ("SET path = VALUE 1", "1", "VALUE 1"),
        ("SET a = if_not_exists(a, 100)", "100", ", 100)"),
        ("SET if_not_exists(a, b) = a", "(", "if_not_exists(a"),
        ("set (a = (b + c))", "(", "set (a"),
        ("set a = (b.c).d + e", ".", ").d"),
        ("set a = b + c + d", "+", "c + d"),
        ("set a = (b + c) + d", "+", ") + d"),
        ("set a = b + (c + d)", "+", "c + d"),
        ("set a = list_append(b + c, d)", "+", "b + c"),
        ("set a = b,", "<EOF>", ","),
        ("SET NewAttr = {\"NULL\": true}", "{", "= {\""),
    ] {
        refuse(
            text,
            &format!("Syntax error; token: \"{token}\", near: \"{near}\""),
        );
    }
    refuse("", "The expression can not be empty;");
}

#[test]
fn other_mistakes_are_reported_in_order() {
    refuse(
        "set #c = :c set abOrt = :x",
        "Attribute name is a reserved keyword; reserved keyword: abOrt",
    );
    refuse(
        "set #c = if_not_exist(:c) set c = d",
        "Invalid function name; function: if_not_exist",
    );
    refuse(
        "set a = size(b)",
        "The function is not allowed in an update expression; function: size",
    );
    for (text, section) in [
        ("set a = #e set c = :d", "SET"),
        ("remove #d set a = b remove e", "REMOVE"),
        ("add #d :e set a = b add e :f", "ADD"),
        ("delete #d :e set a = b delete #e :f", "DELETE"),
    ] {
        let expect =
            format!("The \"{section}\" section can only be used once in an update expression;");
        refuse(text, &expect);
    }
    refuse(
        "SET #x = if_not_exists(:c)",
        "An expression attribute name used in the document path is not defined; attribute name: #x",
    );
    refuse(
        "SET #c = if_not_exists(:c)",
        "An expression attribute value used in expression is not defined; attribute value: :c",
    );
    refuse("set a = ((b))", "The expression has redundant parentheses;");
    refuse(
        "set a = if_not_exists(c)",
        "Incorrect number of operands for operator or function; operator or function: if_not_exists, number of operands: 1",
    );
    refuse(
        "set a = if_not_exists(:a, c)",
        "Operator or function requires a document path; operator or function: if_not_exists",
    );
}

#[test]
fn paths_may_not_overlap_or_conflict() {
    let tail = "with each other; must remove or rewrite one of these paths";
    for (text, what, one, two) in [
        (
            "set d[1] = a, d.b = a, c[1].a = a, #c = if_not_exists(a)",
            "overlap",
            "[c, [1], a]",
            "[c]",
        ),
        (
            "set #c[3].#d = a, #c[3] = a",
            "overlap",
            "[c, [3], [3]]",
            "[c, [3]]",
        ),
        ("set a = :n remove a", "overlap", "[a]", "[a]"),
        (
            "set #c[3].#d = a, #c.#d[3] = if_not_exists(a)",
            "conflict",
            "[c, [3], [3]]",
            "[c, [3], [3]]",
        ),
        (
            "remove a.#c set a[1] = #d",
            "conflict",
            "[a, c]",
            "[a, [1]]",
        ),
    ] {
        refuse(
            text,
            &format!("Two document paths {what} {tail}; path one: {one}, path two: {two}"),
        );
    }
    assert!(parse("set a[1] = :n, a[2] = :n, b.c = :n, b.d = :n", &Value::Null).is_ok());
}

#[test]
fn operand_types_are_checked() {
    let check = |text: &str, json: &str, expect: &str| {
        let found = parse(text, &value(json)).expect_err(text);
        let head = "Invalid UpdateExpression: Incorrect operand type for operator or function";
        assert_eq!(found, format!("{head}; {expect}"), "{text}");
    };
    check(
        "set b = list_append(:a, a), c = if_not_exists(a) add a.b :a",
        r#"{"S":"a"}"#,
        "operator: ADD, operand type: STRING, typeSet: ALLOWED_FOR_ADD_OPERAND",
    );
    check(
        "delete a.b :a",
        r#"{"N":"1"}"#,
        "operator: DELETE, operand type: NUMBER, typeSet: ALLOWED_FOR_DELETE_OPERAND",
    );
    check(
        "add a.b :a",
        r#"{"BOOL":true}"#,
        "operator: ADD, operand type: BOOLEAN, typeSet: ALLOWED_FOR_ADD_OPERAND",
    );
    check(
        "add a.b :a",
        r#"{"L":[]}"#,
        "operator: ADD, operand type: LIST, typeSet: ALLOWED_FOR_ADD_OPERAND",
    );
    check(
        "set a = list_append(:a, a)",
        r#"{"S":"a"}"#,
        "operator or function: list_append, operand type: S",
    );
    check(
        "set a = a + :a",
        r#"{"M":{}}"#,
        "operator or function: +, operand type: M",
    );
    check(
        "set a = :a - a",
        r#"{"NULL":true}"#,
        "operator or function: -, operand type: NULL",
    );
}

#[test]
fn built_trees_pass_the_same_checks() {
    let a = || Path::new("a");
    let message = |update: Update| update.check().map_err(|error| error.to_string());
    assert_eq!(
        message(Update::new().set("a", 1).remove("b").add("n", 1)),
        Ok(())
    );
    assert_eq!(
        message(Update::new().set(a().member("b"), 1).remove("a")),
        Err("Invalid UpdateExpression: Two document paths overlap with each other; must remove or rewrite one of these paths; path one: [a, b], path two: [a]".into())
    );
    assert_eq!(
        message(Update::new().add("a", "x")),
        Err("Invalid UpdateExpression: Incorrect operand type for operator or function; operator: ADD, operand type: STRING, typeSet: ALLOWED_FOR_ADD_OPERAND".into())
    );
    let sum = UpdateOperand::from(a()).plus(1);
    assert_eq!(message(Update::new().set("b", sum.clone())), Ok(()));
    assert!(message(Update::new().set("b", sum.plus(1))).is_err());
    let text = "SET x = if_not_exists(a, :n), y = list_append(y, :a) REMOVE z[1] ADD n :n";
    let built = Update::new()
        .set("x", UpdateOperand::if_not_exists("a", 1))
        .set(
            "y",
            UpdateOperand::list_append(Path::new("y"), Value::L(vec![])),
        )
        .remove(Path::new("z").element(1))
        .add("n", 1);
    assert_eq!(parse(text, &Value::L(vec![])), Ok(built));
}

const BEFORE: &str = r#"{
    "n": {"N": "5"}, "s": {"S": "x"}, "l": {"L": [{"N": "0"}, {"N": "1"}, {"N": "2"}]},
    "m": {"M": {"k": {"N": "1"}}}, "ss": {"SS": ["a", "b"]}
}"#;

fn applied(text: &str, json: &str) -> Result<Item, UpdateError> {
    let update = parse(text, &value(json)).expect(text);
    let before = item(BEFORE);
    let mut after = before.clone();
    match update.apply(&mut after) {
        Ok(()) => Ok(after),
        Err(error) => {
            assert_eq!(after, before, "a failed update changes nothing: {text}");
            Err(error)
        }
    }
}

/// Checks the update's effect on the attributes in `expect`, and that all others are unchanged.
fn check(text: &str, json: &str, expect: &str) {
    let after = applied(text, json).expect(text);
    let mut expected = item(BEFORE);
    for (name, value) in item(expect) {
        match value {
            Value::Null => expected.remove(&name),
            value => expected.insert(name, value),
        };
    }
    assert_eq!(after, expected, "{text}");
}

#[test]
fn set_reads_the_original_item() {
    check(
        "SET n = s, s = n",
        "{\"N\":\"1\"}",
        r#"{"n": {"S":"x"}, "s": {"N":"5"}}"#,
    );
    check("SET n = n + :a", "{\"N\":\"1.5\"}", r#"{"n": {"N":"6.5"}}"#);
    check("SET n = :a - n", "{\"N\":\"1\"}", r#"{"n": {"N":"-4"}}"#);
    check(
        "SET q = if_not_exists(n, :a)",
        "{\"N\":\"1\"}",
        r#"{"q": {"N":"5"}}"#,
    );
    check(
        "SET q = if_not_exists(q, :a) + n",
        "{\"N\":\"1\"}",
        r#"{"q": {"N":"6"}}"#,
    );
    check(
        "SET m.k = n, m.j = :a",
        "{\"N\":\"9\"}",
        r#"{"m": {"M": {"k": {"N":"5"}, "j": {"N":"9"}}}}"#,
    );
    check(
        "SET l = list_append(:a, l)",
        r#"{"L":[{"S":"x"}]}"#,
        r#"{"l": {"L": [{"S":"x"}, {"N":"0"}, {"N":"1"}, {"N":"2"}]}}"#,
    );
}

#[test]
fn list_indexes_refer_to_original_list() {
    let one = r#"{"N":"9"}"#;
    check(
        "SET l[1] = :a",
        one,
        r#"{"l": {"L": [{"N":"0"}, {"N":"9"}, {"N":"2"}]}}"#,
    );
    check(
        "SET l[20] = :a, l[10] = n",
        one,
        r#"{"l": {"L": [{"N":"0"}, {"N":"1"}, {"N":"2"}, {"N":"5"}, {"N":"9"}]}}"#,
    );
    check("REMOVE l[0], l[1]", one, r#"{"l": {"L": [{"N":"2"}]}}"#);
    check(
        "REMOVE l[2], l[0], l[7]",
        one,
        r#"{"l": {"L": [{"N":"1"}]}}"#,
    );
    check(
        "SET l[2] = :a REMOVE l[0]",
        one,
        r#"{"l": {"L": [{"N":"1"}, {"N":"9"}]}}"#,
    );
    check(
        "SET l[9] = :a REMOVE l[3]",
        one,
        r#"{"l": {"L": [{"N":"0"}, {"N":"1"}, {"N":"2"}, {"N":"9"}]}}"#,
    );
}

#[test]
fn remove_add_and_delete() {
    let one = r#"{"N":"1"}"#;
    check(
        "REMOVE n, q, m.k, m.q",
        one,
        r#"{"n": {"NULL": true}, "m": {"M": {}}}"#,
    );
    check(
        "ADD n :a, q :a, m.k :a",
        one,
        r#"{"n": {"N":"6"}, "q": {"N":"1"}, "m": {"M": {"k": {"N":"2"}}}}"#,
    );
    let set = r#"{"SS":["b","c"]}"#;
    check(
        "ADD ss :a, q :a",
        set,
        r#"{"ss": {"SS":["a","b","c"]}, "q": {"SS":["b","c"]}}"#,
    );
    check("DELETE ss :a, q :a", set, r#"{"ss": {"SS":["a"]}}"#);
    check(
        "DELETE ss :a",
        r#"{"SS":["b","a"]}"#,
        r#"{"ss": {"NULL": true}}"#,
    );
}

#[test]
fn failing_updates_change_nothing() {
    let check = |text: &str, json: &str, expect| {
        assert_eq!(applied(text, json).expect_err(text), expect, "{text}");
    };
    let one = r#"{"N":"1"}"#;
    for text in [
        "SET n = :a, q.x = :a",
        "SET q[0] = :a",
        "SET n.x = :a",
        "SET m[0] = :a",
        "SET l.x = :a",
        "SET m.q.x = :a",
        "REMOVE q.x",
        "REMOVE m[0]",
        "ADD q.x :a",
    ] {
        check(text, one, UpdateError::InvalidPath);
    }
    for text in ["SET a = q", "SET a = q + :a", "SET a = m.q", "SET a = l[3]"] {
        check(text, one, UpdateError::MissingAttribute);
    }
    for text in [
        "SET a = s + :a",
        "ADD s :a",
        "ADD ss :a",
        "SET a = list_append(n, l)",
    ] {
        check(text, one, UpdateError::WrongType);
    }
    check("DELETE n :a", r#"{"SS":["x"]}"#, UpdateError::WrongType);
    check("DELETE ss :a", r#"{"NS":["1"]}"#, UpdateError::WrongType);
    let large = format!("{{\"N\":\"{}\"}}", "9".repeat(38));
    assert!(matches!(
        applied("SET n = n + :a", &large),
        Err(UpdateError::Number(_))
    ));
}

#[test]
fn update_paths_project_the_updated_parts() {
    let update = parse("SET m.k = :n REMOVE l[0] ADD n :n", &Value::Null).expect("an update");
    let projection = Projection::from(update.paths());
    assert_eq!(
        projection.apply(&item(BEFORE)),
        item(r#"{"m": {"M": {"k": {"N":"1"}}}, "l": {"L": [{"N":"0"}]}, "n": {"N":"5"}}"#)
    );
}
