//! The text types of push. Each is validated when it is created.

use std::fmt;
use std::str::FromStr;

use homeport_item::Value;
use sha2::{Digest as _, Sha256};

use super::schema;
use crate::text::{Form, GRAPHIC_ASCII, InvalidField, TextRule, TextType, text_type};

/// Longest push token.
const TOKEN_LEN_MAX: usize = 256;

/// How push tokens begin.
pub(super) const TOKEN_PREFIXES: [&str; 2] = ["ExponentPushToken[", "ExpoPushToken["];

text_type! {
    /// The user of an app: the `sub` of the user's JWT.
    UserId(String) {
        field: schema::USER_ID,
        chars: 1..=128,
        form: GRAPHIC_ASCII,
        expected: "1 to 128 graphic ASCII characters",
    }
}

text_type! {
    /// The id of a device.
    DeviceId(String) {
        field: schema::DEVICE_ID,
        chars: 1..=128,
        form: GRAPHIC_ASCII,
        expected: "1 to 128 graphic ASCII characters",
    }
}

text_type! {
    /// Makes a repeated request the same notification.
    IdempotencyKey(String) {
        field: "Idempotency-Key",
        chars: 1..=128,
        form: GRAPHIC_ASCII,
        expected: "1 to 128 graphic ASCII characters",
    }
}

/// The address of a device at Expo: `ExponentPushToken[…]` or `ExpoPushToken[…]`. `Debug` does not print
/// it, because it allows sending to the device.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ExpoPushToken(String);

impl ExpoPushToken {
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Identifies the token without revealing it.
    #[must_use]
    pub fn digest(&self) -> String {
        hex::encode(&Sha256::digest(self.0.as_bytes())[..16])
    }
}

impl fmt::Debug for ExpoPushToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ExpoPushToken(…)")
    }
}

impl TryFrom<String> for ExpoPushToken {
    type Error = InvalidField;

    fn try_from(text: String) -> Result<Self, InvalidField> {
        Self::RULE.check(&text).map(|()| Self(text))
    }
}

impl TextType for ExpoPushToken {
    const RULE: TextRule = TextRule {
        field: schema::EXPO_PUSH_TOKEN,
        expected: "a token of the form ExponentPushToken[…] or ExpoPushToken[…]",
        chars_min: 16,
        chars_max: TOKEN_LEN_MAX,
        form: Form {
            // Graphic characters without brackets, in brackets.
            pattern: r"^(ExponentPushToken|ExpoPushToken)\[[!-Z\\^-~]+\]$",
            accepts: is_token,
        },
        examples: &["ExponentPushToken[xxxxxxxxxxxxxxxxxxxxxx]"],
    };
}

fn is_token(text: &str) -> bool {
    let inner = TOKEN_PREFIXES
        .iter()
        .find_map(|prefix| text.strip_prefix(prefix))
        .and_then(|rest| rest.strip_suffix(']'));
    let is_inside = |byte: u8| byte.is_ascii_graphic() && !b"[]".contains(&byte);
    inner.is_some_and(|inner| !inner.is_empty() && inner.bytes().all(is_inside))
}

impl FromStr for ExpoPushToken {
    type Err = InvalidField;

    fn from_str(text: &str) -> Result<Self, InvalidField> {
        Self::try_from(text.to_owned())
    }
}

impl From<&ExpoPushToken> for Value {
    fn from(token: &ExpoPushToken) -> Self {
        Self::from(token.as_str())
    }
}

/// The operating system of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Platform {
    Ios,
    Android,
}

impl Platform {
    pub const ALL: [Self; 2] = [Self::Ios, Self::Android];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ios => "ios",
            Self::Android => "android",
        }
    }
}

impl FromStr for Platform {
    type Err = InvalidField;

    fn from_str(text: &str) -> Result<Self, InvalidField> {
        match text {
            "ios" => Ok(Self::Ios),
            "android" => Ok(Self::Android),
            _ => Err(InvalidField {
                field: schema::PLATFORM,
                expected: "ios or android",
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_has_one_of_two_forms() {
        for right in ["ExponentPushToken[xxxx-1_2]", "ExpoPushToken[a]"] {
            assert!(right.parse::<ExpoPushToken>().is_ok(), "{right}");
        }
        for wrong in [
            "",
            "ExponentPushToken[]",
            "ExponentPushToken[a",
            "ExponentPushToken[a]b",
            "ExponentPushToken[a b]",
            "ExponentPushToken[a[b]]",
            "exponentPushToken[a]",
            "FcmToken[a]",
        ] {
            assert!(wrong.parse::<ExpoPushToken>().is_err(), "{wrong}");
        }
        let long = format!("ExpoPushToken[{}]", "x".repeat(TOKEN_LEN_MAX));
        assert!(long.parse::<ExpoPushToken>().is_err());
    }

    #[test]
    fn debug_output_hides_the_token() {
        let token: ExpoPushToken = "ExpoPushToken[secret]".parse().unwrap();
        assert!(!format!("{token:?}").contains("secret"));
        assert!(!token.digest().contains("secret"));
    }

    #[test]
    fn long_or_blank_ids_are_rejected() {
        assert!("auth0|5f7c".parse::<UserId>().is_ok());
        for wrong in ["", "a b", "a\n", "é"] {
            assert!(wrong.parse::<DeviceId>().is_err(), "{wrong:?}");
        }
        assert!("x".repeat(128).parse::<UserId>().is_ok());
        assert!("x".repeat(129).parse::<UserId>().is_err());
        assert!("windows".parse::<Platform>().is_err());
    }
}
