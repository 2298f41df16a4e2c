//! The list of devices: filtered, counted, and in pages that stay consistent while devices come and go.

use homeport_item::{Item, Value};

use super::device::DeviceSummary;
use super::health::{Health, HealthCounts};
use super::name::SystemName;
use super::{Fleet, FleetError};
use crate::cursor::{Cursor, CursorError};
use crate::sensors::InvalidField;

/// Devices of one page.
pub const LIST_MAX: usize = 1000;
/// Longest search text, in characters.
const SEARCH_CHARS_MAX: usize = 128;

/// Members of a cursor.
const SYSTEM: &str = "system";
const ORDER: &str = "order";
const ID: &str = "id";

/// Which devices are wanted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeviceFilter {
    pub system: Option<SystemName>,
    pub health: Option<Health>,
    /// Part of a name, an id or a group; case does not matter.
    pub search: Option<String>,
}

/// A page of devices, system by system, each sorted by name.
#[derive(Debug, Clone, PartialEq)]
pub struct FleetPage {
    pub devices: Vec<(DeviceSummary, Health)>,
    /// Counts all devices that match the system and the search, whatever their health.
    pub counts: HealthCounts,
    /// There are more devices than the list holds: some are missing.
    pub is_cut: bool,
    /// Absent on the last page.
    pub next: Option<Cursor>,
}

/// The devices of one system, by health.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemCounts {
    pub system: SystemName,
    pub counts: HealthCounts,
}

impl Fleet {
    /// The visible devices that match a filter.
    ///
    /// # Errors
    /// When the search is too long, the cursor belongs to another list, or the store fails.
    pub async fn devices(
        &self,
        filter: &DeviceFilter,
        is_visible: impl Fn(&DeviceSummary) -> bool,
        limit: usize,
        cursor: Option<Cursor>,
    ) -> Result<FleetPage, FleetError> {
        let search = filter.search.as_deref().unwrap_or_default().to_lowercase();
        if search.chars().count() > SEARCH_CHARS_MAX {
            return Err(InvalidField {
                field: "search",
                expected: "at most 128 characters",
            }
            .into());
        }
        let sources = &self.0.sources;
        if let Some(system) = &filter.system {
            sources.get(system)?;
        }
        let list = format!("fleet/{:?}/{:?}/{search}", filter.system, filter.health);
        let after = cursor.map(|cursor| position(&cursor.start_of(&list)?));
        let after = after.transpose()?;
        let after = after.map(|(system, order, id)| (sources.rank(&system), order, id));
        let listing = self.listing().await?;
        let limit = limit.clamp(1, LIST_MAX);
        let mut page = FleetPage {
            devices: Vec::with_capacity(limit + 1),
            counts: HealthCounts::default(),
            is_cut: listing.is_cut,
            next: None,
        };
        for device in &listing.devices {
            let is_wanted = filter
                .system
                .as_ref()
                .is_none_or(|system| device.system == *system);
            if !is_wanted || !device.matches(&search) || !is_visible(device) {
                continue;
            }
            let health = self.health(device)?;
            page.counts.add(health);
            let is_after = after.as_ref().is_none_or(|(rank, order, id)| {
                (sources.rank(&device.system), &device.order, &device.id) > (*rank, order, id)
            });
            let fits = filter.health.is_none_or(|wanted| wanted == health);
            if fits && is_after && page.devices.len() <= limit {
                page.devices.push((device.clone(), health));
            }
        }
        if page.devices.len() > limit {
            page.devices.truncate(limit);
            let last = page.devices.last();
            page.next = last.map(|(device, _)| Cursor::new(list, place(device)));
        }
        Ok(page)
    }

    /// The visible devices of each system, by health.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn counts(
        &self,
        is_visible: impl Fn(&DeviceSummary) -> bool,
    ) -> Result<Vec<SystemCounts>, FleetError> {
        let listing = self.listing().await?;
        let mut all = Vec::new();
        for source in self.0.sources.iter() {
            let system = &source.system().name;
            let mut counts = HealthCounts::default();
            let devices = listing.devices.iter();
            for device in devices.filter(|device| device.system == *system && is_visible(device)) {
                counts.add(self.health(device)?);
            }
            all.push(SystemCounts {
                system: system.clone(),
                counts,
            });
        }
        Ok(all)
    }

    /// The ids of all devices of a system.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn ids_of(&self, system: &SystemName) -> Result<Vec<String>, FleetError> {
        let listing = self.listing().await?;
        let devices = listing
            .devices
            .iter()
            .filter(|device| device.system == *system);
        Ok(devices.map(|device| device.id.clone()).collect())
    }
}

fn place(device: &DeviceSummary) -> Item {
    Item::new()
        .with(SYSTEM, device.system.as_str())
        .with(ORDER, device.order.as_str())
        .with(ID, device.id.as_str())
}

fn position(item: &Item) -> Result<(SystemName, String, String), CursorError> {
    let text = |name: &str| item.get(name).and_then(Value::as_str).ok_or(CursorError);
    Ok((
        text(SYSTEM)?.to_owned().into(),
        text(ORDER)?.to_owned(),
        text(ID)?.to_owned(),
    ))
}
