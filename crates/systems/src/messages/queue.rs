//! The queues of persistent sessions: one partition for each session, in the order of arrival. A message
//! is queued before its publisher is acknowledged and stays until its subscriber acknowledges it.

use std::sync::Arc;

use homeport_item::expression::{KeyCondition, Projection};
use homeport_item::{Item, Value};
use homeport_store::{BATCH_WRITE_MAX, BatchWrite, Query, Store, StoreError, WriteRequest};

use super::stored::{self, integer};
use super::{Delivery, Message, schema};
use crate::time::EpochSeconds;

/// Retries of the unprocessed part of a batch.
const ATTEMPTS_MAX: usize = 5;

/// A queued message of one session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queued {
    pub sequence: u64,
    pub message: Arc<Message>,
    /// The delivery to the subscriber.
    pub delivery: Delivery,
    pub retain: bool,
    /// The ids of the matching subscriptions.
    pub identifiers: Vec<u32>,
}

/// A message to enqueue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewQueued {
    pub queue_id: Arc<str>,
    pub queued: Queued,
    /// When it expires.
    pub expires_at: EpochSeconds,
}

/// The first messages of a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuePage {
    pub queued: Vec<Queued>,
    /// Whether more messages follow.
    pub has_more: bool,
}

/// The table of queues.
#[derive(Clone)]
pub struct QueueTable {
    store: Arc<dyn Store>,
}

impl QueueTable {
    #[must_use]
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store }
    }

    /// Enqueues messages, durably.
    ///
    /// # Errors
    /// When the store fails; some may be enqueued.
    pub async fn add(&self, new: &[NewQueued]) -> Result<(), StoreError> {
        for chunk in new.chunks(BATCH_WRITE_MAX) {
            let writes = chunk.iter().map(|new| WriteRequest::Put {
                table: schema::QUEUE.to_owned(),
                item: write(new),
            });
            self.write_all(writes.collect()).await?;
        }
        Ok(())
    }

    /// Reads the first messages of a queue.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn first(&self, queue_id: &str, limit: usize) -> Result<QueuePage, StoreError> {
        let mut query = self.all(queue_id).limit(limit);
        query.consistent = true;
        let page = self.store.query(query).await?;
        let mut queued = Vec::with_capacity(page.items.len());
        for item in &page.items {
            match read(item) {
                Some(one) => queued.push(one),
                None => tracing::warn!(queue_id, "a queued message is malformed and left out"),
            }
        }
        Ok(QueuePage {
            queued,
            has_more: page.next.is_some(),
        })
    }

    /// Counts the messages of a queue.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn count(&self, queue_id: &str) -> Result<usize, StoreError> {
        let mut query = self.all(queue_id);
        query.consistent = true;
        query.count_only = true;
        let mut count = 0;
        loop {
            let page = self.store.query(query.clone()).await?;
            count += page.count;
            query.start = page.next;
            if query.start.is_none() {
                return Ok(count);
            }
        }
    }

    /// Deletes messages from a queue.
    ///
    /// # Errors
    /// When the store fails; some may be deleted.
    pub async fn remove(&self, queue_id: &str, sequences: &[u64]) -> Result<(), StoreError> {
        for chunk in sequences.chunks(BATCH_WRITE_MAX) {
            let writes = chunk.iter().map(|sequence| WriteRequest::Delete {
                table: schema::QUEUE.to_owned(),
                key: key(queue_id, *sequence),
            });
            self.write_all(writes.collect()).await?;
        }
        Ok(())
    }

    /// Deletes all messages of a queue.
    ///
    /// # Errors
    /// When the store fails; the rest expires by itself.
    pub async fn clear(&self, queue_id: &str) -> Result<(), StoreError> {
        let mut query = self.all(queue_id);
        query.projection = Some(Projection::new([schema::SEQUENCE]));
        query.consistent = true;
        loop {
            let page = self.store.query(query.clone()).await?;
            let sequences = page.items.iter();
            let sequences: Vec<_> = sequences.filter_map(sequence_of).collect();
            self.remove(queue_id, &sequences).await?;
            query.start = page.next;
            if query.start.is_none() {
                return Ok(());
            }
        }
    }

    fn all(&self, queue_id: &str) -> Query {
        Query::new(schema::QUEUE, KeyCondition::new(schema::QUEUE_ID, queue_id))
    }

    async fn write_all(&self, mut writes: Vec<WriteRequest>) -> Result<(), StoreError> {
        for _ in 0..ATTEMPTS_MAX {
            let answer = self.store.batch_write(BatchWrite { writes }).await?;
            writes = answer.unprocessed;
            if writes.is_empty() {
                return Ok(());
            }
        }
        Err(StoreError::Throttled)
    }
}

fn key(queue_id: &str, sequence: u64) -> Item {
    Item::new()
        .with(schema::QUEUE_ID, queue_id)
        .with(schema::SEQUENCE, sequence)
}

fn sequence_of(item: &Item) -> Option<u64> {
    integer(item, schema::SEQUENCE)?.try_into().ok()
}

fn write(new: &NewQueued) -> Item {
    let queued = &new.queued;
    let mut item = stored::to_item(&queued.message)
        .with(schema::QUEUE_ID, &*new.queue_id)
        .with(schema::SEQUENCE, queued.sequence)
        .with(schema::GRANTED_QOS, i64::from(queued.delivery.qos()))
        .with(schema::SENT_RETAIN, queued.retain)
        .with(schema::EXPIRES_AT, new.expires_at.0);
    if !queued.identifiers.is_empty() {
        let identifiers = queued.identifiers.iter();
        let identifiers = identifiers.map(|one| Value::from(i64::from(*one)));
        item.insert(schema::IDENTIFIERS, Value::L(identifiers.collect()));
    }
    item
}

fn read(item: &Item) -> Option<Queued> {
    let identifiers = match item.get(schema::IDENTIFIERS) {
        Some(list) => {
            let one = |value: &Value| value.as_number()?.to_i64()?.try_into().ok();
            list.as_list()?.iter().map(one).collect::<Option<_>>()?
        }
        None => Vec::new(),
    };
    Some(Queued {
        sequence: sequence_of(item)?,
        message: Arc::new(stored::from_item(item)?),
        delivery: Delivery::from_qos(integer(item, schema::GRANTED_QOS)?)?,
        retain: item.get(schema::SENT_RETAIN)?.as_bool()?,
        identifiers,
    })
}

impl std::fmt::Debug for QueueTable {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("QueueTable").finish_non_exhaustive()
    }
}
