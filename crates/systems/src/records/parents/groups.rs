//! Groups: each has devices, which have journals.

use homeport_item::Item;
use homeport_item::expression::{Condition, Path, Update};
use homeport_store::{Action, Delete, Get, Put, StoreError, Update as UpdateRequest};

use super::attributes::Attributes;
use crate::cursor::Cursor;
use crate::pages::{self, Page};
use crate::records::ids::GROUPS_TAG;
use crate::records::types::{Change, ExternalId, GroupId, Name, Retention};
use crate::records::{PAGE_MAX, Records, RecordsError, Removal, schema, stored};

const LIST: &str = "records/groups";
/// Ids that are tried when another program has used them already.
const ATTEMPTS_MAX: usize = 4;

#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    pub id: GroupId,
    pub name: Name,
    /// How long its history is kept; forever when absent.
    pub retention: Option<Retention>,
    /// Its id in the application; no two groups have the same.
    pub external_id: Option<ExternalId>,
    pub attributes: Attributes,
}

#[derive(Debug, Clone, PartialEq)]
pub struct NewGroup {
    pub name: Name,
    pub retention: Option<Retention>,
    pub external_id: Option<ExternalId>,
    pub attributes: Attributes,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct GroupChange {
    pub name: Option<Name>,
    pub retention: Change<Retention>,
    pub external_id: Change<ExternalId>,
    pub attributes: Attributes,
}

impl Group {
    fn to_item(&self) -> Item {
        let mut item = schema::key_in(self.id, schema::group_sort(self.id));
        item.insert(schema::NAME, &self.name);
        if let Some(retention) = self.retention {
            item.insert(schema::RETENTION_SECS, retention.secs());
        }
        if let Some(external_id) = &self.external_id {
            item.insert(schema::EXTERNAL_ID, external_id);
        }
        self.attributes.add_to(&mut item);
        item
    }

    fn from_item(item: &Item) -> Result<Self, RecordsError> {
        Ok(Self {
            id: GroupId(stored::id_at(item, 0)?),
            name: stored::text(item, schema::NAME)?,
            retention: stored::optional_integer(item, schema::RETENTION_SECS)?,
            external_id: stored::optional_text(item, schema::EXTERNAL_ID)?,
            attributes: Attributes::of_stored(item),
        })
    }
}

impl Records {
    /// Adds a group.
    ///
    /// # Errors
    /// When another group has the external id, or the store fails.
    pub async fn add_group(&self, new: NewGroup) -> Result<Group, RecordsError> {
        self.ensure_ids().await?;
        for _ in 0..ATTEMPTS_MAX {
            let group = Group {
                id: GroupId(self.next_id(GROUPS_TAG).await?),
                name: new.name.clone(),
                retention: new.retention,
                external_id: new.external_id.clone(),
                attributes: new.attributes.clone(),
            };
            let put =
                Put::new(self.table(), group.to_item()).when(Condition::not_exists(schema::PK));
            let mut actions = vec![put.into(), self.list_group(group.id, group.retention)];
            if let Some(external_id) = &group.external_id {
                actions.push(self.take_external_id(external_id, group.id).await?);
            }
            if self.all_or_none(&actions).await?.is_empty() {
                return Ok(group);
            }
        }
        Err(StoreError::Throttled.into())
    }

    /// The group with an external id.
    ///
    /// # Errors
    /// When there is no such group or the store fails.
    pub async fn group_by_external_id(
        &self,
        external_id: &ExternalId,
    ) -> Result<Group, RecordsError> {
        let get = Get::new(self.table(), external_key(external_id));
        let Some(item) = self.store.get(get).await? else {
            return Err(RecordsError::GroupMissing);
        };
        let group = stored::optional_integer::<i64>(&item, schema::GROUP_ID)?;
        let group = group.and_then(|group| u64::try_from(group).ok());
        let group = group.ok_or_else(|| stored::malformed(&item, schema::GROUP_ID))?;
        let group = self.group(GroupId(group)).await?;
        // Another program may have removed the group or changed its id.
        if group.external_id.as_ref() == Some(external_id) {
            Ok(group)
        } else {
            Err(RecordsError::GroupMissing)
        }
    }

    /// The action that gives an external id to a group, if no other group has it.
    async fn take_external_id(
        &self,
        external_id: &ExternalId,
        group: GroupId,
    ) -> Result<Action, RecordsError> {
        match self.group_by_external_id(external_id).await {
            Ok(other) if other.id != group => return Err(RecordsError::ExternalIdTaken),
            Ok(_) | Err(RecordsError::GroupMissing) => {}
            Err(error) => return Err(error),
        }
        let get = Get::new(self.table(), external_key(external_id));
        let before = self.store.get(get).await?;
        let before = before.and_then(|item| item.get(schema::GROUP_ID).cloned());
        let is_free = match before {
            Some(before) => Path::new(schema::GROUP_ID).equals(before),
            None => Condition::not_exists(schema::PK),
        };
        let id = i64::try_from(group.0).map_err(|_| RecordsError::EncodedId)?;
        let item = external_key(external_id).with(schema::GROUP_ID, id);
        Ok(Put::new(self.table(), item).when(is_free).into())
    }

