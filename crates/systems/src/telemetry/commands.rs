//! Commands to things. A command is published on the topic of the thing; a thing that is offline gets it when
//! it reconnects.

use bytes::Bytes;
use serde::Serialize;
use serde_json::value::RawValue;

use super::types::{CommandName, ThingName};
use super::{Telemetry, TelemetryError, schema};
use crate::ids::UuidV4;
use crate::messages::{Delivery, Message, Properties, Publish, Publisher};
use crate::sensors::InvalidField;
use crate::time::EpochMillis;

/// Largest size of a command's parameters as JSON.
pub const PARAMETERS_BYTES_MAX: usize = 64 * 1024;

/// A command to send. Its parameters are forwarded digit for digit.
#[derive(Debug, Clone)]
pub struct Command {
    pub name: CommandName,
    pub parameters: Option<Box<RawValue>>,
}

/// A command that was published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentCommand {
    pub command_id: UuidV4,
    pub topic: String,
    pub issued_at: EpochMillis,
}

/// The payload that things receive.
#[derive(Serialize)]
struct Payload<'a> {
    command_id: String,
    command: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<&'a RawValue>,
    /// Milliseconds since the epoch.
    timestamp: i64,
}

/// The topic on which a thing receives commands.
#[must_use]
pub fn command_topic(thing: &ThingName) -> String {
    format!("{}/{thing}/{}", schema::TOPIC_ROOT, schema::COMMANDS)
}

impl Telemetry {
    /// Publishes a command at QoS 1 on the topic of the thing. `principal` is the sender.
    ///
    /// # Errors
    /// When the parameters are too large, or the message cannot be queued.
    pub async fn send_command(
        &self,
        publish: &dyn Publish,
        thing: &ThingName,
        command: &Command,
        principal: Option<String>,
    ) -> Result<SentCommand, TelemetryError> {
        let parameters = command.parameters.as_deref();
        if parameters.is_some_and(|json| json.get().len() > PARAMETERS_BYTES_MAX) {
            return Err(InvalidField {
                field: "parameters",
                expected: "at most 65536 bytes as JSON",
            }
            .into());
        }
        let sent = SentCommand {
            command_id: UuidV4::random(),
            topic: command_topic(thing),
            issued_at: EpochMillis(self.clock.now_ms()),
        };
        let payload = Payload {
            command_id: sent.command_id.to_string(),
            command: command.name.as_str(),
            parameters,
            timestamp: sent.issued_at.0,
        };
        let payload = serde_json::to_vec(&payload).expect("a payload has string keys only");
        let message = Message {
            topic: sent.topic.clone(),
            payload: Bytes::from(payload),
            delivery: Delivery::AtLeastOnce,
            retain: false,
            publisher: Publisher {
                client_id: None,
                principal,
            },
            received_at: sent.issued_at,
            properties: Properties {
                content_type: Some("application/json".to_owned()),
                payload_is_text: true,
                ..Properties::default()
            },
            hops: 0,
        };
        publish.publish(message).await?;
        Ok(sent)
    }
}
