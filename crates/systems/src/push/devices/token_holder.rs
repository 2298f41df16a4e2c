//! Which user has a token. When a token registers for another user, the devices of the first that have it are
//! deleted in the same transaction: the phone has a new owner.
//!
//! The table of device tokens has no index by token, so that an item of Homeport's own table names the user. It has
//! a digest of the token, and expires with the registration.

use homeport_item::expression::{Condition, KeyCondition, Path, Projection};
use homeport_item::{Item, Value};
use homeport_store::{Action, Delete, Get, Put, Query, WriteError};

use crate::push::measured::store_error;
use crate::push::types::{ExpoPushToken, UserId};
use crate::push::{Push, PushError, schema};
use crate::time::EpochSeconds;

/// Devices of the first user that one registration deletes. A token is of one phone, so that there is rarely more
/// than one.
const DEVICES_MAX: usize = 50;

impl Push {
    /// The writes that give a token to a user, on the condition that it has not changed hands meanwhile.
    pub(super) async fn taking_token(
        &self,
        token: &ExpoPushToken,
        user: &UserId,
        expires_at: EpochSeconds,
    ) -> Result<Vec<Action>, PushError> {
        let get = Get::new(schema::NOTIFICATIONS, holder_key(token));
        let before = self.store.get(get).await.map_err(store_error)?;
        let before = before.as_ref().and_then(holder);
        let item = holder_key(token)
            .with(schema::NOTIFIED_USER_ID, user)
            .with(schema::FORGET_AT, expires_at.0);
        let is_unchanged = before
            .as_ref()
            .map_or_else(|| Condition::not_exists(schema::PK), is_held_by);
        let put = Put::new(schema::NOTIFICATIONS, item).when(is_unchanged);
        let mut writes = vec![put.into()];
        if let Some(before) = before.filter(|before| before != user) {
            let has_token = || Path::from(schema::EXPO_PUSH_TOKEN).equals(token);
            let query = Query {
                consistent: true,
                projection: Some(Projection::new([schema::USER_ID, schema::DEVICE_ID])),
                ..Query::new(self.table(), KeyCondition::new(schema::USER_ID, &before))
            };
            let devices = self.all(query.filter(has_token())).await?;
            let devices = devices.into_iter().take(DEVICES_MAX);
            writes
                .extend(devices.map(|key| Delete::new(self.table(), key).when(has_token()).into()));
        }
        Ok(writes)
    }

    /// Forgets that a user has a token, after its device was deleted.
    pub(super) async fn release_token(&self, token: &str, user: &UserId) -> Result<(), PushError> {
        // Another program may have stored anything.
        let Ok(token) = token.parse::<ExpoPushToken>() else {
            return Ok(());
        };
        let release = Delete::new(schema::NOTIFICATIONS, holder_key(&token));
        match self.store.delete(release.when(is_held_by(user))).await {
            Ok(_) | Err(WriteError::ConditionFailed { .. }) => Ok(()),
            Err(WriteError::Store(error)) => Err(store_error(error)),
        }
    }
}

fn holder_key(token: &ExpoPushToken) -> Item {
    let key = format!("{}{}", schema::TOKEN, token.digest());
    schema::key(key.clone(), key)
}

fn holder(item: &Item) -> Option<UserId> {
    let user = item.get(schema::NOTIFIED_USER_ID).and_then(Value::as_str);
    user?.parse().ok()
}

fn is_held_by(user: &UserId) -> Condition {
    Path::from(schema::NOTIFIED_USER_ID).equals(user)
}
