//! The worker: sends what is due, deactivates unknown tokens and fetches receipts, turn by turn. It
//! keeps only its pace in memory; everything else is in the store.

use std::future::Future;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::Notify;

use super::broadcasting::{Broadcasting, Progress};
use super::outbox::{PushOutbox, RETRIES};
use super::pace::Pace;
use super::service::PushService;
use crate::outbox::{
    OutboxKind as _, OutboxWorker, SendError, due_entries, due_entries_in, next_turn_at, run_until,
    send_batch,
};
use crate::push::measured::{self, counted};
use crate::push::notifications::Notification;
use crate::push::{MESSAGES_PER_REQUEST_MAX, Push, PushError, schema};
use crate::time::EpochMillis;

/// Notifications that one turn reads.
const DUE_PER_TURN: usize = 200;

/// Sends what the outbox holds. Several workers may run on one store, each at a pace of its own.
pub struct Worker {
    pub(super) outbox: PushOutbox,
    pace: Pace,
    sending: Breaker,
    pub(super) receipts: Breaker,
    broadcasting: Broadcasting,
}

/// Pauses requests of one kind after failures.
pub(super) struct Breaker {
    /// Failures in a row.
    failures: u32,
    paused_until: EpochMillis,
}

/// What a turn did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Turn {
    /// Messages that were sent, answered or not.
    pub messages: usize,
    /// Receipts that were requested.
    pub receipts: usize,
    /// Tokens that were deactivated.
    pub deactivated: usize,
    /// Devices that broadcasts put into the outbox.
    pub broadcast: usize,
    /// When the next turn has something to do, if that is known.
    pub next_at: Option<EpochMillis>,
}

impl Breaker {
    fn new(now: EpochMillis) -> Self {
        Self {
            failures: 0,
            paused_until: now,
        }
    }

    pub(super) fn is_paused(&self, now: EpochMillis) -> bool {
        now < self.paused_until
    }

    pub(super) fn succeeded(&mut self) {
        self.failures = 0;
    }

    /// Pauses with growing pauses, or as long as the receiver asks for if that is longer.
    pub(super) fn failed(&mut self, now: EpochMillis, error: &SendError) {
        let retry_after = match error {
            SendError::Busy { retry_after, .. } => *retry_after,
            SendError::Unanswered(_) | SendError::Refused(_) => None,
        };
        self.failures += 1;
        let pause_ms = RETRIES.pause_ms(self.failures, retry_after);
        self.paused_until = EpochMillis(now.0 + pause_ms);
    }
}

impl Worker {
    #[must_use]
    pub fn new(push: Push, service: Arc<dyn PushService>) -> Self {
        let now = push.now();
        Self {
            pace: Pace::new(push.settings.rate_per_second, now),
            outbox: PushOutbox { push, service },
            sending: Breaker::new(now),
            broadcasting: Broadcasting::new(now),
            receipts: Breaker::new(now),
        }
    }

    /// Runs until `stop` completes. A turn that has begun is finished first: Expo's answer is
    /// recorded, so that an orderly stop repeats nothing.
    pub async fn run_until(self, stop: impl Future<Output = ()>) {
        measured::announce();
        run_until(self, stop).await;
    }

    /// Does what is due, with at most one request of each kind. Messages come first; receipts and broadcasts never
    /// keep them waiting.
    ///
    /// # Errors
    /// When the store fails. What was due stays due.
    pub async fn turn(&mut self) -> Result<Turn, PushError> {
        self.try_turn().await.map_err(counted)
    }

