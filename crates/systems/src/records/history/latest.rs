//! The latest record of each journal.

use super::record::Record;
use crate::cursor::Cursor;
use crate::pages::Page;
use crate::records::types::{DeviceId, GroupId};
use crate::records::{Records, RecordsError, schema, visible};

impl Records {
    /// The latest records of one device or of all devices of a group: one for each journal that has records.
    ///
    /// # Errors
    /// When there is no such group or device, the cursor belongs to another list, or the store fails.
    pub async fn latest(
        &self,
        group: GroupId,
        device: Option<DeviceId>,
        limit: usize,
        cursor: Option<Cursor>,
    ) -> Result<Page<Record>, RecordsError> {
        let prefix = match device {
            Some(device) => schema::of_device(schema::LATEST_RECORD, device),
            None => schema::LATEST_RECORD.to_owned(),
        };
        let parents = visible::its_device_and_journal;
        let page = self
            .visible_page(group, prefix, parents, limit, cursor)
            .await?;
        if let Some(device) = device {
            self.device(group, device).await?;
        }
        Ok(page.readable(&schema::table(self.table()), |item| {
            Record::from_item(group, item)
        }))
    }
}
