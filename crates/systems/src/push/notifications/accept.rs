//! Accepting a notification: it is durable in the outbox before the request is answered, and a repeat
//! with the same idempotency key is the same notification.

use std::time::Duration;

use homeport_item::expression::{Condition, KeyCondition, Path, Projection, SortCondition};
use homeport_item::{Item, Value};
use homeport_store::{
    Action, CancelReason, Get, Put, Query, StoreError, TransactError, Transaction,
};
use sha2::{Digest as _, Sha256};

use super::message::Message;
use super::notification::{DeviceDelivery, Notification, NotificationId, Part};
use super::stored::{self, notification_key};
use crate::cursor::Cursor;
use crate::fetch::fetch;
use crate::pages::{self, Page};
use crate::push::measured::{page_error, store_error};
use crate::push::types::{DeviceId, IdempotencyKey, UserId};
use crate::push::{
    DEVICES_PER_NOTIFICATION_MAX, NOTIFICATION_RETENTION_SECS, PAGE_MAX, Push, PushError, schema,
};

/// How often accepting is tried while other transactions are in its way.
const CONFLICT_RETRIES_MAX: u32 = 6;
/// A page of notifications ends after so many deliveries, because each has a trace.
const DELIVERIES_PER_PAGE_MAX: usize = 10_000;
/// The pause after the first conflict. Each further one is twice as long.
const CONFLICT_PAUSE: Duration = Duration::from_millis(20);

/// The result of accepting a notification.
#[derive(Debug, Clone, PartialEq)]
pub enum Accepted {
    New(Notification),
    /// The same message was accepted before with this key; nothing was done.
    Before(Notification),
}

impl Push {
    /// Accepts a message to every active device of a user. For a user without active devices the
    /// notification is finished at once.
    ///
    /// # Errors
    /// When the key was used for another message, the outbox is full, the user has too many devices,
    /// or the store fails.
    pub async fn notify(
        &self,
        user: &UserId,
        message: Message,
        key: Option<&IdempotencyKey>,
    ) -> Result<Accepted, PushError> {
        let digest = digest(&message);
        if let Some(key) = key
            && let Some(before) = self.accepted_before(user, key, &digest).await?
        {
            return Ok(Accepted::Before(before));
        }
        let (notification, actions) = self.enqueue(user, message, key, &digest).await?;
        if self.add(actions).await? {
            self.work.notify_one();
            return Ok(Accepted::New(notification));
        }
        // Someone else used the key between the read and the write.
        let before = match key {
            Some(key) => self.accepted_before(user, key, &digest).await?,
            None => None,
        };
        before
            .map(Accepted::Before)
            .ok_or_else(|| store_error(StoreError::Throttled))
    }

    /// The writes that accept a message, for another system that commits them together with its own.
    /// None if the message was accepted before with this key.
    ///
    /// # Errors
    /// As [`Push::notify`], except for a full outbox: then the condition of a write does not hold.
    pub(crate) async fn accepting_writes(
        &self,
        user: &UserId,
        message: Message,
        key: &IdempotencyKey,
    ) -> Result<Option<Vec<Action>>, PushError> {
        let digest = digest(&message);
        if self.accepted_before(user, key, &digest).await?.is_some() {
            return Ok(None);
        }
        let (_, actions) = self.enqueue(user, message, Some(key), &digest).await?;
        Ok(Some(actions))
    }

    /// Wakes the worker after writes of [`Push::accepting_writes`] were committed.
    pub(crate) fn wake_worker(&self) {
        self.work.notify_one();
    }

