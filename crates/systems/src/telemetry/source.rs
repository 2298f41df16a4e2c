//! Things as devices of the fleet. No table lists them.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use homeport_item::expression::{KeyCondition, Projection, SortCondition};
use homeport_item::schema::TableSchema;
use homeport_item::{Item, Number};
use homeport_store::{Query, Scan, Store};

use super::types::ThingName;
use super::{Telemetry, schema};
use crate::fleet::attributes::{millis, text};
use crate::fleet::entry::title;
use crate::fleet::{
    DeviceList, DeviceSource, DeviceSummary, DeviceView, Entry, EntryType, FleetError,
    HistoryRange, LatestValue, QueryReader, Row, RowReader, Sample, System, SystemName,
    visit_members,
};
use crate::time::EpochMillis;

pub static SYSTEM: System = System {
    name: SystemName::new("telemetry"),
    report_every_secs: 5 * 60,
    has_values: true,
    alert_reaction: Some("alerts-telemetry"),
    time_of,
    connect: |deps| Arc::new(deps.telemetry.clone()),
};

/// The largest number that a key can hold: it sorts after every message of a thing.
const LARGEST: &str = "9.9999999999999999999999999999999999999e125";
/// The newest messages of a thing in which its latest values are searched.
const MESSAGES_LOOKED_AT: usize = 200;

#[async_trait]
impl DeviceSource for Telemetry {
    fn system(&self) -> &'static System {
        &SYSTEM
    }

    fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    fn row_table(&self) -> TableSchema {
        (*self.table).clone()
    }

    fn devices_of(&self, item: &Item) -> Vec<String> {
        let device = text(item, schema::THING_NAME);
        device.map(str::to_owned).into_iter().collect()
    }

    /// A scan of one item finds a thing; the next scan starts after every message that the thing can have. The
    /// number of messages does not matter.
    async fn collect_devices(&self, devices: &mut DeviceList) -> Result<(), FleetError> {
        let largest: Number = LARGEST
            .parse()
            .map_err(|_| FleetError::Malformed("the largest number".to_owned()))?;
        let mut scan = Scan::new(&self.table.name).limit(1);
        scan.projection = Some(Projection::new([schema::THING_NAME]));
        loop {
            let page = self.store.scan(scan.clone()).await?;
            let thing = page.items.first();
            let Some(thing) = thing.and_then(|item| text(item, schema::THING_NAME)) else {
                // The scanned item may have expired.
                scan.start = page.next;
                if scan.start.is_none() {
                    return Ok(());
                }
                continue;
            };
            let mut newest = self.newest_first(thing).limit(1);
            newest.projection = Some(Projection::new([schema::TIMESTAMP]));
            let newest = self.store.query(newest).await?;
            if !devices.add(summary(thing, newest.items.first())) {
                return Ok(());
            }
            let behind = Item::new()
                .with(schema::THING_NAME, thing)
                .with(schema::TIMESTAMP, largest);
            scan.start = Some(behind);
        }
    }

    /// The state of a thing is its newest message of type `status`.
    async fn device_view(&self, id: &str) -> Result<DeviceView, FleetError> {
        let thing = parse(id)?;
        let query = self.newest_first(thing.as_str()).limit(MESSAGES_LOOKED_AT);
        let page = self.store.query(query).await?;
        let newest = page.items.first().ok_or(FleetError::DeviceMissing)?;
        let mut by_type: BTreeMap<&str, &Item> = BTreeMap::new();
        for item in &page.items {
            let kind = text(item, schema::MESSAGE_TYPE).unwrap_or_default();
            by_type.entry(kind).or_insert(item);
        }
        let mut latest: BTreeMap<String, LatestValue> = BTreeMap::new();
        for item in by_type.values() {
            let at = time_of(item).unwrap_or(EpochMillis(0));
            let row = Row::new(at, (*item).clone());
            self.samples(&row, &mut |sample| {
                let known = latest.get(sample.name);
                if known.is_none_or(|known| known.at < at) {
                    latest.insert(sample.name.to_owned(), LatestValue::new(&sample, at));
                }
            });
        }
        let state = by_type.get("status").map(|item| (*item).clone());
        Ok(DeviceView {
            summary: summary(thing.as_str(), Some(newest)),
            identity: Item::new().with(schema::THING_NAME, &thing),
            state: state.unwrap_or_default(),
            latest: latest.into_values().collect(),
        })
    }

    async fn history(
        &self,
        id: &str,
        range: &HistoryRange,
    ) -> Result<Vec<Box<dyn RowReader>>, FleetError> {
        let between = SortCondition::Between(range.from.0.into(), range.to.0.into());
        let condition = KeyCondition::new(schema::THING_NAME, &parse(id)?)
            .with_sort(schema::TIMESTAMP, between);
        let query = Query::new(&self.table.name, condition);
        Ok(QueryReader::new(self, query, range).alone())
    }

    fn samples(&self, row: &Row, visit: &mut dyn FnMut(Sample<'_>)) {
        let own = [
            schema::THING_NAME,
            schema::TIMESTAMP,
            schema::MESSAGE_TYPE,
            schema::TTL,
        ];
        visit_members(row.item.attributes(), &own, visit);
    }

    fn entry(&self, row: &Row) -> Option<Entry> {
        let (table, at) = (&self.table.name, row.at);
        let thing = text(&row.item, schema::THING_NAME)?;
        let word = text(&row.item, schema::MESSAGE_TYPE).unwrap_or("message");
        Some(Entry {
            // Thirteen digits, so that the ids of one thing sort by time.
            id: format!("{table}/{thing}/{:013}", at.0),
            at,
            kind: EntryType::of_word(word),
            title: title(self, row, word),
            table: table.clone(),
            item: row.item.clone(),
        })
    }
}

impl Telemetry {
    fn newest_first(&self, thing: &str) -> Query {
        let condition = KeyCondition::new(schema::THING_NAME, thing);
        Query::new(&self.table.name, condition).descending()
    }
}

fn parse(id: &str) -> Result<ThingName, FleetError> {
    id.parse().map_err(|_| FleetError::DeviceMissing)
}

fn summary(thing: &str, newest: Option<&Item>) -> DeviceSummary {
    DeviceSummary {
        last_seen: newest.and_then(time_of),
        ..DeviceSummary::new(&SYSTEM.name, thing.to_owned())
    }
}

fn time_of(message: &Item) -> Option<EpochMillis> {
    millis(message, schema::TIMESTAMP)
}
