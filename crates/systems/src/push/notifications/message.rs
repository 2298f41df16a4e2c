//! The content of a notification, within Expo's limits.

use serde_json::{Map, Value as Json, json};

use crate::sensors::InvalidField;

/// Longest message as JSON, the limit of Apple and Google.
const LEN_MAX: usize = 4096;
/// Longest time to live of a message: four weeks.
const TTL_SECS_MAX: u32 = 28 * 24 * 60 * 60;
/// Longest channel, category or icon.
const ID_CHARS_MAX: usize = 128;
/// A message has at least one of these fields.
const CONTENT: [&str; 5] = ["title", "body", "data", "badge", "_contentAvailable"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Priority {
    Default,
    Normal,
    High,
}

impl Priority {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Normal => "normal",
            Self::High => "high",
        }
    }
}

/// How urgently iOS shows a notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InterruptionLevel {
    Active,
    Critical,
    Passive,
    TimeSensitive,
}

impl InterruptionLevel {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Critical => "critical",
            Self::Passive => "passive",
            Self::TimeSensitive => "time-sensitive",
        }
    }
}

/// The fields of a new message. Expo documents them; their names are in [`Message::new`].
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NewMessage {
    pub title: Option<String>,
    pub body: Option<String>,
    pub subtitle: Option<String>,
    pub data: Option<Map<String, Json>>,
    pub sound: Option<String>,
    pub badge: Option<u32>,
    pub ttl_secs: Option<u32>,
    /// When the message expires, in seconds since 1970.
    pub expiration: Option<u32>,
    pub priority: Option<Priority>,
    pub interruption_level: Option<InterruptionLevel>,
    pub channel_id: Option<String>,
    pub category_id: Option<String>,
    pub icon: Option<String>,
    /// The URL of an image.
    pub image: Option<String>,
    pub is_mutable: Option<bool>,
    /// Wakes the app in the background.
    pub is_content_available: Option<bool>,
}

/// A message in Expo's format, without the token of the receiver.
#[derive(Debug, Clone, PartialEq)]
pub struct Message(Map<String, Json>);

