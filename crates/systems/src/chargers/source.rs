//! Chargers as devices of the fleet.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use homeport_item::expression::{KeyCondition, Projection, SortCondition};
use homeport_item::schema::{StreamView, TableSchema};
use homeport_item::{Item, Value};
use homeport_store::{Change, Get, Query, Scan, Store};

use super::daily::UPLINK_EVERY_MS;
use super::event::{Event, MOVES_MAX};
use super::mountain::wall_clocks;
use super::timeline::EventRange;
use super::types::{DeviceName, ScId};
use super::{Chargers, ChargersError, schema};
use crate::cursor::Cursor;
use crate::fleet::attributes::{millis, text};
use crate::fleet::entry::{TITLE_VALUES_MAX, item_of, shortened, title};
use crate::fleet::{
    AlertSubject, DEVICES_MAX, Detail, DeviceList, DeviceSource, DeviceSummary, DeviceView, Entry,
    EntryType, FleetError, HistoryRange, LatestValue, QueryReader, Row, RowPage, RowReader, Sample,
    System, SystemName, unit_of, visit_members,
};
use crate::plain_json;
use crate::time::EpochMillis;

pub static SYSTEM: System = System {
    name: SystemName::new("chargers"),
    report_every_secs: UPLINK_EVERY_MS / 1000,
    has_values: true,
    alert_reaction: Some("alerts-chargers"),
    time_of,
    connect: |deps| Arc::new(deps.chargers.clone()),
};

/// The last instant whose wall clock can be written.
const WALL_CLOCK_MS_MAX: i64 = 4_102_444_800_000;

/// Reads events in true order.
struct EventReader {
    chargers: Chargers,
    id: ScId,
    range: EventRange,
    cursor: Option<Cursor>,
    is_done: bool,
}

#[async_trait]
impl RowReader for EventReader {
    async fn next_page(&mut self, limit: Option<usize>) -> Result<Option<RowPage>, FleetError> {
        if self.is_done {
            return Ok(None);
        }
        let (cursor, limit) = (self.cursor.take(), limit.unwrap_or(super::PAGE_MAX));
        let events = self
            .chargers
            .events(&self.id, None, self.range, limit, cursor);
        let page = events.await?;
        self.cursor = page.next;
        self.is_done = self.cursor.is_none();
        let rows = page.items.iter();
        let rows: Vec<Row> = rows
            .map(|event| Row::new(event.timestamp_utc, event.shown()))
            .collect();
        Ok(Some(RowPage {
            items_read: rows.len(),
            reached: rows.last().map(|row| row.at),
            rows,
        }))
    }
}

