//! Ids that more than one system uses.

use std::fmt;
use std::str::FromStr;

use uuid::{Uuid, Variant};

use crate::text::Form;
use crate::time::EpochMillis;

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

/// Digits of the time that a timed id begins with.
const TIME_DIGITS: usize = 13;

/// The form of ids that sort by time: milliseconds since the epoch and a UUID.
pub(crate) const TIMED_ID: Form = Form {
    pattern: "^[0-9]{13}-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$",
    accepts: |text| {
        text.split_once('-').is_some_and(|(time, uuid)| {
            time.len() == TIME_DIGITS
                && time.bytes().all(|byte| byte.is_ascii_digit())
                && uuid
                    .parse::<UuidV4>()
                    .is_ok_and(|id| id.to_string() == uuid)
        })
    },
};

/// A new id that sorts by time.
pub(crate) fn timed_id(now: EpochMillis) -> String {
    format!("{:013}-{}", now.0.max(0), UuidV4::random())
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
