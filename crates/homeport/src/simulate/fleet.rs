//! What one kind of devices says, and how it reads the answers. No I/O in here: a fleet makes
//! requests and looks at bodies, and the same code drives every fleet.
//!
//! A device's messages are numbered from 0. Each is made from its number alone, so that nothing but
//! the number has to be kept, and what is read back can be compared with what was sent.

use hyper::Method;

/// A request to the server, before it has an address and a credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) body: Option<String>,
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
    /// What a device sends first, if it has to say something before its messages.
    fn registration(&self, _device: u32) -> Option<Call> {
        None
    }

    /// Messages that one request can have.
    fn batch_max(&self) -> usize {
        usize::MAX
    }

    /// The server cannot know a message again: one that is sent twice is there twice.
    fn keeps_repeats(&self) -> bool {
        false
    }

    /// The request that delivers messages.
    fn delivery(&self, device: u32, windows: &[u32]) -> Call;

    /// What became of each of those messages, in their order.
    fn fates(&self, device: u32, windows: &[u32], answer: &[u8]) -> Result<Vec<Fate>, AnswerError>;

    /// The request for a page of what is stored of a device.
    fn page(&self, device: u32, cursor: Option<&str>) -> Call;

    fn read_page(&self, device: u32, answer: &[u8]) -> Result<Page, AnswerError>;

    /// The request for what the server has counted of a device's messages, where it counts.
    fn statistics(&self, _device: u32) -> Option<Call> {
        None
    }

    /// How many messages it has counted.
    fn counted(&self, _answer: &[u8]) -> Result<u64, AnswerError> {
        Ok(0)
    }
}
