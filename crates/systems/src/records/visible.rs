//! Visibility: an item is visible while all its parents exist.
//!
//! IMPORTANT: items are read before their parents. Ids are never reused, so a parent that exists after its
//! children were read existed all the time. In the other order, a concurrent removal would show some of the
//! children.

use std::collections::BTreeSet;

use homeport_item::expression::{KeyCondition, Projection, SortCondition};
use homeport_item::{Item, Value};
use homeport_store::Query;

use super::policy::PolicyAction;
use super::types::GroupId;
use super::{PAGE_MAX, Records, RecordsError, schema, stored};
use crate::cursor::Cursor;
use crate::fetch::fetch;
use crate::pages::{self, Page};

/// The parents of an item besides its group.
pub(super) type Parents = fn(&Item) -> Result<Vec<String>, RecordsError>;

/// The parents of a device.
pub(super) fn nothing_more(_: &Item) -> Result<Vec<String>, RecordsError> {
    Ok(Vec::new())
}

/// The parents of a journal.
pub(super) fn its_device(item: &Item) -> Result<Vec<String>, RecordsError> {
    let (device, _) = stored::journal_ids(item)?;
    Ok(vec![schema::device_sort(device)])
}

/// The parents of a record and of a latest record.
pub(super) fn its_device_and_journal(item: &Item) -> Result<Vec<String>, RecordsError> {
    let (device, journal) = stored::journal_ids(item)?;
    Ok(vec![
        schema::device_sort(device),
        schema::journal_sort(device, journal),
    ])
}

impl Records {
    /// The existing ones of some sort keys of a group, without devices that the caller may not read.
    pub(super) async fn present(
        &self,
        group: GroupId,
        sorts: BTreeSet<String>,
    ) -> Result<BTreeSet<String>, RecordsError> {
        let keys = sorts.into_iter().map(|sort| schema::key_in(group, sort));
        let projection = Projection::new([schema::PK, schema::SK, schema::ACL_POLICY]);
        let found = fetch(&*self.store, self.table(), keys, Some(projection)).await?;
        let present = found
            .iter()
            .filter(|item| self.is_permitted(item, PolicyAction::Read));
        Ok(present
            .map(|item| stored::sort_key(item).to_owned())
            .collect())
    }

    /// The visible ones of some items.
    pub(super) async fn visible_of(
        &self,
        group: GroupId,
        items: Vec<Item>,
        parents: Parents,
    ) -> Result<Vec<Item>, RecordsError> {
        let mut wanted = BTreeSet::from([schema::group_sort(group)]);
        for item in &items {
            wanted.extend(parents(item)?);
        }
        let present = self.present(group, wanted).await?;
        if !present.contains(&schema::group_sort(group)) {
            return Err(RecordsError::GroupMissing);
        }
        let mut visible = Vec::with_capacity(items.len());
        for item in items {
            // A device among the items has its own policy.
            if !self.is_permitted(&item, PolicyAction::Read) {
                continue;
            }
            if parents(&item)?
                .iter()
                .all(|parent| present.contains(parent))
            {
                visible.push(item);
            }
        }
        Ok(visible)
    }

    /// A page of the visible items of a group whose sort keys begin with `prefix`. It is full unless it is the
    /// last page.
    pub(super) async fn visible_page(
        &self,
        group: GroupId,
        prefix: String,
        parents: Parents,
        limit: usize,
        cursor: Option<Cursor>,
    ) -> Result<Page<Item>, RecordsError> {
        let list = format!("records/{group}/{prefix}");
        let limit = limit.clamp(1, PAGE_MAX);
        let mut cursor = cursor;
        let mut visible = Vec::new();
        loop {
            let start = cursor.map(|cursor| cursor.start_of(&list)).transpose()?;
            let mut query = self.query_prefix(group.to_string(), prefix.clone());
            query.start = start;
            let schema = schema::table(self.table());
            let wanted = limit - visible.len();
            let page = pages::read_page(&*self.store, &schema, query, &list, wanted).await?;
            visible.extend(self.visible_of(group, page.items, parents).await?);
            cursor = page.next;
            if visible.len() >= limit || cursor.is_none() {
                return Ok(Page {
                    items: visible,
                    next: cursor,
                });
            }
        }
    }

    /// All items of a partition whose sort keys begin with `prefix`, read consistently.
    pub(super) fn query_prefix(&self, partition: String, prefix: String) -> Query {
        let begins = SortCondition::BeginsWith(Value::S(prefix));
        let condition = KeyCondition::new(schema::PK, partition).with_sort(schema::SK, begins);
        Query {
            consistent: true,
            ..Query::new(self.table(), condition)
        }
    }
}
