//! What readers of the change log need to know about items of the record store.

use homeport_item::{Item, Value};
use homeport_store::{Get, StoreError};

use super::types::{DeviceId, GroupId, JournalId};
use super::{Records, schema, stored};

/// The journal of a record in the history; `None` for all other items.
pub(super) fn journal_of_record(item: &Item) -> Option<(GroupId, DeviceId, JournalId)> {
    let group = item.get(schema::PK).and_then(Value::as_str)?.parse().ok()?;
    if !stored::sort_key(item).starts_with(schema::RECORD) {
        return None;
    }
    let (device, journal) = stored::journal_ids(item).ok()?;
    Some((GroupId(group), device, journal))
}

impl Records {
    /// The newest record of a journal, in the form that it has in the history.
    pub(super) async fn newest_of_journal(
        &self,
        group: GroupId,
        device: DeviceId,
        journal: JournalId,
    ) -> Result<Option<Item>, StoreError> {
        let key = schema::key_in(group, schema::latest_sort(device, journal));
        let Some(mut latest) = self.store.get(Get::new(self.table(), key)).await? else {
            return Ok(None);
        };
        let at = latest.get(schema::TIMESTAMP).and_then(Value::as_number);
        let at = at.and_then(|at| at.to_i64()?.try_into().ok());
        let Some(at) = at else {
            return Ok(None);
        };
        latest.insert(schema::SK, schema::record_sort(device, journal, at));
        Ok(Some(latest))
    }
}
