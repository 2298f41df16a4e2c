//! What a statement is evaluated on: a message, its payload, and where chance comes from.

use std::sync::OnceLock;

use crate::json::{self, JsonError};
use crate::value::Value;

/// A message as rules see it.
#[derive(Debug, Clone, Copy)]
pub struct Message<'a> {
    pub topic: &'a str,
    pub payload: &'a Payload<'a>,
    /// MQTT's client id; none when the message did not come over MQTT.
    pub client_id: Option<&'a str>,
    /// Who was authenticated; never a secret.
    pub principal: Option<&'a str>,
    pub source_ip: Option<&'a str>,
    pub account_id: &'a str,
    /// What `timestamp()` answers: milliseconds since 1970.
    pub now_ms: i64,
    pub trace_id: &'a str,
    pub properties: Properties<'a>,
}

/// What MQTT 5 lets a publisher say about a message.
#[derive(Debug, Clone, Copy, Default)]
pub struct Properties<'a> {
    pub content_type: Option<&'a str>,
    pub response_topic: Option<&'a str>,
    pub correlation_data: Option<&'a [u8]>,
    /// MQTT's payload format indicator; none where the publisher gave none.
    pub payload_is_text: Option<bool>,
    pub user: &'a [(String, String)],
}

/// A message's bytes, read as JSON at most once, however many statements look at them.
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
    /// When it is none.
    pub fn json(&self) -> Result<&Value, &JsonError> {
        self.json
            .get_or_init(|| json::parse_bytes(self.bytes))
            .as_ref()
    }
}

/// Where `newuuid()` and `rand()` get their bytes.
pub trait Randomness {
    fn fill(&mut self, bytes: &mut [u8]);
}

impl<F: FnMut(&mut [u8])> Randomness for F {
    fn fill(&mut self, bytes: &mut [u8]) {
        self(bytes);
    }
}
