//! The text of a notification, for programs and for people.

use homeport_item::Number;
use serde::Serialize;
use serde_json::value::RawValue;

use super::notification::{Event, Notification};
use crate::alerts::AlertsError;
use crate::alerts::alert::Alert;
use crate::alerts::definitions::definition::Definition;
use crate::severity::Severity;
use crate::time::{EpochMillis, UtcMillis};

/// Characters of a title.
const TITLE_CHARS_MAX: usize = 150;
/// Characters of a text: a push message has at most 4096 bytes.
const TEXT_CHARS_MAX: usize = 500;
/// What test notifications say, and the device that they name.
const TEST_TEXT: &str = "This is a test. No alert was raised.";
pub(in crate::alerts) const TEST_DEVICE: &str = "test";

#[derive(Debug, Clone, PartialEq)]
pub(in crate::alerts) struct Announcement {
    pub(in crate::alerts) title: String,
    pub(in crate::alerts) text: String,
    /// The facts, for people.
    pub(in crate::alerts) lines: Vec<(&'static str, String)>,
    /// For programs: a body as the Standard Webhooks specification recommends.
    pub(in crate::alerts) body: String,
    /// The device that it is about.
    pub(in crate::alerts) device: String,
    pub(in crate::alerts) severity: Severity,
}

#[derive(Serialize)]
struct Body<'a, T> {
    r#type: String,
    timestamp: String,
    data: &'a T,
}

/// Members have the types that they have in the HTTP API.
#[derive(Serialize)]
struct Data<'a> {
    alert_id: &'a str,
    definition_id: &'a str,
    definition_name: &'a str,
    source: &'a str,
    severity: &'a str,
    device: &'a str,
    reason: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Box<RawValue>>,
    observed_at: String,
    raised_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    cleared_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    clear_reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    clear_value: Option<Box<RawValue>>,
}

#[derive(Serialize)]
struct TestData<'a> {
    test_id: &'a str,
    definition_id: &'a str,
    definition_name: &'a str,
    source: &'a str,
    severity: &'a str,
    device: &'a str,
    reason: &'a str,
}

impl Announcement {
    pub(in crate::alerts) fn new(alert: &Alert, event: Event) -> Result<Self, AlertsError> {
        let word = match event {
            Event::Raised => match alert.severity {
                Severity::Critical => "Critical",
                Severity::Warning => "Warning",
                Severity::Info => "Info",
            },
            Event::Cleared => "Cleared",
            Event::SnoozeEnded => "Still open",
            Event::Test => "Test",
        };
        let (at, text) = match (event, &alert.cleared, &alert.snooze) {
            (Event::Cleared, Some(cleared), _) => (cleared.at, cleared.reason.as_str()),
            (Event::SnoozeEnded, _, Some(snooze)) => (snooze.until, alert.reason.as_str()),
            _ => (alert.raised_at, alert.reason.as_str()),
        };
        let title = format!("{word}: {} ({})", alert.definition_name, alert.device);
        let cleared = alert.cleared.as_ref();
        let data = Data {
            alert_id: alert.id.as_str(),
            definition_id: alert.definition_id.as_str(),
            definition_name: alert.definition_name.as_str(),
            source: alert.source.as_str(),
            severity: alert.severity.as_str(),
            device: alert.device.as_str(),
            reason: &alert.reason,
            value: alert.value.map(decimal).transpose()?,
            observed_at: shown(alert.observed_at),
            raised_at: shown(alert.raised_at),
            cleared_at: cleared.map(|cleared| shown(cleared.at)),
            clear_reason: cleared.map(|cleared| cleared.reason.as_str()),
            clear_value: cleared
                .and_then(|cleared| cleared.value)
                .map(decimal)
                .transpose()?,
        };
        let lines = [
            ("Device", Some(alert.device.to_string())),
            ("Definition", Some(alert.definition_name.to_string())),
            ("Severity", Some(alert.severity.as_str().to_owned())),
            ("Value", alert.value.map(|value| value.to_string())),
            ("Raised", Some(shown(alert.raised_at))),
            ("Cleared", cleared.map(|cleared| shown(cleared.at))),
            ("Alert", Some(alert.id.to_string())),
        ];
        let lines = lines
            .into_iter()
            .filter_map(|(name, line)| Some((name, line?)));
        Ok(Self {
            title: short(&title, TITLE_CHARS_MAX),
            text: short(text, TEXT_CHARS_MAX),
            lines: lines.collect(),
            body: body(event, at, &data)?,
            device: alert.device.to_string(),
            severity: alert.severity,
        })
    }

    /// A test of the targets of a definition.
    pub(in crate::alerts) fn test(
        notification: &Notification,
        definition: &Definition,
        at: EpochMillis,
    ) -> Result<Self, AlertsError> {
        let name = definition.terms.name.as_str();
        let data = TestData {
            test_id: notification.alert_id.as_str(),
            definition_id: definition.id.as_str(),
            definition_name: name,
            source: definition.terms.source.as_str(),
            severity: definition.terms.severity.as_str(),
            device: TEST_DEVICE,
            reason: TEST_TEXT,
        };
        Ok(Self {
            title: short(&format!("Test: {name}"), TITLE_CHARS_MAX),
            text: TEST_TEXT.to_owned(),
            lines: vec![("Definition", name.to_owned())],
            body: body(Event::Test, at, &data)?,
            device: TEST_DEVICE.to_owned(),
            severity: definition.terms.severity,
        })
    }
}

fn body(event: Event, at: EpochMillis, data: &impl Serialize) -> Result<String, AlertsError> {
    let body = Body {
        r#type: format!("alert.{}", event.as_str()),
        timestamp: shown(at),
        data,
    };
    serde_json::to_string(&body).map_err(|error| AlertsError::Malformed(error.to_string()))
}

/// A JSON number with every digit.
fn decimal(value: Number) -> Result<Box<RawValue>, AlertsError> {
    RawValue::from_string(value.to_string())
        .map_err(|error| AlertsError::Malformed(error.to_string()))
}

fn shown(at: EpochMillis) -> String {
    UtcMillis::new(at).to_string()
}

fn short(text: &str, chars_max: usize) -> String {
    text.chars().take(chars_max).collect()
}
