//! Sensors as devices of the fleet.

use std::sync::Arc;

use async_trait::async_trait;
use homeport_item::expression::{KeyCondition, Projection, SortCondition};
use homeport_item::schema::{StreamView, TableSchema};
use homeport_item::{Item, Value};
use homeport_store::{Change, ChangeKind, Query, Store};

use super::types::HardwareId;
use super::{Sensors, SensorsError, schema};
use crate::fleet::attributes::{millis, pick, text};
use crate::fleet::entry::{item_of, title};
use crate::fleet::{
    AlertSubject, Detail, DeviceList, DeviceSource, DeviceSummary, DeviceView, Entry, EntryType,
    FleetError, HistoryRange, LatestValue, QueryReader, Row, RowReader, Sample, System, SystemName,
    unit_of, visit_members,
};
use crate::time::{EpochMillis, UtcSecond};

pub static SYSTEM: System = System {
    name: SystemName::new("sensors"),
    report_every_secs: 10 * 60,
    has_values: true,
    alert_reaction: Some("alerts-sensors"),
    time_of,
    connect: |deps| Arc::new(deps.sensors.clone()),
};

#[async_trait]
impl DeviceSource for Sensors {
    fn system(&self) -> &'static System {
        &SYSTEM
    }

    fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    fn row_table(&self) -> TableSchema {
        schema::device_readings()
    }

    fn devices_of(&self, item: &Item) -> Vec<String> {
        let device = text(item, schema::HARDWARE_ID);
        device.map(str::to_owned).into_iter().collect()
    }

    async fn collect_devices(&self, devices: &mut DeviceList) -> Result<(), FleetError> {
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
            let page = self.store.query(query.clone()).await?;
            for device in page.items.iter().filter_map(summary) {
                if !devices.add(device) {
                    return Ok(());
                }
            }
            query.start = page.next;
            if query.start.is_none() {
                return Ok(());
            }
        }
    }

    async fn device_view(&self, id: &str) -> Result<DeviceView, FleetError> {
        let hardware_id = self.parse(id).await?;
        let device = self.device(&hardware_id).await?.to_item();
        let mut state = pick(&device, &[schema::LAST_SEEN_AT, schema::LAST_BOOT_ID]);
        let mut latest = Vec::new();
        match self.latest_reading(&hardware_id).await {
            Ok(reading) => {
                for (sensor, status) in reading.sensor_status.iter() {
                    state.insert(format!("{sensor}_status"), status.as_str());
                }
                latest.extend(reading.sensors.iter().map(|(sensor, value)| LatestValue {
                    name: sensor.to_string(),
                    unit: unit_of(sensor.as_str()).map(str::to_owned),
                    value: Value::N(*value),
                    at: reading.timestamp,
                }));
            }
            Err(SensorsError::NoReadings(_)) => {}
            Err(error) => return Err(error.into()),
        }
        let identity = [
            schema::HARDWARE_ID,
            schema::FRIENDLY_NAME,
            schema::FIRMWARE_VERSION,
            schema::CONFIRMATION_ID,
            schema::CAPABILITIES,
            schema::FIRST_REGISTERED_AT,
        ];
        Ok(DeviceView {
            summary: summary(&device).ok_or(FleetError::DeviceMissing)?,
            identity: pick(&device, &identity),
            state,
            latest,
        })
    }

    async fn history(
        &self,
        id: &str,
        range: &HistoryRange,
    ) -> Result<Vec<Box<dyn RowReader>>, FleetError> {
        let between = SortCondition::Between(
            format!("{:013}#", range.from.0).into(),
            format!("{:013}#\u{ffff}", range.to.0).into(),
        );
        let hardware_id = self.parse(id).await?;
        let condition = KeyCondition::new(schema::HARDWARE_ID, &hardware_id)
            .with_sort(schema::TS_BATCH, between);
        let mut query = Query::new(schema::DEVICE_READINGS, condition);
        if range.detail == Detail::Values {
            query.projection = Some(Projection::new([schema::TIMESTAMP_MS, schema::SENSORS]));
        }
        Ok(QueryReader::new(self, query, range).alone())
    }

    fn samples(&self, row: &Row, visit: &mut dyn FnMut(Sample<'_>)) {
        if let Some(Value::M(members)) = row.item.get(schema::SENSORS) {
            visit_members(members, &[], visit);
        }
    }

    fn entry(&self, row: &Row) -> Option<Entry> {
        let device = text(&row.item, schema::HARDWARE_ID)?;
        let sort = text(&row.item, schema::TS_BATCH)?;
        Some(Entry {
            id: format!("{}/{device}/{sort}", schema::DEVICE_READINGS),
            at: row.at,
            kind: EntryType::Telemetry,
            title: title(self, row, "Reading"),
            table: schema::DEVICE_READINGS.to_owned(),
            item: row.item.clone(),
        })
    }

    fn entry_types(&self) -> &'static [EntryType] {
        &[EntryType::Telemetry]
    }

    fn live_tables(&self) -> Vec<TableSchema> {
        [schema::device_readings(), schema::devices()]
            .map(|table| table.with_stream(StreamView::NewImage))
            .into()
    }

    fn live_entry(&self, table: &str, change: &Change) -> Option<(Vec<String>, Entry)> {
        if table != schema::DEVICES {
            return self.row_entry(change);
        }
        let item = item_of(change);
        let device = text(item, schema::HARDWARE_ID)?.to_owned();
        let entry = registration(&device, item, change)?;
        Some((vec![device], entry))
    }

    /// Two readings can have the same time.
    fn alert_subject(&self, item: &Item) -> Option<AlertSubject> {
        Some(AlertSubject {
            name: text(item, schema::HARDWARE_ID)?.to_owned(),
            at: millis(item, schema::TIMESTAMP_MS)?,
            tie: text(item, schema::TS_BATCH)?.to_owned(),
        })
    }
}

