//! The names of rules.

use crate::text::{Form, WORD, text_type};

/// Reserved: statements are tried under this path, in place of a rule's name.
const RESERVED: &str = "test";

text_type! {
    /// The name of a rule, with the length and the characters that AWS IoT allows.
    RuleName(String) {
        field: "ruleName",
        chars: 1..=128,
        form: Form {
            accepts: |text| (WORD.accepts)(text) && text != RESERVED,
            ..WORD
        },
        expected: "1 to 128 characters of a-z, A-Z, 0-9 and _, and not the word test",
        example: "telemetry",
    }
}
