//! Copies a table page by page, and empties a table.

use aws_sdk_dynamodb::types::{DeleteRequest, PutRequest, WriteRequest};
use futures_util::{StreamExt as _, TryStreamExt as _};
use homeport_item::schema::KeySchema;
use homeport_store::{ChangeFeed as _, StoreError};

use super::state::Stage;
use super::{Move, MoveError, MoveEvent, Side, at};
use crate::connect::backoff::Backoff;
use crate::connect::{Remote, for_move};
use crate::convert::failure::Failure;
use crate::convert::value::{Attributes, attributes, item};
use crate::read::items::incomplete;

/// Maximum number of items per batch in DynamoDB.
const BATCH_MAX: usize = 25;
/// Number of concurrent batches.
const BATCHES_AT_ONCE: usize = 8;
/// Maximum number of consecutive retries without progress, which takes about a minute and a half.
const RETRIES_MAX: u32 = 50;

/// A page of a table in the SDK's form.
pub(super) struct RawPage {
    pub(super) items: Vec<Attributes>,
    pub(super) next: Option<Attributes>,
}

impl Move {
    /// Copies the remaining items. Each page is recorded once the target has stored it.
    pub(super) async fn copy(&mut self, table: &str) -> Result<(), MoveError> {
        self.note_position(table).await?;
        loop {
            let Some(state) = self.file.state.tables.get(table) else {
                return Ok(());
            };
            if state.stage != Stage::Copying {
                return Ok(());
            }
            let start = state.copied_to.clone().map(attributes);
            let page = self.source.raw_page(table, start, None).await;
            let page = page.map_err(at(Side::Source, table))?;
            let copied = u64::try_from(page.items.len()).unwrap_or(u64::MAX);
            let writes = page.items.into_iter().map(put).collect::<Result<_, _>>();
            let written = self
                .target
                .write_all(table, writes.map_err(at(Side::Target, table))?);
            written.await.map_err(at(Side::Target, table))?;
            let next = page.next.map(item).transpose();
            let next = next.map_err(at(Side::Source, table))?;
            let Some(state) = self.file.state.tables.get_mut(table) else {
                return Ok(());
            };
            state.items_copied += copied;
            state.copied_to = next;
            let items = state.items_copied;
            let has_ended = state.copied_to.is_none();
            if has_ended {
                state.stage = Stage::Following;
            }
            self.file.save()?;
            if has_ended {
                self.report(&MoveEvent::CopyEnded { table, items });
                return Ok(());
            }
            self.report(&MoveEvent::Copied { table, items });
            self.follow_others(table).await?;
        }
    }

    /// Records the start position of the changes, once per copy.
    ///
    /// IMPORTANT: this must happen before the first page is read, because later writes are taken
    /// from the changes.
    async fn note_position(&mut self, table: &str) -> Result<(), MoveError> {
        let state = self.file.state.tables.get(table);
        if state.is_some_and(|state| state.position.is_some()) {
            return Ok(());
        }
        let end = self.source.end(table).await;
        let end = end.map_err(at(Side::Source, table))?;
        if let Some(state) = self.file.state.tables.get_mut(table) {
            state.position = Some(end.as_str().to_owned());
        }
        self.file.save()
    }

    /// Deletes all items of a table at the target.
    pub(super) async fn empty(&mut self, table: &str) -> Result<(), MoveError> {
        let failed = || at(Side::Target, table);
        let schema = self.target.table(table).await.map_err(failed())?;
        let mut start = None;
        let mut items = 0;
        loop {
            let page = self.target.raw_page(table, start, Some(&schema.key)).await;
            let page = page.map_err(failed())?;
            items += u64::try_from(page.items.len()).unwrap_or(u64::MAX);
            let writes = page.items.into_iter().map(delete).collect::<Result<_, _>>();
            let written = self.target.write_all(table, writes.map_err(failed())?);
            written.await.map_err(failed())?;
            self.report(&MoveEvent::Emptied { table, items });
            start = page.next;
            if start.is_none() {
                break;
            }
        }
        if let Some(state) = self.file.state.tables.get_mut(table) {
            state.stage = Stage::Copying;
        }
        self.file.save()
    }
}

