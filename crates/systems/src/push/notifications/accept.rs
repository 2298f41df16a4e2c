//! Accepting a notification: it is durable in the outbox before the request is answered, and a repeat
//! with the same idempotency key is the same notification.

use homeport_item::Value;
use homeport_item::expression::{Condition, KeyCondition, Path, Projection, SortCondition};
use homeport_store::{Action, Get, Put, Query, StoreError};

use super::idempotency::{Added, KeyMarker};
use super::message::Message;
use super::notification::{DeviceDelivery, Notification, NotificationId, Part};
use super::stored::{self, notification_key};
use crate::cursor::Cursor;
use crate::fetch::fetch;
use crate::pages::{self, Page};
use crate::push::measured::{page_error, store_error};
use crate::push::types::{DeviceId, IdempotencyKey, UserId};
use crate::push::{DEVICES_PER_NOTIFICATION_MAX, PAGE_MAX, Push, PushError, schema};

/// A page of notifications ends after so many deliveries, because each has a trace.
const DELIVERIES_PER_PAGE_MAX: usize = 10_000;

/// The result of accepting a notification or a broadcast.
#[derive(Debug, Clone, PartialEq)]
pub enum Accepted<T> {
    New(T),
    /// The same was accepted before with this key; nothing was done.
    Before(T),
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
    ) -> Result<Accepted<Notification>, PushError> {
        let marker = key.map(|key| marker(user, key, &message));
        if let Some(marker) = &marker
            && let Some(before) = self.notified_before(user, marker).await?
        {
            return Ok(Accepted::Before(before));
        }
        let (notification, actions) = self.enqueue(user, message, marker.as_ref()).await?;
        match (self.add(actions).await?, &marker) {
            (Added::Done, _) => {
                self.work.notify_one();
                Ok(Accepted::New(notification))
            }
            (Added::Full, _) => {
                metrics::counter!("homeport_push_outbox_refused_total").increment(1);
                Err(PushError::OutboxFull)
            }
            (Added::KeyTaken, Some(marker)) => {
                let before = self.notified_before(user, marker).await?;
                before
                    .map(Accepted::Before)
                    .ok_or_else(|| store_error(StoreError::Throttled))
            }
            (Added::KeyTaken, None) => Err(store_error(StoreError::Throttled)),
        }
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
        let marker = marker(user, key, &message);
        let before: Option<NotificationId> = self.accepted_before(&marker).await?;
        if before.is_some() {
            return Ok(None);
        }
        let (_, actions) = self.enqueue(user, message, Some(&marker)).await?;
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
        marker: Option<&KeyMarker>,
    ) -> Result<(Notification, Vec<Action>), PushError> {
        let now = self.now();
        let is_active = Path::from(schema::IS_ACTIVE).equals(true);
        let devices = self.devices_to_notify(user, is_active).await?;
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
            tally: None,
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
        actions.extend(marker.map(|marker| marker.put(notification.id.as_str(), now)));
        Ok((notification, actions))
    }

    async fn notified_before(
        &self,
        user: &UserId,
        marker: &KeyMarker,
    ) -> Result<Option<Notification>, PushError> {
        let Some(id) = self.accepted_before(marker).await? else {
            return Ok(None);
        };
        self.notification(user, &id).await.map(Some)
    }

    /// The notification that was accepted with a key, if it is still stored.
    pub(crate) async fn accepted_with(
        &self,
        user: &UserId,
        key: &IdempotencyKey,
    ) -> Result<Option<Notification>, PushError> {
        let id = self.accepted_with_key(schema::user_partition(user), key);
        let Some(id) = id.await? else {
            return Ok(None);
        };
        match self.notification(user, &id).await {
            Ok(notification) => Ok(Some(notification)),
            Err(PushError::NotificationMissing) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Pattern 4 for the ids alone: tokens are read when messages are sent.
    pub(in crate::push) async fn devices_to_notify(
        &self,
        user: &UserId,
        filter: Condition,
    ) -> Result<Vec<DeviceId>, PushError> {
        let query = Query::new(self.table(), KeyCondition::new(schema::USER_ID, user));
        let mut query = query.filter(filter);
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

fn marker(user: &UserId, key: &IdempotencyKey, message: &Message) -> KeyMarker {
    KeyMarker::new(schema::user_partition(user), key, &message.to_json())
}
