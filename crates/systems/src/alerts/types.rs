//! The text types of alerts. Each is validated when it is created.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use homeport_item::Value;
use homeport_item::expression::{Document as _, Path};
use homeport_item::{Item, Number};
use serde::{Deserialize, Serialize};

use crate::ids::UuidV4;
use crate::sensors::InvalidField;
use crate::time::EpochMillis;

/// Longest name of a definition or a person, and longest message type, in characters.
pub const NAME_CHARS_MAX: usize = 128;
/// Longest note of an acknowledgement, in characters.
pub const NOTE_CHARS_MAX: usize = 1000;
/// Longest name of a device that can be listed, in characters.
pub const DEVICE_CHARS_MAX: usize = 256;
/// Longest name of a watched device: it is a sort key of the table of watches.
pub(super) const DEVICE_BYTES_MAX: usize = 1024;
/// Longest path to an attribute, in characters, and its depth.
pub const ATTRIBUTE_CHARS_MAX: usize = 256;
const ATTRIBUTE_DEPTH_MAX: usize = 8;
/// Longest URL of a webhook.
pub const URL_LEN_MAX: usize = 2048;
/// Longest topic.
pub const TOPIC_LEN_MAX: usize = 256;
/// Longest e-mail address.
pub const EMAIL_LEN_MAX: usize = 254;
/// The prefix and the length of a secret in the Standard Webhooks specification.
const SECRET_PREFIX: &str = "whsec_";
const SECRET_BYTES_MIN: usize = 24;
const SECRET_BYTES_MAX: usize = 64;
/// Digits of the time that an id begins with.
const TIME_DIGITS: usize = 13;
/// The placeholder for the device's name in a topic.
const DEVICE_PLACE: &str = "{device}";

macro_rules! text_type {
    ($(#[$doc:meta])* $name:ident, $field:expr, $expected:expr, $check:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidField;

            fn try_from(text: String) -> Result<Self, InvalidField> {
                let check: fn(&str) -> bool = $check;
                if check(&text) {
                    Ok(Self(text))
                } else {
                    Err(InvalidField { field: $field, expected: $expected })
                }
            }
        }

        impl FromStr for $name {
            type Err = InvalidField;

            fn from_str(text: &str) -> Result<Self, InvalidField> {
                Self::try_from(text.to_owned())
            }
        }

        impl From<$name> for String {
            fn from(text: $name) -> Self {
                text.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(&self.0)
            }
        }

        impl From<&$name> for Value {
            fn from(text: &$name) -> Self {
                Self::from(text.as_str())
            }
        }
    };
}

text_type!(
    /// The id of a definition: the time of its creation and a UUID. Ids sort by time.
    DefinitionId,
    "definition id",
    "the id of a definition",
    is_timed_id
);
text_type!(
    /// The id of an alert: the time at which it was raised and a UUID. Ids sort by time.
    AlertId,
    "alert id",
    "the id of an alert",
    is_timed_id
);
text_type!(
    /// The name of a definition, for people.
    DefinitionName,
    "name",
    "1 to 128 printable characters, not all of them blank",
    |text| is_printable(text, NAME_CHARS_MAX)
);
text_type!(
    /// The person who acknowledged an alert.
    PersonName,
    "by",
    "1 to 128 printable characters, not all of them blank",
    |text| is_printable(text, NAME_CHARS_MAX)
);
text_type!(
    /// A person's comment on an alert.
    Note,
    "note",
    "1 to 1000 printable characters, not all of them blank",
    |text| is_printable(text, NOTE_CHARS_MAX)
);
text_type!(
    /// The text that the filter's attribute must have.
    WantedText,
    "equals",
    "1 to 128 printable characters, not all of them blank",
    |text| is_printable(text, NAME_CHARS_MAX)
);
text_type!(
    /// A device as its source names it: a thing, a hardware id, or group/device/journal.
    DeviceName,
    "a device",
    "1 to 256 printable characters, not all of them blank",
    |text| is_printable(text, DEVICE_CHARS_MAX)
);
text_type!(
    /// The path to a value in an item: member names and list indexes, separated by dots.
    AttributePath,
    "attribute",
    "1 to 8 names with dots between them, like battery.volts, at most 256 characters",
    |text| text.chars().count() <= ATTRIBUTE_CHARS_MAX
        && text.split('.').count() <= ATTRIBUTE_DEPTH_MAX
        && text.split('.').all(|name| !name.is_empty() && !name.chars().any(char::is_control))
);
text_type!(
    /// The URL of a webhook.
    WebhookUrl,
    "url",
    "an address that begins with http:// or https://, without a name or password in it",
    is_webhook_url
);
text_type!(
    /// The topic to publish on; `{device}` is replaced by the device's name.
    TopicTemplate,
    "topic",
    "1 to 256 printable ASCII characters without + and #, not beginning with $",
    |text| (1..=TOPIC_LEN_MAX).contains(&text.len())
        && !text.starts_with('$')
        && text.bytes().all(|byte| (b' '..=b'~').contains(&byte) && byte != b'+' && byte != b'#')
);
text_type!(
    EmailAddress,
    "to",
    "an e-mail address of plain ASCII, like anna@example.com",
    is_email
);