impl Remote {
    /// A page of a table including expired items; with `key`, only its attributes.
    ///
    /// IMPORTANT: reads must be consistent. An eventually consistent read could miss a write from
    /// before the start position of the changes, and that write would never arrive.
    pub(super) async fn raw_page(
        &self,
        table: &str,
        start: Option<Attributes>,
        key: Option<&KeySchema>,
    ) -> Result<RawPage, StoreError> {
        let mut request = self
            .client
            .scan()
            .table_name(table)
            .consistent_read(true)
            .set_exclusive_start_key(start);
        if let Some(key) = key {
            let names: Vec<_> = key
                .attributes()
                .enumerate()
                .map(|(index, attribute)| (format!("#k{index}"), attribute.name.clone()))
                .collect();
            let shown: Vec<_> = names.iter().map(|(name, _)| name.as_str()).collect();
            request = request
                .projection_expression(shown.join(", "))
                .set_expression_attribute_names(Some(names.into_iter().collect()));
        }
        let mut backoff = Backoff::new(RETRIES_MAX);
        loop {
            let sent = request.clone().customize().config_override(for_move());
            match sent.send().await.map_err(Failure::from) {
                Ok(answer) => {
                    return Ok(RawPage {
                        items: answer.items.unwrap_or_default(),
                        next: answer.last_evaluated_key.filter(|key| !key.is_empty()),
                    });
                }
                Err(failure) if failure.is_throttling() && backoff.wait().await => {}
                Err(failure) => return Err(failure.of_table(table)),
            }
        }
    }

    /// Writes puts and deletes of different items, in no particular order.
    pub(super) async fn write_all(
        &self,
        table: &str,
        mut writes: Vec<WriteRequest>,
    ) -> Result<(), StoreError> {
        let mut batches = Vec::with_capacity(writes.len().div_ceil(BATCH_MAX));
        while !writes.is_empty() {
            batches.push(writes.split_off(writes.len().saturating_sub(BATCH_MAX)));
        }
        futures_util::stream::iter(batches)
            .map(|batch| self.write_raw_batch(table, batch))
            .buffer_unordered(BATCHES_AT_ONCE)
            .try_collect()
            .await
    }

    async fn write_raw_batch(
        &self,
        table: &str,
        mut rest: Vec<WriteRequest>,
    ) -> Result<(), StoreError> {
        let mut backoff = Backoff::new(RETRIES_MAX);
        loop {
            let count = rest.len();
            let request = self
                .client
                .batch_write_item()
                .request_items(table, rest.clone())
                .customize()
                .config_override(for_move());
            let unprocessed = match request.send().await.map_err(Failure::from) {
                Ok(answer) => answer.unprocessed_items.unwrap_or_default(),
                Err(failure) if failure.is_throttling() => [(table.to_owned(), rest)].into(),
                Err(failure) => return Err(failure.of_table(table)),
            };
            rest = unprocessed.into_values().flatten().collect();
            if rest.is_empty() {
                return Ok(());
            }
            if rest.len() < count {
                backoff.reset();
            }
            if !backoff.wait().await {
                return Err(StoreError::Throttled);
            }
        }
    }
}

pub(super) fn put(item: Attributes) -> Result<WriteRequest, StoreError> {
    let put = PutRequest::builder().set_item(Some(item)).build();
    let put = put.map_err(incomplete)?;
    Ok(WriteRequest::builder().put_request(put).build())
}

pub(super) fn delete(key: Attributes) -> Result<WriteRequest, StoreError> {
    let delete = DeleteRequest::builder().set_key(Some(key)).build();
    let delete = delete.map_err(incomplete)?;
    Ok(WriteRequest::builder().delete_request(delete).build())
}