    async fn enqueue(
        &self,
        user: &UserId,
        message: Message,
        key: Option<&IdempotencyKey>,
        digest: &str,
    ) -> Result<(Notification, Vec<Action>), PushError> {
        let now = self.now();
        let devices = self.devices_to_notify(user).await?;
        let has_work = !devices.is_empty();
        let notification = Notification {
            id: NotificationId::new(now),
            user_id: user.clone(),
            message,
            created_at: now,
            finished_at: (!has_work).then_some(now),
            devices: devices
                .into_iter()
                .map(|device| DeviceDelivery::queued(device, now))
                .collect(),
            part: Part::ONLY,
            version: 1,
        };
        let parts = notification.clone().into_parts();
        let mut actions: Vec<Action> = parts
            .iter()
            .map(|part| Put::new(schema::NOTIFICATIONS, stored::to_item(part)).into())
            .collect();
        if has_work {
            let max = i64::try_from(self.settings.outbox_max).unwrap_or(i64::MAX);
            let more = i64::try_from(parts.len()).unwrap_or(i64::MAX);
            let more = schema::open_counter().add(schema::NOTIFICATIONS, more, Some(max));
            actions.push(more.into());
        }
        if let Some(key) = key {
            let forget_at = now.seconds().plus_secs(NOTIFICATION_RETENTION_SECS);
            let marker = marker_key(user, key)
                .with(schema::NOTIFICATION_ID, notification.id.as_str())
                .with(schema::ASKED, digest)
                .with(schema::FORGET_AT, forget_at.0);
            let put = Put::new(schema::NOTIFICATIONS, marker);
            actions.push(put.when(Condition::not_exists(schema::PK)).into());
        }
        Ok((notification, actions))
    }

