//! Decommissions devices of the sensors and chargers: removes a device with all of its data.
//!
//! One transaction deletes the registration and writes a job. From then on nothing of the device is visible, it cannot
//! register again, and a crash cannot lose the job. Background work deletes the data in batches and ends the job. All
//! steps are idempotent, also across processes.

mod batches;
pub mod schema;
mod worker;

use std::collections::BTreeSet;

use homeport_item::expression::{Condition, KeyCondition};
use homeport_item::{Item, Number, Value};
use homeport_store::{
    Action, CancelReason, ConditionCheck, Get, Put, Query, Store, StoreError, TransactError,
    Transaction,
};

use crate::time::EpochMillis;

pub use batches::Swept;
pub(crate) use batches::{Budget, delete_all};
pub use worker::{RemovalError, Removals};

/// How long a job stays open at least. A request that read the registration before it was deleted may store data until
/// it times out, and a later sweep deletes that.
pub const OPEN_MS_MIN: i64 = 60_000;
/// Attempts at a transaction that conflicts with another one.
const ATTEMPTS_MAX: usize = 4;
/// Jobs that are read at once.
const JOBS_PER_READ: usize = 100;

/// A device that is being removed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Job {
    pub(crate) system: String,
    pub(crate) device: String,
    pub(crate) began_at: EpochMillis,
}

/// The tables with the data of a system's devices.
#[derive(Debug)]
pub(crate) struct DeviceData {
    pub(crate) system: &'static str,
    pub(crate) partitions: &'static [DevicePartition],
}

/// Finds the item of another table that goes with an item, by the key of the item: its table and its key.
pub(crate) type Companion = fn(&Item) -> Option<(&'static str, Item)>;

/// A table in which every device has a partition.
#[derive(Debug)]
pub(crate) struct DevicePartition {
    pub(crate) table: &'static str,
    /// The partition key, which is the id of the device.
    pub(crate) device: &'static str,
    pub(crate) sort: Option<&'static str>,
    pub(crate) companion: Option<Companion>,
}

/// Deletes the registration of a device and opens its removal. Returns false if the condition of the first action
/// fails, because there is no such device.
///
/// # Errors
/// When the store fails.
pub(crate) async fn begin(
    store: &dyn Store,
    system: &str,
    device: &str,
    mut actions: Vec<Action>,
    now: EpochMillis,
) -> Result<bool, StoreError> {
    let job = key(system, device).with(schema::BEGAN_AT_MS, now.0);
    actions.push(Put::new(schema::REMOVALS, job).into());
    let transaction = Transaction::new(actions);
    for _ in 0..ATTEMPTS_MAX {
        match store.transact(transaction.clone()).await {
            Ok(()) => return Ok(true),
            Err(TransactError::Cancelled(reasons)) => {
                if matches!(reasons.first(), Some(CancelReason::ConditionFailed { .. })) {
                    return Ok(false);
                }
            }
            Err(TransactError::Store(StoreError::Throttled)) => {}
            Err(TransactError::Store(error)) => return Err(error),
            Err(TransactError::TokenMismatch) => break,
        }
    }
    Err(StoreError::Throttled)
}

/// The action that keeps a device from registering while it is being removed.
pub(crate) fn none_open(system: &str, device: &str) -> Action {
    let is_absent = Condition::not_exists(schema::SYSTEM);
    ConditionCheck::new(schema::REMOVALS, key(system, device), is_absent).into()
}

/// Whether a device is being removed.
pub(crate) async fn is_open(
    store: &dyn Store,
    system: &str,
    device: &str,
) -> Result<bool, StoreError> {
    match store
        .get(Get::new(schema::REMOVALS, key(system, device)))
        .await
    {
        Ok(job) => Ok(job.is_some()),
        // Commands may read a store on which no server that creates the table has run. Nothing is being removed there.
        Err(StoreError::TableNotFound(_)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// The devices of a system that are being removed.
pub(crate) async fn open_devices(
    store: &dyn Store,
    system: &str,
) -> Result<BTreeSet<String>, StoreError> {
    let jobs = open_jobs(store, system).await?;
    Ok(jobs.into_iter().map(|job| job.device).collect())
}

async fn open_jobs(store: &dyn Store, system: &str) -> Result<Vec<Job>, StoreError> {
    let condition = KeyCondition::new(schema::SYSTEM, system);
    let mut query = Query::new(schema::REMOVALS, condition).limit(JOBS_PER_READ);
    let mut jobs = Vec::new();
    loop {
        let page = match store.query(query.clone()).await {
            Err(StoreError::TableNotFound(_)) => return Ok(jobs),
            page => page?,
        };
        jobs.extend(page.items.iter().filter_map(Job::from_item));
        query.start = page.next;
        if query.start.is_none() {
            return Ok(jobs);
        }
    }
}

impl Job {
    fn from_item(item: &Item) -> Option<Self> {
        let text = |name: &str| item.get(name)?.as_str().map(str::to_owned);
        let began_at = item.get(schema::BEGAN_AT_MS).and_then(Value::as_number);
        Some(Self {
            system: text(schema::SYSTEM)?,
            device: text(schema::DEVICE)?,
            began_at: EpochMillis(began_at.and_then(Number::to_i64).unwrap_or(0)),
        })
    }
}

fn key(system: &str, device: &str) -> Item {
    Item::new()
        .with(schema::SYSTEM, system)
        .with(schema::DEVICE, device)
}
