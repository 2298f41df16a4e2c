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
    /// Another outbox has the message. Its delivery is the delivery of this one, until it is finished and
    /// its result is recorded here.
    HandedOver,
}

/// Steps that a trace keeps. Of longer ones, some after the first are omitted: a stored part of a
/// notification holds a hundred traces.
const STEPS_MAX: usize = 16;
/// The first steps, which are always kept.
const STEPS_KEPT_FIRST: usize = 4;
/// Characters of a step, for the same reason.
const STEP_CHARS_MAX: usize = 200;

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
    const ALL: [Self; 7] = [
        Self::Queued,
        Self::Sending,
        Self::Sent,
        Self::Delivered,
        Self::Failed,
        Self::Dropped,
        Self::HandedOver,
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
            Self::HandedOver => "handed_over",
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
        let what: String = what.into();
        self.steps.push(Step {
            at,
            what: what.chars().take(STEP_CHARS_MAX).collect(),
        });
        if self.steps.len() > STEPS_MAX {
            self.steps.remove(STEPS_KEPT_FIRST + 1);
            let omitted = &mut self.steps[STEPS_KEPT_FIRST];
            "earlier steps are omitted".clone_into(&mut omitted.what);
        }
    }

    pub(crate) fn is_due(&self, now: EpochMillis) -> bool {
        self.next_at.is_some_and(|next| next <= now)
    }

    /// Whether a decision about it is due when its time comes. Other work on a sent message, like looking for
    /// its receipt, belongs to its kind.
    pub(super) fn is_undecided(&self) -> bool {
        let waiting = [
            DeliveryState::Queued,
            DeliveryState::Sending,
            DeliveryState::HandedOver,
        ];
        waiting.contains(&self.state)
    }

    /// Whether the message has not left.
    pub(crate) fn is_unsent(&self) -> bool {
        matches!(self.state, DeliveryState::Queued | DeliveryState::Sending)
    }

    /// Whether the receiver has the message or may have it.
    pub(crate) fn may_have_arrived(&self) -> bool {
        let is_taken = matches!(self.state, DeliveryState::Sent | DeliveryState::Delivered);
        is_taken || (self.next_at.is_none() && self.unanswered > 0)
    }

    /// When the next attempt is made, if there will be one.
    #[must_use]
    pub fn next_attempt_at(&self) -> Option<EpochMillis> {
        self.next_at.filter(|_| self.state == DeliveryState::Queued)
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
        if self.unanswered >= policy.unanswered_max() {
            let reason = format!("{reason}; given up, it may have arrived");
            self.fail(policy, now, reason);
        } else {
            let pause = policy.unanswered_pause_ms(self.attempts, self.unanswered);
            let reason = format!("{reason}; it may have arrived");
            self.queue_again(policy, now, pause, &reason);
        }
    }

    /// Another outbox has the message; `next_at` is when to look for the result.
    pub(super) fn handed_over(&mut self, now: EpochMillis, next_at: EpochMillis) {
        self.note(now, "handed over to the outbox of push");
        self.state = DeliveryState::HandedOver;
        self.next_at = Some(next_at);
    }

    pub(crate) fn retry(
        &mut self,
        policy: &RetryPolicy,
        now: EpochMillis,
        retry_after: Option<Duration>,
        reason: &str,
    ) {
        let pause = policy.pause_ms(self.attempts, retry_after);
        self.queue_again(policy, now, pause, reason);
    }

    fn queue_again(&mut self, policy: &RetryPolicy, now: EpochMillis, pause: i64, reason: &str) {
        if self.attempts >= policy.attempts_max {
            let attempts = policy.attempts_max;
            return self.fail(
                policy,
                now,
                format!("{reason}; given up after {attempts} attempts"),
            );
        }
        self.note(now, format!("{reason}; next attempt in {pause} ms"));
        self.state = DeliveryState::Queued;
        self.next_at = Some(EpochMillis(now.0 + pause));
        (policy.count)(DeliveryEvent::Retried);
    }
}