#[async_trait]
impl DeviceSource for Chargers {
    fn system(&self) -> &'static System {
        &SYSTEM
    }

    fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    fn row_table(&self) -> TableSchema {
        schema::events()
    }

    fn devices_of(&self, item: &Item) -> Vec<String> {
        let device = text(item, schema::DEVICE_ID);
        device.map(str::to_owned).into_iter().collect()
    }

    /// Lists registered chargers, and those that only have a state.
    async fn collect_devices(&self, devices: &mut DeviceList) -> Result<(), FleetError> {
        let mut found: BTreeMap<String, DeviceSummary> = BTreeMap::new();
        for (table, attribute) in [
            (schema::DEVICES, schema::FRIENDLY_NAME),
            (schema::DEVICE_STATE, schema::LAST_SEEN_UTC_MS),
        ] {
            let mut scan = Scan::new(table);
            let attributes = [schema::DEVICE_ID, schema::WIRELESS_DEVICE_ID, attribute];
            scan.projection = Some(Projection::new(attributes));
            loop {
                let page = self.store.scan(scan.clone()).await?;
                for item in &page.items {
                    if let Some(id) = text(item, schema::DEVICE_ID) {
                        let device = found.entry(id.to_owned());
                        let device = device
                            .or_insert_with(|| DeviceSummary::new(&SYSTEM.name, id.to_owned()));
                        describe(device, item);
                    }
                }
                scan.start = page.next;
                if scan.start.is_none() || found.len() > DEVICES_MAX {
                    break;
                }
            }
        }
        found.into_values().all(|device| devices.add(device));
        Ok(())
    }

    async fn device_view(&self, id: &str) -> Result<DeviceView, FleetError> {
        let id = self.parse(id).await?;
        let charger = self.charger(&id).await?;
        let stored = Get::new(
            schema::DEVICE_STATE,
            Item::new().with(schema::DEVICE_ID, &id),
        );
        let stored = self.store.get(stored).await?.unwrap_or_default();
        let mut summary = DeviceSummary::new(&SYSTEM.name, id.to_string());
        describe(&mut summary, &charger.registration);
        describe(&mut summary, &stored);
        let reported = stored.get(schema::REPORTED_UTC_MS).and_then(Value::as_map);
        let latest = reported.into_iter().flatten().filter_map(|(name, at)| {
            Some(LatestValue {
                name: name.to_string(),
                unit: unit_of(name.as_str()).map(str::to_owned),
                value: stored.get(name.as_str())?.clone(),
                at: EpochMillis(at.as_number()?.to_i64()?),
            })
        });
        Ok(DeviceView {
            summary,
            identity: charger.registration,
            state: charger.state,
            latest: latest.collect(),
        })
    }

    /// A charger also has a UUID.
    async fn resolve_id(&self, id: &str) -> Result<String, FleetError> {
        Ok(self.parse(id).await?.to_string())
    }

    async fn history(
        &self,
        id: &str,
        range: &HistoryRange,
    ) -> Result<Vec<Box<dyn RowReader>>, FleetError> {
        let id = self.parse(id).await?;
        if range.detail == Detail::Shown {
            return Ok(vec![Box::new(EventReader {
                chargers: self.clone(),
                id,
                range: EventRange {
                    from: Some(range.from),
                    to: Some(range.to),
                    order: range.order,
                },
                cursor: None,
                is_done: false,
            })]);
        }
        // The key of an event may be this much later than its time.
        let last = (range.to.0 + MOVES_MAX - 1).min(WALL_CLOCK_MS_MAX);
        let first = EpochMillis(range.from.0.min(last));
        let (lowest, highest) = wall_clocks(first, EpochMillis(last));
        let between = SortCondition::Between(lowest.into(), highest.into());
        let condition =
            KeyCondition::new(schema::DEVICE_ID, &id).with_sort(schema::TIMESTAMP_MT, between);
        let query = Query::new(schema::EVENTS, condition);
        Ok(QueryReader::new(self, query, range).alone())
    }

    fn samples(&self, row: &Row, visit: &mut dyn FnMut(Sample<'_>)) {
        if let Some(Value::M(members)) = row.item.get(schema::DATA) {
            return visit_members(members, &[], visit);
        }
        // Events from the old table have their values beside the attributes of the event.
        let own = [
            schema::DEVICE_ID,
            schema::TIMESTAMP_MT,
            schema::EVENT_TYPE,
            schema::TIMESTAMP_UTC_MS,
            schema::WIRELESS_DEVICE_ID,
            schema::UPLINK_ID,
            schema::RECEIVED_AT,
        ];
        visit_members(row.item.attributes(), &own, visit);
    }

    /// An event has a type, also if it has no values.
    fn exported_values(&self, row: &Row, visit: &mut dyn FnMut(Sample<'_>)) {
        if let Some(event_type) = row.item.get(schema::EVENT_TYPE) {
            visit(Sample::new(schema::EVENT_TYPE, event_type));
        }
        self.samples(row, visit);
    }

    fn entry(&self, row: &Row) -> Option<Entry> {
        let event = Event::from_item(&row.item).ok()?;
        let (device, at_mt) = (&event.device_id, event.timestamp_mt);
        let word = event.event_type.as_str();
        Some(Entry {
            id: format!("{}/{device}/{at_mt}", schema::EVENTS),
            at: row.at,
            kind: EntryType::of_word(word),
            title: title(self, row, word),
            table: schema::EVENTS.to_owned(),
            item: row.item.clone(),
        })
    }

    fn live_tables(&self) -> Vec<TableSchema> {
        // Only a comparison with the old state shows what has changed.
        let states = schema::device_state().with_stream(StreamView::NewAndOldImages);
        vec![schema::events(), states]
    }

    fn live_entry(&self, table: &str, change: &Change) -> Option<(Vec<String>, Entry)> {
        if table != schema::DEVICE_STATE {
            return self.row_entry(change);
        }
        let device = text(item_of(change), schema::DEVICE_ID)?.to_owned();
        let entry = state_entry(&device, change)?;
        Some((vec![device], entry))
    }

    /// Two events can have the same time.
    fn alert_subject(&self, item: &Item) -> Option<AlertSubject> {
        let event = Event::from_item(item).ok()?;
        Some(AlertSubject {
            name: event.device_id.to_string(),
            at: event.timestamp_utc,
            tie: event.timestamp_mt.to_string(),
        })
    }
}

impl Chargers {
    /// The charger that an id names. A UUID means its own device only, and a removed device is missing.
    async fn parse(&self, id: &str) -> Result<ScId, FleetError> {
        let name: DeviceName = id.parse().map_err(|_| FleetError::DeviceMissing)?;
        let id = self.find(&name).await?;
        if self.is_removed(&id).await? {
            return Err(FleetError::DeviceMissing);
        }
        Ok(id)
    }
}

/// Adds what a registration or a state says of a charger.
fn describe(device: &mut DeviceSummary, item: &Item) {
    device.set_name(text(item, schema::FRIENDLY_NAME));
    if let Some(wireless) = text(item, schema::WIRELESS_DEVICE_ID) {
        device.kind = Some(wireless.to_owned());
    }
    if let Some(seen) = millis(item, schema::LAST_SEEN_UTC_MS) {
        device.last_seen = Some(seen);
    }
}

fn time_of(event: &Item) -> Option<EpochMillis> {
    Some(Event::from_item(event).ok()?.timestamp_utc)
}

/// The entry of a state that something other than an uplink has changed.
fn state_entry(device: &str, change: &Change) -> Option<Entry> {
    let new = change.new.as_ref()?;
    let old = change.old.as_ref();
    let changed = new.iter().filter(|(name, value)| {
        let is_operators = schema::STATE_PREFIXES
            .iter()
            .any(|prefix| name.starts_with(prefix));
        is_operators && old.and_then(|old| old.get(name)) != Some(value)
    });
    let changed: Vec<(&str, &Value)> = changed.collect();
    let (first, _) = changed.first()?;
    let kind = match first {
        name if name.starts_with(schema::OTA) => EntryType::Ota,
        name if name.starts_with(schema::SCHEDULER) => EntryType::Scheduler,
        _ => EntryType::State,
    };
    let words = changed.iter().take(TITLE_VALUES_MAX);
    let words: Vec<String> = words
        .map(|(name, value)| format!("{name} {}", plain_json::value(value)))
        .collect();
    Some(Entry {
        id: format!("{}/{device}/{}", schema::DEVICE_STATE, change.at_ms),
        at: EpochMillis(change.at_ms),
        kind,
        title: shortened(&words.join(", ")),
        table: schema::DEVICE_STATE.to_owned(),
        item: new.clone(),
    })
}

impl From<ChargersError> for FleetError {
    fn from(error: ChargersError) -> Self {
        match error {
            ChargersError::DeviceMissing(_) | ChargersError::EventMissing(..) => {
                Self::DeviceMissing
            }
            ChargersError::Cursor(error) => error.into(),
            ChargersError::Store(error) => error.into(),
            error => Self::Malformed(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use homeport_store::ChangeKind;

    #[test]
    fn only_operator_changes_of_state_are_entries() {
        let key = Item::new().with(schema::DEVICE_ID, "SC-A1B2C3D4");
        let old = key.clone().with("current_ma", 1);
        let change = |new: Item| Change {
            at_ms: 5,
            kind: ChangeKind::Modify,
            by_expiry: false,
            key: key.clone(),
            old: Some(old.clone()),
            new: Some(new),
        };
        let uplink = change(old.clone().with("current_ma", 2));
        assert_eq!(state_entry("SC-A1B2C3D4", &uplink), None);
        let ota = change(old.clone().with("ota_version", "2.0"));
        let entry = state_entry("SC-A1B2C3D4", &ota).expect("an entry");
        assert_eq!(entry.kind, EntryType::Ota);
        assert_eq!(entry.title, "ota_version \"2.0\"");
    }
}
