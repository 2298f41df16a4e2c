//! Applies the source's changes to the target, in the order of each item's changes.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use aws_sdk_dynamodb::types::WriteRequest;
use futures_util::{StreamExt as _, TryStreamExt as _};
use homeport_item::Item;
use homeport_store::{Change, ChangeFeed as _, ChangeKind, Position, StoreError};
use tokio::time::Instant;

use super::copy::{delete, put};
use super::digest::ContentHash;
use super::state::Stage;
use super::{Move, MoveError, MoveEvent, Side, at};
use crate::connect::Remote;
use crate::convert::failure::Failure;
use crate::convert::value::{Attributes, attributes};

/// Maximum number of changes per read, the limit of DynamoDB.
const CHANGES_MAX: usize = 1000;
/// Number of concurrent single-item reads, used if a stream does not contain the items.
const READS_AT_ONCE: usize = 16;
/// Maximum age of the newest changes at which a table under constant writes counts as level.
/// DynamoDB reports their time in whole seconds.
const LEVEL_LAG_MS: i64 = 5000;
/// Number of consecutive empty reads after which a stream counts as read to its end, because
/// DynamoDB may return an empty page before more records.
const EMPTY_READS: usize = 2;
/// Timeout until a table is level.
const LEVEL_TIMEOUT: Duration = Duration::from_secs(6 * 60 * 60);
/// How often the changes of copied tables are applied while others are being copied.
const FOLLOW_EVERY_MS: i64 = 10 * 60 * 1000;

/// The changes that were applied until a table was level.
#[derive(Debug, Default)]
pub(super) struct AppliedChanges {
    /// Changes by requests, not by time to live.
    pub(super) by_requests: u64,
    /// The watched keys that were among the changes.
    pub(super) touched: HashSet<ContentHash>,
}

impl Move {
    /// Applies changes until a table is level; `None` if changes are missing and the table must be
    /// copied again.
    pub(super) async fn catch_up(
        &mut self,
        table: &str,
        watched: &HashSet<ContentHash>,
    ) -> Result<Option<AppliedChanges>, MoveError> {
        let deadline = Instant::now() + LEVEL_TIMEOUT;
        let mut carried = AppliedChanges::default();
        let mut empty_reads = 0;
        loop {
            let Some(position) = self.position(table) else {
                return Ok(None);
            };
            let page = self
                .source
                .changes(table, &position, CHANGES_MAX, Duration::ZERO);
            let page = page.await.map_err(at(Side::Source, table))?;
            if page.has_gap {
                self.report(&MoveEvent::CopyRestarted { table });
                if let Some(state) = self.file.state.tables.get_mut(table) {
                    state.restart_copy(Some(page.next.as_str().to_owned()));
                }
                self.file.save()?;
                return Ok(None);
            }
            let now_ms = self.source.clock.now_ms();
            let lag_ms = page.changes.iter().map(|change| now_ms - change.at_ms);
            let lag_ms = lag_ms.max();
            let count = page.changes.len();
            for change in &page.changes {
                carried.by_requests += u64::from(!change.by_expiry);
                let key = ContentHash::of(&change.key);
                if watched.contains(&key) {
                    carried.touched.insert(key);
                }
            }
            self.apply_changes(table, page.changes).await?;
            let changes = self.note(table, &page.next, count)?;
            let Some(lag_ms) = lag_ms else {
                empty_reads += 1;
                if empty_reads >= EMPTY_READS {
                    return Ok(Some(carried));
                }
                continue;
            };
            empty_reads = 0;
            self.report(&MoveEvent::Carried {
                table,
                changes,
                lag_ms,
            });
            // A full page is followed by more changes, whatever the clocks say.
            if lag_ms <= LEVEL_LAG_MS && count < CHANGES_MAX {
                return Ok(Some(carried));
            }
            if Instant::now() > deadline {
                return Err(MoveError::NotLevel(table.to_owned()));
            }
        }
    }

