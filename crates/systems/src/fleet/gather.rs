//! Lists the devices of each system. No table of readings, events or messages is scanned.

use std::collections::BTreeMap;

use homeport_item::expression::{KeyCondition, Projection};
use homeport_item::{Item, Number, Value};
use homeport_store::{Query, Scan};

use super::directory::{DEVICES_MAX, DeviceSummary, Listing};
use super::name::{self, SystemName};
use super::{Fleet, FleetError};
use crate::time::{EpochMillis, UtcSecond};
use crate::{chargers, push, records, sensors, telemetry};

/// The largest number that a key can hold: it sorts after every message of a thing.
const LARGEST: &str = "9.9999999999999999999999999999999999999e125";

/// The listed devices, up to the limit.
#[derive(Default)]
struct Found {
    devices: Vec<DeviceSummary>,
    is_cut: bool,
}

impl Found {
    /// Adds a device; false when the list is full.
    fn add(&mut self, device: DeviceSummary) -> bool {
        if self.devices.len() < DEVICES_MAX {
            self.devices.push(device);
        } else {
            self.is_cut = true;
        }
        !self.is_cut
    }
}

impl Fleet {
    pub(super) async fn gather(&self) -> Result<Listing, FleetError> {
        let mut found = Found::default();
        self.gather_sensors(&mut found).await?;
        self.gather_chargers(&mut found).await?;
        self.gather_things(&mut found).await?;
        self.gather_recorders(&mut found).await?;
        self.gather_phones(&mut found).await?;
        let mut devices = found.devices;
        devices
            .sort_unstable_by(|a, b| (a.system, &a.order, &a.id).cmp(&(b.system, &b.order, &b.id)));
        Ok(Listing {
            devices,
            is_cut: found.is_cut,
        })
    }

    async fn gather_sensors(&self, found: &mut Found) -> Result<(), FleetError> {
        use sensors::schema;
        let condition = KeyCondition::new(schema::GSI1PK, schema::DEVICES_PARTITION);
        let mut query = Query::new(schema::DEVICES, condition)
            .on_index(schema::ACTIVITY_INDEX)
            .descending();
        query.projection = Some(Projection::new([
            schema::HARDWARE_ID,
            schema::FRIENDLY_NAME,
            schema::FIRMWARE_VERSION,
            schema::LAST_SEEN_AT,
        ]));
        loop {
            let page = self.store().query(query.clone()).await?;
            for item in &page.items {
                let Some(id) = text(item, schema::HARDWARE_ID) else {
                    continue;
                };
                let device = DeviceSummary {
                    kind: text(item, schema::FIRMWARE_VERSION).map(|it| format!("firmware {it}")),
                    last_seen: text(item, schema::LAST_SEEN_AT).and_then(second),
                    ..DeviceSummary::new(SystemName::Sensors, id.to_owned())
                        .named(text(item, schema::FRIENDLY_NAME))
                };
                if !found.add(device) {
                    return Ok(());
                }
            }
            query.start = page.next;
            if query.start.is_none() {
                return Ok(());
            }
        }
    }

    /// Lists registered chargers, and those that only have a state.
    async fn gather_chargers(&self, found: &mut Found) -> Result<(), FleetError> {
        use chargers::schema;
        let mut devices: BTreeMap<String, DeviceSummary> = BTreeMap::new();
        for (table, attributes) in [
            (
                schema::DEVICES,
                [
                    schema::DEVICE_ID,
                    schema::WIRELESS_DEVICE_ID,
                    schema::FRIENDLY_NAME,
                ],
            ),
            (
                schema::DEVICE_STATE,
                [
                    schema::DEVICE_ID,
                    schema::WIRELESS_DEVICE_ID,
                    schema::LAST_SEEN_UTC_MS,
                ],
            ),
        ] {
            let mut scan = Scan::new(table);
            scan.projection = Some(Projection::new(attributes));
            loop {
                let page = self.store().scan(scan.clone()).await?;
                for item in &page.items {
                    let Some(id) = text(item, schema::DEVICE_ID) else {
                        continue;
                    };
                    let device = devices
                        .entry(id.to_owned())
                        .or_insert_with(|| DeviceSummary::new(SystemName::Chargers, id.to_owned()));
                    if let Some(wireless) = text(item, schema::WIRELESS_DEVICE_ID) {
                        device.kind = Some(wireless.to_owned());
                    }
                    if let Some(name) = text(item, schema::FRIENDLY_NAME) {
                        device.name = Some(name.to_owned());
                    }
                    if let Some(seen) = integer(item, schema::LAST_SEEN_UTC_MS) {
                        device.last_seen = Some(EpochMillis(seen));
                    }
                }
                scan.start = page.next;
                if scan.start.is_none() || devices.len() > DEVICES_MAX {
                    break;
                }
            }
        }
        for device in devices.into_values() {
            if !found.add(device) {
                break;
            }
        }
        Ok(())
    }

