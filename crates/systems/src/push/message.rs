//! What a notification says, within the limits that Expo has.

use serde_json::{Map, Value as Json, json};

use crate::sensors::InvalidField;

/// What a message may count for as JSON, which is what Apple and Google take.
const LEN_MAX: usize = 4096;
/// How long a message may wait for its device: four weeks.
const TTL_SECS_MAX: u32 = 28 * 24 * 60 * 60;
/// Longest channel.
const CHANNEL_CHARS_MAX: usize = 128;

/// How urgent a message is.
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

/// What a message is to say.
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

/// A message in Expo's own words, without the token that it goes to.
#[derive(Debug, Clone, PartialEq)]
pub struct Message(Map<String, Json>);

impl Message {
    /// # Errors
    /// When something is empty or too large.
    pub fn new(new: NewMessage) -> Result<Self, InvalidField> {
        let wrong = |field, expected| InvalidField { field, expected };
        for (field, text) in [("title", &new.title), ("body", &new.body)] {
            if text.is_empty() {
                return Err(wrong(field, "a text that is not empty"));
            }
        }
        if new.ttl_secs.is_some_and(|secs| secs > TTL_SECS_MAX) {
            return Err(wrong("ttl", "at most 2419200 seconds"));
        }
        if new
            .channel_id
            .as_ref()
            .is_some_and(|id| id.is_empty() || id.chars().count() > CHANNEL_CHARS_MAX)
        {
            return Err(wrong("channelId", "1 to 128 characters"));
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
            return Err(wrong("the notification", "at most 4096 bytes as JSON"));
        }
        Ok(message)
    }

    /// Its members, as Expo takes them.
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
    fn a_message_has_only_what_was_given() {
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
    fn what_expo_would_refuse_is_refused() {
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