impl Message {
    /// # Errors
    /// When a field is empty or too large, or the message has nothing to show or to process.
    pub fn new(new: NewMessage) -> Result<Self, InvalidField> {
        let invalid = |field, expected| InvalidField { field, expected };
        for (field, text) in [("title", &new.title), ("body", &new.body)] {
            if text.as_ref().is_some_and(String::is_empty) {
                return Err(invalid(field, "a text that is not empty"));
            }
        }
        if new.ttl_secs.is_some_and(|secs| secs > TTL_SECS_MAX) {
            return Err(invalid("ttl", "at most 2419200 seconds"));
        }
        for (field, id) in [
            ("channelId", &new.channel_id),
            ("categoryId", &new.category_id),
            ("icon", &new.icon),
        ] {
            if id
                .as_ref()
                .is_some_and(|id| !(1..=ID_CHARS_MAX).contains(&id.chars().count()))
            {
                return Err(invalid(field, "1 to 128 characters"));
            }
        }
        let is_url = |url: &String| url.starts_with("https://") || url.starts_with("http://");
        if new.image.as_ref().is_some_and(|url| !is_url(url)) {
            return Err(invalid("richContent.image", "an http or https URL"));
        }
        let text = |text: Option<String>| text.map(Json::from);
        let flag = |flag: Option<bool>| flag.map(Json::from);
        let number = |number: Option<u32>| number.map(Json::from);
        let level = new.interruption_level.map(InterruptionLevel::as_str);
        let fields = [
            ("title", text(new.title)),
            ("body", text(new.body)),
            ("subtitle", text(new.subtitle)),
            ("data", new.data.map(Json::Object)),
            ("sound", text(new.sound)),
            ("badge", number(new.badge)),
            ("ttl", number(new.ttl_secs)),
            ("expiration", number(new.expiration)),
            ("priority", new.priority.map(|level| level.as_str().into())),
            ("interruptionLevel", level.map(Json::from)),
            ("channelId", text(new.channel_id)),
            ("categoryId", text(new.category_id)),
            ("icon", text(new.icon)),
            ("richContent", new.image.map(|url| json!({"image": url}))),
            ("mutableContent", flag(new.is_mutable)),
            ("_contentAvailable", flag(new.is_content_available)),
        ];
        let fields = fields
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), value?)));
        let message = Self(fields.collect());
        if !CONTENT.iter().any(|name| message.0.contains_key(*name)) {
            return Err(invalid(
                "the notification",
                "a message with title, body, data, badge or _contentAvailable",
            ));
        }
        if message.to_json().len() > LEN_MAX {
            return Err(invalid("the notification", "at most 4096 bytes as JSON"));
        }
        Ok(message)
    }

    /// The members in Expo's format.
    #[must_use]
    pub fn members(&self) -> &Map<String, Json> {
        &self.0
    }

    pub(in crate::push) fn to_json(&self) -> String {
        Json::Object(self.0.clone()).to_string()
    }

    pub(in crate::push) fn from_json(text: &str) -> Option<Self> {
        match serde_json::from_str(text) {
            Ok(Json::Object(members)) => Some(Self(members)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(title: &str, body: &str) -> NewMessage {
        NewMessage {
            title: Some(title.to_owned()),
            body: Some(body.to_owned()),
            ..NewMessage::default()
        }
    }

    #[test]
    fn message_has_only_the_given_members() {
        let new = NewMessage {
            data: Some(Map::from_iter([("job".to_owned(), json!(7))])),
            priority: Some(Priority::High),
            ..message("Done", "Your photo is ready")
        };
        let made = Message::new(new).unwrap();
        assert_eq!(
            Json::Object(made.members().clone()),
            json!({"title": "Done", "body": "Your photo is ready", "data": {"job": 7},
                   "priority": "high"})
        );
        assert_eq!(Message::from_json(&made.to_json()), Some(made));
    }

    #[test]
    fn all_fields_of_expo_are_sent() {
        let text = |text: &str| Some(text.to_owned());
        let new = NewMessage {
            title: text("t"),
            body: text("b"),
            subtitle: text("s"),
            data: Some(Map::new()),
            sound: text("default"),
            badge: Some(1),
            ttl_secs: Some(60),
            expiration: Some(1_800_000_000),
            priority: Some(Priority::High),
            interruption_level: Some(InterruptionLevel::TimeSensitive),
            channel_id: text("alerts"),
            category_id: text("reply"),
            icon: text("bell"),
            image: text("https://example.com/a.png"),
            is_mutable: Some(true),
            is_content_available: Some(false),
        };
        let message = Message::new(new).unwrap();
        assert_eq!(
            Json::Object(message.members().clone()),
            json!({"title": "t", "body": "b", "subtitle": "s", "data": {}, "sound": "default",
                   "badge": 1, "ttl": 60, "expiration": 1_800_000_000, "priority": "high",
                   "interruptionLevel": "time-sensitive", "channelId": "alerts",
                   "categoryId": "reply", "icon": "bell",
                   "richContent": {"image": "https://example.com/a.png"},
                   "mutableContent": true, "_contentAvailable": false})
        );
    }

    #[test]
    fn data_alone_is_a_message() {
        let data = Map::from_iter([("job".to_owned(), json!(7))]);
        let new = NewMessage {
            data: Some(data),
            ..NewMessage::default()
        };
        let message = Message::new(new).unwrap();
        assert_eq!(message.to_json(), r#"{"data":{"job":7}}"#);
    }

    #[test]
    fn invalid_messages_are_rejected() {
        let long = "x".repeat(LEN_MAX);
        for wrong in [
            message("", "b"),
            message("a", ""),
            message("a", &long),
            NewMessage {
                ttl_secs: Some(TTL_SECS_MAX + 1),
                ..message("a", "b")
            },
            NewMessage {
                channel_id: Some(String::new()),
                ..message("a", "b")
            },
            NewMessage {
                image: Some("file:///a".to_owned()),
                ..message("a", "b")
            },
            NewMessage {
                subtitle: Some("nothing else".to_owned()),
                ..NewMessage::default()
            },
        ] {
            assert!(Message::new(wrong.clone()).is_err(), "{wrong:?}");
        }
    }
}
