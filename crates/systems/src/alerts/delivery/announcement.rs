//! The text of a notification, for programs and for people.

use serde_json::{Value as Json, json};

use super::notification::Event;
use crate::alerts::alert::Alert;
use crate::severity::Severity;
use crate::time::{EpochMillis, UtcMillis};

/// Characters of a title.
const TITLE_CHARS_MAX: usize = 150;
/// Characters of a text: a push message has at most 4096 bytes.
const TEXT_CHARS_MAX: usize = 500;

#[derive(Debug, Clone, PartialEq)]
pub(in crate::alerts) struct Announcement {
    pub(in crate::alerts) title: String,
    pub(in crate::alerts) text: String,
    /// For programs: a body as the Standard Webhooks specification recommends.
    pub(in crate::alerts) body: Json,
}

impl Announcement {
    pub(in crate::alerts) fn new(alert: &Alert, event: Event) -> Self {
        let word = match event {
            Event::Raised => match alert.severity {
                Severity::Critical => "Critical",
                Severity::Warning => "Warning",
                Severity::Info => "Info",
            },
            Event::Cleared => "Cleared",
        };
        let (at, text) = match (event, &alert.cleared) {
            (Event::Cleared, Some(cleared)) => (cleared.at, cleared.reason.as_str()),
            _ => (alert.raised_at, alert.reason.as_str()),
        };
        let title = format!("{word}: {} ({})", alert.definition_name, alert.device);
        Self {
            title: short(&title, TITLE_CHARS_MAX),
            text: short(text, TEXT_CHARS_MAX),
            body: json!({
                "type": format!("alert.{}", event.as_str()),
                "timestamp": shown(at),
                "data": data(alert),
            }),
        }
    }
}

fn data(alert: &Alert) -> Json {
    let mut data = json!({
        "alert_id": alert.id.as_str(),
        "definition_id": alert.definition_id.as_str(),
        "definition_name": alert.definition_name.as_str(),
        "source": alert.source.as_str(),
        "device": alert.device.as_str(),
        "severity": alert.severity.as_str(),
        "reason": alert.reason,
        "observed_at": shown(alert.observed_at),
        "raised_at": shown(alert.raised_at),
    });
    // A text, because a JSON number would lose digits: values have up to 38.
    if let Some(value) = &alert.value {
        data["value"] = json!(value.to_string());
    }
    if let Some(cleared) = &alert.cleared {
        data["cleared_at"] = json!(shown(cleared.at));
        data["clear_reason"] = json!(cleared.reason);
    }
    data
}

fn shown(at: EpochMillis) -> String {
    UtcMillis::new(at).to_string()
}

fn short(text: &str, chars_max: usize) -> String {
    text.chars().take(chars_max).collect()
}
