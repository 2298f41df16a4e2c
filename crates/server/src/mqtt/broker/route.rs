//! The delivery of a message: at once from memory, or through a queue in the store.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, PoisonError};

use homeport_store::StoreError;
use homeport_systems::messages::{Delivery, Message, NewQueued, Queued, Subscription};

use super::Broker;
use super::mailbox::{Outgoing, Put};
use super::session::Session;
use super::trie::{Group, Subscriber};
use crate::mqtt::codec::{Reason, Refusal};

/// The interval at which a full queue is counted again, because its messages may have expired.
const RECOUNT_AFTER_MS: i64 = 10_000;

/// The remaining work for a message.
pub(in crate::mqtt) struct Route {
    message: Arc<Message>,
    /// Queue items for durable sessions.
    queued: Vec<(Arc<Session>, NewQueued)>,
    /// Its sequence, if it is retained.
    retained: Option<u64>,
}

/// The delivery to one session, of which several subscriptions may match.
struct Target {
    session: Arc<Session>,
    delivery: Delivery,
    retain: bool,
    identifiers: Vec<u32>,
}

impl Route {
    /// Whether nothing has to be stored.
    pub(in crate::mqtt) fn is_done(&self) -> bool {
        self.queued.is_empty() && self.retained.is_none()
    }
}

impl Broker {
    /// Delivers a message to sessions in memory, and returns what has to be stored. Call it for the
    /// messages of a publisher in their order.
    pub(in crate::mqtt) fn route(
        &self,
        message: &Arc<Message>,
        from: Option<&Arc<Session>>,
    ) -> Route {
        let mut queued = Vec::new();
        for target in self.targets(message, from) {
            if let Some(new) = self.deliver_or_queue(message, &target) {
                queued.push((target.session, new));
            }
        }
        Route {
            message: Arc::clone(message),
            queued,
            retained: message.retain.then(|| self.next_sequence()),
        }
    }

    /// Stores what has to be durable before the publisher is acknowledged.
    pub(in crate::mqtt) async fn store(&self, route: &mut Route) -> Result<(), StoreError> {
        if !route.queued.is_empty() {
            self.drop_for_full_queues(&mut route.queued).await?;
            let new: Vec<_> = route.queued.iter().map(|(_, new)| new.clone()).collect();
            self.0.queue_table.add(&new).await?;
            self.0.meters.queued.increment(new.len() as u64);
        }
        if let Some(sequence) = route.retained {
            let message = &route.message;
            let now = self.now_secs();
            self.0.retained_table.keep(message, sequence, now).await?;
            self.0.retained.note(message, sequence);
            self.measure_retained();
        }
        Ok(())
    }

    /// Delivers a stored message to connected durable sessions. Call it for the messages of a publisher in
    /// their order.
    pub(in crate::mqtt) fn deliver(&self, route: Route) {
        for (session, new) in route.queued {
            let link = session.state().link.clone();
            if let Some(link) = link {
                let sequence = new.queued.sequence;
                link.mailbox.put_stored(new.queued.into(), sequence);
            }
        }
    }

    fn targets(&self, message: &Message, from: Option<&Arc<Session>>) -> Vec<Target> {
        let mut targets: Vec<Target> = Vec::new();
        // By address: a session with several matching subscriptions gets one copy.
        let mut index: HashMap<*const Session, usize> = HashMap::new();
        let trie = &self.0.subscriptions;
        let trie = trie.read().unwrap_or_else(PoisonError::into_inner);
        trie.matching(&message.topic, &mut |subscribers| {
            for one in &subscribers.each {
                let is_own = from.is_some_and(|from| Arc::ptr_eq(from, &one.session));
                if one.how.no_local && is_own {
                    continue;
                }
                match index.entry(Arc::as_ptr(&one.session)) {
                    Entry::Vacant(vacant) => {
                        vacant.insert(targets.len());
                        targets.push(target(message, one));
                    }
                    Entry::Occupied(occupied) => {
                        add_subscription(&mut targets[*occupied.get()], message, one.how);
                    }
                }
            }
            for group in &subscribers.groups {
                // The copy of a shared subscription is separate from those of other subscriptions.
                targets.extend(choose_member(group).map(|one| target(message, one)));
            }
        });
        targets
    }

