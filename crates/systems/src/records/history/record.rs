//! A stored record, in the history and as the latest record of its journal.

use homeport_item::Item;
use homeport_item::expression::Update;

use crate::records::types::{
    DeviceId, GroupId, JournalId, RecordTime, RecordType, RecordValue, Unit,
};
use crate::records::{RecordsError, schema, stored};

#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    pub group: GroupId,
    pub device: DeviceId,
    pub journal: JournalId,
    pub value: RecordValue,
    pub unit: Unit,
    pub kind: RecordType,
    pub timestamp: RecordTime,
}

impl Record {
    /// The record in the history.
    pub(crate) fn to_item(&self) -> Item {
        let sort = schema::record_sort(self.device, self.journal, self.timestamp);
        let mut item = schema::key_in(self.group, sort);
        item.insert(schema::VALUE, &self.value);
        item.insert(schema::UNIT, &self.unit);
        item.insert(schema::TYPE, &self.kind);
        item.insert(schema::TIMESTAMP, self.timestamp.millis());
        item
    }

    /// The item of the latest record of the journal.
    pub(super) fn to_update(&self) -> Update {
        Update::new()
            .set(schema::VALUE, &self.value)
            .set(schema::UNIT, &self.unit)
            .set(schema::TYPE, &self.kind)
            .set(schema::TIMESTAMP, self.timestamp.millis())
    }

    /// Reads a record of the history or a latest record: both have the same attributes.
    pub(super) fn from_item(group: GroupId, item: &Item) -> Result<Self, RecordsError> {
        let (device, journal) = stored::journal_ids(item)?;
        let missing = |name| stored::malformed(item, name);
        Ok(Self {
            group,
            device,
            journal,
            value: item
                .get(schema::VALUE)
                .and_then(RecordValue::from_stored)
                .ok_or_else(|| missing(schema::VALUE))?,
            unit: stored::text(item, schema::UNIT)?,
            kind: stored::text(item, schema::TYPE)?,
            timestamp: stored::optional_integer(item, schema::TIMESTAMP)?
                .ok_or_else(|| missing(schema::TIMESTAMP))?,
        })
    }
}