    async fn try_turn(&mut self) -> Result<Turn, PushError> {
        let mut due = due_entries(&self.outbox, DUE_PER_TURN).await?;
        let messages = self.send_due(&mut due).await?;
        let deactivated = self.deactivate_due(&mut due).await?;
        let mut receipts = self.fetch_receipts(&mut due).await?;
        if receipts == 0 {
            let mut sent =
                due_entries_in(&self.outbox, schema::AWAITING_RECEIPT, DUE_PER_TURN).await?;
            receipts = self.fetch_receipts(&mut sent).await?;
        }
        let queued = self.advance_broadcasts(&due).await?;
        let open = self.outbox.queue().open_count().await?;
        metrics::gauge!("homeport_push_outbox_open").set(open as f64);
        let was_busy = messages + deactivated + receipts + queued.devices > 0;
        Ok(Turn {
            messages,
            receipts,
            deactivated,
            broadcast: queued.devices,
            next_at: min_of(self.next_at(was_busy).await?, queued.next_at),
        })
    }

    /// Looks for devices of broadcasts while there is little to send.
    async fn advance_broadcasts(&mut self, due: &[Notification]) -> Result<Progress, PushError> {
        let now = self.outbox.now();
        let devices = due.iter().flat_map(|notification| &notification.devices);
        let waiting =
            devices.filter(|device| device.delivery.is_unsent() && device.delivery.is_due(now));
        let waiting = if self.sending.is_paused(now) {
            usize::MAX
        } else {
            waiting.count()
        };
        self.broadcasting.advance(&self.outbox.push, waiting).await
    }

    /// Sends as much as one request and the pace allow; returns how many messages were sent.
    async fn send_due(&mut self, due: &mut [Notification]) -> Result<usize, PushError> {
        let now = self.outbox.now();
        let room = self.pace.free(now).min(MESSAGES_PER_REQUEST_MAX);
        if self.sending.is_paused(now) || room == 0 {
            return Ok(0);
        }
        let batch = send_batch(&self.outbox, due, room).await?;
        if batch.sent == 0 {
            return Ok(0);
        }
        let now = self.outbox.now();
        self.pace.note(now, batch.sent);
        match &batch.failure {
            None => self.sending.succeeded(),
            // The service works: it only rejects this request.
            Some(SendError::Refused(_)) => {}
            Some(error) => self.sending.failed(now, error),
        }
        batch.recorded.map(|()| batch.sent)
    }

    /// When there is something to do next: the first due entry, or the end of what holds it up.
    async fn next_at(&mut self, was_busy: bool) -> Result<Option<EpochMillis>, PushError> {
        let now = self.outbox.now();
        let queue = self.outbox.queue();
        let receipt_at = queue.first_due_at_in(schema::AWAITING_RECEIPT).await?;
        let due_at = min_of(queue.first_due_at().await?, receipt_at);
        let next_at = due_at.map(|due_at| next_turn_at(due_at, now, was_busy));
        let is_held_up = !was_busy && due_at.is_some_and(|due_at| due_at <= now);
        if !is_held_up {
            return Ok(next_at);
        }
        let is_paced = self.pace.free(now) == 0;
        let ends = [
            Some(self.sending.paused_until),
            Some(self.receipts.paused_until),
            is_paced.then(|| self.pace.next_free(now)),
        ];
        let end = ends.into_iter().flatten().filter(|end| *end > now).min();
        Ok(end.or(next_at))
    }
}

#[async_trait]
impl OutboxWorker for Worker {
    type Error = PushError;

    const NAME: &'static str = "push";
    const FAILURES: &'static str = "homeport_push_worker_failures_total";

    fn work(&self) -> Arc<Notify> {
        Arc::clone(&self.outbox.push.work)
    }

    fn now(&self) -> EpochMillis {
        self.outbox.now()
    }

    async fn next_turn(&mut self) -> Result<Option<EpochMillis>, PushError> {
        Ok(self.turn().await?.next_at)
    }
}

fn min_of(one: Option<EpochMillis>, other: Option<EpochMillis>) -> Option<EpochMillis> {
    one.into_iter().chain(other).min()
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Worker")
            .field("failures", &self.sending.failures)
            .finish_non_exhaustive()
    }
}
