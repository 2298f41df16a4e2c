//! A record store for tests, with default names, and access to its stored items.

use std::collections::BTreeMap;
use std::sync::Arc;

use homeport_item::expression::KeyCondition;
use homeport_item::{Item, Value};
use homeport_store::{Query, Scan, Store};
use homeport_systems::records::{
    Attributes, Device, DeviceId, Group, GroupId, Journal, JournalId, NewDevice, NewGroup,
    NewJournal, NewRecord, Order, Record, RecordRange, RecordTime, RecordValue, Records,
    RecordsError, Settings, schema,
};

use super::support::{self, Fixture};

pub(crate) struct World {
    pub(crate) records: Records,
    pub(crate) fixture: Fixture,
}

pub(crate) async fn world() -> World {
    let mut tables = schema::tables(&Settings::default().table);
    tables.extend(homeport_systems::reactions::schema::tables());
    let fixture = support::fixture(&tables).await;
    let records = open(Arc::clone(&fixture.store), &fixture);
    World { records, fixture }
}

/// The record store as a newly started process sees it.
pub(crate) fn open(store: Arc<dyn Store>, fixture: &Fixture) -> Records {
    Records::new(store, Arc::clone(&fixture.clock) as _, Settings::default())
}

pub(crate) fn time(millis: i64) -> RecordTime {
    RecordTime::try_from(millis).expect("13 digits")
}

pub(crate) fn new_record(value: i64, at: i64) -> NewRecord {
    NewRecord {
        value: RecordValue::Number(value.into()),
        unit: "C".parse().expect("a unit"),
        kind: "temperature".parse().expect("a type"),
        timestamp: Some(time(at)),
        id: None,
    }
}

pub(crate) fn new_group() -> NewGroup {
    NewGroup {
        name: "home".parse().expect("a name"),
        retention: None,
        external_id: None,
        attributes: Attributes::default(),
    }
}

pub(crate) fn new_device() -> NewDevice {
    NewDevice {
        name: "roof".parse().expect("a name"),
        model: None,
        acl_policy: None,
        attributes: Attributes::default(),
    }
}

pub(crate) fn new_journal() -> NewJournal {
    NewJournal {
        name: "outside".parse().expect("a name"),
        data_type: "number".parse().expect("a type"),
        attributes: Attributes::default(),
    }
}

/// The value of a record that [`new_record`] made.
pub(crate) fn value(record: &Record) -> i64 {
    match &record.value {
        RecordValue::Number(number) => number.to_i64().expect("whole"),
        other => panic!("{other:?}"),
    }
}

/// Values and times of records, in order.
pub(crate) fn shown(page: &homeport_systems::pages::Page<Record>) -> Vec<(i64, i64)> {
    let records = page.items.iter();
    records
        .map(|record| (value(record), record.timestamp.millis()))
        .collect()
}

impl World {
    pub(crate) fn store(&self) -> &dyn Store {
        &*self.fixture.store
    }

    pub(crate) async fn group(&self) -> Group {
        self.records.add_group(new_group()).await.expect("a group")
    }

    pub(crate) async fn device(&self, group: GroupId) -> Device {
        let added = self.records.add_device(group, new_device()).await;
        added.expect("a device")
    }

    pub(crate) async fn journal(&self, group: GroupId, device: DeviceId) -> Journal {
        let added = self.records.add_journal(group, device, new_journal()).await;
        added.expect("a journal")
    }

    /// Creates a group with one device that has one journal.
    pub(crate) async fn one_of_each(&self) -> (GroupId, DeviceId, JournalId) {
        let group = self.group().await.id;
        let device = self.device(group).await.id;
        (group, device, self.journal(group, device).await.id)
    }

    pub(crate) async fn add(
        &self,
        (group, device, journal): (GroupId, DeviceId, JournalId),
        value: i64,
        at: i64,
    ) -> Record {
        let new = new_record(value, at);
        let added = self.records.add_record(group, device, journal, new).await;
        added.expect("a record").into_record()
    }

    /// All records of a range, page by page.
    pub(crate) async fn history(
        &self,
        (group, device): (GroupId, DeviceId),
        journal: Option<JournalId>,
        (from, to): (i64, i64),
        limit: usize,
    ) -> Result<Vec<(i64, i64)>, RecordsError> {
        let range = RecordRange {
            from: time(from),
            to: time(to),
            order: Order::OldestFirst,
        };
        let (mut all, mut cursor) = (Vec::new(), None);
        loop {
            let page = self
                .records
                .records(group, device, journal, range, limit, cursor)
                .await?;
            all.extend(shown(&page));
            cursor = page.next;
            if cursor.is_none() {
                return Ok(all);
            }
            assert_eq!(page.items.len(), limit, "a page is full or the last");
        }
    }

    /// The stored items of a group's partition, by sort key.
    pub(crate) async fn partition(&self, partition: &str) -> BTreeMap<String, Item> {
        let condition = KeyCondition::new("PK", partition);
        let mut query = Query::new(Settings::default().table, condition);
        let mut found = BTreeMap::new();
        loop {
            let page = self.store().query(query.clone()).await.expect("a query");
            for item in page.items {
                let sort = item.get("SK").and_then(Value::as_str).expect("a text");
                found.insert(sort.to_owned(), item);
            }
            query.start = page.next;
            if query.start.is_none() {
                return found;
            }
        }
    }

    /// An item of a group's partition as DynamoDB JSON.
    pub(crate) async fn stored(&self, group: GroupId, sort: &str) -> serde_json::Value {
        let partition = self.partition(&group.to_string()).await;
        let item = partition.get(sort).unwrap_or_else(|| panic!("no {sort}"));
        serde_json::to_value(item).expect("JSON")
    }

    pub(crate) async fn count(&self) -> usize {
        let mut scan = Scan::new(Settings::default().table);
        let mut count = 0;
        loop {
            let page = self.store().scan(scan.clone()).await.expect("a scan");
            count += page.count;
            scan.start = page.next;
            if scan.start.is_none() {
                return count;
            }
        }
    }
}
