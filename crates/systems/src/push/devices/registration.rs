//! Access patterns 1 to 6: registering, refreshing, reading, listing active devices, deactivating and
//! deleting.

use homeport_item::expression::{Condition, KeyCondition, Path, Update};
use homeport_item::{Item, Value};
use homeport_store::{
    Action, Delete, Get, Put, Query, ReturnValues, StoreError, Update as UpdateRequest, WriteError,
};

use crate::cursor::Cursor;
use crate::outbox::commit;
use crate::pages::{self, Page};
use crate::push::measured::{page_error, store_error, write_error};
use crate::push::types::{DeviceId, ExpoPushToken, Platform, UserId};
use crate::push::{PAGE_MAX, Push, PushError, TOKEN_LIFETIME_SECS, schema};
use crate::time::{EpochSeconds, UtcMillis};

/// Attempts at registering a device while it or its token is registered or deleted concurrently.
const ATTEMPTS_MAX: usize = 16;

/// A device to register.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewDevice {
    pub user_id: UserId,
    pub device_id: DeviceId,
    pub expo_push_token: ExpoPushToken,
    pub platform: Platform,
}

/// A stored device. Values of other programs are shown unchanged, so the token is a plain text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    pub user_id: UserId,
    pub device_id: DeviceId,
    pub expo_push_token: String,
    pub platform: String,
    pub registered_at: String,
    pub updated_at: String,
    pub is_active: bool,
    pub expires_at: Option<EpochSeconds>,
}

/// The result of registering.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Registered {
    /// Pattern 1: the device was created.
    New(Device),
    /// Pattern 2: it existed already.
    Refreshed(Device),
}

impl Device {
    pub(super) fn from_item(item: &Item) -> Result<Self, PushError> {
        let text = |name: &'static str| {
            let text = item.get(name).and_then(Value::as_str);
            text.ok_or_else(|| PushError::Malformed(format!("{name} is missing or no string")))
        };
        let malformed = |error| PushError::Malformed(format!("{error}"));
        Ok(Self {
            user_id: text(schema::USER_ID)?
                .parse()
                .map_err(|error: crate::sensors::InvalidField| malformed(error))?,
            device_id: text(schema::DEVICE_ID)?
                .parse()
                .map_err(|error: crate::sensors::InvalidField| malformed(error))?,
            expo_push_token: text(schema::EXPO_PUSH_TOKEN)?.to_owned(),
            platform: text(schema::PLATFORM)?.to_owned(),
            registered_at: text(schema::REGISTERED_AT)?.to_owned(),
            updated_at: text(schema::UPDATED_AT)?.to_owned(),
            is_active: item
                .get(schema::IS_ACTIVE)
                .and_then(Value::as_bool)
                .ok_or_else(|| PushError::Malformed("isActive is no boolean".to_owned()))?,
            expires_at: item
                .get(schema::EXPIRES_AT)
                .and_then(Value::as_number)
                .and_then(|number| number.to_i64())
                .map(EpochSeconds),
        })
    }
}

