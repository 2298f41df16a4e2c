//! Recognizes a wrong pepper, with which no stored key is accepted. The store has a check value of the pepper since the
//! first key was created or, in older stores, since a key was last found with it.

use std::sync::atomic::Ordering;

use homeport_item::expression::Condition;
use homeport_item::{Item, Value};
use homeport_store::{Get, Put, StoreError, WriteError};

use super::key::hashes_equal;
use super::{ApiKeyError, ApiKeys, PAGE_MAX, schema};

impl ApiKeys {
    /// Checks the pepper against the store. Without active keys, another pepper may replace the old one.
    ///
    /// # Errors
    /// [`ApiKeyError::WrongPepper`] when another pepper hashed the keys; or when the store fails.
    pub async fn check_pepper(&self) -> Result<(), ApiKeyError> {
        let key = Item::new().with(schema::SECRET, schema::PEPPER);
        let mut get = Get::new(schema::SECRET_CHECKS, key);
        get.consistent = true;
        let item = match self.store.get(get).await {
            // The store is new, or of an earlier version.
            Ok(None) | Err(StoreError::TableNotFound(_)) => return Ok(()),
            Ok(Some(item)) => item,
            Err(error) => return Err(error.into()),
        };
        let stored = item.get(schema::CHECK).and_then(Value::as_str);
        if stored.is_some_and(|stored| hashes_equal(stored, &self.pepper.check_value())) {
            self.is_pepper_noted.store(true, Ordering::Relaxed);
            return Ok(());
        }
        if self.has_active().await? {
            return Err(ApiKeyError::WrongPepper);
        }
        self.put_check(Put::new(schema::SECRET_CHECKS, self.check_item()))
            .await
    }

    /// Whether the store has an active key.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn has_active(&self) -> Result<bool, ApiKeyError> {
        let mut cursor = None;
        loop {
            let page = self.list(PAGE_MAX, cursor).await?;
            if page.items.iter().any(|key| key.is_active) {
                return Ok(true);
            }
            cursor = page.next;
            if cursor.is_none() {
                return Ok(false);
            }
        }
    }

    /// Stores the check value with the first key. If there are keys, another pepper may have hashed them.
    pub(super) async fn note_pepper_of_first_key(&self) -> Result<(), ApiKeyError> {
        if self.is_pepper_noted.load(Ordering::Relaxed)
            || !self.list(1, None).await?.items.is_empty()
        {
            return Ok(());
        }
        self.note_pepper().await
    }

    /// Stores the check value of a pepper with which a stored key was found. A failure is only logged: the next key
    /// tries again.
    pub(super) async fn note_proven_pepper(&self) {
        if self.is_pepper_noted.load(Ordering::Relaxed) {
            return;
        }
        if let Err(error) = self.note_pepper().await {
            tracing::warn!(%error, "storing the check value of the pepper failed");
        }
    }

    async fn note_pepper(&self) -> Result<(), ApiKeyError> {
        let put = Put::new(schema::SECRET_CHECKS, self.check_item());
        self.put_check(put.when(Condition::not_exists(schema::SECRET)))
            .await
    }

    async fn put_check(&self, put: Put) -> Result<(), ApiKeyError> {
        match self.store.put(put).await {
            Ok(_) | Err(WriteError::ConditionFailed { .. }) => {
                self.is_pepper_noted.store(true, Ordering::Relaxed);
                Ok(())
            }
            Err(WriteError::Store(error)) => Err(error.into()),
        }
    }

    fn check_item(&self) -> Item {
        Item::new()
            .with(schema::SECRET, schema::PEPPER)
            .with(schema::CHECK, self.pepper.check_value())
    }
}
