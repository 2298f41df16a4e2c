//! The messages that wait in memory for one connection. Publishers add messages and never wait; the
//! connection takes them as fast as its client reads.
//!
//! Messages of a durable session are in the store as well. Once memory is full they are only there: the
//! mailbox is *behind*, and its connection reads from the store. While it is behind, new messages are not
//! added to it, so that the order stays.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use futures_util::task::AtomicWaker;
use homeport_systems::messages::{Delivery, Message, Queued};

use crate::mqtt::codec::Refusal;
use crate::mqtt::settings::{MAILBOX_BYTES_MAX, MAILBOX_LEN_MAX};

/// A message for one subscriber.
#[derive(Debug, Clone)]
pub(in crate::mqtt) struct Outgoing {
    pub(in crate::mqtt) message: Arc<Message>,
    pub(in crate::mqtt) delivery: Delivery,
    pub(in crate::mqtt) retain: bool,
    pub(in crate::mqtt) identifiers: Vec<u32>,
    /// Its sequence in the session's queue, if it is stored.
    pub(in crate::mqtt) sequence: Option<u64>,
}

#[derive(Debug, Default)]
pub(in crate::mqtt) struct Mailbox {
    state: Mutex<State>,
    waker: AtomicWaker,
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<Outgoing>,
    bytes: usize,
    behind: Option<Behind>,
    /// Sequences that are in the mailbox, in flight, or acknowledged and not yet deleted.
    known: HashSet<u64>,
    closed: Option<Refusal>,
}

/// The store has messages that the mailbox does not have.
#[derive(Debug, Default)]
struct Behind {
    /// Messages were stored since the store was last read.
    has_more: bool,
}

/// The result of adding a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::mqtt) enum Put {
    Kept,
    /// There is no room, and the message is not stored.
    Full,
}

impl From<Queued> for Outgoing {
    fn from(queued: Queued) -> Self {
        Self {
            message: queued.message,
            delivery: queued.delivery,
            retain: queued.retain,
            identifiers: queued.identifiers,
            sequence: Some(queued.sequence),
        }
    }
}

impl Outgoing {
    fn bytes(&self) -> usize {
        self.message.topic.len() + self.message.payload.len() + size_of::<Self>()
    }
}

impl State {
    fn has_room(&self, outgoing: &Outgoing) -> bool {
        self.queue.is_empty()
            || self.queue.len() < MAILBOX_LEN_MAX
                && self.bytes + outgoing.bytes() <= MAILBOX_BYTES_MAX
    }

    fn push(&mut self, outgoing: Outgoing) {
        self.bytes += outgoing.bytes();
        self.queue.push_back(outgoing);
    }
}

