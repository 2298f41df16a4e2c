//! No text makes the parser panic.

use homeport_item::{Item, Value};
use proptest::prelude::*;

use crate::statement::Statement;

const PIECES: [&str; 62] = [
    "SELECT",
    "FROM",
    "WHERE",
    "INSERT",
    "INTO",
    "VALUE",
    "UPDATE",
    "DELETE",
    "SET",
    "REMOVE",
    "ORDER",
    "BY",
    "RETURNING",
    "ALL",
    "OLD",
    "NEW",
    "*",
    "MODIFIED",
    "EXISTS",
    "TRUE",
    "NULL",
    "MISSING",
    "AND",
    "OR",
    "NOT",
    "IS",
    "IN",
    "BETWEEN",
    "a",
    "\"t\"",
    "'s'",
    "1",
    "-",
    "+",
    "?",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "<<",
    ">>",
    ",",
    ".",
    ":",
    ";",
    "=",
    "<>",
    "<",
    ">=",
    "size",
    "begins_with",
    "contains",
    "attribute_type",
    "list_append",
    "set_add",
    "é",
    "\"",
    "'",
    "--",
    "/*",
];

proptest! {
    #[test]
    fn token_sequences_do_not_panic(pieces in prop::collection::vec(0..PIECES.len(), 0..60)) {
        let text: Vec<&str> = pieces.iter().map(|piece| PIECES[*piece]).collect();
        let parameters = [Value::Null, Value::from(1)];
        for text in [text.join(" "), text.concat()] {
            let statement = Statement::parse(&text, &parameters);
            // A parsed statement can be used.
            if let Ok(Statement::Select(select)) = &statement
                && let Some(condition) = &select.condition
            {
                prop_assert!(condition.matches(&Item::new()).is_ok());
            }
            if let Ok(Statement::Update(update)) = &statement {
                prop_assert_eq!(update.update.check(), Ok(()));
            }
        }
    }

    #[test]
    fn random_texts_do_not_panic(text in "\\PC{0,80}") {
        let _ = Statement::parse(&text, &[]);
        let _ = Statement::parse(&format!("SELECT * FROM t WHERE {text}"), &[]);
    }

    #[test]
    fn damaged_statements_do_not_panic(at in 0usize..120, with in any::<char>()) {
        let statement = "UPDATE \"t\" SET a = list_append(a, [1, {'x': <<'y'>>}]) REMOVE b[3].c WHERE pk = 'k' AND size(s) > 3 RETURNING ALL NEW *";
        let mut characters: Vec<char> = statement.chars().collect();
        let at = at.min(characters.len() - 1);
        characters[at] = with;
        let damaged: String = characters.into_iter().collect();
        let _ = Statement::parse(&damaged, &[]);
    }
}
