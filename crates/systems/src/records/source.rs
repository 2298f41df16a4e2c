//! Devices of the record store as devices of the fleet. Their ids are the encoded ids of the group and the device;
//! alerts watch journals, whose ids have the journal's as a third part.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use homeport_item::Item;
use homeport_item::schema::TableSchema;
use homeport_store::Store;

use super::observed::journal_of_record;
use super::types::{DeviceId, GroupId, JournalId, RecordTime};
use super::{Device, Group, PAGE_MAX, RecordIds, RecordRange, Records, RecordsError, schema};
use crate::cursor::Cursor;
use crate::fleet::attributes::{millis, text};
use crate::fleet::entry::shortened;
use crate::fleet::name::{join, split};
use crate::fleet::{
    AlertSubject, DEVICES_MAX, DeviceList, DeviceSource, DeviceSummary, DeviceView, Entry,
    EntryType, FleetError, HistoryRange, LatestValue, Row, RowPage, RowReader, Sample, System,
    SystemName,
};
use crate::plain_json;
use crate::time::EpochMillis;

pub static SYSTEM: System = System {
    name: SystemName::new("records"),
    report_every_secs: 60 * 60,
    has_values: true,
    alert_reaction: Some("alerts-records"),
    time_of,
    connect: |deps| Arc::new(deps.records.clone()),
};

/// Reads the records of one journal.
struct JournalReader {
    records: Records,
    journal: (GroupId, DeviceId, JournalId),
    name: Arc<str>,
    range: RecordRange,
    cursor: Option<Cursor>,
    is_done: bool,
}

#[async_trait]
impl RowReader for JournalReader {
    async fn next_page(&mut self, limit: Option<usize>) -> Result<Option<RowPage>, FleetError> {
        if self.is_done {
            return Ok(None);
        }
        let (group, device, journal) = self.journal;
        let (cursor, limit) = (self.cursor.take(), limit.unwrap_or(PAGE_MAX));
        let page = self
            .records
            .records(group, device, Some(journal), self.range, limit, cursor)
            .await?;
        self.cursor = page.next;
        self.is_done = self.cursor.is_none();
        let rows = page.items.iter().map(|record| Row {
            at: EpochMillis(record.timestamp.millis()),
            item: record.to_item(),
            history: Some(Arc::clone(&self.name)),
        });
        let rows: Vec<Row> = rows.collect();
        Ok(Some(RowPage {
            items_read: rows.len(),
            reached: rows.last().map(|row| row.at),
            rows,
        }))
    }
}

