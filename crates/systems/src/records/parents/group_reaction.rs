//! The list of groups follows the table, so that groups that another program puts with the document's own PutItem are
//! listed and included in housekeeping like those of the API.

use async_trait::async_trait;
use homeport_item::Item;
use homeport_item::expression::{Path, Projection};
use homeport_store::{Change, Delete, Get, Put, Scan, WriteError};

use super::groups;
use crate::reactions::{Reaction, ReactionError};
use crate::records::types::{GroupId, Retention};
use crate::records::{Records, RecordsError, schema, stored};

/// Items in a page of the scan.
const SCANNED_AT_ONCE: usize = 1000;

/// Lists groups. It makes the list equal to the table as it is now, so that changes may be delivered repeatedly.
#[derive(Debug, Clone)]
pub struct GroupReaction(Records);

impl GroupReaction {
    #[must_use]
    pub fn new(records: Records) -> Self {
        Self(records)
    }
}

#[async_trait]
impl Reaction for GroupReaction {
    fn name(&self) -> &'static str {
        "records-groups"
    }

    fn table(&self) -> &str {
        self.0.table()
    }

    async fn apply(&self, changes: &[Change]) -> Result<(), ReactionError> {
        for group in changes.iter().filter_map(|change| group_of(&change.key)) {
            let followed = self.0.follow_group(group).await;
            followed.map_err(ReactionError::new)?;
        }
        Ok(())
    }

    async fn start_over(&self) -> Result<(), ReactionError> {
        let mut scan = Scan::new(self.0.table())
            .filter(Path::from(schema::SK).begins_with(schema::GROUP))
            .limit(SCANNED_AT_ONCE);
        scan.projection = Some(Projection::new([schema::PK, schema::SK]));
        loop {
            let page = self.0.store.scan(scan.clone()).await?;
            for group in page.items.iter().filter_map(group_of) {
                let followed = self.0.follow_group(group).await;
                followed.map_err(ReactionError::new)?;
            }
            scan.start = page.next;
            if scan.start.is_none() {
                return Ok(());
            }
        }
    }
}

impl Records {
    /// Makes the list of groups agree with a group as it is now.
    async fn follow_group(&self, group: GroupId) -> Result<(), RecordsError> {
        let get = |key| self.store.get(Get::new(self.table(), key));
        let item = get(schema::key_in(group, schema::group_sort(group))).await?;
        let listed = get(groups::listed_key(group)).await?;
        let written = match item {
            Some(item) => {
                // An invalid retention of another program keeps the history.
                let retention =
                    stored::optional_integer::<Retention>(&item, schema::RETENTION_SECS);
                let wanted = groups::listed_item(group, retention.ok().flatten());
                if listed.as_ref() == Some(&wanted) {
                    return Ok(());
                }
                self.ensure_ids().await?;
                self.store.put(Put::new(self.table(), wanted)).await
            }
            None if listed.is_some() => {
                let delete = Delete::new(self.table(), groups::listed_key(group));
                self.store.delete(delete).await
            }
            None => return Ok(()),
        };
        match written {
            Ok(_) | Err(WriteError::ConditionFailed { .. }) => Ok(()),
            Err(WriteError::Store(error)) => Err(error.into()),
        }
    }
}

/// The group whose own item has this key.
fn group_of(key: &Item) -> Option<GroupId> {
    let group = GroupId(stored::id_at(key, 0).ok()?);
    let is_group = *key == schema::key_in(group, schema::group_sort(group));
    is_group.then_some(group)
}
