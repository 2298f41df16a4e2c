//! Invalid statements, with DynamoDB's messages.

use homeport_item::Value;

use super::refused;
use crate::statement::Statement;
use crate::token::Position;

#[test]
fn invalid_statements_report_the_mistake() {
    let syntax = |text: &str| format!("Statement wasn't well formed, can't be processed: {text}");
    for (statement, expected) in [
        ("", syntax("Unexpected term")),
        ("SELECT", syntax("Unexpected term")),
        (
            "SELECT * FROM",
            syntax("Expected identifier for simple path"),
        ),
        ("SELECT * FROM t WHERE", syntax("Unexpected term")),
        ("SELECT * FROM t WHERE AND", syntax("Unexpected operator")),
        ("SELECT * FROM t WHERE SELECT", syntax("Unexpected keyword")),
        (
            "SELECT * FROM t WHERE a =",
            syntax("Missing right-hand side expression of infix operator"),
        ),
        (
            "SELECT * FROM t WHERE a = 1 AND",
            syntax("Missing right-hand side expression of infix operator"),
        ),
        (
            "SELECT * FROM t WHERE (a = 1",
            syntax("Expected RIGHT_PAREN"),
        ),
        ("SELECT * FROM t WHERE a IS", syntax("Expected type name")),
        (
            "SELECT * FROM t WHERE a BETWEEN 1",
            syntax("Expected AND keyword"),
        ),
        (
            "SELECT * FROM t WHERE a.select = 1",
            syntax("Invalid path dot component"),
        ),
        (
            "SELECT * FROM t WHERE a = 1 1",
            syntax("Unexpected token after expression"),
        ),
        (
            "SELECT * FROM t; SELECT",
            syntax("Unexpected token after semicolon. (Only one query is allowed.)"),
        ),
        ("SLECT * FROM t", syntax("Expected data manipulation")),
        (
            "SLECT * FROMM t",
            syntax("Unexpected token after expression"),
        ),
        ("WHERE", syntax("Unexpected keyword")),
        ("INSERT t", syntax("Expected INTO keyword")),
        ("INSERT INTO t VALUE 'x'", syntax("Expected LEFT_CURLY")),
        ("INSERT INTO t VALUE {'a' 1}", syntax("Expected COLON")),
        ("INSERT INTO t VALUE {'a': 'x}", syntax("")),
        ("DELETE t", syntax("Expected FROM keyword")),
        ("UPDATE t WHERE a = 1", syntax("Expected data manipulation")),
        ("UPDATE t SET a 1", syntax("Expected '='")),
        (
            "DELETE FROM t WHERE a = 1 RETURNING ALL *",
            syntax("Expected OLD or NEW in a returning clause"),
        ),
        ("SELECT * FROM t WHERE a = #", syntax("")),
        ("SELECT * FROM t WHERE a = 1x", syntax("")),
    ] {
        assert_eq!(refused(statement), expected, "{statement}");
    }
}

