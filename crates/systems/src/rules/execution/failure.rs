//! A failure of a rule for one message, for operators and, in the format of AWS IoT, for the rule's
//! error action.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

use crate::messages::Message;
use crate::rules::definitions::name::RuleName;
use crate::time::EpochMillis;

/// Longest reason that is kept.
const REASON_CHARS_MAX: usize = 1000;
/// The name of the statement in place of an action.
const STATEMENT: &str = "Statement";

/// A permanent failure, which repeating the message would not fix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub at: EpochMillis,
    pub topic: String,
    /// The kind of the failed action; `None` if the statement failed.
    pub action: Option<&'static str>,
    /// The resource of the action: a table, a topic, a URL.
    pub resource: Option<String>,
    pub reason: String,
}

/// The message to an error action, as in AWS IoT.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ErrorMessage<'a> {
    rule_name: &'a str,
    topic: &'a str,
    cloudwatch_trace_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_id: Option<&'a str>,
    base64_original_payload: String,
    failures: [ErrorFailure<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ErrorFailure<'a> {
    failed_action: &'a str,
    failed_resource: &'a str,
    error_message: &'a str,
}

impl Failure {
    pub(in crate::rules) fn of_statement(message: &Message, reason: impl Into<String>) -> Self {
        Self {
            at: message.received_at,
            topic: message.topic.clone(),
            action: None,
            resource: None,
            reason: shortened(reason.into()),
        }
    }

    pub(in crate::rules) fn of_action(
        message: &Message,
        action: &'static str,
        resource: impl Into<String>,
        reason: impl Into<String>,
    ) -> Self {
        Self {
            action: Some(action),
            resource: Some(resource.into()),
            ..Self::of_statement(message, reason)
        }
    }

    /// The payload for the rule's error action.
    pub(in crate::rules) fn to_error_message(
        &self,
        rule: &RuleName,
        message: &Message,
        trace_id: &str,
    ) -> Vec<u8> {
        let error = ErrorMessage {
            rule_name: rule.as_str(),
            topic: &message.topic,
            cloudwatch_trace_id: trace_id,
            client_id: message.publisher.client_id.as_deref(),
            base64_original_payload: STANDARD.encode(&message.payload),
            failures: [ErrorFailure {
                failed_action: self.action.unwrap_or(STATEMENT),
                failed_resource: self.resource.as_deref().unwrap_or_default(),
                error_message: &self.reason,
            }],
        };
        serde_json::to_vec(&error).expect("an error message has string keys only")
    }
}

fn shortened(mut reason: String) -> String {
    if let Some((end, _)) = reason.char_indices().nth(REASON_CHARS_MAX) {
        reason.truncate(end);
        reason.push('…');
    }
    reason
}
