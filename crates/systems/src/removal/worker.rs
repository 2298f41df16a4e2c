//! Background work: deletes the data of decommissioned devices. It can stop at any moment and continues after the next
//! start.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use homeport_item::Item;
use homeport_item::expression::{KeyCondition, Projection};
use homeport_store::{
    BATCH_WRITE_MAX, Clock, Delete, Query, Store, StoreError, WriteError, WriteRequest,
};

use super::batches::{Budget, Swept, delete_all};
use super::{DeviceData, DevicePartition, Job, OPEN_MS_MIN, key, open_jobs, schema};
use crate::alerts::{Alerts, AlertsError};
use crate::time::EpochMillis;
use crate::{chargers, sensors};

/// The systems whose devices are removed in this way.
const SYSTEMS: [&DeviceData; 2] = [&sensors::DATA, &chargers::DATA];
/// Batches that are deleted before removals of other systems continue.
const BATCHES_PER_TURN: usize = 400;
/// Keys that are read at once. They are deleted in full batches before the next keys are read.
const KEYS_PER_READ: usize = 10 * BATCH_WRITE_MAX;
/// The interval at which new removals are looked up.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// Removals on a store.
#[derive(Clone)]
pub struct Removals {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    /// Forget the devices too.
    alerts: Option<Alerts>,
}

/// Why removals cannot continue.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum RemovalError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("cannot end the alerts of a device")]
    Alerts(#[from] AlertsError),
}

impl Removals {
    #[must_use]
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Self {
        Self {
            store,
            clock,
            alerts: None,
        }
    }

    /// Ends the watches and alerts of devices too.
    #[must_use]
    pub fn with_alerts(self, alerts: Alerts) -> Self {
        Self {
            alerts: Some(alerts),
            ..self
        }
    }

    /// Works until `stop` completes.
    pub async fn run_until(&self, stop: impl Future<Output = ()>) {
        let work = async {
            loop {
                match self.continue_all(BATCHES_PER_TURN).await {
                    Ok(swept) if !swept.is_finished && swept.items > 0 => continue,
                    Ok(_) => {}
                    Err(error) => {
                        tracing::warn!(%error, "removing decommissioned devices failed and will be retried");
                        metrics::counter!("homeport_removal_failures_total").increment(1);
                    }
                }
                tokio::time::sleep(LOOK_EVERY).await;
            }
        };
        tokio::select! {
            () = stop => {}
            () = work => {}
        }
    }

    /// Continues all removals within a limit of batches for each system.
    ///
    /// # Errors
    /// When the store fails. Deleted items stay deleted, and the next call continues.
    pub async fn continue_all(&self, batches_max: usize) -> Result<Swept, RemovalError> {
        let mut total = Swept {
            items: 0,
            is_finished: true,
        };
        let mut open = 0;
        for data in SYSTEMS {
            let mut budget = Budget(batches_max);
            for job in open_jobs(&*self.store, data.system).await? {
                let swept = self.sweep(data, &job, &mut budget).await?;
                // IMPORTANT: before the end of the job, so that a crash leaves no alert.
                let is_forgotten = self.forget(&job).await?;
                let is_finished = swept.is_finished && is_forgotten && self.is_due(&job);
                if is_finished {
                    self.end(&job).await?;
                }
                open += usize::from(!is_finished);
                total.items += swept.items;
                total.is_finished &= is_finished;
            }
        }
        metrics::gauge!("homeport_removals_open").set(open as f64);
        Ok(total)
    }

    fn is_due(&self, job: &Job) -> bool {
        self.clock.now_ms().saturating_sub(job.began_at.0) >= OPEN_MS_MIN
    }

    /// Ends the watches and alerts of a device; returns whether none can begin again.
    async fn forget(&self, job: &Job) -> Result<bool, AlertsError> {
        let Some(alerts) = &self.alerts else {
            return Ok(true);
        };
        let stored_until = EpochMillis(job.began_at.0.saturating_add(OPEN_MS_MIN));
        alerts
            .forget_device(&job.system, &job.device, stored_until)
            .await
    }

    async fn end(&self, job: &Job) -> Result<(), StoreError> {
        let delete = Delete::new(schema::REMOVALS, key(&job.system, &job.device));
        match self.store.delete(delete).await {
            Ok(_) | Err(WriteError::ConditionFailed { .. }) => {}
            Err(WriteError::Store(error)) => return Err(error),
        }
        tracing::info!(system = job.system, device = job.device, "device removed");
        Ok(())
    }

    /// Deletes the data of a device; `is_finished` if there was none left at the end.
    async fn sweep(
        &self,
        data: &DeviceData,
        job: &Job,
        budget: &mut Budget,
    ) -> Result<Swept, StoreError> {
        let mut items = 0;
        for partition in data.partitions {
            let condition = KeyCondition::new(partition.device, job.device.as_str());
            let mut query = Query::new(partition.table, condition).limit(KEYS_PER_READ);
            let names = [partition.device].into_iter().chain(partition.sort);
            query.projection = Some(Projection::new(names));
            query.consistent = true;
            loop {
                let page = self.store.query(query.clone()).await?;
                let deletes = partition.deletes(&page.items);
                let swept = delete_all(&*self.store, deletes, budget).await?;
                items += swept.items;
                if !swept.is_finished {
                    let is_finished = false;
                    return Ok(Swept { items, is_finished });
                }
                // Continue after the read keys, so that deleted keys are not skipped again.
                query.start = page.next;
                if query.start.is_none() {
                    break;
                }
            }
        }
        let is_finished = true;
        Ok(Swept { items, is_finished })
    }
}

impl DevicePartition {
    /// The deletions of items and their companions, each of them once.
    fn deletes(&self, keys: &[Item]) -> Vec<WriteRequest> {
        let mut deletes = Vec::with_capacity(keys.len());
        for item in keys {
            let companion = self.companion.and_then(|companion| companion(item));
            // The companion goes first, because only the item names it.
            for (table, key) in companion.into_iter().chain([(self.table, item.clone())]) {
                let delete = WriteRequest::Delete {
                    table: table.to_owned(),
                    key,
                };
                if !deletes.contains(&delete) {
                    deletes.push(delete);
                }
            }
        }
        deletes
    }
}

impl std::fmt::Debug for Removals {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Removals").finish_non_exhaustive()
    }
}
