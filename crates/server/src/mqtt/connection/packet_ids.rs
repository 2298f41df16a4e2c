//! Packet ids of the messages that a connection sends with QoS 1: which ids are in use, and by which
//! messages.

use std::collections::{HashMap, HashSet};

use homeport_systems::messages::QueuePage;

/// Ids run from 1 to 65,535.
const PACKET_IDS_MAX: usize = 65_535;

pub(super) struct PacketIds {
    /// Sent on this connection and not acknowledged: the id and, for a stored message, its sequence.
    in_flight: HashMap<u16, Option<u64>>,
    /// Sequences that an earlier connection sent, with their ids. Each id is reserved until its message
    /// is sent again or is gone from the store.
    reserved: HashMap<u64, u16>,
    /// The ids in `reserved`.
    reserved_ids: HashSet<u16>,
    last: u16,
}

/// An id for a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PacketId {
    pub(super) id: u16,
    /// An earlier connection sent the message under the same id.
    pub(super) is_duplicate: bool,
}

impl PacketIds {
    pub(super) fn new(unacknowledged: Vec<(u16, u64)>) -> Self {
        Self {
            in_flight: HashMap::new(),
            reserved_ids: unacknowledged.iter().map(|(id, _)| *id).collect(),
            reserved: unacknowledged
                .into_iter()
                .map(|(id, sequence)| (sequence, id))
                .collect(),
            last: 0,
        }
    }

    pub(super) fn in_flight_len(&self) -> usize {
        self.in_flight.len()
    }

    /// Whether every id is in use.
    pub(super) fn is_full(&self) -> bool {
        self.in_flight.len() + self.reserved_ids.len() >= PACKET_IDS_MAX
    }

    /// Whether [`PacketIds::assign`] finds an id for a message.
    pub(super) fn can_assign(&self, sequence: Option<u64>) -> bool {
        !self.is_full() || sequence.is_some_and(|sequence| self.reserved.contains_key(&sequence))
    }

    /// The id to send a message under: its reserved id, or the next free one. `None` when all are in use.
    pub(super) fn assign(&mut self, sequence: Option<u64>) -> Option<PacketId> {
        let reserved = sequence.and_then(|sequence| self.reserved.remove(&sequence));
        let id = match reserved {
            Some(id) => {
                self.reserved_ids.remove(&id);
                id
            }
            None => self.next_free()?,
        };
        self.in_flight.insert(id, sequence);
        Some(PacketId {
            id,
            is_duplicate: reserved.is_some(),
        })
    }

    /// Frees the id of a message that was acknowledged or not sent after all; its sequence, if it is
    /// stored.
    pub(super) fn release(&mut self, id: u16) -> Option<u64> {
        self.in_flight.remove(&id).flatten()
    }

    /// Frees the id that is reserved for a message which is not sent again.
    pub(super) fn drop_reserved(&mut self, sequence: u64) {
        if let Some(id) = self.reserved.remove(&sequence) {
            self.reserved_ids.remove(&id);
        }
    }

    /// Frees the ids of messages that the store no longer has. The page is the beginning of the queue,
    /// so that it has every stored message up to its last one.
    pub(super) fn drop_expired(&mut self, page: &QueuePage) {
        if self.reserved.is_empty() {
            return;
        }
        let stored: HashSet<u64> = page.queued.iter().map(|one| one.sequence).collect();
        let last = page.queued.last().map(|one| one.sequence);
        let is_beyond = |sequence: u64| page.has_more && last.is_none_or(|last| sequence > last);
        self.reserved
            .retain(|sequence, _| stored.contains(sequence) || is_beyond(*sequence));
        self.reserved_ids = self.reserved.values().copied().collect();
    }

    /// Sent and not acknowledged, for the session's next connection.
    pub(super) fn unacknowledged(&self) -> Vec<(u16, u64)> {
        let in_flight = self.in_flight.iter();
        let sent = in_flight.filter_map(|(id, sequence)| Some((*id, (*sequence)?)));
        let reserved = self.reserved.iter().map(|(sequence, id)| (*id, *sequence));
        sent.chain(reserved).collect()
    }

    fn next_free(&mut self) -> Option<u16> {
        for _ in 0..PACKET_IDS_MAX {
            self.last = self.last.checked_add(1).unwrap_or(1);
            let is_taken =
                self.in_flight.contains_key(&self.last) || self.reserved_ids.contains(&self.last);
            if !is_taken {
                return Some(self.last);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use homeport_systems::messages::{Delivery, Message, Properties, Publisher, Queued};
    use homeport_systems::time::EpochMillis;

    use super::*;

    fn page(sequences: &[u64], has_more: bool) -> QueuePage {
        let message = Arc::new(Message {
            topic: "van/v1/x".to_owned(),
            payload: Bytes::new(),
            delivery: Delivery::AtLeastOnce,
            retain: false,
            publisher: Publisher::default(),
            received_at: EpochMillis(0),
            properties: Properties::default(),
            hops: 0,
        });
        let queued = sequences.iter().map(|sequence| Queued {
            sequence: *sequence,
            message: Arc::clone(&message),
            delivery: Delivery::AtLeastOnce,
            retain: false,
            identifiers: Vec::new(),
        });
        QueuePage {
            queued: queued.collect(),
            has_more,
        }
    }

    #[test]
    fn full_id_space_assigns_reserved_ids_only() {
        let all = 1..=u16::MAX;
        let mut ids = PacketIds::new(all.map(|id| (id, u64::from(id))).collect());
        assert!(ids.is_full());
        assert!(!ids.can_assign(None));
        assert_eq!(ids.assign(None), None);
        assert_eq!(ids.assign(Some(1_000_000)), None);
        assert!(ids.can_assign(Some(7)));
        let expected = PacketId {
            id: 7,
            is_duplicate: true,
        };
        assert_eq!(ids.assign(Some(7)), Some(expected));
        assert_eq!(ids.assign(Some(1_000_000)), None);
        assert_eq!(ids.release(7), Some(7));
        let expected = PacketId {
            id: 7,
            is_duplicate: false,
        };
        assert_eq!(ids.assign(Some(1_000_000)), Some(expected));
    }

    #[test]
    fn ids_of_expired_messages_are_free_again() {
        let mut ids = PacketIds::new(vec![(1, 10), (2, 20), (3, 30), (4, 40)]);
        // Sequence 40 may be behind what was read.
        ids.drop_expired(&page(&[20, 35], true));
        let mut left = ids.unacknowledged();
        left.sort_unstable();
        assert_eq!(left, [(2, 20), (4, 40)]);
        ids.drop_expired(&page(&[20], false));
        assert_eq!(ids.unacknowledged(), [(2, 20)]);
        ids.drop_reserved(20);
        assert_eq!(ids.unacknowledged(), []);
        assert_eq!(ids.assign(Some(50)).map(|assigned| assigned.id), Some(1));
    }
}