    /// No table lists things. A scan of one item finds a thing; the next scan starts after every message that
    /// the thing can have. The number of messages does not matter.
    async fn gather_things(&self, found: &mut Found) -> Result<(), FleetError> {
        use telemetry::schema;
        let table = self.0.telemetry.name.as_str();
        let largest: Number = LARGEST
            .parse()
            .map_err(|_| unreadable("the largest number"))?;
        let mut scan = Scan::new(table).limit(1);
        scan.projection = Some(Projection::new([schema::THING_NAME]));
        loop {
            let page = self.store().scan(scan.clone()).await?;
            let Some(thing) = page
                .items
                .first()
                .and_then(|item| text(item, schema::THING_NAME))
            else {
                // The scanned item may have expired.
                scan.start = page.next;
                if scan.start.is_none() {
                    return Ok(());
                }
                continue;
            };
            let condition = KeyCondition::new(schema::THING_NAME, thing);
            let mut newest = Query::new(table, condition).descending().limit(1);
            newest.projection = Some(Projection::new([schema::TIMESTAMP]));
            let newest = self.store().query(newest).await?;
            let seen = newest
                .items
                .first()
                .and_then(|item| integer(item, schema::TIMESTAMP));
            let device = DeviceSummary {
                last_seen: seen.map(EpochMillis),
                ..DeviceSummary::new(SystemName::Telemetry, thing.to_owned())
            };
            let behind = Item::new()
                .with(schema::THING_NAME, thing)
                .with(schema::TIMESTAMP, largest);
            if !found.add(device) {
                return Ok(());
            }
            scan.start = Some(behind);
        }
    }

    async fn gather_recorders(&self, found: &mut Found) -> Result<(), FleetError> {
        let Some(ids) = self.record_ids().await? else {
            return Ok(());
        };
        let records = &self.0.parts.records;
        let mut cursor = None;
        loop {
            let groups = records.list_groups(records::PAGE_MAX, cursor).await?;
            for group in groups.groups {
                match self.gather_group(&ids, &group, found).await {
                    Ok(true) | Err(FleetError::DeviceMissing) => {}
                    Ok(false) => return Ok(()),
                    Err(error) => return Err(error),
                }
            }
            cursor = groups.next;
            if cursor.is_none() {
                return Ok(());
            }
        }
    }

    /// Lists the devices of a group; false when the list is full. A group that was removed in the meantime is
    /// missing.
    async fn gather_group(
        &self,
        ids: &records::RecordIds,
        group: &records::Group,
        found: &mut Found,
    ) -> Result<bool, FleetError> {
        let records = &self.0.parts.records;
        let mut seen: BTreeMap<u64, i64> = BTreeMap::new();
        let mut cursor = None;
        loop {
            let page = records
                .latest(group.id, None, records::PAGE_MAX, cursor)
                .await?;
            for record in &page.records {
                let at = seen.entry(record.device.0).or_default();
                *at = (*at).max(record.timestamp.millis());
            }
            cursor = page.next;
            if cursor.is_none() || seen.len() > DEVICES_MAX {
                break;
            }
        }
        let mut cursor = None;
        loop {
            let page = records
                .list_devices(group.id, records::PAGE_MAX, cursor)
                .await?;
            for device in &page.devices {
                let id = name::record_device(ids, group.id, device.id);
                let summary = DeviceSummary {
                    kind: device.model.as_ref().map(|model| model.as_str().to_owned()),
                    group: Some(group.name.as_str().to_owned()),
                    last_seen: seen.get(&device.id.0).copied().map(EpochMillis),
                    ..DeviceSummary::new(SystemName::Records, id).named(Some(device.name.as_str()))
                };
                if !found.add(summary) {
                    return Ok(false);
                }
            }
            cursor = page.next;
            if cursor.is_none() {
                return Ok(true);
            }
        }
    }

    async fn gather_phones(&self, found: &mut Found) -> Result<(), FleetError> {
        use push::schema;
        let mut scan = Scan::new(&self.0.tokens.name);
        scan.projection = Some(Projection::new([
            schema::USER_ID,
            schema::DEVICE_ID,
            schema::PLATFORM,
            schema::UPDATED_AT,
            schema::IS_ACTIVE,
        ]));
        loop {
            let page = self.store().scan(scan.clone()).await?;
            for item in &page.items {
                let (Some(user), Some(device)) =
                    (text(item, schema::USER_ID), text(item, schema::DEVICE_ID))
                else {
                    continue;
                };
                let summary = DeviceSummary {
                    kind: text(item, schema::PLATFORM).map(str::to_owned),
                    group: Some(user.to_owned()),
                    last_seen: text(item, schema::UPDATED_AT).and_then(moment),
                    is_active: item.get(schema::IS_ACTIVE).and_then(Value::as_bool) == Some(true),
                    ..DeviceSummary::new(SystemName::Push, name::join(user, device))
                };
                if !found.add(summary) {
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

pub(super) fn text<'a>(item: &'a Item, name: &str) -> Option<&'a str> {
    item.get(name).and_then(Value::as_str)
}

pub(super) fn integer(item: &Item, name: &str) -> Option<i64> {
    item.get(name)?.as_number()?.to_i64()
}

/// A time as sensors write it.
fn second(text: &str) -> Option<EpochMillis> {
    let second: UtcSecond = text.parse().ok()?;
    Some(EpochMillis(second.seconds().0.saturating_mul(1000)))
}

/// Any time in the form of RFC 3339.
pub(super) fn moment(text: &str) -> Option<EpochMillis> {
    let timestamp: jiff::Timestamp = text.parse().ok()?;
    Some(EpochMillis(timestamp.as_millisecond()))
}

fn unreadable(what: &str) -> FleetError {
    FleetError::Malformed(format!("{what} cannot be read"))
}