impl Mailbox {
    /// A mailbox whose connection reads stored messages first.
    pub(in crate::mqtt) fn behind() -> Self {
        let mailbox = Self::default();
        mailbox.state().behind = Some(Behind { has_more: true });
        mailbox
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a message that is not stored.
    pub(super) fn put(&self, outgoing: Outgoing) -> Put {
        let mut state = self.state();
        if !state.has_room(&outgoing) {
            return Put::Full;
        }
        state.push(outgoing);
        drop(state);
        self.waker.wake();
        Put::Kept
    }

    /// The number of messages in memory.
    pub(super) fn len(&self) -> usize {
        self.state().queue.len()
    }

    /// Whether there is room for messages.
    pub(super) fn has_room(&self) -> bool {
        let state = self.state();
        state.closed.is_none()
            && state.queue.len() < MAILBOX_LEN_MAX
            && state.bytes < MAILBOX_BYTES_MAX
    }

    /// Adds a stored message.
    pub(super) fn put_stored(&self, outgoing: Outgoing, sequence: u64) {
        let mut state = self.state();
        if let Some(behind) = &mut state.behind {
            behind.has_more = true;
        } else if !state.has_room(&outgoing) {
            state.behind = Some(Behind { has_more: true });
        } else if state.known.insert(sequence) {
            state.push(outgoing);
        }
        drop(state);
        self.waker.wake();
    }

    /// Makes the connection read the store again, because it may have missed messages.
    pub(super) fn read_again(&self) {
        self.state().behind = Some(Behind { has_more: true });
        self.waker.wake();
    }

    /// Ends the connection. The first reason counts.
    pub(in crate::mqtt) fn close(&self, refusal: Refusal) {
        self.state().closed.get_or_insert(refusal);
        self.waker.wake();
    }

    /// Sets the waker of the connection.
    pub(in crate::mqtt) fn register(&self, waker: &Waker) {
        self.waker.register(waker);
    }

    pub(in crate::mqtt) fn closed(&self) -> Option<Refusal> {
        self.state().closed
    }

    /// Takes the next message if it may be sent now.
    pub(in crate::mqtt) fn take(&self, may_go: impl FnOnce(&Outgoing) -> bool) -> Option<Outgoing> {
        let mut state = self.state();
        if !may_go(state.queue.front()?) {
            return None;
        }
        let outgoing = state.queue.pop_front()?;
        state.bytes -= outgoing.bytes();
        if state.queue.is_empty() {
            state.queue = VecDeque::new();
        }
        Some(outgoing)
    }

    /// Whether the store has to be read now; if so, the number of its messages that are known.
    pub(in crate::mqtt) fn begin_reading(&self) -> Option<usize> {
        let mut state = self.state();
        let known = state.known.len();
        let is_empty = state.queue.is_empty();
        let behind = state.behind.as_mut()?;
        if !is_empty {
            return None;
        }
        behind.has_more = false;
        Some(known)
    }

    /// Adds messages that were read from the store; `has_more` says whether more follow there. Returns
    /// whether any of them was new.
    pub(in crate::mqtt) fn finish_reading(&self, page: Vec<Queued>, has_more: bool) -> bool {
        let mut state = self.state();
        let mut is_news = false;
        for queued in page {
            if state.known.insert(queued.sequence) {
                is_news = true;
                state.push(queued.into());
            }
        }
        let is_level = !has_more && state.behind.as_ref().is_some_and(|behind| !behind.has_more);
        if is_level {
            state.behind = None;
        }
        is_news
    }

    /// Forgets messages that were deleted from the store.
    pub(in crate::mqtt) fn forget(&self, sequences: &[u64]) {
        let mut state = self.state();
        for sequence in sequences {
            state.known.remove(sequence);
        }
        if state.known.is_empty() {
            state.known = HashSet::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use homeport_systems::messages::{Properties, Publisher};
    use homeport_systems::time::EpochMillis;

    use super::*;

    fn queued(sequence: u64) -> Queued {
        Queued {
            sequence,
            message: Arc::new(Message {
                topic: format!("van/v1/{sequence}"),
                payload: Bytes::new(),
                delivery: Delivery::AtLeastOnce,
                retain: false,
                publisher: Publisher::default(),
                received_at: EpochMillis(0),
                properties: Properties::default(),
                hops: 0,
            }),
            delivery: Delivery::AtLeastOnce,
            retain: false,
            identifiers: Vec::new(),
        }
    }

    fn put(mailbox: &Mailbox, sequence: u64) {
        mailbox.put_stored(queued(sequence).into(), sequence);
    }

    fn take_all(mailbox: &Mailbox) -> Vec<u64> {
        std::iter::from_fn(|| mailbox.take(|_| true))
            .filter_map(|outgoing| outgoing.sequence)
            .collect()
    }

    #[test]
    fn overflow_is_read_from_the_store_in_order() {
        let mailbox = Mailbox::default();
        let last = MAILBOX_LEN_MAX as u64 + 2;
        (0..=last).for_each(|sequence| put(&mailbox, sequence));
        assert_eq!(mailbox.begin_reading(), None, "there is enough to do");
        let taken = take_all(&mailbox);
        assert_eq!(taken.len(), MAILBOX_LEN_MAX);
        assert_eq!(mailbox.begin_reading(), Some(MAILBOX_LEN_MAX));
        // Stored while the store was being read: it must not overtake the messages read.
        put(&mailbox, last + 1);
        mailbox.finish_reading((0..=last).map(queued).collect(), false);
        assert_eq!(take_all(&mailbox), [last - 2, last - 1, last]);
        assert!(mailbox.begin_reading().is_some());
        mailbox.finish_reading((0..=last + 1).map(queued).collect(), false);
        assert_eq!(take_all(&mailbox), [last + 1]);
        assert_eq!(mailbox.begin_reading(), None, "it is level again");
        put(&mailbox, last + 2);
        assert_eq!(take_all(&mailbox), [last + 2]);
    }

    #[test]
    fn read_message_is_not_added_again() {
        let mailbox = Mailbox::behind();
        assert_eq!(mailbox.begin_reading(), Some(0));
        mailbox.finish_reading(vec![queued(1)], false);
        put(&mailbox, 1);
        assert_eq!(take_all(&mailbox), [1]);
    }

    #[test]
    fn full_mailbox_refuses_unstored_messages() {
        let mailbox = Mailbox::default();
        for sequence in 0..MAILBOX_LEN_MAX as u64 {
            assert_eq!(mailbox.put(queued(sequence).into()), Put::Kept);
        }
        assert_eq!(mailbox.put(queued(0).into()), Put::Full);
        assert!(mailbox.take(|_| false).is_none());
        assert!(mailbox.take(|_| true).is_some());
        assert_eq!(mailbox.put(queued(0).into()), Put::Kept);
    }
}