#[async_trait]
impl DeviceSource for Records {
    fn system(&self) -> &'static System {
        &SYSTEM
    }

    fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    fn row_table(&self) -> TableSchema {
        schema::table(self.table())
    }

    fn devices_of(&self, item: &Item) -> Vec<String> {
        let device = self.ids.get().zip(journal_of_record(item));
        let device = device.map(|(ids, (group, device, _))| fleet_id(ids, group, device));
        device.into_iter().collect()
    }

    async fn collect_devices(&self, devices: &mut DeviceList) -> Result<(), FleetError> {
        let Some(ids) = self.fleet_ids().await? else {
            return Ok(());
        };
        let mut cursor = None;
        loop {
            let page = self.list_groups(PAGE_MAX, cursor).await?;
            for group in page.items {
                match self.collect_group(&ids, &group, devices).await {
                    // The group was removed in the meantime.
                    Ok(true) | Err(FleetError::DeviceMissing) => {}
                    Ok(false) => return Ok(()),
                    Err(error) => return Err(error),
                }
            }
            cursor = page.next;
            if cursor.is_none() {
                return Ok(());
            }
        }
    }

    async fn device_view(&self, id: &str) -> Result<DeviceView, FleetError> {
        let (ids, group, device) = self.parse(id).await?;
        let known = self.device(group, device).await?;
        let group = self.group(group).await?;
        let journals = self.journal_names(&ids, group.id, device).await?;
        let page = self.latest(group.id, Some(device), PAGE_MAX, None).await?;
        let latest = page.items.iter().map(|record| LatestValue {
            name: journals
                .get(&record.journal.0)
                .cloned()
                .unwrap_or_else(|| ids.journal(record.journal)),
            value: (&record.value).into(),
            unit: Some(record.unit.as_str().to_owned()),
            at: EpochMillis(record.timestamp.millis()),
        });
        let latest: Vec<LatestValue> = latest.collect();
        let last_seen = latest.iter().map(|value| value.at).max();
        let mut identity = Item::new()
            .with(schema::NAME, &known.name)
            .with("group", group.name.as_str())
            .with("gid", ids.group(group.id))
            .with("did", ids.device(device));
        if let Some(model) = &known.model {
            identity.insert(schema::MODEL, model);
        }
        let journals = i64::try_from(journals.len()).unwrap_or(i64::MAX);
        Ok(DeviceView {
            summary: summary(&ids, &group, &known, last_seen),
            identity,
            state: Item::new().with("journals", journals),
            latest,
        })
    }

    async fn history(
        &self,
        id: &str,
        range: &HistoryRange,
    ) -> Result<Vec<Box<dyn RowReader>>, FleetError> {
        let (ids, group, device) = self.parse(id).await?;
        let range = RecordRange {
            from: RecordTime::nearest(range.from),
            to: RecordTime::nearest(range.to),
            order: range.order,
        };
        let journals = self.journal_names(&ids, group, device).await?;
        let readers = journals.into_iter().map(|(journal, name)| {
            let reader = JournalReader {
                records: self.clone(),
                journal: (group, device, JournalId(journal)),
                name: name.into(),
                range,
                cursor: None,
                is_done: false,
            };
            Box::new(reader) as Box<dyn RowReader>
        });
        Ok(readers.collect())
    }

    fn samples(&self, row: &Row, visit: &mut dyn FnMut(Sample<'_>)) {
        if let Some(value) = row.item.get(schema::VALUE) {
            visit(Sample {
                name: row.history.as_deref().unwrap_or(schema::VALUE),
                value,
                stored_unit: text(&row.item, schema::UNIT),
            });
        }
    }

    /// The title has the name of the journal, if it is known.
    fn entry(&self, row: &Row) -> Option<Entry> {
        let (table, item) = (self.table(), &row.item);
        let (partition, sort) = (text(item, schema::PK)?, text(item, schema::SK)?);
        let value = item.get(schema::VALUE).map(plain_json::value);
        let value = value.unwrap_or_default();
        let unit = text(item, schema::UNIT).unwrap_or_default();
        let what = row.history.as_deref();
        let what = what
            .or_else(|| text(item, schema::TYPE))
            .unwrap_or("Record");
        Some(Entry {
            id: format!("{table}/{partition}/{sort}"),
            at: row.at,
            kind: EntryType::Telemetry,
            title: shortened(format!("{what}: {value} {unit}").trim_end()),
            table: table.to_owned(),
            item: item.clone(),
        })
    }

    fn entry_types(&self) -> &'static [EntryType] {
        &[EntryType::Telemetry]
    }

    /// Reads the encoding of ids, which exists once there is a group.
    async fn prepare(&self) -> Result<(), FleetError> {
        self.fleet_ids().await.map(drop)
    }

    /// The subject is the journal: no two of its records have the same time.
    fn alert_subject(&self, item: &Item) -> Option<AlertSubject> {
        let ids = self.ids.get()?;
        let (group, device, journal) = journal_of_record(item)?;
        Some(AlertSubject {
            name: format!("{}/{}", fleet_id(ids, group, device), ids.journal(journal)),
            at: millis(item, schema::TIMESTAMP)?,
            tie: String::new(),
        })
    }

    fn device_of_subject<'a>(&self, subject: &'a str) -> &'a str {
        subject
            .rsplit_once('/')
            .map_or(subject, |(device, _)| device)
    }

    async fn newest_item(&self, subject: &str) -> Result<Option<Item>, FleetError> {
        let Some(ids) = self.ids.get() else {
            return Ok(None);
        };
        let mut parts = subject.split('/');
        let mut part = || parts.next().unwrap_or_default();
        let journal = (
            ids.parse_group(part()),
            ids.parse_device(part()),
            ids.parse_journal(part()),
        );
        let (Ok(group), Ok(device), Ok(journal)) = journal else {
            return Ok(None);
        };
        Ok(self.newest_of_journal(group, device, journal).await?)
    }
}

