//! The names of rules.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer};

use crate::sensors::InvalidField;

/// Longest name, as in AWS IoT.
pub const NAME_LEN_MAX: usize = 128;

/// Reserved: statements are tried under this path, in place of a rule's name.
const RESERVED: &str = "test";

/// The name of a rule, with the characters that AWS IoT allows.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RuleName(String);

impl RuleName {
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for RuleName {
    type Err = InvalidField;

    fn from_str(text: &str) -> Result<Self, InvalidField> {
        let is_right = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        if (1..=NAME_LEN_MAX).contains(&text.len())
            && text.bytes().all(is_right)
            && text != RESERVED
        {
            return Ok(Self(text.to_owned()));
        }
        Err(InvalidField {
            field: "ruleName",
            expected: "1 to 128 characters of a-z, A-Z, 0-9 and _, and not the word test",
        })
    }
}

impl fmt::Display for RuleName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for RuleName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}
