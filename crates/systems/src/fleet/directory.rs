//! All devices in memory: searching, counting and sorting by name across systems needs all of them. The list is
//! read again on demand when it is too old.

use std::sync::{Arc, PoisonError, RwLock};

use tokio::sync::Mutex;

use super::device::{DeviceList, DeviceSummary};
use super::{Fleet, FleetError};

/// A list counts as fresh for at least this long.
const FRESH_MS_MIN: i64 = 2000;
const FRESH_MS_MAX: i64 = 60_000;
/// A list also stays fresh for this many times the time that reading it took, so that viewing the fleet cannot
/// keep a store busy.
const FRESH_PER_COST: i64 = 20;

/// All devices at one moment, sorted: system by system, each by name.
#[derive(Debug, Default)]
pub(super) struct Listing {
    pub(super) devices: Vec<DeviceSummary>,
    pub(super) is_cut: bool,
}

#[derive(Debug, Default)]
pub(super) struct Directory {
    known: RwLock<Option<Known>>,
    /// Held by the one task that reads. Others get the cached list in the meantime.
    reading: Mutex<()>,
}

#[derive(Debug, Clone)]
struct Known {
    listing: Arc<Listing>,
    fresh_until_ms: i64,
}

impl Fleet {
    async fn gather(&self) -> Result<Listing, FleetError> {
        let mut list = DeviceList::default();
        for source in self.0.sources.iter() {
            let start = list.devices.len();
            source.collect_devices(&mut list).await?;
            list.devices[start..]
                .sort_unstable_by(|a, b| (&a.order, &a.id).cmp(&(&b.order, &b.id)));
        }
        Ok(Listing {
            devices: list.devices,
            is_cut: list.is_cut,
        })
    }

    /// All devices, from memory while the list is fresh.
    pub(super) async fn listing(&self) -> Result<Arc<Listing>, FleetError> {
        let known = self.0.directory.known();
        if let Some(known) = &known
            && self.now().0 < known.fresh_until_ms
        {
            return Ok(Arc::clone(&known.listing));
        }
        let reading = match (self.0.directory.reading.try_lock(), known) {
            (Ok(reading), _) => reading,
            // Another task reads: an old list is better than waiting.
            (Err(_), Some(known)) => return Ok(known.listing),
            (Err(_), None) => {
                let reading = self.0.directory.reading.lock().await;
                if let Some(known) = self.0.directory.known() {
                    return Ok(known.listing);
                }
                reading
            }
        };
        let started = std::time::Instant::now();
        let listing = Arc::new(self.gather().await?);
        let took_ms = i64::try_from(started.elapsed().as_millis()).unwrap_or(i64::MAX);
        let fresh_ms = took_ms
            .saturating_mul(FRESH_PER_COST)
            .clamp(FRESH_MS_MIN, FRESH_MS_MAX);
        let known = Known {
            listing: Arc::clone(&listing),
            fresh_until_ms: self.now().0.saturating_add(fresh_ms),
        };
        let mut place = self
            .0
            .directory
            .known
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        *place = Some(known);
        drop(place);
        drop(reading);
        Ok(listing)
    }
}

impl Directory {
    fn known(&self) -> Option<Known> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.clone()
    }
}