    /// Commits the writes; false when the idempotency key is taken.
    async fn add(&self, actions: Vec<Action>) -> Result<bool, PushError> {
        let mut pause = CONFLICT_PAUSE;
        for _ in 0..CONFLICT_RETRIES_MAX {
            match self.store.transact(Transaction::new(actions.clone())).await {
                Ok(()) => return Ok(true),
                Err(TransactError::Cancelled(reasons)) => {
                    let mut failed = reasons.iter().zip(&actions).filter_map(|(reason, action)| {
                        let failed = matches!(reason, CancelReason::ConditionFailed { .. });
                        failed.then_some(matches!(action, Action::Put(_)))
                    });
                    match failed.next_back() {
                        Some(true) => return Ok(false),
                        Some(false) => {
                            metrics::counter!("homeport_push_outbox_refused_total").increment(1);
                            return Err(PushError::OutboxFull);
                        }
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

    async fn accepted_before(
        &self,
        user: &UserId,
        key: &IdempotencyKey,
        digest: &str,
    ) -> Result<Option<Notification>, PushError> {
        let Some(marker) = self.marker(user, key).await? else {
            return Ok(None);
        };
        if marker.get(schema::ASKED).and_then(Value::as_str) != Some(digest) {
            return Err(PushError::KeyReused);
        }
        self.marked(user, &marker).await.map(Some)
    }

    /// The notification that was accepted with a key, if it is still stored.
    pub(crate) async fn accepted_with(
        &self,
        user: &UserId,
        key: &IdempotencyKey,
    ) -> Result<Option<Notification>, PushError> {
        let Some(marker) = self.marker(user, key).await? else {
            return Ok(None);
        };
        match self.marked(user, &marker).await {
            Ok(notification) => Ok(Some(notification)),
            Err(PushError::NotificationMissing) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn marker(&self, user: &UserId, key: &IdempotencyKey) -> Result<Option<Item>, PushError> {
        let get = Get::new(schema::NOTIFICATIONS, marker_key(user, key));
        self.store.get(get).await.map_err(store_error)
    }

    /// The notification that an idempotency key names.
    async fn marked(&self, user: &UserId, marker: &Item) -> Result<Notification, PushError> {
        let id = marker.get(schema::NOTIFICATION_ID).and_then(Value::as_str);
        let id = id.and_then(|id| id.parse().ok()).ok_or_else(|| {
            PushError::Malformed("an idempotency key has no notification".to_owned())
        })?;
        self.notification(user, &id).await
    }

    /// Pattern 4 for the ids alone: tokens are read when messages are sent.
    async fn devices_to_notify(&self, user: &UserId) -> Result<Vec<DeviceId>, PushError> {
        let mut query = Query::new(self.table(), KeyCondition::new(schema::USER_ID, user))
            .filter(Path::from(schema::IS_ACTIVE).equals(true));
        query.projection = Some(Projection::new([schema::DEVICE_ID]));
        let mut devices = Vec::new();
        loop {
            let page = self.store.query(query.clone()).await.map_err(store_error)?;
            for item in &page.items {
                let id = item.get(schema::DEVICE_ID).and_then(Value::as_str);
                match id.and_then(|id| id.parse().ok()) {
                    Some(id) => devices.push(id),
                    None => tracing::warn!("skipped a malformed device id"),
                }
            }
            if devices.len() > DEVICES_PER_NOTIFICATION_MAX {
                metrics::counter!("homeport_push_too_many_devices_total").increment(1);
                return Err(PushError::TooManyDevices);
            }
            query.start = page.next;
            if query.start.is_none() {
                return Ok(devices);
            }
        }
    }

    /// A notification with the state of its deliveries.
    ///
    /// # Errors
    /// When the user has no notification with this id or the store fails.
    pub async fn notification(
        &self,
        user: &UserId,
        id: &NotificationId,
    ) -> Result<Notification, PushError> {
        let get = Get::new(schema::NOTIFICATIONS, notification_key(user, id));
        let item = self.store.get(get).await.map_err(store_error)?;
        let item = item.ok_or(PushError::NotificationMissing)?;
        self.whole(stored::from_item(&item)?).await
    }

    /// A notification with all of its parts, from its first part.
    async fn whole(&self, mut notification: Notification) -> Result<Notification, PushError> {
        let count = std::mem::replace(&mut notification.part, Part::ONLY).count;
        if count == Part::ONLY.count {
            return Ok(notification);
        }
        let (user, id) = (&notification.user_id, &notification.id);
        let keys = (1..count).map(|part| stored::part_key(user, id, part));
        let items = fetch(&*self.store, schema::NOTIFICATIONS, keys, None).await;
        let items = items.map_err(store_error)?;
        let parts: Result<Vec<_>, _> = items.iter().map(stored::from_item).collect();
        let mut parts = parts?;
        parts.sort_by_key(|part| part.part.number);
        for part in parts {
            notification.add_part(part);
        }
        Ok(notification)
    }

    /// A user's notifications, newest first.
    ///
    /// # Errors
    /// When the cursor is of another list or the store fails.
    pub async fn notifications(
        &self,
        user: &UserId,
        limit: usize,
        cursor: Option<Cursor>,
    ) -> Result<Page<Notification>, PushError> {
        let list = format!("push-notifications/{user}");
        let start = cursor.map(|cursor| cursor.start_of(&list)).transpose()?;
        let condition = KeyCondition::new(schema::PK, schema::user_partition(user)).with_sort(
            schema::SK,
            SortCondition::BeginsWith(schema::NOTIFICATION.into()),
        );
        let query = Query::new(schema::NOTIFICATIONS, condition)
            .filter(Condition::not_exists(schema::PART))
            .descending()
            .starting_after(start);
        let table = schema::notifications();
        let limit = limit.clamp(1, PAGE_MAX);
        let page = pages::read_page(&*self.store, &table, query, &list, limit)
            .await
            .map_err(page_error)?;
        let (mut notifications, mut deliveries) = (Vec::new(), 0);
        for item in &page.items {
            let notification = self.whole(stored::from_item(item)?).await?;
            deliveries += notification.devices.len();
            notifications.push(notification);
            if deliveries >= DELIVERIES_PER_PAGE_MAX && notifications.len() < page.items.len() {
                let last = notifications.last().map(|last| &last.id);
                let next = last.map(|id| Cursor::new(&*list, notification_key(user, id)));
                return Ok(Page {
                    items: notifications,
                    next,
                });
            }
        }
        Ok(Page {
            items: notifications,
            next: page.next,
        })
    }
}

fn marker_key(user: &UserId, key: &IdempotencyKey) -> Item {
    schema::key(
        schema::user_partition(user),
        format!("{}{key}", schema::IDEMPOTENCY_KEY),
    )
}

fn digest(message: &Message) -> String {
    hex::encode(Sha256::digest(message.to_json()))
}
