//! What one kind of devices says, and how it reads the answers. No I/O in here: a fleet makes
//! requests and looks at bodies, and the same code drives every fleet.
//!
//! A device's messages are numbered from 0. Each is made from its number alone, so that nothing but
//! the number has to be kept, and what is read back can be compared with what was sent.

use hyper::Method;

use super::client::Credential;

/// A request to the server, before it has an address and a credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) body: Option<String>,
    /// What makes a repeat the same request, where that is a header's matter.
    pub(super) idempotency_key: Option<String>,
}

impl Call {
    pub(super) fn new(method: Method, path: impl Into<String>, body: Option<String>) -> Self {
        Self {
            method,
            path: path.into(),
            body,
            idempotency_key: None,
        }
    }
}

/// What the server said about one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is stored now.
    Stored,
    /// It was stored before: its answer did not arrive.
    Duplicate,
    /// It is accepted and already past its time to live.
    Expired,
    /// It will never be stored.
    Rejected,
    /// Nothing: it has to be sent again.
    Unanswered,
}

/// One message of a page that was read back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// The message of this number, as it was sent.
    Intact(u32),
    /// The message of this number, with something else in it.
    Altered(u32),
    /// The message of this number once more, and the server says itself why that can be.
    Again(u32),
    /// The message of this number, which has not come as far yet as it must.
    Underway(u32),
    /// Not of this run.
    Foreign,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) found: Vec<Found>,
    pub(super) next_cursor: Option<String>,
}

/// The answer is not what the server promises.
#[derive(Debug, thiserror::Error)]
#[error("the server's answer cannot be read")]
pub(super) struct AnswerError(#[from] serde_json::Error);

/// A kind of devices.
pub(super) trait Fleet: Send + Sync + 'static {
    /// What a device sends before its messages, if it has to say something. Rounds count from 0.
    fn registration(&self, _device: u32, _round: u32) -> Option<Call> {
        None
    }

    /// After how many messages a device registers again; once is enough unless this says so.
    fn registers_every(&self) -> Option<u32> {
        None
    }

    /// Who a device is when it registers, where that is not who has its key.
    fn identity(&self, _device: u32) -> Option<&Credential> {
        None
    }

    /// The server cannot know a message again: one that is sent twice is there twice.
    fn keeps_repeats(&self) -> bool {
        false
    }

    /// How a device delivers its messages.
    fn speech(&self) -> Speech<'_>;

    /// The request for a page of what is stored of a device.
    fn page(&self, device: u32, cursor: Option<&str>) -> Call;

    fn read_page(&self, device: u32, answer: &[u8]) -> Result<Page, AnswerError>;

    /// The request for what else the server knows about a device, where that can be checked.
    fn account(&self, _device: u32) -> Option<Call> {
        None
    }

    /// Whether that fits `there` messages and `registrations` of the device.
    fn adds_up(
        &self,
        _device: u32,
        _there: u64,
        _registrations: u32,
        _answer: &[u8],
    ) -> Result<bool, AnswerError> {
        Ok(true)
    }

    /// What a person must know to understand a bad end, if there is something.
    fn advice(&self) -> Option<String> {
        None
    }
}

/// How devices of a fleet speak.
#[derive(Clone, Copy)]
pub(super) enum Speech<'a> {
    Http(&'a dyn OverHttp),
    Mqtt(&'a dyn OverMqtt),
}

/// Devices that deliver with requests and read the answers.
pub(super) trait OverHttp: Send + Sync {
    /// Messages that one request can have.
    fn batch_max(&self) -> usize {
        usize::MAX
    }

    /// The request that delivers messages.
    fn delivery(&self, device: u32, windows: &[u32]) -> Call;

    /// What became of each of those messages, in their order.
    fn fates(&self, device: u32, windows: &[u32], answer: &[u8]) -> Result<Vec<Fate>, AnswerError>;
}

/// Devices that publish with QoS 1: a message is stored when it is acknowledged.
pub(super) trait OverMqtt: Send + Sync {
    /// Where the broker is.
    fn broker(&self) -> &str;

    /// What a device calls itself.
    fn client_id(&self, device: u32) -> String;

    fn publication(&self, device: u32, window: u32) -> Publication;
}

/// A message on its topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Publication {
    pub(super) topic: String,
    pub(super) payload: String,
}

impl Speech<'_> {
    /// Messages that are delivered at one time, at most.
    pub(super) fn batch_max(self) -> usize {
        match self {
            Self::Http(fleet) => fleet.batch_max(),
            Self::Mqtt(_) => usize::MAX,
        }
    }
}