    /// Applies the changes of tables that were not followed recently, so that they stay within the
    /// retention of their streams while another table is being copied.
    pub(super) async fn follow_others(&mut self, copying: &str) -> Result<(), MoveError> {
        let now_ms = self.source.clock.now_ms();
        let is_due = |table: &&String| {
            let last_ms = self.followed_ms.get(*table).copied();
            *table != copying && last_ms.is_some_and(|last_ms| now_ms >= last_ms + FOLLOW_EVERY_MS)
        };
        let due: Vec<String> = self
            .file
            .state
            .tables
            .keys()
            .filter(is_due)
            .cloned()
            .collect();
        for table in due {
            // A table that must be copied again is handled in its turn.
            self.catch_up(&table, &HashSet::new()).await?;
        }
        Ok(())
    }

    /// Whether a table was level very recently.
    pub(super) fn was_followed_just_now(&self, table: &str) -> bool {
        let now_ms = self.source.clock.now_ms();
        let last_ms = self.followed_ms.get(table);
        self.stage(table) == Stage::Following
            && last_ms.is_some_and(|last_ms| now_ms - last_ms <= LEVEL_LAG_MS)
    }

    /// The position from which to continue reading the changes of a copied table.
    fn position(&self, table: &str) -> Option<Position> {
        let state = self.file.state.tables.get(table)?;
        let position = state.position.as_ref()?;
        (state.stage == Stage::Following).then(|| Position::new(position.as_str()))
    }

    /// Records the new position, and returns the total number of changes.
    fn note(&mut self, table: &str, next: &Position, count: usize) -> Result<u64, MoveError> {
        let now_ms = self.source.clock.now_ms();
        self.followed_ms.insert(table.to_owned(), now_ms);
        let Some(state) = self.file.state.tables.get_mut(table) else {
            return Ok(0);
        };
        let is_new = state.position.as_deref() != Some(next.as_str());
        state.position = Some(next.as_str().to_owned());
        state.changes_carried += u64::try_from(count).unwrap_or(0);
        let changes = state.changes_carried;
        if is_new {
            self.file.save()?;
        }
        Ok(changes)
    }

    /// Applies changes to the target. Only the last of several changes of an item is applied,
    /// because a batch must not contain an item twice.
    async fn apply_changes(&self, table: &str, changes: Vec<Change>) -> Result<(), MoveError> {
        let mut last: HashMap<ContentHash, Change> = HashMap::new();
        for change in changes {
            last.insert(ContentHash::of(&change.key), change);
        }
        let works = last
            .into_values()
            .map(|change| self.write_of(table, change));
        let works: Vec<_> = works.collect();
        let writes = futures_util::stream::iter(works)
            .buffer_unordered(READS_AT_ONCE)
            .try_collect()
            .await?;
        let written = self.target.write_all(table, writes).await;
        written.map_err(at(Side::Target, table))
    }

    /// The write at the target for a change.
    async fn write_of(&self, table: &str, change: Change) -> Result<WriteRequest, MoveError> {
        let item = match (change.kind, change.new) {
            (ChangeKind::Remove, _) => None,
            (_, Some(item)) => Some(attributes(item)),
            // The table's own stream does not contain the item. Its current state is equivalent,
            // because later changes arrive later.
            (_, None) => {
                let read = self.source.raw_item(table, &change.key).await;
                read.map_err(at(Side::Source, table))?
            }
        };
        let write = match item {
            Some(item) => put(item),
            None => delete(attributes(change.key)),
        };
        write.map_err(at(Side::Target, table))
    }
}

impl Remote {
    /// A stored item, even if it has expired.
    pub(super) async fn raw_item(
        &self,
        table: &str,
        key: &Item,
    ) -> Result<Option<Attributes>, StoreError> {
        let request = self
            .client
            .get_item()
            .table_name(table)
            .consistent_read(true)
            .set_key(Some(attributes(key.clone())));
        let answer = request.send().await.map_err(Failure::from);
        let answer = answer.map_err(|failure| failure.of_table(table))?;
        Ok(answer.item.filter(|item| !item.is_empty()))
    }
}