impl Records {
    /// The encoding of ids; `None` before the first group is created.
    async fn fleet_ids(&self) -> Result<Option<Arc<RecordIds>>, FleetError> {
        match self.ids().await {
            Ok(ids) => Ok(Some(ids)),
            Err(RecordsError::TagMissing(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    async fn parse(&self, id: &str) -> Result<(Arc<RecordIds>, GroupId, DeviceId), FleetError> {
        let [group, device] = split(id)?;
        let ids = self.fleet_ids().await?.ok_or(FleetError::DeviceMissing)?;
        let (group, device) = (ids.parse_group(&group)?, ids.parse_device(&device)?);
        Ok((ids, group, device))
    }

    /// Adds the devices of a group; false when the list is full.
    async fn collect_group(
        &self,
        ids: &RecordIds,
        group: &Group,
        devices: &mut DeviceList,
    ) -> Result<bool, FleetError> {
        let mut seen: BTreeMap<u64, EpochMillis> = BTreeMap::new();
        let mut cursor = None;
        loop {
            let page = self.latest(group.id, None, PAGE_MAX, cursor).await?;
            for record in &page.items {
                let at = EpochMillis(record.timestamp.millis());
                let newest = seen.entry(record.device.0).or_insert(at);
                *newest = at.max(*newest);
            }
            cursor = page.next;
            if cursor.is_none() || seen.len() > DEVICES_MAX {
                break;
            }
        }
        let mut cursor = None;
        loop {
            let page = self.list_devices(group.id, PAGE_MAX, cursor).await?;
            for device in &page.items {
                let last_seen = seen.get(&device.id.0).copied();
                if !devices.add(summary(ids, group, device, last_seen)) {
                    return Ok(false);
                }
            }
            cursor = page.next;
            if cursor.is_none() {
                return Ok(true);
            }
        }
    }

    /// The names of a device's journals by number. Journals that share a name also show their ids.
    async fn journal_names(
        &self,
        ids: &RecordIds,
        group: GroupId,
        device: DeviceId,
    ) -> Result<BTreeMap<u64, String>, FleetError> {
        let page = self
            .list_journals(group, Some(device), PAGE_MAX, None)
            .await?;
        let names = page.items.iter().map(|journal| journal.name.as_str());
        let is_shared = |name: &str| names.clone().filter(|other| *other == name).count() > 1;
        let journals = page.items.iter().map(|journal| {
            let name = journal.name.as_str();
            let shown = match is_shared(name) {
                true => format!("{name} ({})", ids.journal(journal.id)),
                false => name.to_owned(),
            };
            (journal.id.0, shown)
        });
        Ok(journals.collect())
    }
}

fn fleet_id(ids: &RecordIds, group: GroupId, device: DeviceId) -> String {
    join(&ids.group(group), &ids.device(device))
}

fn summary(
    ids: &RecordIds,
    group: &Group,
    device: &Device,
    last_seen: Option<EpochMillis>,
) -> DeviceSummary {
    let model = device.model.as_ref();
    DeviceSummary {
        kind: model.map(|model| model.as_str().to_owned()),
        group: Some(group.name.as_str().to_owned()),
        last_seen,
        ..DeviceSummary::new(&SYSTEM.name, fleet_id(ids, group.id, device.id))
            .named(Some(device.name.as_str()))
    }
}

/// The time of a record. Only the key is left of a removed one.
fn time_of(record: &Item) -> Option<EpochMillis> {
    let in_key = || {
        let time = text(record, schema::SK)?.split('#').nth(3)?;
        time.parse().ok().map(EpochMillis)
    };
    millis(record, schema::TIMESTAMP).or_else(in_key)
}

impl From<RecordsError> for FleetError {
    fn from(error: RecordsError) -> Self {
        match error {
            RecordsError::GroupMissing
            | RecordsError::DeviceMissing
            | RecordsError::JournalMissing
            | RecordsError::TagMissing(_)
            | RecordsError::EncodedId => Self::DeviceMissing,
            RecordsError::Cursor(error) => error.into(),
            RecordsError::Store(error) => error.into(),
            error => Self::Malformed(error.to_string()),
        }
    }
}