    fn release_external_id(&self, external_id: &ExternalId) -> Action {
        Delete::new(self.table(), external_key(external_id)).into()
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
    ) -> Result<Page<Group>, RecordsError> {
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
                // What another program wrote must not hide other groups.
                Err(RecordsError::Malformed(what)) => {
                    tracing::warn!(what, "left a malformed group out of a list");
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Page {
            items: groups,
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
        for _ in 0..ATTEMPTS_MAX {
            let before = self.group(id).await?;
            let actions = self.alteration(&before, &change).await?;
            if actions.is_empty() {
                return Ok(before);
            }
            if self.all_or_none(&actions).await?.is_empty() {
                return self.group(id).await;
            }
        }
        Err(StoreError::Throttled.into())
    }

    /// The actions that change a group, on the condition that its external id is unchanged.
    async fn alteration(
        &self,
        before: &Group,
        change: &GroupChange,
    ) -> Result<Vec<Action>, RecordsError> {
        let mut update = Update::new();
        if let Some(name) = &change.name {
            update = update.set(schema::NAME, name);
        }
        let mut actions: Vec<Action> = Vec::new();
        match change.retention {
            Change::Keep => {}
            Change::Set(retention) => {
                update = update.set(schema::RETENTION_SECS, retention.secs());
                actions.push(self.list_group(before.id, Some(retention)));
            }
            Change::Remove => {
                update = update.remove(schema::RETENTION_SECS);
                actions.push(self.list_group(before.id, None));
            }
        }
        let released = before.external_id.as_ref();
        match &change.external_id {
            Change::Set(external_id) if released != Some(external_id) => {
                update = update.set(schema::EXTERNAL_ID, external_id);
                actions.push(self.take_external_id(external_id, before.id).await?);
                actions.extend(released.map(|id| self.release_external_id(id)));
            }
            Change::Keep | Change::Set(_) => {}
            Change::Remove => {
                update = update.remove(schema::EXTERNAL_ID);
                actions.extend(released.map(|id| self.release_external_id(id)));
            }
        }
        update = change.attributes.add_to_update(update);
        if !update.is_empty() {
            let key = schema::key_in(before.id, schema::group_sort(before.id));
            let update = UpdateRequest::new(self.table(), key, update);
            actions.push(update.when(before.is_unchanged()).into());
        }
        Ok(actions)
    }

    /// Removes a group with everything in it. It disappears at once; background work deletes what belongs to
    /// it.
    ///
    /// # Errors
    /// When there is no such group or the store fails.
    pub async fn remove_group(&self, id: GroupId) -> Result<(), RecordsError> {
        for _ in 0..ATTEMPTS_MAX {
            let group = self.group(id).await?;
            let key = schema::key_in(id, schema::group_sort(id));
            let delete = Delete::new(self.table(), key).when(group.is_unchanged());
            let listed = Delete::new(self.table(), listed_key(id));
            let mut actions = vec![
                delete.into(),
                listed.into(),
                self.begin_removal(Removal::Group(id)),
            ];
            let external_id = group.external_id.as_ref();
            actions.extend(external_id.map(|external_id| self.release_external_id(external_id)));
            if self.all_or_none(&actions).await?.is_empty() {
                self.work.notify_one();
                return Ok(());
            }
        }
        Err(StoreError::Throttled.into())
    }

    /// Adds a group to the list of all groups, with the retention that housekeeping needs.
    fn list_group(&self, id: GroupId, retention: Option<Retention>) -> Action {
        Put::new(self.table(), listed_item(id, retention)).into()
    }
}

impl Group {
    /// The group exists, and has the external id that was read.
    fn is_unchanged(&self) -> Condition {
        let external_id = match &self.external_id {
            Some(external_id) => Path::new(schema::EXTERNAL_ID).equals(external_id),
            None => Condition::not_exists(schema::EXTERNAL_ID),
        };
        Condition::exists(schema::PK).and(external_id)
    }
}

/// A group in the list of all groups.
pub(super) fn listed_item(id: GroupId, retention: Option<Retention>) -> Item {
    let mut item = listed_key(id);
    if let Some(retention) = retention {
        item.insert(schema::RETENTION_SECS, retention.secs());
    }
    item
}

pub(super) fn listed_key(id: GroupId) -> Item {
    schema::key(schema::GROUPS, format!("{}{id}#", schema::GROUPS))
}

fn external_key(external_id: &ExternalId) -> Item {
    let key = format!("{}{}#", schema::GROUP_OF, external_id.as_str());
    schema::key(key.clone(), key)
}
