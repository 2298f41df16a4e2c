//! The checks of the runbook: the state of the table, and why a user may get no notifications.

use homeport_item::Value;
use homeport_item::expression::KeyCondition;
use homeport_store::{Query, Scan};

use super::measured::store_error;
use super::types::{ExpoPushToken, UserId};
use super::{Push, PushError, schema};

/// Items in a page.
const SCANNED_AT_ONCE: usize = 1000;
/// Devices of a user that are checked.
const USER_DEVICES_MAX: usize = 1000;

/// The state of the table of device tokens, without expired devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TableCheck {
    pub devices: usize,
    pub active: usize,
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
    pub is_active: bool,
    /// As stored; expired devices are not listed at all.
    pub expires_at: Option<i64>,
    pub has_right_token: bool,
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
                found.without_expiry += usize::from(expires_at(item).is_none());
                found.wrong_token += usize::from(!has_right_token(item));
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
        let mut query = Query::new(self.table(), KeyCondition::new(schema::USER_ID, user));
        let mut found = Vec::new();
        loop {
            let page = self.store.query(query.clone()).await.map_err(store_error)?;
            found.extend(page.items.iter().map(|item| UserDeviceCheck {
                device_id: text(item, schema::DEVICE_ID).to_owned(),
                is_active: is_active(item),
                expires_at: expires_at(item),
                has_right_token: has_right_token(item),
            }));
            query.start = page.next;
            if query.start.is_none() || found.len() >= USER_DEVICES_MAX {
                return Ok(found);
            }
        }
    }
}

fn text<'a>(item: &'a homeport_item::Item, name: &str) -> &'a str {
    item.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn is_active(item: &homeport_item::Item) -> bool {
    item.get(schema::IS_ACTIVE).and_then(Value::as_bool) == Some(true)
}

fn expires_at(item: &homeport_item::Item) -> Option<i64> {
    let value = item.get(schema::EXPIRES_AT)?.as_number()?;
    value.to_i64()
}

fn has_right_token(item: &homeport_item::Item) -> bool {
    let token = text(item, schema::EXPO_PUSH_TOKEN);
    token.parse::<ExpoPushToken>().is_ok()
}
