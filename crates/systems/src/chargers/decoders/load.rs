//! The loaded decoders of a process. It reads them again after its own changes, and notices those of other processes
//! with the next uplink after [`REFRESH_MS`].

use std::sync::{Arc, PoisonError, RwLock};

use homeport_store::{Clock, StoreError};
use tokio::sync::Mutex;

use super::DECODERS_MAX;
use super::decode::Decoder;
use super::manage::StoredDecoder;
use super::registry::{Loaded, Registry, Selector};
use crate::documents::Documents;

/// How long a process uses its loaded decoders before it checks for changes of other processes.
pub const REFRESH_MS: i64 = 5000;

pub(in crate::chargers) struct LoadedDecoders {
    pub(super) documents: Documents,
    pub(super) clock: Arc<dyn Clock>,
    latest: RwLock<Option<Latest>>,
    /// One check at a time.
    checking: Mutex<()>,
}

#[derive(Clone)]
struct Latest {
    registry: Arc<Registry>,
    /// The stored count of changes that the registry includes.
    change_count: i64,
    checked_at_ms: i64,
}

impl LoadedDecoders {
    pub(in crate::chargers) fn new(documents: Documents, clock: Arc<dyn Clock>) -> Self {
        Self {
            documents,
            clock,
            latest: RwLock::default(),
            checking: Mutex::default(),
        }
    }

    /// The decoders, not much older than the store's.
    pub(in crate::chargers) async fn current(&self) -> Result<Arc<Registry>, StoreError> {
        if let Some(registry) = self.fresh() {
            return Ok(registry);
        }
        let _one_at_a_time = self.checking.lock().await;
        match self.fresh() {
            Some(registry) => Ok(registry),
            None => self.check().await,
        }
    }

    /// Loads a stored change.
    pub(super) async fn reload(&self) -> Result<(), StoreError> {
        let _one_at_a_time = self.checking.lock().await;
        self.check().await.map(drop)
    }

    fn fresh(&self) -> Option<Arc<Registry>> {
        let latest = self.latest()?;
        let age_ms = self.clock.now_ms().saturating_sub(latest.checked_at_ms);
        (0..REFRESH_MS).contains(&age_ms).then_some(latest.registry)
    }

    async fn check(&self) -> Result<Arc<Registry>, StoreError> {
        let checked_at_ms = self.clock.now_ms();
        // IMPORTANT: the count is read before the decoders, so that the next check sees a change in between.
        let change_count = self.documents.change_count().await?;
        let known = self.latest();
        let known = known.filter(|latest| latest.change_count == change_count);
        let registry = match known {
            Some(latest) => latest.registry,
            None => Arc::new(self.read().await?),
        };
        let latest = Latest {
            registry: Arc::clone(&registry),
            change_count,
            checked_at_ms,
        };
        *self.latest.write().unwrap_or_else(PoisonError::into_inner) = Some(latest);
        Ok(registry)
    }

    async fn read(&self) -> Result<Registry, StoreError> {
        let items = self.documents.all(DECODERS_MAX).await?;
        let loaded = items.iter().filter_map(|item| {
            let loaded = StoredDecoder::from_item(item).and_then(|stored| {
                Ok(Loaded {
                    decoder: Decoder::new(&stored.document)?,
                    selector: Selector::new(&stored.document)?,
                    name: stored.name,
                    version: stored.version,
                })
            });
            // A malformed item must not block the other decoders.
            loaded
                .inspect_err(|error| tracing::warn!(%error, "skipped a malformed decoder"))
                .ok()
        });
        Ok(Registry::new(loaded.collect()))
    }

    fn latest(&self) -> Option<Latest> {
        let latest = self.latest.read();
        latest.unwrap_or_else(PoisonError::into_inner).clone()
    }
}