#[test]
fn unsupported_statements_have_dynamodb_messages() {
    for (statement, expected) in [
        ("FOO", "Unsupported operation: Id"),
        (
            "SELECT COUNT(*) FROM t",
            "Unexpected path component at 1:8:5",
        ),
        (
            "SELECT *\nFROM a, b",
            "Only select from a single table or index is supported.",
        ),
        ("SELECT * FROM t u", "Aliasing is not supported"),
        ("SELECT a AS b FROM t", "Aliasing is not supported"),
        (
            "SELECT * FROM a.b.c",
            "A path may contain at most 2 components in the FROM clause",
        ),
        (
            "SELECT * FROM \"\"",
            "Path component cannot be an empty string",
        ),
        (
            "SELECT * FROM t WHERE a",
            "WHERE clause must contain an expression that resolves to a boolean",
        ),
        (
            "SELECT * FROM t WHERE a = a",
            "The first operand must be distinct from the remaining operands for this operator or function; operator: =, first operand: [a]",
        ),
        (
            "SELECT * FROM t WHERE a < true",
            "Incorrect operand type for operator or function; operator or function: <, operand type: BOOL",
        ),
        (
            "SELECT * FROM t WHERE begins_with(a, 1)",
            "Incorrect operand type for operator or function; operator or function: begins_with, operand type: N",
        ),
        (
            "SELECT * FROM t WHERE a = MISSING",
            "MISSING must be compared using IS operator",
        ),
        (
            "SELECT * FROM t WHERE foo(a)",
            "Unrecognized function: foo at 1:23:3",
        ),
        (
            "SELECT * FROM t WHERE size(a, b) = 1",
            "Incorrect number of operands for operator or function; operator or function: size, number of operands: 2",
        ),
        (
            "SELECT * FROM t WHERE attribute_exists(1)",
            "Operator or function requires a document path; operator or function: attribute_exists",
        ),
        (
            "SELECT * FROM t WHERE attribute_type(a, 'X')",
            "Invalid attribute type name found; type: X, valid types: {N,BS,L,B,NULL,M,S,SS,NS,BOOL}",
        ),
        (
            "SELECT * FROM t WHERE a BETWEEN 2 AND 1",
            "The BETWEEN operator requires upper bound to be greater than or equal to lower bound; lower bound operand: AttributeValue: {N:2}, upper bound operand: AttributeValue: {N:1}",
        ),
        (
            "SELECT * FROM t WHERE EXISTS(SELECT * FROM u)",
            "EXISTS can only be used in ExecuteTransaction write requests.",
        ),
        (
            "SELECT * FROM t WHERE a = 1 ORDER BY a.b",
            "Argument to ORDER BY must be of type VariableReference. Type: PATH at 1:38:1",
        ),
        (
            "SELECT * FROM t WHERE a = 1e999",
            "Number overflow. Attempting to store a number with magnitude larger than supported range under root",
        ),
        (
            "INSERT INTO t.u VALUE {}",
            "FROM clause may only contain a single table name in data manipulation statements at 1:13:1",
        ),
        (
            "INSERT INTO t VALUE {'a': <<1, 'x'>>}",
            "Unsupported data type in Bag. DynamoDB only supports either numbers or strings in bags",
        ),
        (
            "UPDATE t SET m.a = 1 REMOVE m.a[1] WHERE b = 1",
            "Two document paths overlap with each other; must remove or rewrite one of these paths; path one: [m, a, [1]], path two: [m, a]",
        ),
        (
            "UPDATE t SET a = 1 SET a = 2 WHERE b = 1",
            "Two document paths overlap with each other; must remove or rewrite one of these paths; path one: [a], path two: [a]",
        ),
        (
            "UPDATE t SET a = set_add(b, <<1>>)",
            "The first argument to SET_ADD must equal the assignment value at 1:18:7",
        ),
        (
            "UPDATE t SET a = set_add(a, b)",
            "The second argument to SET_ADD must be a value with type SET at 1:26:1",
        ),
        (
            "UPDATE t SET a = set_add(a)",
            "SET_ADD must have exactly two arguments at 1:18:7",
        ),
        (
            "UPDATE t SET a = set_add(a, <<>>)",
            "Empty bags are not supported",
        ),
        (
            "INSERT INTO t VALUE {'a': 1, 'b': {'c': [2, 1e126]}}",
            "Number overflow. Attempting to store a number with magnitude larger than supported range under root.c[1]",
        ),
        (
            "UPDATE t SET a = set_add(a, 1)",
            "The second argument to SET_ADD must be a value with type SET at 1:26:1",
        ),
        (
            "SELECT * FROM t WHERE a = ?",
            "Number of parameters in request and statement don't match.",
        ),
    ] {
        assert_eq!(refused(statement), expected, "{statement}");
    }
}

#[test]
fn limits_are_enforced() {
    let many = vec!["a = 1"; 151].join(" OR ");
    assert_eq!(
        refused(&format!("SELECT * FROM t WHERE {many}")),
        "The expression contains too many operators; operator count: 301"
    );
    let choices = vec!["1"; 101].join(",");
    assert_eq!(
        refused(&format!("SELECT * FROM t WHERE a IN [{choices}]")),
        "The IN operator is provided with too many operands; number of operands: 101"
    );
    for deep in [
        format!("SELECT * FROM t WHERE {}a = 1", "(".repeat(4000)),
        format!("INSERT INTO t VALUE {{'a': {}", "[".repeat(4000)),
        format!("UPDATE t SET a = {}", "list_append(".repeat(600)),
    ] {
        assert_eq!(
            refused(&deep),
            "Statement wasn't well formed, can't be processed: Statement is nested too deeply"
        );
    }
    let nested = format!(
        "INSERT INTO t VALUE {{'a': {}{}}}",
        "[".repeat(40),
        "]".repeat(40)
    );
    assert!(
        Statement::parse(&nested, &[]).is_ok(),
        "the item's own limit is checked with the item"
    );
    let compared = format!(
        "SELECT * FROM t WHERE a = {}{}",
        "[".repeat(40),
        "]".repeat(40)
    );
    assert_eq!(
        refused(&compared),
        "Nesting Levels have exceeded supported limits"
    );
    assert_eq!(
        refused(&"x".repeat(8193)),
        "Statement wasn't well formed, can't be processed: Statement is too long"
    );
}

#[test]
fn errors_contain_their_position() {
    let error =
        Statement::parse("SELECT *\n  FROM t WHERE é = ,", &[Value::Null]).expect_err("refused");
    assert_eq!(
        error.at,
        Position {
            line: 2,
            column: 20,
            length: 1
        }
    );
}
