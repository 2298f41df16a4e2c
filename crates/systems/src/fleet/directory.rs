//! All devices in memory, read anew when someone looks and what is there is old: only with all of
//! them at hand can a list be searched, counted and ordered by name across systems.

use std::sync::{Arc, PoisonError, RwLock};

use tokio::sync::Mutex;

use super::health::{Expectations, Health};
use super::name::SystemName;
use super::{Fleet, FleetError};
use crate::time::EpochMillis;

/// Devices that are kept in mind, of all systems together; a list of more is cut and says so.
pub const DEVICES_MAX: usize = 100_000;
/// What was read counts as new for so long, at least.
const FRESH_MS_MIN: i64 = 2000;
const FRESH_MS_MAX: i64 = 60_000;
/// And for so many times as long as reading it took: looking at the fleet must not keep a store busy.
const FRESH_PER_COST: i64 = 20;

/// One device in the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceSummary {
    pub system: SystemName,
    pub id: String,
    /// What people call it, where they do.
    pub name: Option<String>,
    /// What sort of device it is: firmware, model, platform.
    pub kind: Option<String>,
    pub group: Option<String>,
    pub last_seen: Option<EpochMillis>,
    /// Whether it may be heard from at all: a phone that was deactivated may not.
    pub is_active: bool,
    /// By which it is found, and by which the list is ordered: the name or the id, in lower case.
    pub(super) order: String,
}

/// All devices at one moment, in the order of the list.
#[derive(Debug, Default)]
pub(super) struct Listing {
    pub(super) devices: Vec<DeviceSummary>,
    pub(super) is_cut: bool,
}

#[derive(Debug, Default)]
pub(super) struct Directory {
    known: RwLock<Option<Known>>,
    /// Held while reading: one reads, and the others are shown what there is.
    reading: Mutex<()>,
}

#[derive(Debug, Clone)]
struct Known {
    listing: Arc<Listing>,
    fresh_until_ms: i64,
}

impl DeviceSummary {
    pub(super) fn new(system: SystemName, id: String) -> Self {
        Self {
            system,
            order: id.to_lowercase(),
            id,
            name: None,
            kind: None,
            group: None,
            last_seen: None,
            is_active: true,
        }
    }

    pub(super) fn named(mut self, name: Option<&str>) -> Self {
        if let Some(name) = name {
            self.order = name.to_lowercase();
            self.name = Some(name.to_owned());
        }
        self
    }

    pub(super) fn matches(&self, search: &str) -> bool {
        self.order.contains(search)
            || self.id.to_lowercase().contains(search)
            || self
                .group
                .as_ref()
                .is_some_and(|group| group.to_lowercase().contains(search))
    }

    #[must_use]
    pub(super) fn health(&self, expectations: &Expectations, now: EpochMillis) -> Health {
        match self.is_active {
            true => expectations.health(self.system, self.last_seen, now),
            false => Health::Silent,
        }
    }
}

impl Fleet {
    /// How a device does now.
    #[must_use]
    pub fn health(&self, device: &DeviceSummary) -> Health {
        device.health(&self.0.expectations, self.now())
    }

    /// All devices, not older than the pace allows.
    pub(super) async fn listing(&self) -> Result<Arc<Listing>, FleetError> {
        let known = self.0.directory.known();
        if let Some(known) = &known
            && self.now().0 < known.fresh_until_ms
        {
            return Ok(Arc::clone(&known.listing));
        }
        let reading = match (self.0.directory.reading.try_lock(), known) {
            (Ok(reading), _) => reading,
            // Someone is at it: what is known is better than waiting.
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
