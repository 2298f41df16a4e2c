//! Statements of every kind.

use homeport_item::expression::{self, Path, UpdateOperand};
use homeport_item::{Item, Value};

use super::{parse, with};
use crate::statement::{
    Delete, Insert, OrderTerm, ReturnValues, Select, Statement, Target, Update,
};

fn target(table: &str, index: Option<&str>) -> Target {
    Target {
        table: table.to_owned(),
        index: index.map(str::to_owned),
    }
}

#[test]
fn select_parses_attributes_index_condition_and_order() {
    let whole = Select {
        target: target("Music", None),
        projection: Vec::new(),
        condition: None,
        order: Vec::new(),
    };
    assert_eq!(
        parse("SELECT * FROM Music"),
        Statement::Select(whole.clone())
    );
    assert_eq!(
        parse("select * from \"Music\" ; "),
        Statement::Select(whole.clone())
    );
    assert_eq!(
        parse(
            "SELECT a, b.c[2].\"d e\" -- what\n FROM \"Music\".\"by-year\" WHERE a = 'x' ORDER BY a DESC, b /* of */ ASC, c"
        ),
        Statement::Select(Select {
            target: target("Music", Some("by-year")),
            projection: vec![
                Path::new("a"),
                Path::new("b").member("c").element(2).member("d e")
            ],
            condition: Some(Path::new("a").equals("x")),
            order: [("a", true), ("b", false), ("c", false)]
                .into_iter()
                .map(|(name, descending)| OrderTerm {
                    name: name.to_owned(),
                    descending
                })
                .collect(),
        })
    );
    assert_eq!(
        parse("EXISTS(SELECT * FROM \"Music\")"),
        Statement::Exists(whole)
    );
}

#[test]
fn insert_accepts_literals_of_every_type() {
    let statement = with(
        "INSERT INTO \"t\" VALUE {'s': 'it''s', 'n': -1.5e2, 'list': [1, 'x', [], {}], 'm': {'deep': {'x': null}}, 'ss': <<'a', 'b'>>, 'ns': <<1, 2>>, 'yes': TRUE, 'no': false, 'p': ?, 'q': [?]}",
        &[Value::B(vec![1]), Value::from(7)],
    );
    let item: Item = [
        ("s", Value::from("it's")),
        ("n", Value::from(-150)),
        (
            "list",
            Value::L(vec![
                1.into(),
                "x".into(),
                Value::L(vec![]),
                Value::M(homeport_item::Map::new()),
            ]),
        ),
        (
            "m",
            Value::M(
                Item::new()
                    .with(
                        "deep",
                        Value::M(Item::new().with("x", Value::Null).into_attributes()),
                    )
                    .into_attributes(),
            ),
        ),
        ("ss", Value::string_set(["a", "b"]).expect("a set")),
        (
            "ns",
            Value::Ns(homeport_item::Set::new(vec![1_i64.into(), 2_i64.into()]).expect("a set")),
        ),
        ("yes", Value::Bool(true)),
        ("no", Value::Bool(false)),
        ("p", Value::B(vec![1])),
        ("q", Value::L(vec![Value::from(7)])),
    ]
    .into_iter()
    .fold(Item::new(), |item, (name, value)| item.with(name, value));
    assert_eq!(
        statement,
        Statement::Insert(Insert {
            table: "t".to_owned(),
            item,
        })
    );
}

#[test]
fn update_sets_and_removes() {
    let update = expression::Update::new()
        .set("a", 1)
        .set(
            "b",
            UpdateOperand::from(Path::new("b")).plus(Value::from(2)),
        )
        .remove("c")
        .remove(Path::new("d").element(0))
        .set(
            "l",
            UpdateOperand::list_append(Path::new("l"), Value::L(vec![3.into()])),
        )
        .add("s", Value::string_set(["x"]).expect("a set"))
        .delete("t", Value::string_set(["y"]).expect("a set"));
    let expected = Statement::Update(Update {
        target: target("t", None),
        update,
        condition: Some(Path::new("pk").equals("k")),
        returning: Some(ReturnValues::ModifiedNew),
    });
    assert_eq!(
        parse(
            "UPDATE t SET a = 1, b = b + 2 REMOVE c, d[0] SET l = list_append(l, [3]) SET s = set_add(s, <<'x'>>), t = SET_DELETE(t, <<'y'>>) WHERE pk = 'k' RETURNING MODIFIED NEW *"
        ),
        expected
    );
    assert_eq!(
        parse(
            "FROM t WHERE pk = 'k' SET a = 1, b = b + 2 REMOVE c, d[0] SET l = list_append(l, [3]) SET s = set_add(s, <<'x'>>), t = SET_DELETE(t, <<'y'>>) RETURNING MODIFIED NEW *"
        ),
        expected
    );
}

#[test]
fn delete_can_return_the_old_item() {
    assert_eq!(
        with(
            "DELETE FROM t WHERE pk = ? RETURNING ALL OLD *",
            &["k".into()]
        ),
        Statement::Delete(Delete {
            target: target("t", None),
            condition: Some(Path::new("pk").equals("k")),
            returning: Some(ReturnValues::AllOld),
        })
    );
}

#[test]
fn parameters_are_used_in_order() {
    let statement = with(
        "SELECT * FROM t WHERE a = ? AND b = ?",
        &[1.into(), 2.into(), 3.into()],
    );
    let Statement::Select(select) = statement else {
        panic!("no select");
    };
    assert_eq!(
        select.condition,
        Some(Path::new("a").equals(1).and(Path::new("b").equals(2)))
    );
}
