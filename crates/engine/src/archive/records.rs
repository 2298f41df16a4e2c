//! Records of backups of tables, exports and imports: of running ones in memory, of ended ones in the
//! catalogue. A running job does not survive a crash.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use homeport_store::StoreError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use xxhash_rust::xxh3::xxh3_64;

use crate::catalogue::Catalogue;
use crate::catalogue::keyspaces::Keyspaces;
use crate::commit::committer::Committer;
use crate::error::OpenError;
use crate::shared::Shared;

/// Records by their ids, which are in time order.
pub(crate) type Records<R> = BTreeMap<String, Arc<R>>;

pub(crate) trait ArchiveRecord: Serialize + DeserializeOwned {
    /// The prefix of the records' keys in the catalogue keyspace.
    const PREFIX: &'static [u8];

    fn id(&self) -> &str;
    fn running(shared: &Shared) -> &RunningJobs<Self>;
    fn ended(catalogue: &Catalogue) -> &Records<Self>;
    fn ended_mut(catalogue: &mut Catalogue) -> &mut Records<Self>;
}

/// The records of running jobs.
#[derive(Debug)]
pub(crate) struct RunningJobs<R>(Mutex<Records<R>>);

impl<R> Default for RunningJobs<R> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<R> RunningJobs<R> {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Records<R>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn remove(&self, id: &str) {
        self.lock().remove(id);
    }
}

/// All records, of running and of ended jobs.
pub(crate) fn all<R: ArchiveRecord>(shared: &Shared) -> Records<R> {
    // In this order: a job that ends in between is then in both.
    let mut records = R::running(shared).lock().clone();
    let catalogue = shared.catalogue.now();
    for (id, record) in R::ended(&catalogue) {
        records.insert(id.clone(), Arc::clone(record));
    }
    records
}

pub(crate) fn get<R: ArchiveRecord>(shared: &Shared, id: &str) -> Option<Arc<R>> {
    let running = R::running(shared).lock().get(id).cloned();
    let catalogue = shared.catalogue.now();
    R::ended(&catalogue).get(id).cloned().or(running)
}

/// An unused id for a job: the time first, so that ids are in time order, and a hash of `name` to
/// distinguish jobs of the same time. Returns the time in the id as well, which may be slightly later.
pub(crate) fn unused_id<R: ArchiveRecord>(
    running: &Records<R>,
    catalogue: &Catalogue,
    mut at_ms: i64,
    name: &str,
) -> (i64, String) {
    let suffix_hash = xxh3_64(name.as_bytes()) >> 32;
    loop {
        let id = format!("{at_ms:014}-{suffix_hash:08x}");
        if !running.contains_key(&id) && !R::ended(catalogue).contains_key(&id) {
            return (at_ms, id);
        }
        at_ms += 1;
    }
}

/// Adds the record of an ended job to the catalogue, and deletes those with the ids in `deleted`.
pub(crate) fn save<R: ArchiveRecord>(
    committer: &mut Committer,
    record: R,
    deleted: &[String],
) -> Result<(), StoreError> {
    let shared = Arc::clone(&committer.shared);
    let mut catalogue = Catalogue::clone(&shared.catalogue.now());
    let value = serde_json::to_vec(&record).expect("a record has string keys only");
    committer.write(|group| {
        let added = key::<R>(record.id());
        group.insert(&shared.keyspaces.catalogue, added.into(), value.into());
        for id in deleted {
            group.remove(&shared.keyspaces.catalogue, key::<R>(id).into());
        }
        Ok(())
    })?;
    let records = R::ended_mut(&mut catalogue);
    for id in deleted {
        records.remove(id);
    }
    records.insert(record.id().to_owned(), Arc::new(record));
    shared.catalogue.replace(catalogue);
    Ok(())
}

/// Reads the records of ended jobs.
pub(crate) fn load<R: ArchiveRecord>(keyspaces: &Keyspaces) -> Result<Records<R>, OpenError> {
    let mut records = Records::new();
    for guard in keyspaces.catalogue.prefix(R::PREFIX) {
        let value = guard
            .value()
            .map_err(|error| OpenError::Storage(error.to_string()))?;
        let record: R = serde_json::from_slice(&value)
            .map_err(|error| OpenError::DamagedCatalogue(error.to_string()))?;
        records.insert(record.id().to_owned(), Arc::new(record));
    }
    Ok(records)
}

pub(crate) fn key<R: ArchiveRecord>(id: &str) -> Vec<u8> {
    [R::PREFIX, id.as_bytes()].concat()
}
