//! Text types: ids and names that are right once they exist. `text_type!` declares one with its bounds and its
//! form, from which its checks, its error and its schema in the OpenAPI document follow.

/// A field with an invalid value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} must be {expected}")]
pub struct InvalidField {
    pub field: &'static str,
    pub expected: &'static str,
}

/// A type whose values are the texts that a rule accepts.
pub trait TextType {
    const RULE: TextRule;
}

/// The texts that a type accepts.
#[derive(Debug, Clone, Copy)]
pub struct TextRule {
    /// The name of the field, for errors.
    pub field: &'static str,
    /// The bounds and the form in words, for errors.
    pub expected: &'static str,
    pub chars_min: usize,
    pub chars_max: usize,
    pub form: Form,
    pub examples: &'static [&'static str],
}

/// The form of a text, without its length. Texts that match the pattern pass the check.
#[derive(Debug, Clone, Copy)]
pub struct Form {
    /// A regular expression of JSON Schema.
    pub pattern: &'static str,
    pub accepts: fn(&str) -> bool,
}

/// ASCII without spaces and control characters.
pub const GRAPHIC_ASCII: Form = Form {
    pattern: "^[!-~]+$",
    accepts: |text| text.bytes().all(|byte| byte.is_ascii_graphic()),
};
/// ASCII without control characters.
pub const PRINTABLE_ASCII: Form = Form {
    pattern: "^[ -~]+$",
    accepts: |text| text.bytes().all(|byte| (b' '..=b'~').contains(&byte)),
};
/// No control characters.
pub const PRINTABLE: Form = Form {
    pattern: r"^[^\u0000-\u001F\u007F-\u009F]*$",
    accepts: |text| !text.chars().any(char::is_control),
};
/// No control characters, and at least one character that is not white space.
pub const VISIBLE: Form = Form {
    pattern: r"^[^\u0000-\u001F\u007F-\u009F]*[^\s\u0000-\u001F\u007F-\u009F][^\u0000-\u001F\u007F-\u009F]*$",
    accepts: |text| (PRINTABLE.accepts)(text) && !text.trim().is_empty(),
};
/// Letters, digits and underscores.
pub const WORD: Form = Form {
    pattern: "^[a-zA-Z0-9_]+$",
    accepts: |text| {
        text.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    },
};

impl TextRule {
    /// # Errors
    /// When the text is too short, too long or of another form.
    pub fn check(&self, text: &str) -> Result<(), InvalidField> {
        // A text of n characters has at most 4n bytes: longer ones are not counted.
        let is_short = text.len() <= 4 * self.chars_max;
        if is_short
            && (self.chars_min..=self.chars_max).contains(&text.chars().count())
            && (self.form.accepts)(text)
        {
            return Ok(());
        }
        Err(InvalidField {
            field: self.field,
            expected: self.expected,
        })
    }
}

