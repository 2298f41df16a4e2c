//! All definitions in memory, so that judging a change needs no read of the store.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use homeport_item::expression::KeyCondition;
use homeport_store::{Query, Store};
use tokio::sync::{Mutex, watch};

use super::definition::Definition;
use crate::alerts::types::DefinitionId;
use crate::alerts::{AlertsError, schema};
use crate::fleet::SystemName;

/// All definitions at one moment, including those that are being deleted.
#[derive(Debug, Default)]
pub(in crate::alerts) struct Snapshot {
    pub(in crate::alerts) definitions: Vec<Arc<Definition>>,
}

#[derive(Debug)]
pub(in crate::alerts) struct Registry {
    snapshot: watch::Sender<Arc<Snapshot>>,
    is_loaded: AtomicBool,
    /// Held while reading, so that an older state never replaces a newer one.
    reading: Mutex<()>,
}

impl Snapshot {
    pub(in crate::alerts) fn get(&self, id: &DefinitionId) -> Option<&Arc<Definition>> {
        self.definitions
            .iter()
            .find(|definition| definition.id == *id)
    }

    /// The definitions that watch a source.
    pub(in crate::alerts) fn watching(&self, system: &SystemName) -> Vec<Arc<Definition>> {
        let watching = self
            .definitions
            .iter()
            .filter(|definition| definition.terms.source == *system && definition.is_watching());
        watching.cloned().collect()
    }

    pub(in crate::alerts) fn needs(&self, system: &SystemName) -> bool {
        let mut definitions = self.definitions.iter();
        definitions.any(|definition| definition.terms.source == *system && definition.is_watching())
    }
}

impl Registry {
    pub(in crate::alerts) fn new() -> Self {
        Self {
            is_loaded: AtomicBool::new(false),
            snapshot: watch::Sender::new(Arc::default()),
            reading: Mutex::default(),
        }
    }

    pub(in crate::alerts) fn now(&self) -> Arc<Snapshot> {
        Arc::clone(&self.snapshot.borrow())
    }

    /// The definitions, read from the store on first use.
    pub(in crate::alerts) async fn loaded(
        &self,
        store: &dyn Store,
    ) -> Result<Arc<Snapshot>, AlertsError> {
        if self.is_loaded.load(Ordering::Acquire) {
            return Ok(self.now());
        }
        self.refresh(store).await
    }

    /// Signals changes of the definitions.
    pub(in crate::alerts) fn subscribe(&self) -> watch::Receiver<Arc<Snapshot>> {
        self.snapshot.subscribe()
    }

    /// Reads all definitions again.
    pub(in crate::alerts) async fn refresh(
        &self,
        store: &dyn Store,
    ) -> Result<Arc<Snapshot>, AlertsError> {
        let _reading = self.reading.lock().await;
        let condition = KeyCondition::new(schema::SHELF, schema::DEFINITIONS_SHELF);
        let mut query = Query {
            consistent: true,
            ..Query::new(schema::DEFINITIONS, condition)
        };
        let mut definitions = Vec::new();
        loop {
            let page = store.query(query.clone()).await?;
            for item in &page.items {
                match Definition::from_item(item) {
                    Ok(definition) => definitions.push(Arc::new(definition)),
                    // A malformed item must not block the other definitions.
                    Err(error) => tracing::warn!(%error, "skipped a malformed definition"),
                }
            }
            query.start = page.next;
            if query.start.is_none() {
                break;
            }
        }
        self.snapshot.send_if_modified(|snapshot| {
            let is_changed = snapshot.definitions != definitions;
            if is_changed {
                *snapshot = Arc::new(Snapshot { definitions });
            }
            is_changed
        });
        self.is_loaded.store(true, Ordering::Release);
        Ok(self.now())
    }
}
