//! The content of a notification, within Expo's limits.

use serde_json::{Map, Value as Json, json};

use crate::sensors::InvalidField;

/// Longest message as JSON, the limit of Apple and Google.
const LEN_MAX: usize = 4096;
/// Longest time to live of a message: four weeks.
const TTL_SECS_MAX: u32 = 28 * 24 * 60 * 60;
/// Longest channel.
const CHANNEL_CHARS_MAX: usize = 128;

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

/// The fields of a new message.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NewMessage {
    pub title: String,
    pub body: String,
    pub subtitle: Option<String>,
    pub data: Option<Map<String, Json>>,
    pub sound: Option<String>,
    pub badge: Option<u32>,
    pub ttl_secs: Option<u32>,
    pub priority: Option<Priority>,
    pub channel_id: Option<String>,
}

/// A message in Expo's format, without the token of the receiver.
#[derive(Debug, Clone, PartialEq)]
pub struct Message(Map<String, Json>);

impl Message {
    /// # Errors
    /// When a field is empty or too large.
    pub fn new(new: NewMessage) -> Result<Self, InvalidField> {
        let invalid = |field, expected| InvalidField { field, expected };
        for (field, text) in [("title", &new.title), ("body", &new.body)] {
            if text.is_empty() {
                return Err(invalid(field, "a text that is not empty"));
            }
        }
        if new.ttl_secs.is_some_and(|secs| secs > TTL_SECS_MAX) {
            return Err(invalid("ttl", "at most 2419200 seconds"));
        }
        if new
            .channel_id
            .as_ref()
            .is_some_and(|id| id.is_empty() || id.chars().count() > CHANNEL_CHARS_MAX)
        {
            return Err(invalid("channelId", "1 to 128 characters"));
        }
        let fields = [
            ("title", Some(json!(new.title))),
            ("body", Some(json!(new.body))),
            ("subtitle", new.subtitle.map(|text| json!(text))),
            ("data", new.data.map(Json::Object)),
            ("sound", new.sound.map(|sound| json!(sound))),
            ("badge", new.badge.map(|badge| json!(badge))),
            ("ttl", new.ttl_secs.map(|secs| json!(secs))),
            (
                "priority",
                new.priority.map(|priority| json!(priority.as_str())),
            ),
            ("channelId", new.channel_id.map(|id| json!(id))),
        ];
        let fields = fields
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), value?)));
        let message = Self(fields.collect());
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

    pub(super) fn to_json(&self) -> String {
        Json::Object(self.0.clone()).to_string()
    }

    pub(super) fn from_json(text: &str) -> Option<Self> {
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
            title: title.to_owned(),
            body: body.to_owned(),
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
        ] {
            assert!(Message::new(wrong.clone()).is_err(), "{wrong:?}");
        }
    }
}
