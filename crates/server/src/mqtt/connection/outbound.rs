//! Messages to a client: from its mailbox, from its queue in the store, and retained messages.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use homeport_store::{BATCH_WRITE_MAX, StoreError};
use homeport_systems::messages::{Delivery, Message, QueuePage, Subscription, TopicFilter};

use super::Connection;
use super::packet_ids::PacketIds;
use crate::mqtt::broker::Outgoing;
use crate::mqtt::codec::{self, Reason, Refusal, Sent};
use crate::mqtt::settings::WRITE_BYTES_MAX;

/// Messages of one read of the queue, in addition to the known ones.
const QUEUE_PAGE: usize = 64;
/// Retained messages of one read; each may be as large as a packet.
const RETAINED_PAGE: usize = 8;

pub(super) struct Outbound {
    packet_ids: PacketIds,
    receive_maximum: usize,
    maximum_packet_size: usize,
    /// Acknowledged sequences that are still in the store.
    acknowledged: Vec<u64>,
    removing: Option<Removal>,
    loading: Option<BoxFuture<'static, Loaded>>,
    /// Reading the queue finds nothing new until messages are deleted from it.
    waits_for_removal: bool,
    retained: VecDeque<RetainedWanted>,
    /// Retained messages that have been read.
    ready: VecDeque<Outgoing>,
}

/// The deletion of acknowledged messages.
type Removal = BoxFuture<'static, (Vec<u64>, Result<(), StoreError>)>;

/// The retained messages for a subscription.
struct RetainedWanted {
    filter: TopicFilter,
    how: Subscription,
    /// The last topic that was read.
    after: Option<Arc<str>>,
}

enum Loaded {
    Queue(Result<QueuePage, StoreError>),
    Retained(Result<Vec<Message>, StoreError>, Subscription),
}

impl Outbound {
    pub(super) fn new(
        receive_maximum: u16,
        maximum_packet_size: usize,
        unacknowledged: Vec<(u16, u64)>,
    ) -> Self {
        Self {
            packet_ids: PacketIds::new(unacknowledged),
            receive_maximum: receive_maximum.into(),
            maximum_packet_size,
            acknowledged: Vec::new(),
            removing: None,
            loading: None,
            waits_for_removal: false,
            retained: VecDeque::new(),
            ready: VecDeque::new(),
        }
    }

    /// Unacknowledged messages for the session's next connection: packet ids and sequences.
    pub(super) fn unacknowledged(&self) -> Vec<(u16, u64)> {
        self.packet_ids.unacknowledged()
    }

    /// Whether the client's window has room for another message with QoS 1.
    fn has_window(&self) -> bool {
        self.packet_ids.in_flight_len() < self.receive_maximum
    }
}

impl Connection {
    /// Writes messages to the buffer while it has room; returns whether there was progress.
    ///
    /// # Errors
    /// When the store fails.
    pub(super) fn poll_outbound(&mut self, context: &mut Context<'_>) -> Result<bool, Refusal> {
        let mut has_moved = self.poll_store(context)?;
        while self.io.write.len() < WRITE_BYTES_MAX {
            let Some(outgoing) = self.next_outgoing() else {
                break;
            };
            has_moved = true;
            self.send(&outgoing);
        }
        if self.outbound.loading.is_none() {
            has_moved |= self.begin_loading();
        }
        has_moved |= self.begin_removing();
        Ok(has_moved)
    }

    /// Handles PUBACK.
    pub(super) fn acknowledged(&mut self, packet_id: u16) {
        // An unknown id belongs to a message that was sent again and acknowledged twice.
        let sequence = self.outbound.packet_ids.release(packet_id);
        self.outbound.acknowledged.extend(sequence);
    }

    /// Queues the retained messages of a filter.
    pub(super) fn send_retained(&mut self, filter: TopicFilter, how: Subscription) {
        let wanted = &mut self.outbound.retained;
        // A repeated subscription starts again, so there are never more entries than subscriptions.
        wanted.retain(|other| other.filter != filter);
        wanted.push_back(RetainedWanted {
            filter,
            how,
            after: None,
        });
    }