/// The key that signs webhooks: `whsec_` and the bytes in base64. `Debug` does not print it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct WebhookSecret(Vec<u8>);

impl WebhookSecret {
    /// The key of the signature.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl TryFrom<String> for WebhookSecret {
    type Error = InvalidField;

    fn try_from(text: String) -> Result<Self, InvalidField> {
        text.strip_prefix(SECRET_PREFIX)
            .and_then(|encoded| STANDARD.decode(encoded).ok())
            .filter(|bytes| (SECRET_BYTES_MIN..=SECRET_BYTES_MAX).contains(&bytes.len()))
            .map(Self)
            .ok_or(InvalidField {
                field: "secret",
                expected: "whsec_ and 24 to 64 bytes in base64",
            })
    }
}

impl From<WebhookSecret> for String {
    fn from(secret: WebhookSecret) -> Self {
        format!("{SECRET_PREFIX}{}", STANDARD.encode(secret.0))
    }
}

impl fmt::Debug for WebhookSecret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("WebhookSecret(…)")
    }
}

impl DefinitionId {
    pub(super) fn new(now: EpochMillis) -> Self {
        Self(timed_id(now))
    }
}

impl AlertId {
    pub(super) fn new(now: EpochMillis) -> Self {
        Self(timed_id(now))
    }
}

impl DeviceName {
    /// The name in a stored item, which is not validated again.
    pub(super) fn stored(text: String) -> Self {
        Self(text)
    }
}

impl AttributePath {
    /// The number at this path; true counts as 1 and false as 0.
    pub(super) fn number(&self, item: &Item) -> Option<Number> {
        match &*self.find(item)? {
            Value::N(number) => Some(*number),
            Value::Bool(flag) => Some(Number::from(u32::from(*flag))),
            _ => None,
        }
    }

    /// The value at this path.
    pub(super) fn find<'a>(&self, item: &'a Item) -> Option<Cow<'a, Value>> {
        let mut names = self.0.split('.');
        let first = Path::new(names.next().unwrap_or_default());
        let path = names.fold(first, |path, name| match name.parse() {
            // A number is an index in a list and a member name in a map.
            Ok(index) if is_list(item, &path) => path.element(index),
            _ => path.member(name),
        });
        item.resolve(&path).ok()?
    }
}

impl TopicTemplate {
    /// The default.
    pub(super) fn of_device() -> Self {
        Self(format!("alerts/{DEVICE_PLACE}"))
    }

    /// The topic for a device. Characters that are invalid in a topic become underscores.
    pub(super) fn topic(&self, device: &DeviceName) -> String {
        let device: String = device
            .as_str()
            .chars()
            .map(|char| match char {
                '+' | '#' | '\0' => '_',
                char => char,
            })
            .collect();
        self.0.replace(DEVICE_PLACE, &device)
    }
}

fn is_list(item: &Item, path: &Path) -> bool {
    matches!(item.resolve(path), Ok(Some(value)) if value.as_list().is_some())
}

fn timed_id(now: EpochMillis) -> String {
    format!("{:013}-{}", now.0.max(0), UuidV4::random())
}

fn is_timed_id(text: &str) -> bool {
    text.split_once('-').is_some_and(|(time, uuid)| {
        time.len() == TIME_DIGITS
            && time.bytes().all(|byte| byte.is_ascii_digit())
            && uuid
                .parse::<UuidV4>()
                .is_ok_and(|id| id.to_string() == uuid)
    })
}

fn is_printable(text: &str, chars_max: usize) -> bool {
    (1..=chars_max).contains(&text.chars().count())
        && !text.chars().any(char::is_control)
        && !text.trim().is_empty()
}

