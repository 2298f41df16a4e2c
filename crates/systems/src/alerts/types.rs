//! The text types of alerts. Each is validated when it is created.

use std::borrow::Cow;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use homeport_item::Value;
use homeport_item::expression::{Document as _, Path};
use homeport_item::{Item, Number};
use serde::{Deserialize, Serialize};

use crate::ids::{TIMED_ID, timed_id};
use crate::text::{Form, InvalidField, PRINTABLE, PRINTABLE_ASCII, VISIBLE, text_type};
use crate::time::EpochMillis;

/// Longest name of a watched device: it is a sort key of the table of watches.
pub(super) const DEVICE_BYTES_MAX: usize = 1024;
/// Names in a path to an attribute.
const ATTRIBUTE_DEPTH_MAX: usize = 8;
/// The length of a secret in the Standard Webhooks specification.
const SECRET_BYTES_MIN: usize = 24;
const SECRET_BYTES_MAX: usize = 64;
/// The placeholder for the device's name in a topic.
const DEVICE_PLACE: &str = "{device}";

text_type! {
    /// The id of a definition: the time of its creation and a UUID. Ids sort by time.
    DefinitionId(String) {
        field: "definition id",
        chars: 50..=50,
        form: TIMED_ID,
        expected: "the id of a definition",
        example: "1800000000000-7c9e6679-7425-40de-944b-e07fc1f90ae7",
    }
}

text_type! {
    /// The id of an alert: the time at which it was raised and a UUID. Ids sort by time.
    AlertId(String) {
        field: "alert id",
        chars: 50..=50,
        form: TIMED_ID,
        expected: "the id of an alert",
        example: "1800000000000-7c9e6679-7425-40de-944b-e07fc1f90ae7",
    }
}

text_type! {
    /// The name of a definition, for people.
    DefinitionName(String) {
        field: "name",
        chars: 1..=128,
        form: VISIBLE,
        expected: "1 to 128 printable characters, not all of them blank",
    }
}

text_type! {
    /// A person who handles an alert.
    PersonName(String) {
        field: "by",
        chars: 1..=128,
        form: VISIBLE,
        expected: "1 to 128 printable characters, not all of them blank",
    }
}

text_type! {
    /// What a person says when acknowledging an alert.
    Note(String) {
        field: "note",
        chars: 1..=1000,
        form: VISIBLE,
        expected: "1 to 1000 printable characters, not all of them blank",
    }
}

text_type! {
    /// A comment on an alert.
    CommentText(String) {
        field: "text",
        chars: 1..=1000,
        form: VISIBLE,
        expected: "1 to 1000 printable characters, not all of them blank",
    }
}

text_type! {
    /// The text that the filter's attribute must have.
    WantedText(String) {
        field: "equals",
        chars: 1..=128,
        form: VISIBLE,
        expected: "1 to 128 printable characters, not all of them blank",
    }
}

text_type! {
    /// A device as its source names it: a thing, a hardware id, or group/device/journal.
    DeviceName(String) {
        field: "a device",
        chars: 1..=256,
        form: VISIBLE,
        expected: "1 to 256 printable characters, not all of them blank",
    }
}

text_type! {
    /// The path to a value in an item: member names and list indexes, separated by dots.
    AttributePath(String) {
        field: "attribute",
        chars: 1..=256,
        form: ATTRIBUTE,
        expected: "1 to 8 names with dots between them, like battery.volts, at most 256 characters",
        example: "battery.volts",
    }
}

text_type! {
    /// The URL of a webhook.
    WebhookUrl(String) {
        field: "url",
        chars: 8..=2048,
        form: WEBHOOK_URL,
        expected: "an address that begins with http:// or https://, without a name or password in it",
    }
}

text_type! {
    /// The topic to publish on; `{device}` is replaced by the device's name.
    TopicTemplate(String) {
        field: "topic",
        chars: 1..=256,
        form: TOPIC,
        expected: "1 to 256 printable ASCII characters without + and #, not beginning with $",
    }
}

text_type! {
    EmailAddress(String) {
        field: "to",
        chars: 3..=254,
        form: EMAIL,
        expected: "an e-mail address of plain ASCII, like anna@example.com",
    }
}

