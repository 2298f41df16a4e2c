//! Chargers: registry and state, of the fleet and of one charger.

use std::collections::BTreeMap;

use homeport_item::{Item, Value};
use homeport_store::{Get, Scan, Store, StoreError};

use super::state::{shown, state_key};
use super::types::{ChargerIds, DeviceName, ScId, WirelessDeviceId};
use super::{Chargers, ChargersError, PAGE_MAX, schema};
use crate::cursor::Cursor;
use crate::fetch;
use crate::pages::{self, Page};

const FLEET: &str = "chargers/fleet";

/// The registration and the state of a charger.
#[derive(Debug, Clone, PartialEq)]
pub struct Charger {
    pub device_id: ScId,
    /// Empty for a device with a state that was never registered.
    pub registration: Item,
    pub state: Item,
}

impl Chargers {
    /// The fleet: one scan of the states, each joined with its registration.
    ///
    /// # Errors
    /// When the cursor belongs to another list or the store fails.
    pub async fn fleet(
        &self,
        limit: usize,
        cursor: Option<Cursor>,
    ) -> Result<Page<Charger>, ChargersError> {
        let start = cursor.map(|cursor| cursor.start_of(FLEET)).transpose()?;
        let scan = Scan::new(schema::DEVICE_STATE).starting_after(start);
        let limit = limit.clamp(1, PAGE_MAX);
        let page =
            pages::scan_page(&*self.store, &schema::device_state(), scan, FLEET, limit).await?;
        let states = page
            .items
            .into_iter()
            .map(|state| Ok((id_of(&state)?, state)))
            .collect::<Result<Vec<_>, ChargersError>>()?;
        let ids = states.iter().map(|(device_id, _)| device_id.clone());
        let mut registrations = fetch(&*self.store, schema::DEVICES, ids).await?;
        let chargers = states.into_iter().map(|(device_id, state)| Charger {
            registration: registrations.remove(&device_id).unwrap_or_default(),
            state: shown(state),
            device_id,
        });
        Ok(Page {
            items: chargers.collect(),
            next: page.next,
        })
    }

    /// One charger.
    ///
    /// # Errors
    /// When there is no such charger or the store fails.
    pub async fn charger(&self, device_id: &ScId) -> Result<Charger, ChargersError> {
        let registration = self.registration(device_id).await?;
        let state = self.state_item(device_id).await?;
        if registration.is_none() && state.is_none() {
            return Err(missing(device_id));
        }
        Ok(Charger {
            device_id: device_id.clone(),
            registration: registration.unwrap_or_default(),
            state: shown(state.unwrap_or_else(|| state_key(device_id))),
        })
    }

    /// The registration of a charger.
    ///
    /// # Errors
    /// When it is not registered or the store fails.
    pub async fn device(&self, device_id: &ScId) -> Result<Item, ChargersError> {
        let registration = self.registration(device_id).await?;
        registration.ok_or_else(|| missing(device_id))
    }

    /// The SC-ID of the device that a request names. A UUID means its own device only, even if another one uses its
    /// SC-ID.
    ///
    /// # Errors
    /// When the SC-ID of a UUID belongs to another device, or the store fails.
    pub async fn find(&self, name: &DeviceName) -> Result<ScId, ChargersError> {
        let device_id = name.sc_id();
        if let DeviceName::Wireless(wireless) = name {
            let owner = self.owner(&device_id).await?;
            if owner.is_some_and(|owner| owner != *wireless) {
                return Err(ChargersError::DeviceMissing(name.clone()));
            }
        }
        Ok(device_id)
    }

    /// Both ids of the device that a request names. A UUID is not looked up.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn ids(&self, name: &DeviceName) -> Result<ChargerIds, ChargersError> {
        Ok(match name {
            DeviceName::Wireless(wireless) => ChargerIds::from(*wireless),
            DeviceName::ScId(device_id) => ChargerIds {
                device_id: device_id.clone(),
                wireless: self.owner(device_id).await?,
            },
        })
    }

    /// The UUIDs of registered devices.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn owners(
        &self,
        device_ids: impl Iterator<Item = ScId>,
    ) -> Result<BTreeMap<ScId, WirelessDeviceId>, ChargersError> {
        let registrations = fetch(&*self.store, schema::DEVICES, device_ids).await?;
        Ok(registrations
            .into_iter()
            .filter_map(|(device_id, item)| Some((device_id, wireless_of(&item)?)))
            .collect())
    }

    /// The UUID of the device that uses an SC-ID.
    async fn owner(&self, device_id: &ScId) -> Result<Option<WirelessDeviceId>, StoreError> {
        let registration = self.registration(device_id).await?;
        if let Some(owner) = registration.as_ref().and_then(wireless_of) {
            return Ok(Some(owner));
        }
        // Another program may have written a state without a registration.
        let state = self.state_item(device_id).await?;
        Ok(state.as_ref().and_then(wireless_of))
    }

    pub(super) async fn registration(&self, device_id: &ScId) -> Result<Option<Item>, StoreError> {
        let request = Get::new(schema::DEVICES, state_key(device_id));
        self.store.get(request).await
    }

    /// SC-IDs of registered devices, page by page.
    pub(super) async fn registered(
        &self,
        start: Option<Item>,
        limit: usize,
    ) -> Result<(Vec<ScId>, Option<Item>), ChargersError> {
        let scan = Scan::new(schema::DEVICES)
            .limit(limit)
            .starting_after(start);
        let page = self.store.scan(scan).await?;
        let ids: Result<Vec<_>, _> = page.items.iter().map(id_of).collect();
        Ok((ids?, page.next))
    }
}

/// Reads items of a table whose key is only an SC-ID.
pub(super) async fn fetch(
    store: &dyn Store,
    table: &str,
    ids: impl Iterator<Item = ScId>,
) -> Result<BTreeMap<ScId, Item>, ChargersError> {
    let mut wanted: Vec<ScId> = ids.collect();
    wanted.sort();
    wanted.dedup();
    let keys = wanted.iter().map(state_key);
    let found = fetch::fetch(store, table, keys, None).await?;
    found
        .into_iter()
        .map(|item| Ok((id_of(&item)?, item)))
        .collect()
}

pub(super) fn wireless_of(registration: &Item) -> Option<WirelessDeviceId> {
    registration
        .get(schema::WIRELESS_DEVICE_ID)
        .and_then(Value::as_str)
        .and_then(|text| text.parse().ok())
}

pub(super) fn missing(device_id: &ScId) -> ChargersError {
    ChargersError::DeviceMissing(DeviceName::ScId(device_id.clone()))
}

fn id_of(item: &Item) -> Result<ScId, ChargersError> {
    let text = item.get(schema::DEVICE_ID).and_then(Value::as_str);
    text.and_then(|text| text.parse().ok())
        .ok_or_else(|| ChargersError::Malformed {
            table: schema::DEVICES,
            reason: format!("{text:?} is no SC-ID"),
        })
}
