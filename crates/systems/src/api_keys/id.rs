//! Ids of keys.

use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

/// The id of a key: a UUID in lower case. New ids are of version 4. Other programs may have stored ids of any
/// version, like the example in the design document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyId(Uuid);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected a UUID, as 550e8400-e29b-41d4-a716-446655440000")]
pub struct KeyIdError;

impl KeyId {
    /// A random id.
    #[must_use]
    pub fn random() -> Self {
        Self(Uuid::new_v4())
    }
}

impl FromStr for KeyId {
    type Err = KeyIdError;

    fn from_str(text: &str) -> Result<Self, KeyIdError> {
        // Of the spellings of a UUID, the design documents allow only the hyphenated one.
        match Uuid::try_parse(text) {
            Ok(id) if text.len() == uuid::fmt::Hyphenated::LENGTH => Ok(Self(id)),
            _ => Err(KeyIdError),
        }
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuid_of_any_version_is_accepted() {
        for text in [
            "550e8400-e29b-41d4-a716-446655440000",
            "a1b2c3d4-e5f6-7890-abcd-ef1234567890",
        ] {
            assert_eq!(text.parse::<KeyId>().unwrap().to_string(), text);
        }
        for text in [
            "550e8400e29b41d4a716446655440000",
            "{550e8400-e29b-41d4-a716-446655440000}",
            "greenhouse",
            "",
        ] {
            assert_eq!(text.parse::<KeyId>(), Err(KeyIdError), "{text}");
        }
    }
}