    /// Deletes acknowledged messages at the end of the connection.
    pub(super) async fn remove_acknowledged(&mut self) {
        if let Some(removing) = self.outbound.removing.take() {
            let (sequences, outcome) = removing.await;
            self.finish_removing(&sequences, outcome);
        }
        let sequences = std::mem::take(&mut self.outbound.acknowledged);
        if !sequences.is_empty() {
            let queue_id = self.broker.queue_id(&self.session);
            let table = self.broker.queue_table();
            let outcome = table.remove(&queue_id, &sequences).await;
            self.finish_removing(&sequences, outcome);
        }
    }

    fn finish_removing(&mut self, sequences: &[u64], outcome: Result<(), StoreError>) {
        match outcome {
            Ok(()) => {
                self.mailbox.forget(sequences);
                self.broker.note_removed(&self.session, sequences.len());
            }
            // They stay in the store and are sent again on the next connection, which QoS 1 permits.
            Err(error) => tracing::warn!(%error, "cannot delete acknowledged messages"),
        }
    }

    fn next_outgoing(&mut self) -> Option<Outgoing> {
        let has_window = self.outbound.has_window();
        let packet_ids = &self.outbound.packet_ids;
        let may_go = |one: &Outgoing| {
            one.delivery == Delivery::AtMostOnce
                || has_window && packet_ids.can_assign(one.sequence)
        };
        if self.outbound.ready.front().is_some_and(may_go) {
            return self.outbound.ready.pop_front();
        }
        self.mailbox.take(may_go)
    }

    fn send(&mut self, outgoing: &Outgoing) {
        let message = &*outgoing.message;
        let waited_ms = self.broker.now().0.saturating_sub(message.received_at.0);
        let waited_secs = u32::try_from(waited_ms.max(0) / 1000).unwrap_or(u32::MAX);
        let lifetime = message.properties.expires_after_secs;
        if lifetime.is_some_and(|secs| secs <= waited_secs) {
            self.broker.meters().dropped_expired.increment(1);
            if let Some(sequence) = outgoing.sequence {
                self.outbound.packet_ids.drop_reserved(sequence);
                self.outbound.acknowledged.push(sequence);
            }
            return;
        }
        let assigned = match outgoing.delivery {
            Delivery::AtMostOnce => None,
            // `next_outgoing` has checked that an id is free.
            Delivery::AtLeastOnce => self.outbound.packet_ids.assign(outgoing.sequence),
        };
        let packet_id = assigned.map(|assigned| assigned.id);
        let sent = Sent {
            message,
            packet_id,
            is_duplicate: assigned.is_some_and(|assigned| assigned.is_duplicate),
            retain: outgoing.retain,
            identifiers: &outgoing.identifiers,
            expires_after_secs: lifetime.map(|secs| secs - waited_secs),
        };
        if codec::publish_len(self.version, &sent) > self.outbound.maximum_packet_size {
            self.broker.meters().dropped_too_large.increment(1);
            if let Some(id) = packet_id {
                self.outbound.packet_ids.release(id);
            }
            self.outbound.acknowledged.extend(outgoing.sequence);
            return;
        }
        codec::publish(&mut self.io.write, self.version, &sent);
        self.broker.meters().sent[usize::from(packet_id.is_some())].increment(1);
        self.client.sent.count(message);
    }

    /// Finishes requests to the store; returns whether there was progress.
    fn poll_store(&mut self, context: &mut Context<'_>) -> Result<bool, Refusal> {
        let mut has_moved = false;
        if let Some(Poll::Ready((sequences, outcome))) =
            (self.outbound.removing.as_mut()).map(|removing| removing.poll_unpin(context))
        {
            self.outbound.removing = None;
            self.outbound.waits_for_removal = false;
            has_moved = true;
            self.finish_removing(&sequences, outcome);
        }
        if let Some(Poll::Ready(loaded)) =
            (self.outbound.loading.as_mut()).map(|loading| loading.poll_unpin(context))
        {
            self.outbound.loading = None;
            has_moved = true;
            self.finish_loading(loaded)?;
        }
        Ok(has_moved)
    }

