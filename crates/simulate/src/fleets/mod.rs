//! What each kind of device sends, and how it reads the responses. There is no I/O here: a fleet builds requests and
//! parses bodies, and the same code drives every fleet.
//!
//! A device's messages are numbered from 0, and each is a function of its number. Only numbers need to be remembered, and
//! messages read back can be compared with those sent.

pub(crate) mod chargers;
pub(crate) mod meters;
pub(crate) mod phones;
mod schedule;
pub(crate) mod sensors;
pub(crate) mod vans;

use hyper::Method;

use crate::connection::Credential;

/// A request without server address and credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) body: Option<String>,
    /// Idempotency-Key header, which identifies a repeated request.
    pub(crate) idempotency_key: Option<String>,
}

impl Call {
    pub(crate) fn new(method: Method, path: impl Into<String>, body: Option<String>) -> Self {
        Self {
            method,
            path: path.into(),
            body,
            idempotency_key: None,
        }
    }
}

/// The server's response to one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeliveryResult {
    /// Stored by this request.
    Stored,
    /// Stored by an earlier request whose response was lost.
    Duplicate,
    /// Accepted, but already past its retention.
    Expired,
    /// Rejected permanently.
    Rejected,
    /// No response: it must be sent again.
    Unanswered,
}

/// A message on a page that was read back, compared with the one sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadBack {
    /// Equal to the message sent with this number.
    Intact(u32),
    /// The message of this number with different content.
    Altered(u32),
    /// A repeat of the message of this number, for a reason that the server's trace shows.
    Again(u32),
    /// The message of this number, still being processed.
    Underway(u32),
    /// Not from this run.
    Foreign,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) found: Vec<ReadBack>,
    pub(crate) next_cursor: Option<String>,
}

/// An unexpected response body.
#[derive(Debug, thiserror::Error)]
#[error("unexpected response from the server")]
pub(crate) struct ResponseError(#[from] serde_json::Error);

/// A kind of device.
pub(crate) trait Fleet: Send + Sync + 'static {
    /// The request that registers a device before it sends messages. Rounds count from 0.
    fn registration(&self, _device: u32, _round: u32) -> Option<Call> {
        None
    }

    /// Number of messages after which a device registers again; by default it registers once.
    fn registers_every(&self) -> Option<u32> {
        None
    }

    /// The credential for registering, if it is not the device's API key.
    fn registration_credential(&self, _device: u32) -> Option<&Credential> {
        None
    }

    /// Whether the server stores a repeated message again, because it cannot recognize it.
    fn stores_repeats(&self) -> bool {
        false
    }

    /// The protocol that the devices use.
    fn protocol(&self) -> Protocol<'_>;

    /// The request for a page of a device's stored messages.
    fn page(&self, device: u32, cursor: Option<&str>) -> Call;

    fn read_page(&self, device: u32, answer: &[u8]) -> Result<Page, ResponseError>;

    /// The request for the server's totals of a device, if they can be checked.
    fn totals(&self, _device: u32) -> Option<Call> {
        None
    }

    /// Whether the totals match the number of stored messages and registrations.
    fn totals_match(
        &self,
        _device: u32,
        _there: u64,
        _registrations: u32,
        _answer: &[u8],
    ) -> Result<bool, ResponseError> {
        Ok(true)
    }

    /// A hint about the likely cause of a failure.
    fn advice(&self) -> Option<String> {
        None
    }
}

/// The protocol of a fleet.
#[derive(Clone, Copy)]
pub(crate) enum Protocol<'a> {
    Http(&'a dyn HttpFleet),
    Mqtt(&'a dyn MqttFleet),
}

/// Devices that send HTTP requests.
pub(crate) trait HttpFleet: Send + Sync {
    /// Maximum number of messages in one request.
    fn batch_max(&self) -> usize {
        usize::MAX
    }

    /// The request that sends these messages.
    fn delivery(&self, device: u32, windows: &[u32]) -> Call;

    /// The result of each of these messages, in order.
    fn delivery_results(
        &self,
        device: u32,
        windows: &[u32],
        answer: &[u8],
    ) -> Result<Vec<DeliveryResult>, ResponseError>;
}

/// Devices that publish with QoS 1. An acknowledged message is stored.
pub(crate) trait MqttFleet: Send + Sync {
    /// The broker's address.
    fn broker(&self) -> &str;

    /// The MQTT client id of a device.
    fn client_id(&self, device: u32) -> String;

    fn publication(&self, device: u32, window: u32) -> Publication;
}

/// A message with its topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Publication {
    pub(crate) topic: String,
    pub(crate) payload: String,
}

/// The end of a query string that asks for the page at a cursor. Cursors need no escapes in URLs.
fn cursor_parameter(cursor: Option<&str>) -> String {
    cursor.map_or_else(String::new, |cursor| format!("&cursor={cursor}"))
}

impl Protocol<'_> {
    /// Maximum number of messages to deliver at once.
    pub(crate) fn batch_max(self) -> usize {
        match self {
            Self::Http(fleet) => fleet.batch_max(),
            Self::Mqtt(_) => usize::MAX,
        }
    }
}