/// Declares a text type.
macro_rules! text_type {
    ($(#[$meta:meta])* $name:ident($inner:ty) {
        field: $field:expr,
        chars: $min:literal..=$max:expr,
        form: $form:expr,
        expected: $expected:literal,
        $(example: $example:literal,)?
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name($inner);

        impl $name {
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl $crate::text::TextType for $name {
            const RULE: $crate::text::TextRule = $crate::text::TextRule {
                field: $field,
                expected: $expected,
                chars_min: $min,
                chars_max: $max,
                form: $form,
                examples: &[$($example)?],
            };
        }

        impl TryFrom<std::borrow::Cow<'_, str>> for $name {
            type Error = $crate::text::InvalidField;

            fn try_from(text: std::borrow::Cow<'_, str>) -> Result<Self, Self::Error> {
                <Self as $crate::text::TextType>::RULE.check(&text)?;
                Ok(Self(text.into()))
            }
        }

        impl TryFrom<String> for $name {
            type Error = $crate::text::InvalidField;

            fn try_from(text: String) -> Result<Self, Self::Error> {
                Self::try_from(std::borrow::Cow::Owned(text))
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::text::InvalidField;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::try_from(std::borrow::Cow::Borrowed(text))
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str(&self.0)
            }
        }

        impl From<$name> for $inner {
            fn from(text: $name) -> Self {
                text.0
            }
        }

        impl From<&$name> for homeport_item::Value {
            fn from(text: &$name) -> Self {
                Self::from(text.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
                Self::try_from(text).map_err(serde::de::Error::custom)
            }
        }
    };
}
pub(crate) use text_type;

#[cfg(test)]
mod tests {
    use super::*;

    text_type! {
        /// A text of a test.
        Label(String) {
            field: "label",
            chars: 1..=3,
            form: VISIBLE,
            expected: "1 to 3 characters",
            example: "abc",
        }
    }

    #[test]
    fn length_counts_characters() {
        for right in ["a", "äöü", " a ", "\u{1F980}\u{1F980}\u{1F980}"] {
            assert_eq!(right.parse::<Label>().expect(right).as_str(), right);
        }
        for wrong in ["", "abcd", "äöüß", "  ", "a\n"] {
            let error = wrong.parse::<Label>().expect_err(wrong);
            assert_eq!(error.to_string(), "label must be 1 to 3 characters");
        }
    }

    #[test]
    fn forms_accept_only_their_characters() {
        for (form, right, wrong) in [
            (GRAPHIC_ASCII, "!~a", ["a b", "é", "a\u{7f}"]),
            (PRINTABLE_ASCII, " !~", ["\u{7f}", "é", "\t"]),
            (PRINTABLE, " é\u{a0}", ["\u{9f}", "\u{0}", "a\u{7f}"]),
            (VISIBLE, " é", [" ", "\u{2003}", "a\n"]),
            (WORD, "aZ0_", ["-", "a b", "é"]),
        ] {
            assert!((form.accepts)(right), "{}", form.pattern);
            for wrong in wrong {
                assert!(!(form.accepts)(wrong), "{} {wrong:?}", form.pattern);
            }
        }
    }

    /// Texts around each example: it with every character of Latin script and every control character in
    /// every place.
    fn variants(example: &str) -> impl Iterator<Item = String> {
        let places = (0..=example.len()).filter(|at| example.is_char_boundary(*at));
        places.flat_map(|at| {
            let (before, after) = example.split_at(at);
            let inserted = (0..0x250).filter_map(char::from_u32);
            inserted.map(move |inserted| format!("{before}{inserted}{after}"))
        })
    }

    #[test]
    fn patterns_match_what_checks_accept() {
        use crate::{alerts, chargers, people, push, records, rules, sensors, telemetry};
        let exact = [
            (sensors::HardwareId::RULE, "AA:BB:CC:DD:EE:FF"),
            (sensors::BatchId::RULE, "a-1"),
            (sensors::FriendlyName::RULE, "a b"),
            (sensors::FirmwareVersion::RULE, "1.0 b"),
            (sensors::SensorName::RULE, "a_1"),
            (chargers::ScId::RULE, "SC-C014EA63"),
            (chargers::EventType::RULE, "ota.a-b_1"),
            (telemetry::ThingName::RULE, "van-1"),
            (telemetry::MessageType::RULE, "alert"),
            (telemetry::CommandName::RULE, "heat"),
            (records::Name::RULE, "a b"),
            (records::Unit::RULE, ""),
            (records::IdTag::RULE, "g-i_d"),
            (push::UserId::RULE, "auth0|1"),
            (push::ExpoPushToken::RULE, "ExpoPushToken[ab]"),
            (
                alerts::AlertId::RULE,
                "1800000000000-7c9e6679-7425-40de-944b-e07fc1f90ae7",
            ),
            (alerts::Note::RULE, "a b"),
            (alerts::AttributePath::RULE, "a.b.c.d.e.f.g.h"),
            (alerts::TopicTemplate::RULE, "a/{device}"),
            (alerts::EmailAddress::RULE, "a.b+c@d-e.fg"),
            (rules::RuleName::RULE, "a_1"),
            (people::PersonName::RULE, "a.b_c+d@e-f"),
        ];
        // The check also accepts addresses and queries that the pattern does not describe.
        let wider = [(alerts::WebhookUrl::RULE, "https://a-b.c:80/d?e=f")];
        for (rule, example) in exact.into_iter().chain(wider) {
            let pattern = regex::Regex::new(rule.form.pattern).expect(rule.field);
            let is_exact = rule.field != alerts::WebhookUrl::RULE.field;
            assert!(rule.check(example).is_ok(), "{}: {example}", rule.field);
            for text in variants(example).chain([example.to_owned()]) {
                let (matches, accepts) = (pattern.is_match(&text), (rule.form.accepts)(&text));
                assert!(
                    matches == accepts || accepts && !is_exact,
                    "{}: {text:?} matches {matches}, is accepted {accepts}",
                    rule.field
                );
            }
        }
    }
}