const ATTRIBUTE: Form = Form {
    pattern: r"^[^.\u0000-\u001F\u007F-\u009F]+(\.[^.\u0000-\u001F\u007F-\u009F]+){0,7}$",
    accepts: |text| {
        (PRINTABLE.accepts)(text)
            && text.split('.').count() <= ATTRIBUTE_DEPTH_MAX
            && text.split('.').all(|name| !name.is_empty())
    },
};
const WEBHOOK_URL: Form = Form {
    pattern: r"^https?://[a-zA-Z0-9-]+(\.[a-zA-Z0-9-]+)*(:[1-9][0-9]{0,3})?(/[a-zA-Z0-9._~:/?@!$&'()*+,;=%-]*)?$",
    accepts: is_webhook_url,
};
const TOPIC: Form = Form {
    pattern: r##"^[ !"%-*,-~][ -"$-*,-~]*$"##,
    accepts: |text| {
        (PRINTABLE_ASCII.accepts)(text) && !text.starts_with('$') && !text.contains(['+', '#'])
    },
};
const EMAIL: Form = Form {
    pattern: r"^[a-zA-Z0-9]+([._+-][a-zA-Z0-9]+)*@[a-zA-Z0-9]+(-[a-zA-Z0-9]+)*(\.[a-zA-Z0-9]+(-[a-zA-Z0-9]+)*)*$",
    accepts: is_email,
};

/// The key that signs webhooks: `whsec_` and the bytes in base64. `Debug` does not print it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct WebhookSecret(Vec<u8>);

impl WebhookSecret {
    /// The prefix of a secret in the Standard Webhooks specification. Base64 follows.
    pub const PREFIX: &str = "whsec_";
    /// Bytes of a secret that the server creates.
    pub const CREATED_BYTES: usize = 32;

    /// A secret of random bytes.
    #[must_use]
    pub fn new(random: [u8; Self::CREATED_BYTES]) -> Self {
        Self(random.to_vec())
    }

    /// The key of the signature.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl TryFrom<String> for WebhookSecret {
    type Error = InvalidField;

    fn try_from(text: String) -> Result<Self, InvalidField> {
        text.strip_prefix(Self::PREFIX)
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
        format!("{}{}", WebhookSecret::PREFIX, STANDARD.encode(secret.0))
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

    /// The values at this path with their paths. A last name that ends with `*` stands for all names that
    /// begin like it.
    pub(super) fn find_all(&self, item: &Item) -> Vec<(String, Value)> {
        let Some(beginning) = self.0.strip_suffix('*') else {
            let found = self.find(item).map(Cow::into_owned);
            return found
                .map(|value| (self.0.clone(), value))
                .into_iter()
                .collect();
        };
        let (parent, start) = beginning.rsplit_once('.').unwrap_or(("", beginning));
        let found;
        let members = if parent.is_empty() {
            item.attributes()
        } else {
            found = Self(parent.to_owned()).find(item);
            match found.as_deref().and_then(Value::as_map) {
                Some(members) => members,
                None => return Vec::new(),
            }
        };
        let before = &beginning[..beginning.len() - start.len()];
        let matching = members
            .iter()
            .filter(|(name, _)| name.as_str().starts_with(start));
        matching
            .map(|(name, value)| (format!("{before}{name}"), value.clone()))
            .collect()
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
    pub(super) fn topic(&self, device: &str) -> String {
        let device: String = device
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

fn is_webhook_url(text: &str) -> bool {
    let rest = text
        .strip_prefix("https://")
        .or_else(|| text.strip_prefix("http://"));
    let Some(rest) = rest else {
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

fn is_email(text: &str) -> bool {
    let words = |text: &str, signs: &[char]| {
        text.split(signs)
            .all(|word| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric()))
    };
    text.split_once('@').is_some_and(|(local, domain)| {
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
    fn path_with_star_finds_all_that_begin_like_it() {
        let data = Map::from([
            ("fault_a".to_owned(), Value::from(true)),
            ("fault_b".to_owned(), Value::from(false)),
            ("current_ma".to_owned(), Value::from(3)),
        ]);
        let item = Item::new().with("data", Value::M(data)).with("fault_c", 1);
        let found = |path: &str| {
            let path: AttributePath = path.parse().expect("a path");
            let found = path.find_all(&item).into_iter();
            found.map(|(name, _)| name).collect::<Vec<_>>()
        };
        assert_eq!(found("data.fault_*"), ["data.fault_a", "data.fault_b"]);
        assert_eq!(found("data.*").len(), 3);
        assert_eq!(found("fault_*"), ["fault_c"]);
        assert_eq!(found("data.fault_a"), ["data.fault_a"]);
        for nothing in ["data.x*", "x.*", "fault_c.*", "data.fault_x"] {
            assert_eq!(found(nothing), Vec::<String>::new(), "{nothing}");
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
        assert_eq!(TopicTemplate::of_device().topic("van+1#"), "alerts/van_1_");
        for wrong in ["", "a/+", "a/#", "$SYS/x", "ä"] {
            assert!(wrong.parse::<TopicTemplate>().is_err(), "{wrong}");
        }
    }
}
