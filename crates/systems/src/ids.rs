//! Ids that more than one system uses.

use std::fmt;
use std::str::FromStr;

use uuid::{Uuid, Variant};

/// A UUID of version 4 and RFC 4122's variant, written in lower case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UuidV4(Uuid);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected a UUID of version 4, as 550e8400-e29b-41d4-a716-446655440000")]
pub struct UuidV4Error;

impl UuidV4 {
    /// A random id.
    #[must_use]
    pub fn random() -> Self {
        Self(Uuid::new_v4())
    }
}

impl FromStr for UuidV4 {
    type Err = UuidV4Error;

    fn from_str(text: &str) -> Result<Self, UuidV4Error> {
        let uuid = Uuid::try_parse(text).map_err(|_| UuidV4Error)?;
        let is_v4 = uuid.get_version_num() == 4 && uuid.get_variant() == Variant::RFC4122;
        // Of the spellings of a UUID, the design documents allow only the hyphenated one.
        if is_v4 && text.len() == uuid::fmt::Hyphenated::LENGTH {
            Ok(Self(uuid))
        } else {
            Err(UuidV4Error)
        }
    }
}

impl fmt::Display for UuidV4 {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_version_four_is_accepted() {
        let text = "550e8400-e29b-41d4-a716-446655440000";
        assert_eq!(text.parse::<UuidV4>().unwrap().to_string(), text);
        for text in [
            "550e8400-e29b-11d4-a716-446655440000",
            "550e8400-e29b-41d4-c716-446655440000",
            "550e8400e29b41d4a716446655440000",
            "{550e8400-e29b-41d4-a716-446655440000}",
            "",
        ] {
            assert_eq!(text.parse::<UuidV4>(), Err(UuidV4Error), "{text}");
        }
    }
}
