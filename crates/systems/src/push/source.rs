//! Phones as devices of the fleet. Their push tokens are credentials and never shown.

use std::sync::Arc;

use async_trait::async_trait;
use homeport_item::expression::{KeyCondition, Projection, SortCondition};
use homeport_item::schema::{StreamView, TableSchema};
use homeport_item::{Item, Value};
use homeport_store::{Change, ChangeKind, Get, Query, Scan, Store};

use super::types::{DeviceId, UserId};
use super::{Push, schema};
use crate::fleet::attributes::{millis, moment, pick, text};
use crate::fleet::entry::{item_of, shortened};
use crate::fleet::name::{join, split};
use crate::fleet::{
    DeviceList, DeviceSource, DeviceSummary, DeviceView, Entry, EntryType, FleetError,
    HistoryRange, QueryReader, Row, RowReader, System, SystemName,
};
use crate::time::EpochMillis;

pub static SYSTEM: System = System {
    name: SystemName::new("push"),
    // An app refreshes its push token, usually when it starts.
    report_every_secs: 7 * 24 * 60 * 60,
    has_values: false,
    alert_reaction: None,
    time_of,
    connect: |deps| Arc::new(deps.push.clone()),
};

#[async_trait]
impl DeviceSource for Push {
    fn system(&self) -> &'static System {
        &SYSTEM
    }

    fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    fn row_table(&self) -> TableSchema {
        schema::notifications()
    }

    fn devices_of(&self, item: &Item) -> Vec<String> {
        let user = text(item, schema::PK).and_then(|key| key.strip_prefix(schema::USER));
        let devices = deliveries(item, schema::NOTIFIED_DEVICE_ID);
        devices
            .map(|device| join(user.unwrap_or_default(), device))
            .collect()
    }

    async fn collect_devices(&self, devices: &mut DeviceList) -> Result<(), FleetError> {
        let mut scan = Scan::new(self.table());
        scan.projection = Some(Projection::new([
            schema::USER_ID,
            schema::DEVICE_ID,
            schema::PLATFORM,
            schema::UPDATED_AT,
            schema::IS_ACTIVE,
        ]));
        devices.add_scanned(&*self.store, scan, summary).await
    }

    async fn device_view(&self, id: &str) -> Result<DeviceView, FleetError> {
        let (user, device) = parse(id)?;
        let get = Get::new(self.table(), schema::device_key(&user, &device));
        let phone = self.store.get(get).await?;
        let phone = phone.ok_or(FleetError::DeviceMissing)?;
        let identity = [
            schema::USER_ID,
            schema::DEVICE_ID,
            schema::PLATFORM,
            schema::REGISTERED_AT,
        ];
        let state = [schema::IS_ACTIVE, schema::UPDATED_AT, schema::EXPIRES_AT];
        Ok(DeviceView {
            summary: summary(&phone).ok_or(FleetError::DeviceMissing)?,
            identity: pick(&phone, &identity),
            state: pick(&phone, &state),
            latest: Vec::new(),
        })
    }

    /// The notifications of the user, including those that went to other phones.
    async fn history(
        &self,
        id: &str,
        range: &HistoryRange,
    ) -> Result<Vec<Box<dyn RowReader>>, FleetError> {
        let (user, _) = parse(id)?;
        let between = SortCondition::Between(
            format!("{}{:013}", schema::NOTIFICATION, range.from.0).into(),
            format!("{}{:013}\u{ffff}", schema::NOTIFICATION, range.to.0).into(),
        );
        let condition = KeyCondition::new(schema::PK, schema::user_partition(&user))
            .with_sort(schema::SK, between);
        let query = Query::new(schema::NOTIFICATIONS, condition);
        Ok(QueryReader::new(self, query, range).alone())
    }

    fn entry(&self, row: &Row) -> Option<Entry> {
        let item = &row.item;
        let user = text(item, schema::PK)?.strip_prefix(schema::USER)?;
        let sort = text(item, schema::SK)?;
        let message = text(item, schema::MESSAGE);
        let message: Option<serde_json::Value> =
            message.and_then(|json| serde_json::from_str(json).ok());
        let title = message
            .as_ref()
            .and_then(|message| message.get("title")?.as_str());
        let title = title.unwrap_or("without a title");
        let states: Vec<&str> = deliveries(item, schema::STATE).collect();
        Some(Entry {
            id: format!("{}/{user}/{sort}", schema::NOTIFICATIONS),
            at: row.at,
            kind: EntryType::Notification,
            title: shortened(&format!("Notification: {title} ({})", states.join(", "))),
            table: schema::NOTIFICATIONS.to_owned(),
            item: item.clone(),
        })
    }

    fn entry_types(&self) -> &'static [EntryType] {
        &[EntryType::Notification]
    }

    fn live_tables(&self) -> Vec<TableSchema> {
        [schema::notifications(), self.device_tokens()]
            .map(|table| table.with_stream(StreamView::NewImage))
            .into()
    }

    fn live_entry(&self, table: &str, change: &Change) -> Option<(Vec<String>, Entry)> {
        if table == schema::NOTIFICATIONS {
            return self.row_entry(change);
        }
        let item = item_of(change);
        let user = text(item, schema::USER_ID)?;
        let device = text(item, schema::DEVICE_ID)?;
        let entry = registration(table, user, device, item, change);
        Some((vec![join(user, device)], entry))
    }
}

