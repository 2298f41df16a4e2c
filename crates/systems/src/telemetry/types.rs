//! Validated texts of telemetry.

use super::schema;
use crate::text::{Form, GRAPHIC_ASCII, text_type};

/// Graphic ASCII without slashes and wildcards: one level of a topic.
const TOPIC_LEVEL: Form = Form {
    pattern: r#"^[!"$-*,-.0-~]+$"#,
    accepts: |text| (GRAPHIC_ASCII.accepts)(text) && !text.contains(['/', '+', '#']),
};

text_type! {
    /// The name of a thing, which is one level of its topics. The rule is the same for publishing, keys and reads. The
    /// length is limited as in AWS IoT.
    ThingName(String) {
        field: schema::THING_NAME,
        chars: 1..=128,
        form: TOPIC_LEVEL,
        expected: "1 to 128 graphic ASCII characters without /, + and #",
        example: "storyteller-van-01",
    }
}

text_type! {
    /// The type of a message, such as `telemetry`, `status` or `alert`.
    MessageType(String) {
        field: schema::MESSAGE_TYPE,
        chars: 1..=128,
        form: GRAPHIC_ASCII,
        expected: "1 to 128 graphic ASCII characters",
    }
}

text_type! {
    /// The name of a command.
    CommandName(String) {
        field: "command",
        chars: 1..=128,
        form: GRAPHIC_ASCII,
        expected: "1 to 128 graphic ASCII characters",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thing_name_is_one_topic_level() {
        for text in ["storyteller-van-01", "van:1"] {
            assert!(text.parse::<ThingName>().is_ok(), "{text}");
        }
        for wrong in ["", "a/b", "a b", "é", "a\n", "van-01#shard-1", "van+"] {
            assert!(wrong.parse::<ThingName>().is_err(), "{wrong:?}");
        }
        assert!("x".repeat(128).parse::<ThingName>().is_ok());
        assert!("x".repeat(129).parse::<ThingName>().is_err());
    }
}
