//! Erasing a user: all devices, notifications and idempotency keys.

use homeport_item::expression::{Condition, KeyCondition, Path, Projection};
use homeport_item::{Item, Value};
use homeport_store::{Action, Delete, Get, Query, StoreError, WriteError};

use super::measured::store_error;
use super::notifications::stored;
use super::types::UserId;
use super::{Push, PushError, schema};
use crate::outbox::{DeliveryState, commit};

/// Attempts at deleting a notification that the worker is sending.
const ATTEMPTS_MAX: usize = 16;

/// What was deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Erased {
    pub devices: usize,
    pub notifications: usize,
}

impl Push {
    /// Deletes everything that is stored about a user. Notifications that wait to be sent are not sent any more.
    ///
    /// # Errors
    /// When the store fails; calling it again continues.
    pub async fn erase_user(&self, user: &UserId) -> Result<Erased, PushError> {
        let devices = Query {
            projection: Some(Projection::new([schema::USER_ID, schema::DEVICE_ID])),
            ..Query::new(self.table(), KeyCondition::new(schema::USER_ID, user))
        };
        let mut erased = Erased::default();
        for key in self.all(devices).await? {
            let id = key.get(schema::DEVICE_ID).and_then(Value::as_str);
            match id.and_then(|id| id.parse().ok()) {
                Some(id) => match self.delete(user, &id).await {
                    Ok(()) | Err(PushError::DeviceMissing) => {}
                    Err(error) => return Err(error),
                },
                // Another program wrote it.
                None => self.delete_item(self.table(), key).await?,
            }
            erased.devices += 1;
        }
        let partition = schema::user_partition(user);
        let items = Query {
            projection: Some(Projection::new([schema::PK, schema::SK])),
            ..Query::new(
                schema::NOTIFICATIONS,
                KeyCondition::new(schema::PK, partition),
            )
        };
        for key in self.all(items).await? {
            let is_notification = is_first_part(&key);
            self.delete_notification(key).await?;
            erased.notifications += usize::from(is_notification);
        }
        tracing::info!(
            devices = erased.devices,
            notifications = erased.notifications,
            "erased a user"
        );
        Ok(erased)
    }

    /// All items of a query, read consistently.
    pub(super) async fn all(&self, query: Query) -> Result<Vec<Item>, PushError> {
        let mut query = Query {
            consistent: true,
            ..query
        };
        let mut items = Vec::new();
        loop {
            let page = self.store.query(query.clone()).await.map_err(store_error)?;
            items.extend(page.items);
            query.start = page.next;
            if query.start.is_none() {
                return Ok(items);
            }
        }
    }

    /// Deletes an item of a user's notifications. If it is open, the count of open notifications changes with it.
    async fn delete_notification(&self, key: Item) -> Result<(), PushError> {
        for _ in 0..ATTEMPTS_MAX {
            let get = Get::new(schema::NOTIFICATIONS, key.clone());
            let Some(item) = self.store.get(get).await.map_err(store_error)? else {
                return Ok(());
            };
            if item.get(schema::WORK).is_none() {
                return self.delete_item(schema::NOTIFICATIONS, key).await;
            }
            let version = item.get(schema::VERSION).cloned();
            let is_unchanged = version.map_or_else(
                || Condition::not_exists(schema::VERSION),
                |version| Path::from(schema::VERSION).equals(version),
            );
            let delete = Delete::new(schema::NOTIFICATIONS, key.clone()).when(is_unchanged);
            let one_less = schema::open_counter().add(schema::NOTIFICATIONS, -1, None);
            let mut writes = vec![delete.into(), one_less.into()];
            writes.extend(leaving_broadcast(&item));
            if commit(&*self.store, writes).await.map_err(store_error)? {
                return Ok(());
            }
        }
        Err(store_error(StoreError::Throttled))
    }

    async fn delete_item(&self, table: &str, key: Item) -> Result<(), PushError> {
        match self.store.delete(Delete::new(table, key)).await {
            Ok(_) | Err(WriteError::ConditionFailed { .. }) => Ok(()),
            Err(WriteError::Store(error)) => Err(store_error(error)),
        }
    }
}

/// The write by which a broadcast counts that the rest of a deleted notification is not sent.
fn leaving_broadcast(item: &Item) -> Option<Action> {
    let notification = stored::from_item(item).ok()?;
    let mut erased = notification.clone();
    for device in &mut erased.devices {
        if device.delivery.is_unsent() {
            device.delivery.state = DeliveryState::Dropped;
        }
        device.delivery.next_at = None;
    }
    erased.counting(&notification)
}

/// Whether a key is that of a notification, and not of another part of one or of an idempotency key.
fn is_first_part(key: &Item) -> bool {
    let sort = key.get(schema::SK).and_then(Value::as_str);
    let id = sort.and_then(|sort| sort.strip_prefix(schema::NOTIFICATION));
    id.is_some_and(|id| !id.contains('#'))
}
