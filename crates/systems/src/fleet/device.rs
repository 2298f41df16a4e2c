//! A device in the list, and on its own page.

use homeport_item::{Item, Value};
use homeport_store::{Scan, Store};

use super::FleetError;
use super::name::SystemName;
use super::samples::Sample;
use crate::time::EpochMillis;

/// Devices of all systems together that the list holds. A longer list is truncated and says so.
pub const DEVICES_MAX: usize = 100_000;

/// One device in the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceSummary {
    pub system: SystemName,
    pub id: String,
    /// The name that people gave it.
    pub name: Option<String>,
    /// Firmware, model or platform.
    pub kind: Option<String>,
    pub group: Option<String>,
    pub last_seen: Option<EpochMillis>,
    /// A deactivated phone is not active and never reports.
    pub is_active: bool,
    /// The name or else the id, in lower case. The list is sorted and searched by it.
    pub order: String,
}

/// A device as its page shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceView {
    pub summary: DeviceSummary,
    pub identity: Item,
    pub state: Item,
    pub latest: Vec<LatestValue>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct LatestValue {
    pub name: String,
    pub value: Value,
    pub unit: Option<String>,
    pub at: EpochMillis,
}

/// The listed devices, up to the limit.
#[derive(Debug, Default)]
pub struct DeviceList {
    pub(super) devices: Vec<DeviceSummary>,
    pub(super) is_cut: bool,
}

impl DeviceSummary {
    #[must_use]
    pub fn new(system: &SystemName, id: String) -> Self {
        Self {
            system: system.clone(),
            order: id.to_lowercase(),
            id,
            name: None,
            kind: None,
            group: None,
            last_seen: None,
            is_active: true,
        }
    }

    #[must_use]
    pub fn named(mut self, name: Option<&str>) -> Self {
        self.set_name(name);
        self
    }

    pub fn set_name(&mut self, name: Option<&str>) {
        if let Some(name) = name {
            self.order = name.to_lowercase();
            self.name = Some(name.to_owned());
        }
    }

    pub(super) fn matches(&self, search: &str) -> bool {
        self.order.contains(search)
            || self.id.to_lowercase().contains(search)
            || self
                .group
                .as_ref()
                .is_some_and(|group| group.to_lowercase().contains(search))
    }
}

impl LatestValue {
    #[must_use]
    pub fn new(sample: &Sample<'_>, at: EpochMillis) -> Self {
        Self {
            name: sample.name.to_owned(),
            value: sample.value.clone(),
            unit: sample.unit().map(str::to_owned),
            at,
        }
    }
}

impl DeviceList {
    /// The ids of the devices, and whether there are more devices.
    #[must_use]
    pub fn into_ids(self) -> (Vec<String>, bool) {
        let ids = self.devices.into_iter().map(|device| device.id);
        (ids.collect(), self.is_cut)
    }

    /// Adds a device; false when the list is full.
    pub fn add(&mut self, device: DeviceSummary) -> bool {
        if self.devices.len() < DEVICES_MAX {
            self.devices.push(device);
        } else {
            self.is_cut = true;
        }
        !self.is_cut
    }

    /// Adds a device for each readable item of a table, until the list is full.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn add_scanned(
        &mut self,
        store: &dyn Store,
        mut scan: Scan,
        read: impl Fn(&Item) -> Option<DeviceSummary> + Send,
    ) -> Result<(), FleetError> {
        loop {
            let page = store.scan(scan.clone()).await?;
            for device in page.items.iter().filter_map(&read) {
                if !self.add(device) {
                    return Ok(());
                }
            }
            scan.start = page.next;
            if scan.start.is_none() {
                return Ok(());
            }
        }
    }
}