    fn finish_loading(&mut self, loaded: Loaded) -> Result<(), Refusal> {
        match loaded {
            Loaded::Queue(Ok(page)) => {
                self.outbound.packet_ids.drop_expired(&page);
                let has_more = page.has_more;
                let is_news = self.mailbox.finish_reading(page.queued, has_more);
                self.outbound.waits_for_removal = has_more && !is_news;
                Ok(())
            }
            Loaded::Retained(Ok(messages), how) => {
                let outgoing = messages.into_iter().map(|message| Outgoing {
                    delivery: message.delivery.min(how.delivery),
                    message: Arc::new(message),
                    retain: true,
                    identifiers: how.identifier.into_iter().collect(),
                    sequence: None,
                });
                self.outbound.ready.extend(outgoing);
                Ok(())
            }
            Loaded::Queue(Err(error)) | Loaded::Retained(Err(error), _) => {
                tracing::warn!(%error, "cannot read messages for an MQTT client");
                Err(Refusal::new(
                    Reason::SERVER_BUSY,
                    "the store cannot be read now; reconnect later",
                ))
            }
        }
    }

    /// Reads more messages when none is left to send; returns whether a read was started.
    fn begin_loading(&mut self) -> bool {
        // A retained message that waits for a packet id does not block the queue, whose messages have
        // reserved ids.
        let is_ready = !self.outbound.ready.is_empty() && !self.outbound.packet_ids.is_full();
        if !self.outbound.has_window() || is_ready {
            return false;
        }
        // IMPORTANT: never read and delete at the same time. Messages that were read before their deletion
        // would count as new after it.
        if !self.outbound.waits_for_removal
            && self.outbound.removing.is_none()
            && let Some(known) = self.mailbox.begin_reading()
        {
            let table = self.broker.queue_table().clone();
            let queue_id = self.broker.queue_id(&self.session);
            let broker = self.broker.clone();
            self.outbound.loading = Some(Box::pin(async move {
                let page = table.first(&queue_id, known + QUEUE_PAGE).await;
                broker.note_queue_read();
                Loaded::Queue(page)
            }));
            return true;
        }
        if !self.outbound.ready.is_empty() {
            return false;
        }
        let Some(wanted) = self.outbound.retained.front_mut() else {
            return false;
        };
        let after = wanted.after.as_deref();
        let topics = (self.broker).retained_topics(&wanted.filter, after, RETAINED_PAGE);
        let how = wanted.how;
        wanted.after = topics.last().cloned();
        if topics.len() < RETAINED_PAGE {
            self.outbound.retained.pop_front();
        }
        if topics.is_empty() {
            return true;
        }
        let table = self.broker.retained_table().clone();
        self.outbound.loading = Some(Box::pin(async move {
            Loaded::Retained(table.get(&topics).await, how)
        }));
        true
    }

    /// Deletes acknowledged messages from the store in batches; returns whether a deletion was started.
    fn begin_removing(&mut self) -> bool {
        let outbound = &mut self.outbound;
        let is_due = outbound.acknowledged.len() >= BATCH_WRITE_MAX
            || outbound.packet_ids.in_flight_len() == 0
            || outbound.waits_for_removal;
        let is_busy = outbound.removing.is_some() || outbound.loading.is_some();
        if outbound.acknowledged.is_empty() || is_busy || !is_due {
            return false;
        }
        let sequences = std::mem::take(&mut outbound.acknowledged);
        let table = self.broker.queue_table().clone();
        let queue_id = self.broker.queue_id(&self.session);
        outbound.removing = Some(Box::pin(async move {
            let outcome = table.remove(&queue_id, &sequences).await;
            (sequences, outcome)
        }));
        true
    }
}
