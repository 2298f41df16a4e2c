//! Retained messages: the last one of each topic, for later subscribers.
//!
//! Messages of one topic may reach the store out of order: the one with the highest sequence number
//! wins. A message that deletes a retained one therefore stays for a while as an item without
//! payload.

use std::sync::Arc;

use homeport_item::Item;
use homeport_item::expression::{Condition, Path, Projection};
use homeport_store::{Put, Scan, Store, StoreError, WriteError};

use super::stored::{self, integer};
use super::{Message, schema};
use crate::fetch::fetch;
use crate::time::EpochSeconds;

/// How long the deletion of a retained message is remembered: longer than any write takes.
const TAKEN_AWAY_SECS: i64 = 60 * 60;

/// The table of retained messages.
#[derive(Clone)]
pub struct RetainedTable {
    store: Arc<dyn Store>,
}

/// A topic that has a retained message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetainedTopic {
    pub topic: String,
    pub sequence: u64,
    pub expires_at: Option<EpochSeconds>,
}

impl RetainedTable {
    #[must_use]
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store }
    }

    /// Replaces the retained message of a topic; an empty message deletes it.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn keep(
        &self,
        message: &Message,
        sequence: u64,
        now: EpochSeconds,
    ) -> Result<(), StoreError> {
        let mut item = if message.payload.is_empty() {
            Item::new()
                .with(schema::TOPIC, message.topic.as_str())
                .with(schema::EXPIRES_AT, now.plus_secs(TAKEN_AWAY_SECS).0)
        } else {
            stored::to_item(message)
        };
        item.insert(schema::SEQUENCE, sequence);
        if let (Some(secs), false) = (
            message.properties.expires_after_secs,
            message.payload.is_empty(),
        ) {
            let until = message.received_at.seconds().plus_secs(secs.into());
            item.insert(schema::EXPIRES_AT, until.0);
        }
        let is_newer = Condition::not_exists(schema::TOPIC)
            .or(Path::new(schema::SEQUENCE).less_than(sequence));
        match self
            .store
            .put(Put::new(schema::RETAINED, item).when(is_newer))
            .await
        {
            // A later message is stored already.
            Ok(_) | Err(WriteError::ConditionFailed { .. }) => Ok(()),
            Err(WriteError::Store(error)) => Err(error),
        }
    }

    /// Lists the topics with a retained message.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn topics(&self) -> Result<Vec<RetainedTopic>, StoreError> {
        let mut scan = Scan::new(schema::RETAINED).filter(Condition::exists(schema::PAYLOAD));
        scan.projection = Some(Projection::new([
            schema::TOPIC,
            schema::SEQUENCE,
            schema::EXPIRES_AT,
        ]));
        scan.consistent = true;
        let mut topics = Vec::new();
        loop {
            let page = self.store.scan(scan.clone()).await?;
            topics.extend(page.items.iter().filter_map(|item| {
                Some(RetainedTopic {
                    topic: item.get(schema::TOPIC)?.as_str()?.to_owned(),
                    sequence: integer(item, schema::SEQUENCE)?.try_into().ok()?,
                    expires_at: integer(item, schema::EXPIRES_AT).map(EpochSeconds),
                })
            }));
            scan.start = page.next;
            if scan.start.is_none() {
                return Ok(topics);
            }
        }
    }

    /// Reads the retained messages of some topics.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn get(&self, topics: &[Arc<str>]) -> Result<Vec<Message>, StoreError> {
        let keys = topics
            .iter()
            .map(|topic| Item::new().with(schema::TOPIC, &**topic));
        let found = fetch(&*self.store, schema::RETAINED, keys, None).await?;
        Ok(found.iter().filter_map(stored::from_item).collect())
    }
}

impl std::fmt::Debug for RetainedTable {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("RetainedTable")
            .finish_non_exhaustive()
    }
}
