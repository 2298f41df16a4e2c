//! A delivery: one message on its way to one receiver, with a trace of every step.

use std::time::Duration;

use super::error::SendError;
use super::retry::{DeliveryEvent, RetryPolicy};
use crate::time::EpochMillis;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryState {
    /// Waits for the first attempt or for the next one.
    Queued,
    /// Is being sent, or was when the process ended.
    Sending,
    /// The receiver took it.
    Sent,
    /// A receipt confirms that it arrived.
    Delivered,
    /// It will not arrive.
    Failed,
    /// There was no reason to send it any more.
    Dropped,
}

/// An entry of the trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    pub at: EpochMillis,
    pub what: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    pub state: DeliveryState,
    pub attempts: u32,
    /// Attempts without an answer; each of them may have arrived.
    pub unanswered: u32,
    /// Why it failed, or why its fate stays unknown.
    pub reason: Option<String>,
    pub steps: Vec<Step>,
    /// When the next work on it is due. Absent once it is finished.
    pub(crate) next_at: Option<EpochMillis>,
    /// Is sent in a request of its own, after a request with others was refused.
    pub(crate) is_alone: bool,
}

impl DeliveryState {
    const ALL: [Self; 6] = [
        Self::Queued,
        Self::Sending,
        Self::Sent,
        Self::Delivered,
        Self::Failed,
        Self::Dropped,
    ];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Sending => "sending",
            Self::Sent => "sent",
            Self::Delivered => "delivered",
            Self::Failed => "failed",
            Self::Dropped => "dropped",
        }
    }

    pub(super) fn from_stored(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }
}

impl Delivery {
    pub(crate) fn queued(due_at: EpochMillis) -> Self {
        Self {
            state: DeliveryState::Queued,
            attempts: 0,
            unanswered: 0,
            reason: None,
            steps: Vec::new(),
            next_at: Some(due_at),
            is_alone: false,
        }
    }

    pub(crate) fn note(&mut self, at: EpochMillis, what: impl Into<String>) {
        self.steps.push(Step {
            at,
            what: what.into(),
        });
    }

    pub(crate) fn is_due(&self, now: EpochMillis) -> bool {
        self.next_at.is_some_and(|next| next <= now)
    }

    pub(crate) fn is_unsent(&self) -> bool {
        matches!(self.state, DeliveryState::Queued | DeliveryState::Sending)
    }

    /// Whether it is finished, and the receiver has the message or may have it.
    pub(crate) fn may_have_arrived(&self) -> bool {
        self.next_at.is_none() && (self.state == DeliveryState::Sent || self.unanswered > 0)
    }

    pub(super) fn claim(&mut self, policy: &RetryPolicy, now: EpochMillis) {
        self.state = DeliveryState::Sending;
        self.attempts += 1;
        self.next_at = Some(EpochMillis(now.0 + policy.claim_ms));
        self.note(now, format!("sending, attempt {}", self.attempts));
    }

    /// The receiver took it; `next_at` is when to look for a receipt, if there will be one.
    pub(crate) fn sent(
        &mut self,
        policy: &RetryPolicy,
        now: EpochMillis,
        step: impl Into<String>,
        next_at: Option<EpochMillis>,
    ) {
        self.note(now, step);
        self.state = DeliveryState::Sent;
        self.next_at = next_at;
        (policy.count)(DeliveryEvent::Sent);
    }

    pub(crate) fn delivered(
        &mut self,
        policy: &RetryPolicy,
        now: EpochMillis,
        step: impl Into<String>,
    ) {
        self.note(now, step);
        self.state = DeliveryState::Delivered;
        self.next_at = None;
        (policy.count)(DeliveryEvent::Delivered);
    }

    pub(crate) fn fail(
        &mut self,
        policy: &RetryPolicy,
        now: EpochMillis,
        reason: impl Into<String>,
    ) {
        let reason = reason.into();
        self.note(now, format!("failed: {reason}"));
        self.state = DeliveryState::Failed;
        self.reason = Some(reason);
        self.next_at = None;
        (policy.count)(DeliveryEvent::Failed);
    }

    pub(super) fn drop_unsent(&mut self, policy: &RetryPolicy, now: EpochMillis, reason: &str) {
        self.note(now, format!("dropped: {reason}"));
        self.state = DeliveryState::Dropped;
        self.next_at = None;
        (policy.count)(DeliveryEvent::Dropped);
    }

    /// Applies an error that concerns a whole request with `batch_len` messages.
    pub(super) fn apply_error(
        &mut self,
        policy: &RetryPolicy,
        now: EpochMillis,
        error: &SendError,
        batch_len: usize,
    ) {
        match error {
            SendError::Refused(_) if batch_len > 1 => {
                // One message can spoil a request for all the others.
                self.note(now, format!("{error}; will be sent alone"));
                self.state = DeliveryState::Queued;
                self.is_alone = true;
                self.next_at = Some(now);
            }
            SendError::Refused(_) => self.fail(policy, now, error.to_string()),
            SendError::Unanswered(_) => self.unanswered(policy, now, &error.to_string()),
            SendError::Busy { retry_after, .. } => {
                self.retry(policy, now, *retry_after, &error.to_string());
            }
        }
    }

    pub(super) fn unanswered(&mut self, policy: &RetryPolicy, now: EpochMillis, reason: &str) {
        self.unanswered += 1;
        if self.unanswered >= policy.unanswered_max {
            let reason = format!("{reason}; given up, it may have arrived");
            self.fail(policy, now, reason);
        } else {
            self.retry(policy, now, None, &format!("{reason}; it may have arrived"));
        }
    }

    pub(crate) fn retry(
        &mut self,
        policy: &RetryPolicy,
        now: EpochMillis,
        retry_after: Option<Duration>,
        reason: &str,
    ) {
        if self.attempts >= policy.attempts_max {
            let attempts = policy.attempts_max;
            return self.fail(
                policy,
                now,
                format!("{reason}; given up after {attempts} attempts"),
            );
        }
        let pause = policy.pause_ms(self.attempts, retry_after);
        self.note(now, format!("{reason}; next attempt in {pause} ms"));
        self.state = DeliveryState::Queued;
        self.next_at = Some(EpochMillis(now.0 + pause));
        (policy.count)(DeliveryEvent::Retried);
    }
}
