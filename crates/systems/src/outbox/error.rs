//! Why a message was not delivered.

use std::time::Duration;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The receiver did not take the message and may take it later.
    #[error("not taken: {reason}")]
    Busy {
        retry_after: Option<Duration>,
        reason: String,
    },
    /// The message may have arrived or not.
    #[error("not answered: {0}")]
    Unanswered(String),
    /// The receiver will never take this message.
    #[error("refused: {0}")]
    Refused(String),
}
