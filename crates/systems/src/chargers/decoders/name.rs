//! The names of decoders.

use crate::text::{Form, text_type};

/// Reserved: decoders are tested under this path, in place of a name.
const RESERVED: &str = "test";

text_type! {
    /// The name of a payload decoder.
    DecoderName(String) {
        field: "name",
        chars: 1..=64,
        form: Form {
            pattern: "^[a-zA-Z0-9_-]+$",
            accepts: |text| {
                let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
                text.bytes().all(is_plain) && text != RESERVED
            },
        },
        expected: "1 to 64 characters of a-z, A-Z, 0-9, '_' and '-', and not the word test",
        example: "evse-v1",
    }
}
