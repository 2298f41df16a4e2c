//! The input of an evaluation: a message, its payload, and a source of randomness.

use std::sync::OnceLock;

use crate::value::Value;
use crate::value::json::{self, JsonError};

/// A message as rules see it.
#[derive(Debug, Clone, Copy)]
pub struct Message<'a> {
    pub topic: &'a str,
    pub payload: &'a Payload<'a>,
    /// The MQTT client id; `None` for messages that did not arrive over MQTT.
    pub client_id: Option<&'a str>,
    /// The authenticated principal; never a secret.
    pub principal: Option<&'a str>,
    pub source_ip: Option<&'a str>,
    pub account_id: &'a str,
    /// The result of `timestamp()`: milliseconds since 1970.
    pub now_ms: i64,
    pub trace_id: &'a str,
    pub properties: Properties<'a>,
}

/// The MQTT 5 properties of a message.
#[derive(Debug, Clone, Copy, Default)]
pub struct Properties<'a> {
    pub content_type: Option<&'a str>,
    pub response_topic: Option<&'a str>,
    pub correlation_data: Option<&'a [u8]>,
    /// The payload format indicator, if the publisher set it.
    pub payload_is_text: Option<bool>,
    pub user: &'a [(String, String)],
}

/// The bytes of a message, parsed as JSON at most once for all statements.
#[derive(Debug)]
pub struct Payload<'a> {
    bytes: &'a [u8],
    json: OnceLock<Result<Value, JsonError>>,
}

impl<'a> Payload<'a> {
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            json: OnceLock::new(),
        }
    }

    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The payload as JSON.
    ///
    /// # Errors
    /// When it is not valid JSON.
    pub fn json(&self) -> Result<&Value, &JsonError> {
        self.json
            .get_or_init(|| json::parse_bytes(self.bytes))
            .as_ref()
    }
}

/// The source of bytes for `newuuid()` and `rand()`.
pub trait Randomness {
    fn fill(&mut self, bytes: &mut [u8]);
}

impl<F: FnMut(&mut [u8])> Randomness for F {
    fn fill(&mut self, bytes: &mut [u8]) {
        self(bytes);
    }
}
