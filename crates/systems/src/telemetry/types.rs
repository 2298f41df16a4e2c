//! Validated texts of telemetry.

use super::schema;
use crate::text::{Form, GRAPHIC_ASCII, text_type};

/// The characters of a thing's name: graphic ASCII without slashes.
const TOPIC_LEVEL: Form = Form {
    pattern: "^[!-.0-~]+$",
    accepts: |text| (GRAPHIC_ASCII.accepts)(text) && !text.contains('/'),
};

text_type! {
    /// The name of a thing. It is one level of a topic and has no slash. A name with `#` may be that of a
    /// shard, which has no topic. The length is limited as in AWS IoT.
    ThingName(String) {
        field: schema::THING_NAME,
        chars: 1..=128,
        form: TOPIC_LEVEL,
        expected: "1 to 128 graphic ASCII characters, none of them /",
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

impl ThingName {
    /// Whether the name can be a level of a topic.
    #[must_use]
    pub fn is_addressable(&self) -> bool {
        !self.0.contains(['+', '#'])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thing_name_is_one_topic_level() {
        for (text, is_addressable) in [
            ("storyteller-van-01", true),
            ("van:1", true),
            ("van-01#shard-1", false),
            ("van+", false),
        ] {
            let thing: ThingName = text.parse().expect("a thing");
            assert_eq!(thing.is_addressable(), is_addressable, "{text}");
        }
        for wrong in ["", "a/b", "a b", "é", "a\n"] {
            assert!(wrong.parse::<ThingName>().is_err(), "{wrong:?}");
        }
        assert!("x".repeat(128).parse::<ThingName>().is_ok());
        assert!("x".repeat(129).parse::<ThingName>().is_err());
    }
}
