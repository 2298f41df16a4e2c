//! What a kind of entry provides: its stored form, its message, and what an answer means.

use std::fmt::Display;

use async_trait::async_trait;
use homeport_item::Item;
use homeport_store::{Action, StoreError};

use super::delivery::{Delivery, DeliveryState};
use super::error::SendError;
use super::queue::Queue;
use super::retry::RetryPolicy;
use crate::time::EpochMillis;

/// A stored item with at least one delivery.
pub(crate) trait Entry: Clone + Send + Sync + 'static {
    fn delivery_count(&self) -> usize {
        1
    }

    fn delivery(&self, index: usize) -> &Delivery;

    fn delivery_mut(&mut self, index: usize) -> &mut Delivery;

    /// When the next work on it is due; `None` once it is finished.
    fn due_at(&self) -> Option<EpochMillis> {
        (0..self.delivery_count())
            .filter_map(|index| self.delivery(index).next_at)
            .min()
    }
}

/// The position of a delivery in a page of entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) entry: usize,
    pub(crate) delivery: usize,
}

/// What to do with a delivery that is due.
pub(crate) enum Decision<M> {
    Send(M),
    Fail(String),
    /// Another outbox takes it: these writes are committed together with the change of this entry.
    HandOver(Vec<Action>),
    /// The other outbox has delivered it, with this result.
    Arrived(DeliveryState, String),
    /// There is no reason to send it any more.
    Drop(&'static str),
    Wait(EpochMillis),
}

#[async_trait]
pub(crate) trait OutboxKind: Clone + Send + Sync + 'static {
    type Entry: Entry;
    /// One message, ready to be sent.
    type Message: Send + 'static;
    /// What the receiver answers about one message.
    type Answer: Send;
    type Error: From<StoreError> + Display + Send + 'static;

    fn queue(&self) -> &Queue;

    fn policy(&self) -> &'static RetryPolicy;

    /// The policy of one entry, if not all have the same.
    fn policy_of(&self, _entry: &Self::Entry) -> &'static RetryPolicy {
        self.policy()
    }

    fn now(&self) -> EpochMillis;

    fn parse(&self, item: &Item) -> Result<Self::Entry, Self::Error>;

    /// Handles an item that [`OutboxKind::parse`] rejects. It must not block other entries.
    async fn skip_malformed(&self, _item: &Item, error: Self::Error) -> Result<(), Self::Error> {
        tracing::warn!(%error, table = self.queue().table, "skipped a malformed outbox entry");
        Ok(())
    }

    /// The write that replaces a stored entry, on the condition that nobody has changed it since it
    /// was read. The entry becomes what will be stored then.
    fn write(&self, entry: &mut Self::Entry) -> Result<Action, Self::Error>;

    /// A write that is committed together with the one that replaces the entry `before` by `after`.
    fn write_beside(&self, _before: &Self::Entry, _after: &Self::Entry) -> Option<Action> {
        None
    }

    /// Decides about deliveries right before they are claimed, and builds their messages.
    async fn prepare(
        &self,
        entries: &mut [Self::Entry],
        places: &[Place],
    ) -> Result<Vec<Decision<Self::Message>>, Self::Error>;

    /// Sends messages in one request; one answer each, in order.
    async fn send(&self, messages: Vec<Self::Message>) -> Result<Vec<Self::Answer>, SendError>;

    /// Applies the answer to one message.
    fn apply_answer(&self, entry: &mut Self::Entry, index: usize, answer: Self::Answer);

    /// Runs before a failed entry is recorded. It runs again if the process ends in between.
    async fn before_failure(&self, _entry: &Self::Entry) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Runs after another outbox took a message.
    fn after_hand_over(&self, _entry: &Self::Entry) {}

    /// Runs after a finished entry was recorded.
    fn after_finish(&self, _entry: &Self::Entry) {}
}
