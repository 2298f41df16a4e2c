//! Settling a definition that was changed, disabled or deleted: outdated alerts are cleared, their
//! watches are deleted, and the silence of listed devices is measured from the start. Each step can be
//! repeated, so that a crash only leaves work.

use homeport_item::Value;
use homeport_item::expression::{Condition as Expression, KeyCondition, Path, Update};
use homeport_store::{Delete, Get, Query, Update as UpdateRequest, WriteError};

use super::transition::{CLEARED, Outcome};
use super::watch::Watch;
use crate::alerts::alert::{Cleared, clearing};
use crate::alerts::definitions::condition::Condition;
use crate::alerts::definitions::definition::{Definition, Devices};
use crate::alerts::{Alerts, AlertsError, schema};
use crate::outbox::commit;

const WATCHES_PER_PAGE: usize = 100;
/// Attempts at deleting a watch that other processes change.
const TRIES_MAX: u32 = 8;

impl Alerts {
    /// Settles a definition with at most `pages_max` pages of its watches; returns whether it is done.
    ///
    /// # Errors
    /// When the store fails.
    pub(in crate::alerts) async fn settle(
        &self,
        definition: &Definition,
        pages_max: usize,
    ) -> Result<bool, AlertsError> {
        let reason = if definition.is_deleted {
            "the definition was deleted"
        } else if definition.terms.is_enabled {
            "the definition was changed"
        } else {
            "the definition was disabled"
        };
        let condition = KeyCondition::new(schema::DEFINITION_ID, &definition.id);
        let mut query = Query {
            consistent: true,
            ..Query::new(schema::WATCHES, condition).limit(WATCHES_PER_PAGE)
        };
        for _ in 0..pages_max {
            let page = self.0.store.query(query.clone()).await?;
            for item in &page.items {
                let watch = Watch::from_item(item)?;
                if watch.epoch != definition.epoch || !definition.is_watching() {
                    self.retire(&watch, reason).await?;
                }
            }
            query.start = page.next;
            if query.start.is_none() {
                self.wait_for_listed(definition).await?;
                self.finish_settling(definition).await?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Deletes an outdated watch and clears its alert without notifications.
    pub(in crate::alerts) async fn retire(
        &self,
        watch: &Watch,
        reason: &str,
    ) -> Result<(), AlertsError> {
        let mut watch = watch.clone();
        for attempt in 0..TRIES_MAX {
            self.0.cache.forget(&watch);
            let mut actions = vec![watch.remove().into()];
            // After a failure, the alert may be the reason: it may be deleted.
            let open = match &watch.open {
                Some(id) if attempt == 0 || self.is_open(id).await? => Some(id),
                _ => None,
            };
            if let Some(id) = open {
                let cleared = Cleared {
                    at: self.now(),
                    reason: reason.to_owned(),
                    value: None,
                };
                actions.push(clearing(id, &cleared, self.0.settings.retention_secs).into());
            }
            if commit(&*self.0.store, actions).await? {
                if open.is_some() {
                    metrics::counter!(CLEARED).increment(1);
                    self.0.work.notify_one();
                }
                return Ok(());
            }
            let stored = self.0.store.get(Get::new(schema::WATCHES, watch.key()));
            match stored.await? {
                Some(item) => {
                    let stored = Watch::from_item(&item)?;
                    if stored.epoch != watch.epoch {
                        // Another process has retired it and stored a new watch.
                        return Ok(());
                    }
                    watch = stored;
                }
                None => return Ok(()),
            }
        }
        Err(homeport_store::StoreError::Throttled.into())
    }

    async fn is_open(&self, id: &crate::alerts::types::AlertId) -> Result<bool, AlertsError> {
        match self.alert(id).await {
            Ok(alert) => Ok(alert.is_open()),
            Err(AlertsError::AlertMissing) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The silence of a listed device is measured from the start of the definition, even if the
    /// device was never seen.
    async fn wait_for_listed(&self, definition: &Definition) -> Result<(), AlertsError> {
        let (Condition::Absence(_), Devices::Listed(devices), true) = (
            &definition.terms.condition,
            &definition.terms.devices,
            definition.is_watching(),
        ) else {
            return Ok(());
        };
        let waiting = devices.iter().map(|device| {
            let mut watch = Watch::new(definition, device.clone());
            watch.seen_at = Some(definition.since);
            self.noting(definition, watch)
        });
        let waiting: Vec<_> = waiting.collect();
        let outcomes = self.carry_out(&waiting.iter().collect::<Vec<_>>()).await?;
        // A watch that exists already means that its device was seen meanwhile.
        if outcomes.contains(&Outcome::Busy) {
            return Err(homeport_store::StoreError::Throttled.into());
        }
        Ok(())
    }

    async fn finish_settling(&self, definition: &Definition) -> Result<(), AlertsError> {
        let key = schema::definition_key(&definition.id);
        let same = Path::from(schema::EPOCH).equals(definition.epoch);
        let written = if definition.is_deleted {
            let delete = Delete::new(schema::DEFINITIONS, key);
            let delete = delete.when(Expression::exists(schema::DELETED));
            self.0.store.delete(delete).await
        } else {
            let update = Update::new().set(schema::SETTLED_EPOCH, Value::from(definition.epoch));
            let update = UpdateRequest::new(schema::DEFINITIONS, key, update).when(same);
            self.0.store.update(update).await
        };
        match written {
            // Otherwise it was changed again and will be settled again.
            Ok(_) | Err(WriteError::ConditionFailed { .. }) => Ok(()),
            Err(WriteError::Store(error)) => Err(error.into()),
        }
    }
}
