//! Journals of a device. Each has the records of one measured quantity.

use homeport_item::Item;
use homeport_item::expression::{Condition, Update};
use homeport_store::{Delete, Get, Put, StoreError, Update as UpdateRequest};

use super::attributes::Attributes;
use crate::cursor::Cursor;
use crate::pages::Page;
use crate::records::ids::JOURNALS_TAG;
use crate::records::types::{DataType, DeviceId, GroupId, JournalId, Name};
use crate::records::{Records, RecordsError, Removal, schema, stored, visible};

/// Ids that are tried when another program has used them already.
const ATTEMPTS_MAX: usize = 4;

#[derive(Debug, Clone, PartialEq)]
pub struct Journal {
    pub group: GroupId,
    pub device: DeviceId,
    pub id: JournalId,
    pub name: Name,
    pub data_type: DataType,
    pub attributes: Attributes,
}

#[derive(Debug, Clone, PartialEq)]
pub struct NewJournal {
    pub name: Name,
    pub data_type: DataType,
    pub attributes: Attributes,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct JournalChange {
    pub name: Option<Name>,
    pub data_type: Option<DataType>,
    pub attributes: Attributes,
}

impl Journal {
    fn to_item(&self) -> Item {
        let mut item = schema::key_in(self.group, schema::journal_sort(self.device, self.id));
        item.insert(schema::NAME, &self.name);
        item.insert(schema::DATA_TYPE, &self.data_type);
        self.attributes.add_to(&mut item);
        item
    }

    fn from_item(group: GroupId, item: &Item) -> Result<Self, RecordsError> {
        let (device, id) = stored::journal_ids(item)?;
        Ok(Self {
            group,
            device,
            id,
            name: stored::text(item, schema::NAME)?,
            data_type: DataType::of_stored(item)?,
            attributes: Attributes::of_stored(item),
        })
    }
}

impl Records {
    /// Adds a journal to a device.
    ///
    /// # Errors
    /// When there is no such group or device, or the store fails.
    pub async fn add_journal(
        &self,
        group: GroupId,
        device: DeviceId,
        new: NewJournal,
    ) -> Result<Journal, RecordsError> {
        self.device(group, device).await?;
        for _ in 0..ATTEMPTS_MAX {
            let journal = Journal {
                group,
                device,
                id: JournalId(self.next_id(JOURNALS_TAG).await?),
                name: new.name.clone(),
                data_type: new.data_type.clone(),
                attributes: new.attributes.clone(),
            };
            let put =
                Put::new(self.table(), journal.to_item()).when(Condition::not_exists(schema::PK));
            let actions = [
                self.must_exist(group, schema::group_sort(group)),
                self.must_exist(group, schema::device_sort(device)),
                put.into(),
            ];
            match self.all_or_none(&actions).await?.first() {
                None => return Ok(journal),
                Some(0) => return Err(RecordsError::GroupMissing),
                Some(1) => return Err(RecordsError::DeviceMissing),
                Some(_) => {}
            }
        }
        Err(StoreError::Throttled.into())
    }

    /// One journal.
    ///
    /// # Errors
    /// When there is no such journal or the store fails.
    pub async fn journal(
        &self,
        group: GroupId,
        device: DeviceId,
        id: JournalId,
    ) -> Result<Journal, RecordsError> {
        let key = schema::key_in(group, schema::journal_sort(device, id));
        let item = self.store.get(Get::new(self.table(), key)).await?;
        // Device and group are read last, so that a journal being removed is not shown.
        self.device(group, device).await?;
        match item {
            Some(item) => Journal::from_item(group, &item),
            None => Err(RecordsError::JournalMissing),
        }
    }

    /// The journals of one device or of all devices of a group.
    ///
    /// # Errors
    /// When there is no such group or device, the cursor belongs to another list, or the store fails.
    pub async fn list_journals(
        &self,
        group: GroupId,
        device: Option<DeviceId>,
        limit: usize,
        cursor: Option<Cursor>,
    ) -> Result<Page<Journal>, RecordsError> {
        let prefix = match device {
            Some(device) => schema::of_device(schema::JOURNAL, device),
            None => schema::JOURNAL.to_owned(),
        };
        let page = self
            .visible_page(group, prefix, visible::its_device, limit, cursor)
            .await?;
        if let Some(device) = device {
            self.device(group, device).await?;
        }
        Ok(page.readable(&schema::table(self.table()), |item| {
            Journal::from_item(group, item)
        }))
    }

    /// Changes an existing journal; absent fields stay as they are.
    ///
    /// # Errors
    /// When there is no such journal or the store fails.
    pub async fn alter_journal(
        &self,
        group: GroupId,
        device: DeviceId,
        id: JournalId,
        change: JournalChange,
    ) -> Result<Journal, RecordsError> {
        let mut update = Update::new();
        if let Some(name) = &change.name {
            update = update.set(schema::NAME, name);
        }
        if let Some(data_type) = &change.data_type {
            update = update.set(schema::DATA_TYPE, data_type);
        }
        update = change.attributes.add_to_update(update);
        if update.is_empty() {
            return self.journal(group, device, id).await;
        }
        let key = schema::key_in(group, schema::journal_sort(device, id));
        let exists = Condition::exists(schema::PK);
        let update = UpdateRequest::new(self.table(), key, update).when(exists);
        let actions = [
            self.must_exist(group, schema::group_sort(group)),
            self.must_exist(group, schema::device_sort(device)),
            update.into(),
        ];
        match self.all_or_none(&actions).await?.first() {
            None => self.journal(group, device, id).await,
            Some(at) => Err(missing(*at)),
        }
    }

    /// Removes a journal with its records. It disappears at once; background work deletes what belongs to it.
    ///
    /// # Errors
    /// When there is no such journal or the store fails.
    pub async fn remove_journal(
        &self,
        group: GroupId,
        device: DeviceId,
        id: JournalId,
    ) -> Result<(), RecordsError> {
        let key = schema::key_in(group, schema::journal_sort(device, id));
        let delete = Delete::new(self.table(), key).when(Condition::exists(schema::PK));
        let actions = [
            self.must_exist(group, schema::group_sort(group)),
            self.must_exist(group, schema::device_sort(device)),
            delete.into(),
            self.begin_removal(Removal::Journal(group, device, id)),
        ];
        match self.all_or_none(&actions).await?.first() {
            None => {
                self.work.notify_one();
                Ok(())
            }
            Some(at) => Err(missing(*at)),
        }
    }
}

/// The missing parent according to the first failed action: group, device and journal, in this order.
fn missing(at: usize) -> RecordsError {
    match at {
        0 => RecordsError::GroupMissing,
        1 => RecordsError::DeviceMissing,
        _ => RecordsError::JournalMissing,
    }
}
