//! Idempotency keys: a repeat of an accepted request with the same key is the same request. An item remembers the
//! key, committed together with what was accepted.

use std::str::FromStr;
use std::time::Duration;

use homeport_item::expression::Condition;
use homeport_item::{Item, Value};
use homeport_store::{Action, CancelReason, Get, Put, StoreError, TransactError, Transaction};
use sha2::{Digest as _, Sha256};

use crate::push::measured::store_error;
use crate::push::types::IdempotencyKey;
use crate::push::{NOTIFICATION_RETENTION_SECS, Push, PushError, schema};
use crate::time::EpochMillis;

/// How often accepting is tried while other transactions are in its way.
const CONFLICT_RETRIES_MAX: u32 = 6;
/// The pause after the first conflict. Each further one is twice as long.
const CONFLICT_PAUSE: Duration = Duration::from_millis(20);

/// The item of an idempotency key, for one request.
pub(in crate::push) struct KeyMarker {
    key: Item,
    /// A digest of the request.
    digest: String,
}

/// The result of committing what was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::push) enum Added {
    Done,
    /// Someone else used the idempotency key between the read and the write.
    KeyTaken,
    /// A limit is reached.
    Full,
}

impl KeyMarker {
    /// Keys with another partition are others.
    pub(in crate::push) fn new(
        partition: impl Into<String>,
        key: &IdempotencyKey,
        content: &str,
    ) -> Self {
        Self {
            key: marker_key(partition, key),
            digest: hex::encode(Sha256::digest(content)),
        }
    }

    /// Remembers what was accepted with the key, unless it was used already.
    pub(in crate::push) fn put(&self, id: &str, now: EpochMillis) -> Action {
        let forget_at = now.seconds().plus_secs(NOTIFICATION_RETENTION_SECS);
        let marker = (self.key.clone())
            .with(schema::NOTIFICATION_ID, id)
            .with(schema::ASKED, &*self.digest)
            .with(schema::FORGET_AT, forget_at.0);
        let put = Put::new(schema::NOTIFICATIONS, marker);
        put.when(Condition::not_exists(schema::PK)).into()
    }
}

fn marker_key(partition: impl Into<String>, key: &IdempotencyKey) -> Item {
    schema::key(partition, format!("{}{key}", schema::IDEMPOTENCY_KEY))
}

fn accepted_id<Id: FromStr>(marker: &Item) -> Result<Id, PushError> {
    let id = marker.get(schema::NOTIFICATION_ID).and_then(Value::as_str);
    let malformed = || PushError::Malformed("an idempotency key has no id".to_owned());
    id.and_then(|id| id.parse().ok()).ok_or_else(malformed)
}

impl Push {
    /// The id of what was accepted before with a key.
    pub(in crate::push) async fn accepted_before<Id: FromStr>(
        &self,
        marker: &KeyMarker,
    ) -> Result<Option<Id>, PushError> {
        let Some(stored) = self.stored_marker(marker.key.clone()).await? else {
            return Ok(None);
        };
        if stored.get(schema::ASKED).and_then(Value::as_str) != Some(&marker.digest) {
            return Err(PushError::KeyReused);
        }
        accepted_id(&stored).map(Some)
    }

    /// The id of what was accepted with a key, whatever the request was.
    pub(in crate::push) async fn accepted_with_key<Id: FromStr>(
        &self,
        partition: impl Into<String>,
        key: &IdempotencyKey,
    ) -> Result<Option<Id>, PushError> {
        let stored = self.stored_marker(marker_key(partition, key)).await?;
        stored.as_ref().map(accepted_id).transpose()
    }

    async fn stored_marker(&self, key: Item) -> Result<Option<Item>, PushError> {
        let get = Get::new(schema::NOTIFICATIONS, key);
        self.store.get(get).await.map_err(store_error)
    }

    /// Commits what was accepted. Of its writes only the marker of a key has a condition, and the count that a limit
    /// bounds.
    pub(in crate::push) async fn add(&self, actions: Vec<Action>) -> Result<Added, PushError> {
        let mut pause = CONFLICT_PAUSE;
        for _ in 0..CONFLICT_RETRIES_MAX {
            match self.store.transact(Transaction::new(actions.clone())).await {
                Ok(()) => return Ok(Added::Done),
                Err(TransactError::Cancelled(reasons)) => {
                    let mut failed = reasons.iter().zip(&actions).filter_map(|(reason, action)| {
                        let failed = matches!(reason, CancelReason::ConditionFailed { .. });
                        failed.then_some(matches!(action, Action::Put(_)))
                    });
                    match failed.next_back() {
                        Some(true) => return Ok(Added::KeyTaken),
                        Some(false) => return Ok(Added::Full),
                        // A conflict with another transaction.
                        None => tokio::time::sleep(pause).await,
                    }
                    pause *= 2;
                }
                Err(TransactError::TokenMismatch) => break,
                Err(TransactError::Store(error)) => return Err(store_error(error)),
            }
        }
        Err(store_error(StoreError::Throttled))
    }
}
