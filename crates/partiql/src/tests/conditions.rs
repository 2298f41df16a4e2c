//! The meaning of conditions, each evaluated on one item.

use homeport_item::Item;

use super::parse;
use crate::statement::Statement;

fn holds(condition: &str) -> bool {
    let item = item();
    let Statement::Select(select) = parse(&format!("SELECT * FROM t WHERE {condition}")) else {
        panic!("no select");
    };
    let condition = select.condition.expect("a condition");
    condition.matches(&item).expect("a whole item")
}

fn item() -> Item {
    use homeport_item::Value;
    Item::new()
        .with("s", "hello")
        .with("n", 5)
        .with("m", 5)
        .with("yes", true)
        .with("nothing", Value::Null)
        .with("list", Value::L(vec![1.into(), "x".into()]))
        .with("map", Value::M(Item::new().with("in", 7).into_attributes()))
        .with("tags", Value::string_set(["a", "b"]).expect("a set"))
}

#[test]
fn conditions_evaluate_as_in_dynamodb() {
    for (condition, expected) in [
        ("s = 'hello'", true),
        ("'hello' = s", true),
        ("s <> 'hello'", false),
        ("s != 'x'", true),
        ("n < 6", true),
        ("6 > n", true),
        ("n <= 5 AND n >= 5", true),
        ("n = m", true),
        ("n = 5.0", true),
        ("n = '5'", false),
        ("none = 1", false),
        ("none <> 1", true),
        ("NOT none = 1", true),
        ("NOT NOT n = 5", true),
        ("n BETWEEN 1 AND 5", true),
        ("n NOT BETWEEN 1 AND 5", false),
        ("n IN [1, 5]", true),
        ("n IN (1, 2)", false),
        ("n NOT IN [1, 2]", true),
        ("none IN [1]", false),
        ("n = 1 OR n = 5", true),
        ("n = 1 AND n = 5 OR n = 5", true),
        ("n = 1 AND (n = 5 OR n = 5)", false),
        ("(n) = 5", true),
        ("((n = 5))", true),
        ("none IS MISSING", true),
        ("s IS NOT MISSING", true),
        ("nothing IS NULL", true),
        ("none IS NULL", false),
        ("s IS NOT NULL", true),
        ("s IS STRING", true),
        ("n IS NUMERIC", true),
        ("yes IS BOOLEAN", true),
        ("list IS LIST", true),
        ("map IS STRUCT", true),
        ("map.\"in\" = 7", true),
        ("list[1] = 'x'", true),
        ("begins_with(s, 'he')", true),
        ("BEGINS_WITH(\"s\", 'x')", false),
        ("contains(s, 'ell')", true),
        ("contains(tags, 'b')", true),
        ("NOT contains(list, 1)", false),
        ("attribute_type(tags, 'SS')", true),
        ("attribute_exists(map.\"in\")", true),
        ("attribute_not_exists(map.out)", true),
        ("attribute_exists(s) = true", true),
        ("attribute_exists(s) <> true", false),
        ("attribute_exists(none) = false AND (n = 5) = true", true),
        ("size(s) = 5", true),
        ("size(list) > 2", false),
        ("size(n) <> 3", true),
        ("yes = true", true),
        ("tags = <<'b', 'a'>>", true),
        ("list = [1, 'x']", true),
        ("map = {'in': 7}", true),
    ] {
        assert_eq!(holds(condition), expected, "{condition}");
    }
}
