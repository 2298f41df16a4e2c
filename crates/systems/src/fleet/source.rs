//! The interface of a system with devices. Each system implements it in its own folder; the fleet, the live feed,
//! exports, alerts and the console's routes use nothing else of a system.

use std::sync::Arc;

use async_trait::async_trait;
use homeport_item::Item;
use homeport_item::expression::KeyCondition;
use homeport_item::schema::{StreamView, TableSchema};
use homeport_store::{Change, Query, Store};

use super::FleetError;
use super::device::{DeviceList, DeviceView};
use super::entry::{Entry, EntryType, item_of};
use super::history::{HistoryRange, Row, RowReader};
use super::registry::System;
use super::samples::Sample;
use crate::time::EpochMillis;

/// A system with devices.
#[async_trait]
pub trait DeviceSource: Send + Sync + 'static {
    fn system(&self) -> &'static System;

    fn store(&self) -> &Arc<dyn Store>;

    /// The table of the rows.
    fn row_table(&self) -> TableSchema;

    /// The ids of the devices that a row belongs to.
    fn devices_of(&self, item: &Item) -> Vec<String>;

    /// Adds all devices to a list, until it is full. Tables of readings, events or messages must not be scanned.
    async fn collect_devices(&self, devices: &mut DeviceList) -> Result<(), FleetError>;

    /// One device with its state.
    async fn device_view(&self, id: &str) -> Result<DeviceView, FleetError>;

    /// The id under which the list has a device, for systems that accept several ids.
    async fn resolve_id(&self, id: &str) -> Result<String, FleetError> {
        Ok(id.to_owned())
    }

    /// What a device stored in a range of time, in one or several histories that each have an order.
    async fn history(
        &self,
        id: &str,
        range: &HistoryRange,
    ) -> Result<Vec<Box<dyn RowReader>>, FleetError>;

    /// Visits every value of a row.
    fn samples(&self, _row: &Row, _visit: &mut dyn FnMut(Sample<'_>)) {}

    /// Visits every value of a row that an export contains.
    fn exported_values(&self, row: &Row, visit: &mut dyn FnMut(Sample<'_>)) {
        self.samples(row, visit);
    }

    /// The entry of a row in the timeline.
    fn entry(&self, row: &Row) -> Option<Entry>;

    /// The types that the entries of rows can have.
    fn entry_types(&self) -> &'static [EntryType] {
        &EntryType::ALL
    }

    /// Loads what the methods below need. Called before them.
    async fn prepare(&self) -> Result<(), FleetError> {
        Ok(())
    }

    /// The tables whose changes are entries of the live feed, with the streams that they need.
    fn live_tables(&self) -> Vec<TableSchema> {
        vec![self.row_table().with_stream(StreamView::NewImage)]
    }

    /// The entry of a change and the ids of its devices; `None` for changes that people do not need to see.
    fn live_entry(&self, _table: &str, change: &Change) -> Option<(Vec<String>, Entry)> {
        self.row_entry(change)
    }

    /// The live entry of a changed row.
    fn row_entry(&self, change: &Change) -> Option<(Vec<String>, Entry)> {
        let item = item_of(change);
        let at = (self.system().time_of)(item)?;
        let entry = self.entry(&Row::new(at, item.clone()))?;
        Some((self.devices_of(item), entry))
    }

    /// The subject of a stored row; `None` for items that alerts do not judge. A subject is a device unless the
    /// system says otherwise.
    fn alert_subject(&self, item: &Item) -> Option<AlertSubject> {
        Some(AlertSubject {
            name: self.devices_of(item).pop()?,
            at: (self.system().time_of)(item)?,
            tie: String::new(),
        })
    }

    /// The id of the device that a subject of alerts belongs to.
    fn device_of_subject<'a>(&self, subject: &'a str) -> &'a str {
        subject
    }

    /// The newest row of a subject: by default, the last item of its partition.
    async fn newest_item(&self, subject: &str) -> Result<Option<Item>, FleetError> {
        let table = self.row_table();
        let condition = KeyCondition::new(table.key.partition.name.as_str(), subject);
        let query = Query::new(&table.name, condition).descending().limit(1);
        Ok(self.store().query(query).await?.items.into_iter().next())
    }
}

/// What an alert is about, and the order of an item among the items of the same subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlertSubject {
    pub name: String,
    pub at: EpochMillis,
    /// Orders items of the same time.
    pub tie: String,
}