fn parse(id: &str) -> Result<(UserId, DeviceId), FleetError> {
    let [user, device] = split(id)?;
    match (user.parse(), device.parse()) {
        (Ok(user), Ok(device)) => Ok((user, device)),
        _ => Err(FleetError::DeviceMissing),
    }
}

fn summary(phone: &Item) -> Option<DeviceSummary> {
    let user = text(phone, schema::USER_ID)?;
    let device = text(phone, schema::DEVICE_ID)?;
    Some(DeviceSummary {
        kind: text(phone, schema::PLATFORM).map(str::to_owned),
        group: Some(user.to_owned()),
        last_seen: text(phone, schema::UPDATED_AT).and_then(moment),
        is_active: phone.get(schema::IS_ACTIVE).and_then(Value::as_bool) == Some(true),
        ..DeviceSummary::new(&SYSTEM.name, join(user, device))
    })
}

/// The time of a notification; `None` for other items. Only the key is left of a removed one.
fn time_of(item: &Item) -> Option<EpochMillis> {
    let id = text(item, schema::SK)?.strip_prefix(schema::NOTIFICATION)?;
    let in_id = || id.split('-').next()?.parse().ok().map(EpochMillis);
    millis(item, schema::CREATED_AT).or_else(in_id)
}

/// A text field of each delivery of a notification.
fn deliveries<'a>(item: &'a Item, name: &'static str) -> impl Iterator<Item = &'a str> {
    let devices = item.get(schema::DEVICES).and_then(Value::as_list);
    let devices = devices.unwrap_or_default().iter();
    devices.filter_map(move |delivery| delivery.as_map()?.get(name)?.as_str())
}

/// A phone that registered, was refreshed or was deactivated.
fn registration(table: &str, user: &str, device: &str, item: &Item, change: &Change) -> Entry {
    let is_active = item.get(schema::IS_ACTIVE).and_then(Value::as_bool);
    let title = match (change.kind, is_active) {
        (ChangeKind::Insert, _) => "Registered",
        (_, Some(false)) => "Deactivated",
        _ => "Refreshed",
    };
    let mut item = item.clone();
    item.remove(schema::EXPO_PUSH_TOKEN);
    Entry {
        id: format!("{table}/{user}/{device}/{}", change.at_ms),
        at: EpochMillis(change.at_ms),
        kind: EntryType::State,
        title: title.to_owned(),
        table: table.to_owned(),
        item,
    }
}
