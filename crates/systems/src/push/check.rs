//! The checks of the runbook: the state of the table, and why a user may get no notifications.

use std::collections::HashMap;

use homeport_item::expression::{KeyCondition, SortCondition};
use homeport_item::{Item, Value};
use homeport_store::{Query, Scan};

use super::measured::store_error;
use super::notifications::stored;
use super::notifications::{Notification, NotificationId};
use super::types::{ExpoPushToken, Platform, UserId};
use super::{Push, PushError, schema};
use crate::outbox::DeliveryState;
use crate::time::EpochSeconds;

/// Items in a page.
const SCANNED_AT_ONCE: usize = 1000;
/// Devices of a user that are checked.
const USER_DEVICES_MAX: usize = 1000;
/// Notifications, or parts of them, in which the last one of each device is looked up.
const LAST_NOTIFICATIONS_MAX: usize = 100;

/// The state of the table of device tokens, without expired devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TableCheck {
    pub devices: usize,
    pub active: usize,
    /// Active devices of each platform that the document knows.
    pub active_ios: usize,
    pub active_android: usize,
    /// Devices that never expire: another program wrote them.
    pub without_expiry: usize,
    /// Devices with a token that Expo rejects.
    pub wrong_token: usize,
    /// Open notifications.
    pub outbox_open: i64,
}

/// A device of a user, and whether it would get a notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserDeviceCheck {
    pub device_id: String,
    pub verdict: DeviceVerdict,
    pub is_active: bool,
    /// As stored; a store hides expired devices.
    pub expires_at: Option<EpochSeconds>,
    pub has_valid_token: bool,
    /// The newest of the last notifications that was for this device.
    pub last_notification: Option<LastNotification>,
}

/// Whether a device gets notifications.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceVerdict {
    Reachable,
    /// Until it registers again.
    Inactive,
    Expired,
    InvalidToken,
    /// It should get notifications, but the last one failed.
    LastFailed,
}

/// The delivery of a notification to a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastNotification {
    pub id: NotificationId,
    pub state: DeliveryState,
    pub reason: Option<String>,
}

impl Push {
    /// Checks the whole table.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn check_table(&self) -> Result<TableCheck, PushError> {
        let mut found = TableCheck {
            outbox_open: self.outbox.open_count().await.map_err(store_error)?,
            ..TableCheck::default()
        };
        let mut scan = Scan::new(self.table()).limit(SCANNED_AT_ONCE);
        loop {
            let page = self.store.scan(scan.clone()).await.map_err(store_error)?;
            for item in &page.items {
                found.devices += 1;
                found.active += usize::from(is_active(item));
                match text(item, schema::PLATFORM).parse() {
                    Ok(Platform::Ios) => found.active_ios += usize::from(is_active(item)),
                    Ok(Platform::Android) => found.active_android += usize::from(is_active(item)),
                    Err(_) => {}
                }
                found.without_expiry += usize::from(expires_at(item).is_none());
                found.wrong_token += usize::from(!has_valid_token(item));
            }
            scan.start = page.next;
            if scan.start.is_none() {
                return Ok(found);
            }
        }
    }

    /// Checks the devices of a user who gets no notifications.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn check_user(&self, user: &UserId) -> Result<Vec<UserDeviceCheck>, PushError> {
        let mut last = self.last_notifications(user).await?;
        let mut query = Query::new(self.table(), KeyCondition::new(schema::USER_ID, user));
        let mut found = Vec::new();
        loop {
            let page = self.store.query(query.clone()).await.map_err(store_error)?;
            found.extend(page.items.iter().map(|item| {
                let last = last.remove(text(item, schema::DEVICE_ID));
                check_device(item, last, self.now().seconds())
            }));
            query.start = page.next;
            if query.start.is_none() || found.len() >= USER_DEVICES_MAX {
                return Ok(found);
            }
        }
    }

    /// The newest notification of each device, among the last ones of a user.
    async fn last_notifications(
        &self,
        user: &UserId,
    ) -> Result<HashMap<String, LastNotification>, PushError> {
        let condition = KeyCondition::new(schema::PK, schema::user_partition(user)).with_sort(
            schema::SK,
            SortCondition::BeginsWith(schema::NOTIFICATION.into()),
        );
        let query = Query::new(schema::NOTIFICATIONS, condition)
            .descending()
            .limit(LAST_NOTIFICATIONS_MAX);
        let page = self.store.query(query).await.map_err(store_error)?;
        let mut last = HashMap::new();
        for item in &page.items {
            let Notification { id, devices, .. } = stored::from_item(item)?;
            for device in devices {
                let id = id.clone();
                let delivery = device.delivery;
                last.entry(device.device_id.to_string())
                    .or_insert_with(|| LastNotification {
                        id,
                        state: delivery.state,
                        reason: delivery.reason,
                    });
            }
        }
        Ok(last)
    }
}

fn check_device(item: &Item, last: Option<LastNotification>, now: EpochSeconds) -> UserDeviceCheck {
    let is_active = is_active(item);
    let expires_at = expires_at(item).map(EpochSeconds);
    let has_valid_token = has_valid_token(item);
    let is_failed = |last: &LastNotification| last.state == DeliveryState::Failed;
    let verdict = if !is_active {
        DeviceVerdict::Inactive
    } else if expires_at.is_some_and(|expires_at| expires_at <= now) {
        DeviceVerdict::Expired
    } else if !has_valid_token {
        DeviceVerdict::InvalidToken
    } else if last.as_ref().is_some_and(is_failed) {
        DeviceVerdict::LastFailed
    } else {
        DeviceVerdict::Reachable
    };
    UserDeviceCheck {
        device_id: text(item, schema::DEVICE_ID).to_owned(),
        verdict,
        is_active,
        expires_at,
        has_valid_token,
        last_notification: last,
    }
}

fn text<'a>(item: &'a Item, name: &str) -> &'a str {
    item.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn is_active(item: &Item) -> bool {
    item.get(schema::IS_ACTIVE).and_then(Value::as_bool) == Some(true)
}

fn expires_at(item: &Item) -> Option<i64> {
    let value = item.get(schema::EXPIRES_AT)?.as_number()?;
    value.to_i64()
}

fn has_valid_token(item: &Item) -> bool {
    let token = text(item, schema::EXPO_PUSH_TOKEN);
    token.parse::<ExpoPushToken>().is_ok()
}
