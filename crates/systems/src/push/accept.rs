//! Accepting a notification: it is in the outbox, durable, before it is answered, and the same one
//! sent again is the same one.

use homeport_item::expression::{Condition, KeyCondition, Path, Projection, SortCondition};
use homeport_item::{Item, Value};
use homeport_store::{
    Action, CancelReason, Get, Put, Query, StoreError, TransactError, Transaction,
};
use sha2::{Digest as _, Sha256};

use super::measured::{page_error, store_error};
use super::message::Message;
use super::notification::{DeviceFate, Notification, NotificationId, NotificationPage};
use super::stored::{self, CONFLICT_PAUSE, CONFLICTS_MAX, count_open, notification_key};
use super::types::{DeviceId, IdempotencyKey, UserId};
use super::{
    DEVICES_PER_NOTIFICATION_MAX, NOTIFICATION_RETENTION_SECS, PAGE_MAX, Push, PushError, schema,
};
use crate::cursor::Cursor;
use crate::pages;

/// What accepting did.
#[derive(Debug, Clone, PartialEq)]
pub enum Accepted {
    New(Notification),
    /// The same was accepted before with this key; nothing was done.
    Before(Notification),
}

impl Push {
    /// Accepts a message to every device of a user that is active now. A user without one is no
    /// error: the notification is finished at once, and says so.
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
        let asked = digest(&message);
        if let Some(key) = key
            && let Some(before) = self.accepted_before(user, key, &asked).await?
        {
            return Ok(Accepted::Before(before));
        }
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
                .map(|device| DeviceFate::queued(device, now))
                .collect(),
            version: 1,
        };
        let mut actions: Vec<Action> =
            vec![Put::new(schema::NOTIFICATIONS, stored::to_item(&notification)).into()];
        if has_work {
            let max = i64::try_from(self.settings.outbox_max).unwrap_or(i64::MAX);
            actions.push(count_open(1, Some(max)).into());
        }
        if let Some(key) = key {
            let marker = marker_key(user, key)
                .with(schema::NOTIFICATION_ID, notification.id.as_str())
                .with(schema::ASKED, asked.clone())
                .with(
                    schema::FORGET_AT,
                    now.seconds().plus_secs(NOTIFICATION_RETENTION_SECS).0,
                );
            let put = Put::new(schema::NOTIFICATIONS, marker);
            actions.push(put.when(Condition::not_exists(schema::PK)).into());
        }
        if self.add(actions).await? {
            self.work.notify_one();
            return Ok(Accepted::New(notification));
        }
        // Someone else used the key between looking and writing.
        let before = match key {
            Some(key) => self.accepted_before(user, key, &asked).await?,
            None => None,
        };
        before
            .map(Accepted::Before)
            .ok_or_else(|| store_error(StoreError::Throttled))
    }

    /// Whether everything was written; it is not when the key, the third action, is taken.
    async fn add(&self, actions: Vec<Action>) -> Result<bool, PushError> {
        let mut pause = CONFLICT_PAUSE;
        for _ in 0..CONFLICTS_MAX {
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
                        // In the way of another transaction.
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
        asked: &str,
    ) -> Result<Option<Notification>, PushError> {
        let get = Get::new(schema::NOTIFICATIONS, marker_key(user, key));
        let Some(marker) = self.store.get(get).await.map_err(store_error)? else {
            return Ok(None);
        };
        let text = |name: &str| marker.get(name).and_then(Value::as_str);
        if text(schema::ASKED) != Some(asked) {
            return Err(PushError::KeyReused);
        }
        let id = text(schema::NOTIFICATION_ID).and_then(|id| id.parse().ok());
        let id = id.ok_or_else(|| PushError::Malformed("a key has no notification".to_owned()))?;
        self.notification(user, &id).await.map(Some)
    }

    /// Pattern 4 once more, for the ids alone: the tokens are read when they are sent to.
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
                    None => tracing::warn!("a device id that something else wrote is left out"),
                }
            }
            if devices.len() > DEVICES_PER_NOTIFICATION_MAX {
                return Err(PushError::TooManyDevices);
            }
            query.start = page.next;
            if query.start.is_none() {
                return Ok(devices);
            }
        }
    }

    /// What became of a notification.
    ///
    /// # Errors
    /// When the user has none with this id or the store fails.
    pub async fn notification(
        &self,
        user: &UserId,
        id: &NotificationId,
    ) -> Result<Notification, PushError> {
        let get = Get::new(schema::NOTIFICATIONS, notification_key(user, id));
        let item = self.store.get(get).await.map_err(store_error)?;
        item.as_ref()
            .map_or(Err(PushError::NotificationMissing), stored::from_item)
    }

    /// A user's notifications, the newest first.
    ///
    /// # Errors
    /// When the cursor is not one of this list or the store fails.
    pub async fn notifications(
        &self,
        user: &UserId,
        limit: usize,
        cursor: Option<Cursor>,
    ) -> Result<NotificationPage, PushError> {
        let list = format!("push-notifications/{user}");
        let start = cursor.map(|cursor| cursor.start_of(&list)).transpose()?;
        let condition = KeyCondition::new(schema::PK, schema::user_partition(user)).with_sort(
            schema::SK,
            SortCondition::BeginsWith(schema::NOTIFICATION.into()),
        );
        let query = Query::new(schema::NOTIFICATIONS, condition)
            .descending()
            .starting_after(start);
        let table = schema::notifications();
        let limit = limit.clamp(1, PAGE_MAX);
        let page = pages::read_page(&*self.store, &table, query, &list, limit)
            .await
            .map_err(page_error)?;
        Ok(NotificationPage {
            notifications: page
                .items
                .iter()
                .map(stored::from_item)
                .collect::<Result<_, _>>()?,
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