    /// Delivers a message in memory, or returns the queue item for a durable session.
    fn deliver_or_queue(&self, message: &Arc<Message>, target: &Target) -> Option<NewQueued> {
        let mut state = target.session.state();
        let outgoing = |sequence| Outgoing {
            message: Arc::clone(message),
            delivery: target.delivery,
            retain: target.retain,
            identifiers: target.identifiers.clone(),
            sequence,
        };
        if target.delivery == Delivery::AtMostOnce || !state.is_durable() {
            let link = state.link.clone();
            drop(state);
            let put = link.as_ref().map(|link| link.mailbox.put(outgoing(None)));
            if let (Some(link), Some(Put::Full)) = (link, put) {
                self.0.meters.dropped_slow.increment(1);
                if target.delivery == Delivery::AtLeastOnce {
                    // Dropping it silently would break QoS 1.
                    link.mailbox.close(Refusal::new(
                        Reason::QUOTA_EXCEEDED,
                        "the client reads its messages too slowly",
                    ));
                }
            }
            return None;
        }
        if let Some(len) = &mut state.queue_len {
            if *len < self.0.settings.queue_len_max {
                *len += 1;
            } else if self.now().0 < state.queue_counted_at.0.saturating_add(RECOUNT_AFTER_MS) {
                self.0.meters.dropped_queue_full.increment(1);
                return None;
            } else {
                state.queue_len = None;
            }
        }
        let queue_id = Arc::clone(&state.queue_id);
        drop(state);
        let longest = self.0.settings.session_expiry_secs_max;
        let secs = message.properties.expires_after_secs.unwrap_or(longest);
        Some(NewQueued {
            queue_id,
            queued: Queued {
                sequence: self.next_sequence(),
                message: Arc::clone(message),
                delivery: target.delivery,
                retain: target.retain,
                identifiers: target.identifiers.clone(),
            },
            // Not before the session can expire, unless the message expires.
            expires_at: self.now_secs().plus_secs(secs.min(longest).into()),
        })
    }

    /// Drops items for full queues. Counts queues whose length is not known since the start.
    async fn drop_for_full_queues(
        &self,
        queued: &mut Vec<(Arc<Session>, NewQueued)>,
    ) -> Result<(), StoreError> {
        let mut full = Vec::new();
        for (index, (session, new)) in queued.iter().enumerate() {
            if session.state().queue_len.is_some() {
                continue;
            }
            let len = self.0.queue_table.count(&new.queue_id).await?;
            let mut state = session.state();
            state.queue_counted_at = self.now();
            if len >= self.0.settings.queue_len_max {
                state.queue_len = Some(len);
                full.push(index);
            } else {
                state.queue_len = Some(len + 1);
            }
        }
        for index in full.into_iter().rev() {
            queued.remove(index);
            self.0.meters.dropped_queue_full.increment(1);
        }
        Ok(())
    }
}

fn target(message: &Message, one: &Subscriber) -> Target {
    Target {
        session: Arc::clone(&one.session),
        delivery: message.delivery.min(one.how.delivery),
        retain: one.how.retain_as_published && message.retain,
        identifiers: one.how.identifier.into_iter().collect(),
    }
}

/// Adds another matching subscription of the session.
fn add_subscription(target: &mut Target, message: &Message, how: Subscription) {
    target.delivery = target.delivery.max(message.delivery.min(how.delivery));
    target.retain |= how.retain_as_published && message.retain;
    target.identifiers.extend(how.identifier);
}

/// The member of a group that gets a message: the next one that is connected and has room, else a
/// connected one, else one with a queue.
fn choose_member(group: &Group) -> Option<&Subscriber> {
    let mut connected = None;
    let mut waiting = None;
    for one in group.in_turn() {
        let state = one.session.state();
        match &state.link {
            Some(link) if link.mailbox.has_room() => return Some(one),
            Some(_) => connected = connected.or(Some(one)),
            None if state.is_durable() => waiting = waiting.or(Some(one)),
            None => {}
        }
    }
    connected.or(waiting)
}
