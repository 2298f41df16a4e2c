//! Groups: each has devices, which have journals.

use homeport_item::Item;
use homeport_item::expression::{Condition, Update};
use homeport_store::{Action, Delete, Get, Put, Update as UpdateRequest};

use super::dispenser::GROUPS_TAG;
use super::types::{Change, GroupId, Name, Retention};
use super::{PAGE_MAX, Records, RecordsError, Removal, schema, stored};
use crate::cursor::Cursor;
use crate::pages;

const LIST: &str = "records/groups";
/// Ids that are tried when another program has used them already.
const ATTEMPTS_MAX: usize = 4;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    pub id: GroupId,
    pub name: Name,
    /// How long its history is kept; forever when absent.
    pub retention: Option<Retention>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewGroup {
    pub name: Name,
    pub retention: Option<Retention>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct GroupChange {
    pub name: Option<Name>,
    pub retention: Change<Retention>,
}

/// A page of groups, sorted by stored id as text.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupPage {
    pub groups: Vec<Group>,
    pub next: Option<Cursor>,
}

impl Group {
    fn to_item(&self) -> Item {
        let mut item = schema::key_in(self.id, schema::group_sort(self.id));
        item.insert(schema::NAME, &self.name);
        if let Some(retention) = self.retention {
            item.insert(schema::RETENTION_SECS, retention.secs());
        }
        item
    }

    fn from_item(item: &Item) -> Result<Self, RecordsError> {
        Ok(Self {
            id: GroupId(stored::id_at(item, 0)?),
            name: stored::text(item, schema::NAME)?,
            retention: stored::optional_integer(item, schema::RETENTION_SECS)?,
        })
    }
}

impl Records {
    /// Adds a group.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn add_group(&self, new: NewGroup) -> Result<Group, RecordsError> {
        self.ensure_ids().await?;
        for _ in 0..ATTEMPTS_MAX {
            let group = Group {
                id: GroupId(self.next_id(GROUPS_TAG).await?),
                name: new.name.clone(),
                retention: new.retention,
            };
            let put =
                Put::new(self.table(), group.to_item()).when(Condition::not_exists(schema::PK));
            let actions = [put.into(), self.list_group(group.id, group.retention)];
            if self.all_or_none(&actions).await?.is_empty() {
                return Ok(group);
            }
        }
        Err(homeport_store::StoreError::Throttled.into())
    }

    /// One group.
    ///
    /// # Errors
    /// When there is no such group or the store fails.
    pub async fn group(&self, id: GroupId) -> Result<Group, RecordsError> {
        let key = schema::key_in(id, schema::group_sort(id));
        match self.store.get(Get::new(self.table(), key)).await? {
            Some(item) => Group::from_item(&item),
            None => Err(RecordsError::GroupMissing),
        }
    }

    /// All groups.
    ///
    /// # Errors
    /// When the cursor belongs to another list or the store fails.
    pub async fn list_groups(
        &self,
        limit: usize,
        cursor: Option<Cursor>,
    ) -> Result<GroupPage, RecordsError> {
        let start = cursor.map(|cursor| cursor.start_of(LIST)).transpose()?;
        let query = self
            .query_prefix(schema::GROUPS.to_owned(), schema::GROUPS.to_owned())
            .starting_after(start);
        let limit = limit.clamp(1, PAGE_MAX);
        let schema = schema::table(self.table());
        let page = pages::read_page(&*self.store, &schema, query, LIST, limit).await?;
        let mut groups = Vec::with_capacity(page.items.len());
        for item in &page.items {
            match self.group(GroupId(stored::id_at(item, 0)?)).await {
                Ok(group) => groups.push(group),
                // The group was removed since the list was read.
                Err(RecordsError::GroupMissing) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(GroupPage {
            groups,
            next: page.next,
        })
    }

    /// Changes an existing group; absent fields stay as they are.
    ///
    /// # Errors
    /// When there is no such group or the store fails.
    pub async fn alter_group(
        &self,
        id: GroupId,
        change: GroupChange,
    ) -> Result<Group, RecordsError> {
        let mut update = Update::new();
        if let Some(name) = &change.name {
            update = update.set(schema::NAME, name);
        }
        let mut actions: Vec<Action> = Vec::new();
        match change.retention {
            Change::Keep => {}
            Change::Set(retention) => {
                update = update.set(schema::RETENTION_SECS, retention.secs());
                actions.push(self.list_group(id, Some(retention)));
            }
            Change::Remove => {
                update = update.remove(schema::RETENTION_SECS);
                actions.push(self.list_group(id, None));
            }
        }
        if update.is_empty() {
            return self.group(id).await;
        }
        let key = schema::key_in(id, schema::group_sort(id));
        let exists = Condition::exists(schema::PK);
        let update = UpdateRequest::new(self.table(), key, update).when(exists);
        actions.push(update.into());
        if self.all_or_none(&actions).await?.is_empty() {
            self.group(id).await
        } else {
            Err(RecordsError::GroupMissing)
        }
    }

    /// Removes a group with everything in it. It disappears at once; background work deletes what belongs to
    /// it.
    ///
    /// # Errors
    /// When there is no such group or the store fails.
    pub async fn remove_group(&self, id: GroupId) -> Result<(), RecordsError> {
        let key = schema::key_in(id, schema::group_sort(id));
        let delete = Delete::new(self.table(), key).when(Condition::exists(schema::PK));
        let listed = Delete::new(self.table(), listed_key(id));
        let actions = [
            delete.into(),
            listed.into(),
            self.begin_removal(Removal::Group(id)),
        ];
        if !self.all_or_none(&actions).await?.is_empty() {
            return Err(RecordsError::GroupMissing);
        }
        self.work.notify_one();
        Ok(())
    }

    /// Adds a group to the list of all groups, with the retention that housekeeping needs.
    fn list_group(&self, id: GroupId, retention: Option<Retention>) -> Action {
        let mut item = listed_key(id);
        if let Some(retention) = retention {
            item.insert(schema::RETENTION_SECS, retention.secs());
        }
        Put::new(self.table(), item).into()
    }
}

fn listed_key(id: GroupId) -> Item {
    schema::key(schema::GROUPS, format!("{}{id}#", schema::GROUPS))
}
