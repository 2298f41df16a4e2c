//! Any text as a PartiQL statement, without and with parameters. Parsing never panics, and conditions
//! and updates that are read can be evaluated.

#![no_main]

use homeport_item::Value;
use homeport_partiql::Statement;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let parameters = [Value::from(1), Value::from("a"), Value::Bool(true)];
    for count in 0..=parameters.len() {
        if let Ok(statement) = Statement::parse(text, &parameters[..count]) {
            // A statement is a value like others: what is read can be compared and printed.
            assert_eq!(statement, statement.clone());
            let _ = format!("{statement:?}");
        }
    }
});
