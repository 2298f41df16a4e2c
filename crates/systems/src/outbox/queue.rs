//! The table of one kind of entry: what is due in it, and how many entries are open.

use std::sync::Arc;

use homeport_item::Item;
use homeport_item::expression::{Condition, KeyCondition, Path, SortCondition, Update};
use homeport_store::{Action, Get, Query, Store, StoreError, Update as UpdateRequest};

use super::commit::{commit, commit_one};
use super::stored::{DUE_AT_MS, WORK, WORK_INDEX, WORK_PARTITION};
use crate::time::EpochMillis;

/// When to look again at due entries that could not be processed: something holds them up, or
/// another worker has them.
const HELD_UP_MS: i64 = 1000;

#[derive(Clone)]
pub(crate) struct Queue {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) table: &'static str,
    /// Counts open entries in the store, where a kind bounds them there.
    pub(crate) counter: Option<OpenCounter>,
}

/// The item that counts the open entries of a table.
#[derive(Debug, Clone)]
pub(crate) struct OpenCounter {
    pub(crate) key: Item,
    pub(crate) attribute: &'static str,
}

impl OpenCounter {
    /// Adds to the count, if it stays within a limit.
    pub(crate) fn add(&self, table: &str, by: i64, limit: Option<i64>) -> UpdateRequest {
        let update = Update::new().add(self.attribute, by);
        let request = UpdateRequest::new(table, self.key.clone(), update);
        match limit {
            Some(limit) => request.when(
                Condition::not_exists(self.attribute)
                    .or(Path::from(self.attribute).at_most(limit - by)),
            ),
            None => request,
        }
    }
}

impl Queue {
    /// The items of a lane that are due: those whose `work` has this value.
    pub(crate) async fn due_items(
        &self,
        lane: &str,
        now: EpochMillis,
        limit: usize,
    ) -> Result<Vec<Item>, StoreError> {
        let until = SortCondition::LessOrEqual(now.0.into());
        let query = self.open_entries(lane, Some(until)).limit(limit);
        Ok(self.store.query(query).await?.items)
    }

    /// When the first open entry is due.
    pub(crate) async fn first_due_at(&self) -> Result<Option<EpochMillis>, StoreError> {
        self.first_due_at_in(WORK_PARTITION).await
    }

    pub(crate) async fn first_due_at_in(
        &self,
        lane: &str,
    ) -> Result<Option<EpochMillis>, StoreError> {
        let query = self.open_entries(lane, None).limit(1);
        let page = self.store.query(query).await?;
        let first = page.items.first();
        let due_at_ms = first.and_then(|item| item.get(DUE_AT_MS)?.as_number()?.to_i64());
        Ok(due_at_ms.map(EpochMillis))
    }

    /// How many entries are open, by the stored counter.
    pub(crate) async fn open_count(&self) -> Result<i64, StoreError> {
        let Some(counter) = &self.counter else {
            return Ok(0);
        };
        let get = Get::new(self.table, counter.key.clone());
        let item = self.store.get(get).await?;
        let count = item
            .as_ref()
            .and_then(|item| item.get(counter.attribute)?.as_number()?.to_i64());
        Ok(count.unwrap_or(0))
    }

    /// Counts the open entries up to a limit.
    pub(crate) async fn count_entries(&self, limit: usize) -> Result<usize, StoreError> {
        let mut query = self.open_entries(WORK_PARTITION, None);
        query.count_only = true;
        let mut open = 0;
        while open < limit {
            let page = self.store.query(query.clone()).await?;
            open += page.count;
            query.start = page.next;
            if query.start.is_none() {
                break;
            }
        }
        Ok(open)
    }

    /// Writes an entry, together with other writes; false when a condition does not hold, which for
    /// the entry itself means that another worker has changed it.
    pub(super) async fn write(
        &self,
        entry: Action,
        others: Vec<Action>,
        is_finished: bool,
    ) -> Result<bool, StoreError> {
        let one_less = self.counter.as_ref().filter(|_| is_finished);
        let one_less = one_less.map(|counter| counter.add(self.table, -1, None).into());
        let others: Vec<Action> = others.into_iter().chain(one_less).collect();
        if others.is_empty() {
            return commit_one(&*self.store, entry).await;
        }
        let actions = std::iter::once(entry).chain(others).collect();
        commit(&*self.store, actions).await
    }

    fn open_entries(&self, lane: &str, due: Option<SortCondition>) -> Query {
        let mut condition = KeyCondition::new(WORK, lane);
        if let Some(due) = due {
            condition = condition.with_sort(DUE_AT_MS, due);
        }
        Query::new(self.table, condition).on_index(WORK_INDEX)
    }
}

/// When the next turn of a worker has something to do, after a turn that was busy or not.
pub(crate) fn next_turn_at(due_at: EpochMillis, now: EpochMillis, was_busy: bool) -> EpochMillis {
    match (due_at > now, was_busy) {
        (true, _) => due_at,
        (false, true) => now,
        (false, false) => EpochMillis(now.0 + HELD_UP_MS),
    }
}