impl Sensors {
    /// The sensor that an id names. A removed device is missing.
    async fn parse(&self, id: &str) -> Result<HardwareId, FleetError> {
        let id = id.parse().map_err(|_| FleetError::DeviceMissing)?;
        if self.is_removed(&id).await? {
            return Err(FleetError::DeviceMissing);
        }
        Ok(id)
    }
}

fn summary(device: &Item) -> Option<DeviceSummary> {
    let id = text(device, schema::HARDWARE_ID)?.to_owned();
    let firmware = text(device, schema::FIRMWARE_VERSION);
    let last_seen: Option<UtcSecond> =
        text(device, schema::LAST_SEEN_AT).and_then(|text| text.parse().ok());
    let last_seen_ms = last_seen.map(|seen| seen.seconds().0.saturating_mul(1000));
    Some(DeviceSummary {
        kind: firmware.map(|version| format!("firmware {version}")),
        last_seen: last_seen_ms.map(EpochMillis),
        ..DeviceSummary::new(&SYSTEM.name, id).named(text(device, schema::FRIENDLY_NAME))
    })
}

/// The time of a reading. Only the key is left of a removed one.
fn time_of(reading: &Item) -> Option<EpochMillis> {
    let in_key = || {
        let time = text(reading, schema::TS_BATCH)?.split('#').next()?;
        time.parse().ok().map(EpochMillis)
    };
    millis(reading, schema::TIMESTAMP_MS).or_else(in_key)
}

/// A sensor that registered. Later changes of its item only repeat what its readings show.
fn registration(device: &str, item: &Item, change: &Change) -> Option<Entry> {
    (change.kind != ChangeKind::Modify).then(|| Entry {
        id: format!("{}/{device}/{}", schema::DEVICES, change.at_ms),
        at: EpochMillis(change.at_ms),
        kind: EntryType::State,
        title: "Registered".to_owned(),
        table: schema::DEVICES.to_owned(),
        item: item.clone(),
    })
}

impl From<SensorsError> for FleetError {
    fn from(error: SensorsError) -> Self {
        match error {
            SensorsError::DeviceMissing(_)
            | SensorsError::NoReadings(_)
            | SensorsError::ReadingMissing
            | SensorsError::BeingDecommissioned(_) => Self::DeviceMissing,
            SensorsError::Cursor(error) => error.into(),
            SensorsError::Store(error) => error.into(),
            error => Self::Malformed(error.to_string()),
        }
    }
}