impl Push {
    /// Patterns 1 and 2: creates or refreshes a device. Either way it is active and expires 90 days from
    /// now. If another user had the token, it leaves that user.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn register(&self, new: NewDevice) -> Result<Registered, PushError> {
        let key = schema::device_key(&new.user_id, &new.device_id);
        for _ in 0..ATTEMPTS_MAX {
            let get = Get::new(self.table(), key.clone());
            let stored = self.store.get(get).await.map_err(store_error)?;
            let expires_at = self.now().seconds().plus_secs(TOKEN_LIFETIME_SECS);
            let (write, registered) = match stored {
                None => self.put_new(&new, expires_at)?,
                Some(stored) => self.refresh(&new, stored, expires_at)?,
            };
            let mut writes = vec![write];
            let taking = self.taking_token(&new.expo_push_token, &new.user_id, expires_at);
            writes.extend(taking.await?);
            if commit(&*self.store, writes).await.map_err(store_error)? {
                return Ok(registered);
            }
            // The device or the token changed in between. That is not counted as a failed condition.
        }
        Err(store_error(StoreError::Throttled))
    }

    /// Pattern 1.
    fn put_new(
        &self,
        new: &NewDevice,
        expires_at: EpochSeconds,
    ) -> Result<(Action, Registered), PushError> {
        let now = UtcMillis::new(self.now()).to_string();
        let mut item = schema::device_key(&new.user_id, &new.device_id)
            .with(schema::EXPO_PUSH_TOKEN, &new.expo_push_token)
            .with(schema::PLATFORM, new.platform.as_str())
            .with(schema::REGISTERED_AT, now.clone())
            .with(schema::UPDATED_AT, now)
            .with(schema::IS_ACTIVE, true)
            .with(schema::EXPIRES_AT, expires_at.0);
        if self.settings.broadcast_index {
            item.insert(schema::ACTIVE_PLATFORM, new.platform.as_str());
        }
        let device = Device::from_item(&item)?;
        let is_new =
            Condition::not_exists(schema::USER_ID).or(Condition::not_exists(schema::DEVICE_ID));
        let put = Put::new(self.table(), item).when(is_new);
        Ok((put.into(), Registered::New(device)))
    }

    /// Pattern 2.
    fn refresh(
        &self,
        new: &NewDevice,
        stored: Item,
        expires_at: EpochSeconds,
    ) -> Result<(Action, Registered), PushError> {
        let platform = new.platform.as_str();
        let changes: [(&str, Value); 5] = [
            (schema::EXPO_PUSH_TOKEN, (&new.expo_push_token).into()),
            (
                schema::UPDATED_AT,
                UtcMillis::new(self.now()).to_string().into(),
            ),
            (schema::IS_ACTIVE, true.into()),
            (schema::EXPIRES_AT, expires_at.0.into()),
            (schema::PLATFORM, platform.into()),
        ];
        let indexed =
            (self.settings.broadcast_index).then(|| (schema::ACTIVE_PLATFORM, platform.into()));
        let mut update = Update::new();
        let mut refreshed = stored;
        for (name, value) in changes.into_iter().chain(indexed) {
            refreshed.insert(name, value.clone());
            update = update.set(name, value);
        }
        let key = schema::device_key(&new.user_id, &new.device_id);
        let request =
            UpdateRequest::new(self.table(), key, update).when(Condition::exists(schema::USER_ID));
        let device = Device::from_item(&refreshed)?;
        Ok((request.into(), Registered::Refreshed(device)))
    }

    /// Pattern 3: one device, seeing every write answered before.
    ///
    /// # Errors
    /// When the device does not exist or the store fails.
    pub async fn device(&self, user: &UserId, device: &DeviceId) -> Result<Device, PushError> {
        let get = Get::new(self.table(), schema::device_key(user, device));
        let item = self.store.get(get).await.map_err(store_error)?;
        item.as_ref()
            .map_or(Err(PushError::DeviceMissing), Device::from_item)
    }

    /// Pattern 4: a user's active devices.
    ///
    /// # Errors
    /// When the cursor is not one of this list or the store fails.
    pub async fn active_devices(
        &self,
        user: &UserId,
        limit: usize,
        cursor: Option<Cursor>,
    ) -> Result<Page<Device>, PushError> {
        let list = format!("push-devices/{user}");
        let start = cursor.map(|cursor| cursor.start_of(&list)).transpose()?;
        let query = Query::new(self.table(), KeyCondition::new(schema::USER_ID, user))
            .filter(Path::from(schema::IS_ACTIVE).equals(true))
            .starting_after(start);
        let limit = limit.clamp(1, PAGE_MAX);
        let table = self.device_tokens();
        let page = pages::read_page(&*self.store, &table, query, &list, limit)
            .await
            .map_err(page_error)?;
        Ok(page.readable(&table, Device::from_item))
    }

    /// Pattern 5: a device that is to get nothing any more.
    ///
    /// # Errors
    /// When the device does not exist or the store fails.
    pub async fn deactivate(&self, user: &UserId, device: &DeviceId) -> Result<Device, PushError> {
        let request = self
            .deactivation(user, device, Condition::exists(schema::USER_ID))
            .returning(ReturnValues::AllNew);
        match self.store.update(request).await.map_err(write_error)? {
            Some(item) => Device::from_item(&item),
            None => Err(PushError::DeviceMissing),
        }
    }

    /// Pattern 5 after Expo reported an unknown token: only while the device has that token. A device
    /// that registered again meanwhile stays active, which does not count as a failed condition.
    pub(in crate::push) async fn deactivate_token(
        &self,
        user: &UserId,
        device: &DeviceId,
        token: &str,
    ) -> Result<bool, PushError> {
        let has_token = Path::from(schema::EXPO_PUSH_TOKEN).equals(token);
        let condition = Condition::exists(schema::USER_ID).and(has_token);
        match self
            .store
            .update(self.deactivation(user, device, condition))
            .await
        {
            Ok(_) => Ok(true),
            Err(WriteError::ConditionFailed { .. }) => Ok(false),
            Err(WriteError::Store(error)) => Err(error.into()),
        }
    }

    fn deactivation(
        &self,
        user: &UserId,
        device: &DeviceId,
        condition: Condition,
    ) -> UpdateRequest {
        let mut update = Update::new()
            .set(schema::IS_ACTIVE, false)
            .set(schema::UPDATED_AT, UtcMillis::new(self.now()).to_string());
        if self.settings.broadcast_index {
            update = update.remove(schema::ACTIVE_PLATFORM);
        }
        UpdateRequest::new(self.table(), schema::device_key(user, device), update).when(condition)
    }

    /// Pattern 6: a device that is to be forgotten.
    ///
    /// # Errors
    /// When the device does not exist or the store fails.
    pub async fn delete(&self, user: &UserId, device: &DeviceId) -> Result<(), PushError> {
        let request = Delete::new(self.table(), schema::device_key(user, device))
            .when(Condition::exists(schema::USER_ID))
            .returning(ReturnValues::AllOld);
        let deleted = self.store.delete(request).await.map_err(write_error)?;
        let token = deleted.as_ref().and_then(|item| {
            let token = item.get(schema::EXPO_PUSH_TOKEN)?;
            token.as_str()
        });
        match token {
            Some(token) => self.release_token(token, user).await,
            None => Ok(()),
        }
    }
}
