//! Accepting, reading and cancelling broadcasts.

use std::collections::{BTreeMap, BTreeSet};

use homeport_item::Value;
use homeport_item::expression::{KeyCondition, Projection, SortCondition};
use homeport_store::{Get, Put, Query, StoreError};

use super::broadcast::{Broadcast, BroadcastId, BroadcastState, DeviceCounts};
use super::stored;
use super::walk::Walk;
use crate::cursor::Cursor;
use crate::fetch::fetch;
use crate::pages::{self, Page};
use crate::push::measured::{page_error, store_error};
use crate::push::notifications::{Accepted, Added, KeyMarker, Message};
use crate::push::types::{IdempotencyKey, Platform};
use crate::push::{OPEN_BROADCASTS_MAX, PAGE_MAX, Push, PushError, schema};

/// Names the list in its cursors.
const LIST: &str = "push-broadcasts";
/// Attempts at cancelling a broadcast while the worker changes it.
const ATTEMPTS_MAX: usize = 16;

impl Push {
    /// Accepts a message to all devices that are active now, or to those of one platform.
    ///
    /// # Errors
    /// When the key was used for another broadcast, too many are unfinished, or the store fails.
    pub async fn broadcast(
        &self,
        platform: Option<Platform>,
        message: Message,
        key: Option<&IdempotencyKey>,
    ) -> Result<Accepted<Broadcast>, PushError> {
        let audience = platform.map_or("all", Platform::as_str);
        let content = format!("{audience} {}", message.to_json());
        let marker = key.map(|key| KeyMarker::new(schema::BROADCASTS, key, &content));
        if let Some(before) = self.broadcast_before(marker.as_ref()).await? {
            return Ok(Accepted::Before(before));
        }
        let now = self.now();
        let mut broadcast = Broadcast {
            id: BroadcastId::new(now),
            platform,
            message,
            state: BroadcastState::Queued,
            created_at: now,
            started_at: None,
            finished_at: None,
            devices: DeviceCounts::default(),
            failures: BTreeMap::new(),
            steps: Vec::new(),
            walk: Some(Walk::start(platform, self.settings.broadcast_index)),
            open_notifications: 0,
            version: 1,
        };
        broadcast.note(now, "accepted");
        let max = i64::try_from(OPEN_BROADCASTS_MAX).unwrap_or(i64::MAX);
        let one_more = schema::open_broadcasts_counter().add(schema::NOTIFICATIONS, 1, Some(max));
        let put = Put::new(schema::NOTIFICATIONS, stored::to_item(&broadcast));
        let mut actions = vec![put.into(), one_more.into()];
        actions.extend(
            marker
                .as_ref()
                .map(|marker| marker.put(broadcast.id.as_str(), now)),
        );
        match self.add(actions).await? {
            Added::Done => {
                metrics::counter!("homeport_push_broadcasts_total", "outcome" => "accepted")
                    .increment(1);
                self.work.notify_one();
                Ok(Accepted::New(broadcast))
            }
            Added::Full => Err(PushError::TooManyBroadcasts),
            Added::KeyTaken => {
                let before = self.broadcast_before(marker.as_ref()).await?;
                before
                    .map(Accepted::Before)
                    .ok_or_else(|| store_error(StoreError::Throttled))
            }
        }
    }

    async fn broadcast_before(
        &self,
        marker: Option<&KeyMarker>,
    ) -> Result<Option<Broadcast>, PushError> {
        let Some(marker) = marker else {
            return Ok(None);
        };
        match self.accepted_before(marker).await? {
            Some(id) => self.broadcast_with_id(&id).await.map(Some),
            None => Ok(None),
        }
    }

    /// A broadcast with its progress.
    ///
    /// # Errors
    /// When there is no broadcast with this id or the store fails.
    pub async fn broadcast_with_id(&self, id: &BroadcastId) -> Result<Broadcast, PushError> {
        let get = Get::new(schema::NOTIFICATIONS, schema::broadcast_key(id));
        let item = self.store.get(get).await.map_err(store_error)?;
        stored::from_item(&item.ok_or(PushError::BroadcastMissing)?)
    }

    /// All broadcasts, newest first.
    ///
    /// # Errors
    /// When the cursor is of another list or the store fails.
    pub async fn broadcasts(
        &self,
        limit: usize,
        cursor: Option<Cursor>,
    ) -> Result<Page<Broadcast>, PushError> {
        let start = cursor.map(|cursor| cursor.start_of(LIST)).transpose()?;
        let condition = KeyCondition::new(schema::PK, schema::BROADCASTS).with_sort(
            schema::SK,
            SortCondition::BeginsWith(schema::BROADCAST.into()),
        );
        let query = Query::new(schema::NOTIFICATIONS, condition)
            .descending()
            .starting_after(start);
        let table = schema::notifications();
        let limit = limit.clamp(1, PAGE_MAX);
        let page = pages::read_page(&*self.store, &table, query, LIST, limit).await;
        Ok(page
            .map_err(page_error)?
            .readable(&table, stored::from_item))
    }

    /// Stops a broadcast: messages that are not sent yet are not sent any more. Cancelling it again changes nothing.
    ///
    /// # Errors
    /// When there is no broadcast with this id, it is finished, or the store fails.
    pub async fn cancel_broadcast(&self, id: &BroadcastId) -> Result<Broadcast, PushError> {
        for _ in 0..ATTEMPTS_MAX {
            let broadcast = self.broadcast_with_id(id).await?;
            match broadcast.state {
                BroadcastState::Cancelled => return Ok(broadcast),
                BroadcastState::Finished => return Err(PushError::BroadcastFinished),
                BroadcastState::Queued | BroadcastState::Running => {}
            }
            let mut cancelled = broadcast.clone();
            cancelled.state = BroadcastState::Cancelled;
            cancelled.walk = None;
            cancelled.note(self.now(), "cancelled");
            if self.change_broadcast(cancelled, Vec::new()).await? {
                metrics::counter!("homeport_push_broadcasts_total", "outcome" => "cancelled")
                    .increment(1);
                self.work.notify_one();
                return self.broadcast_with_id(id).await;
            }
        }
        Err(store_error(StoreError::Throttled))
    }

    /// Those of these broadcasts that are cancelled.
    pub(in crate::push) async fn cancelled_among(
        &self,
        ids: BTreeSet<BroadcastId>,
    ) -> Result<BTreeSet<BroadcastId>, PushError> {
        let keys = ids.iter().map(schema::broadcast_key);
        let projection = Projection::new([schema::BROADCAST_ID, schema::STATE]);
        let items = fetch(&*self.store, schema::NOTIFICATIONS, keys, Some(projection)).await?;
        let cancelled = items.iter().filter_map(|item| {
            let text = |name| item.get(name).and_then(Value::as_str);
            let is_cancelled = text(schema::STATE) == Some(BroadcastState::Cancelled.as_str());
            text(schema::BROADCAST_ID)
                .filter(|_| is_cancelled)?
                .parse()
                .ok()
        });
        Ok(cancelled.collect())
    }
}
