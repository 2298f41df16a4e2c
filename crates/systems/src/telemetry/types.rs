//! Validated texts of telemetry.

use std::fmt;
use std::str::FromStr;

use homeport_item::Value;

use super::schema;
use crate::sensors::InvalidField;

/// Longest name of a thing, as in AWS IoT.
pub const THING_NAME_LEN_MAX: usize = 128;
/// Longest message type and command name.
pub const WORD_LEN_MAX: usize = 128;

macro_rules! word_type {
    ($(#[$doc:meta])* $name:ident, $field:expr, $expected:literal, $len_max:expr, $is_right:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(String);

        impl $name {
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = InvalidField;

            fn from_str(text: &str) -> Result<Self, InvalidField> {
                let is_right: fn(u8) -> bool = $is_right;
                if (1..=$len_max).contains(&text.len()) && text.bytes().all(is_right) {
                    return Ok(Self(text.to_owned()));
                }
                Err(InvalidField {
                    field: $field,
                    expected: $expected,
                })
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(&self.0)
            }
        }

        impl From<&$name> for Value {
            fn from(word: &$name) -> Self {
                Self::from(word.as_str())
            }
        }
    };
}

word_type!(
    /// The name of a thing, which is one level of its topics. The rule is the same for publishing, keys and reads.
    ThingName,
    schema::THING_NAME,
    "1 to 128 graphic ASCII characters without /, + and #",
    THING_NAME_LEN_MAX,
    |byte| byte.is_ascii_graphic() && !b"/+#".contains(&byte)
);
word_type!(
    /// The type of a message, such as `telemetry`, `status` or `alert`.
    MessageType,
    schema::MESSAGE_TYPE,
    "1 to 128 graphic ASCII characters",
    WORD_LEN_MAX,
    |byte| byte.is_ascii_graphic()
);
word_type!(
    /// The name of a command.
    CommandName,
    "command",
    "1 to 128 graphic ASCII characters",
    WORD_LEN_MAX,
    |byte| byte.is_ascii_graphic()
);

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
