//! Devices of a group.

use homeport_item::Item;
use homeport_item::expression::{Condition, Update};
use homeport_store::{Delete, Get, Put, StoreError, Update as UpdateRequest};

use super::attributes::Attributes;
use crate::cursor::Cursor;
use crate::pages::Page;
use crate::records::ids::DEVICES_TAG;
use crate::records::policy::PolicyAction;
use crate::records::types::{Change, DeviceId, GroupId, Model, Name, PolicyDocument};
use crate::records::{Records, RecordsError, Removal, schema, stored, visible};

/// Ids that are tried when another program has used them already.
const ATTEMPTS_MAX: usize = 4;

#[derive(Debug, Clone, PartialEq)]
pub struct Device {
    pub group: GroupId,
    pub id: DeviceId,
    pub name: Name,
    pub model: Option<Model>,
    pub acl_policy: Option<PolicyDocument>,
    pub attributes: Attributes,
}

#[derive(Debug, Clone, PartialEq)]
pub struct NewDevice {
    pub name: Name,
    pub model: Option<Model>,
    pub acl_policy: Option<PolicyDocument>,
    pub attributes: Attributes,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct DeviceChange {
    pub name: Option<Name>,
    pub model: Change<Model>,
    pub acl_policy: Change<PolicyDocument>,
    pub attributes: Attributes,
}

impl Device {
    fn to_item(&self) -> Item {
        let mut item = schema::key_in(self.group, schema::device_sort(self.id));
        item.insert(schema::NAME, &self.name);
        if let Some(model) = &self.model {
            item.insert(schema::MODEL, model);
        }
        if let Some(policy) = &self.acl_policy {
            item.insert(schema::ACL_POLICY, policy);
        }
        self.attributes.add_to(&mut item);
        item
    }

    fn from_item(group: GroupId, item: &Item) -> Result<Self, RecordsError> {
        let policy = item.get(schema::ACL_POLICY).map(|value| {
            PolicyDocument::from_stored(value)
                .ok_or_else(|| stored::malformed(item, schema::ACL_POLICY))
        });
        Ok(Self {
            group,
            id: DeviceId(stored::id_at(item, 0)?),
            name: stored::text(item, schema::NAME)?,
            model: stored::optional_text(item, schema::MODEL)?,
            acl_policy: policy.transpose()?,
            attributes: Attributes::of_stored(item),
        })
    }
}

impl Records {
    /// Adds a device to a group.
    ///
    /// # Errors
    /// When there is no such group or the store fails.
    pub async fn add_device(&self, group: GroupId, new: NewDevice) -> Result<Device, RecordsError> {
        self.group(group).await?;
        for _ in 0..ATTEMPTS_MAX {
            let device = Device {
                group,
                id: DeviceId(self.next_id(DEVICES_TAG).await?),
                name: new.name.clone(),
                model: new.model.clone(),
                acl_policy: new.acl_policy.clone(),
                attributes: new.attributes.clone(),
            };
            let put =
                Put::new(self.table(), device.to_item()).when(Condition::not_exists(schema::PK));
            let actions = [
                self.must_exist(group, schema::group_sort(group)),
                put.into(),
            ];
            match self.all_or_none(&actions).await?.first() {
                None => return Ok(device),
                Some(0) => return Err(RecordsError::GroupMissing),
                Some(_) => {}
            }
        }
        Err(StoreError::Throttled.into())
    }

    /// One device.
    ///
    /// # Errors
    /// When there is no such device or the store fails.
    pub async fn device(&self, group: GroupId, id: DeviceId) -> Result<Device, RecordsError> {
        let key = schema::key_in(group, schema::device_sort(id));
        let item = self.store.get(Get::new(self.table(), key)).await?;
        // The group is read last, so that a device of a group being removed is not shown.
        self.group(group).await?;
        match item {
            Some(item) => {
                self.check_policy(&item, PolicyAction::Read)?;
                Device::from_item(group, &item)
            }
            None => Err(RecordsError::DeviceMissing),
        }
    }

    /// The devices of a group.
    ///
    /// # Errors
    /// When there is no such group, the cursor belongs to another list, or the store fails.
    pub async fn list_devices(
        &self,
        group: GroupId,
        limit: usize,
        cursor: Option<Cursor>,
    ) -> Result<Page<Device>, RecordsError> {
        let prefix = schema::DEVICE.to_owned();
        let page = self
            .visible_page(group, prefix, visible::nothing_more, limit, cursor)
            .await?;
        Ok(page.readable(&schema::table(self.table()), |item| {
            Device::from_item(group, item)
        }))
    }

    /// Changes an existing device; absent fields stay as they are.
    ///
    /// # Errors
    /// When there is no such device or the store fails.
    pub async fn alter_device(
        &self,
        group: GroupId,
        id: DeviceId,
        change: DeviceChange,
    ) -> Result<Device, RecordsError> {
        let mut update = Update::new();
        if let Some(name) = &change.name {
            update = update.set(schema::NAME, name);
        }
        update = match &change.model {
            Change::Keep => update,
            Change::Set(model) => update.set(schema::MODEL, model),
            Change::Remove => update.remove(schema::MODEL),
        };
        update = match &change.acl_policy {
            Change::Keep => update,
            Change::Set(policy) => update.set(schema::ACL_POLICY, policy),
            Change::Remove => update.remove(schema::ACL_POLICY),
        };
        update = change.attributes.add_to_update(update);
        if update.is_empty() {
            return self.device(group, id).await;
        }
        let key = schema::key_in(group, schema::device_sort(id));
        let exists = Condition::exists(schema::PK);
        let update = UpdateRequest::new(self.table(), key, update).when(exists);
        let actions = [
            self.must_exist(group, schema::group_sort(group)),
            update.into(),
        ];
        match self.all_or_none(&actions).await?.first() {
            None => self.device(group, id).await,
            Some(0) => Err(RecordsError::GroupMissing),
            Some(_) => Err(RecordsError::DeviceMissing),
        }
    }

    /// Removes a device with its journals and records. It disappears at once; background work deletes what
    /// belongs to it.
    ///
    /// # Errors
    /// When there is no such device or the store fails.
    pub async fn remove_device(&self, group: GroupId, id: DeviceId) -> Result<(), RecordsError> {
        let key = schema::key_in(group, schema::device_sort(id));
        let delete = Delete::new(self.table(), key).when(Condition::exists(schema::PK));
        let actions = [
            self.must_exist(group, schema::group_sort(group)),
            delete.into(),
            self.begin_removal(Removal::Device(group, id)),
        ];
        match self.all_or_none(&actions).await?.first() {
            None => {
                self.work.notify_one();
                Ok(())
            }
            Some(0) => Err(RecordsError::GroupMissing),
            Some(_) => Err(RecordsError::DeviceMissing),
        }
    }
}