/// The same rule as the pattern in the OpenAPI document.
fn is_webhook_url(text: &str) -> bool {
    let rest = text
        .strip_prefix("https://")
        .or_else(|| text.strip_prefix("http://"));
    let Some(rest) = rest.filter(|_| text.len() <= URL_LEN_MAX) else {
        return false;
    };
    let (authority, path) = match rest.find(['/', '?']) {
        Some(end) => rest.split_at(end),
        None => (rest, ""),
    };
    let (host, port) = if authority.starts_with('[') {
        match authority.split_once(']') {
            Some((address, port)) if address[1..].parse::<std::net::Ipv6Addr>().is_ok() => {
                ("v6", port.strip_prefix(':').unwrap_or(port))
            }
            _ => return false,
        }
    } else {
        match authority.split_once(':') {
            Some((_, "")) => return false,
            Some((host, port)) => (host, port),
            None => (authority, ""),
        }
    };
    let is_name = host.split('.').all(|label| {
        !label.is_empty()
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    });
    let is_port = port.is_empty()
        || (port.bytes().all(|byte| byte.is_ascii_digit())
            && port.parse::<u16>().is_ok_and(|port| port > 0));
    is_name && is_port && path.bytes().all(is_path_byte)
}

fn is_path_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"._~:/?@!$&'()*+,;=%-".contains(&byte)
}

/// The same rule as the pattern in the OpenAPI document.
fn is_email(text: &str) -> bool {
    let words = |text: &str, signs: &[char]| {
        text.split(signs)
            .all(|word| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric()))
    };
    text.len() <= EMAIL_LEN_MAX
        && text.split_once('@').is_some_and(|(local, domain)| {
            local.len() <= 64
                && words(local, &['.', '_', '+', '-'])
                && words(domain, &['.', '-'])
                && domain.split('.').all(|label| label.len() <= 63)
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use homeport_item::Map;

    #[test]
    fn a_path_finds_numbers_and_flags_in_maps_and_lists() {
        let battery = Map::from([
            (
                "volts".to_owned(),
                "12.4".parse::<Number>().expect("a number").into(),
            ),
            ("charging".to_owned(), Value::from(true)),
        ]);
        let item = Item::new()
            .with("battery", Value::M(battery))
            .with("tanks", Value::L(vec![Value::from(3), Value::from(7)]))
            .with("name", "van");
        let found = |path: &str| {
            let path: AttributePath = path.parse().expect("a path");
            path.number(&item).map(|number| number.to_string())
        };
        assert_eq!(found("battery.volts").as_deref(), Some("12.4"));
        assert_eq!(found("battery.charging").as_deref(), Some("1"));
        assert_eq!(found("tanks.1").as_deref(), Some("7"));
        for nothing in [
            "battery",
            "battery.amps",
            "tanks.2",
            "tanks.x",
            "name",
            "x.y",
        ] {
            assert_eq!(found(nothing), None, "{nothing}");
        }
        for wrong in ["", ".", "a..b", "a.b.c.d.e.f.g.h.i"] {
            assert!(wrong.parse::<AttributePath>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn addresses_of_webhooks_have_a_host_and_no_password() {
        for right in [
            "https://example.com",
            "http://127.0.0.1:8080/hook?a=1",
            "https://[::1]:8443/x",
            "https://a-b.example/%7Efoo",
        ] {
            assert!(right.parse::<WebhookUrl>().is_ok(), "{right}");
        }
        for wrong in [
            "",
            "example.com",
            "ftp://example.com",
            "https://",
            "https:///x",
            "https://user:password@example.com/",
            "https://example.com:70000/",
            "https://example.com:/",
            "https://exa mple.com/",
            "https://example.com/a b",
            "https://example.com/#a",
            "https://[::1/x",
        ] {
            assert!(wrong.parse::<WebhookUrl>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn addresses_of_people_are_plain() {
        for right in ["anna@example.com", "a.b+c@mail-1.example.co"] {
            assert!(right.parse::<EmailAddress>().is_ok(), "{right}");
        }
        for wrong in [
            "",
            "anna",
            "@b.c",
            "a@",
            "a..b@c.d",
            "a b@c.d",
            "a@b@c",
            "a\r\n@b.c",
        ] {
            assert!(wrong.parse::<EmailAddress>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_secret_keeps_its_bytes_and_does_not_print() {
        let text = format!("whsec_{}", STANDARD.encode([7; 32]));
        let secret = WebhookSecret::try_from(text.clone()).expect("a secret");
        assert_eq!(secret.bytes(), [7; 32]);
        assert_eq!(format!("{secret:?}"), "WebhookSecret(…)");
        assert_eq!(String::from(secret), text);
        for wrong in ["", "secret", "whsec_", "whsec_AAAA", "whsec_!!!"] {
            assert!(
                WebhookSecret::try_from(wrong.to_owned()).is_err(),
                "{wrong}"
            );
        }
    }

    #[test]
    fn a_topic_has_the_device_in_its_place() {
        let device = DeviceName::stored("van+1#".to_owned());
        assert_eq!(TopicTemplate::of_device().topic(&device), "alerts/van_1_");
        for wrong in ["", "a/+", "a/#", "$SYS/x", "ä"] {
            assert!(wrong.parse::<TopicTemplate>().is_err(), "{wrong}");
        }
    }
}
