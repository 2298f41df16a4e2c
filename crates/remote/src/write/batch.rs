//! Batch reads and writes. DynamoDB may leave parts of a batch unprocessed because of throttling or
//! size; they are resubmitted up to a limit.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::{self, DeleteRequest, KeysAndAttributes, PutRequest};
use homeport_item::expression::Projection;
use homeport_store::{
    BatchGet, BatchGetOutput, BatchWrite, BatchWriteOutput, StoreError, TableKeys, WriteRequest,
};

use crate::connect::Remote;
use crate::connect::backoff::Backoff;
use crate::convert::expressions::Expressions;
use crate::convert::failure::Failure;
use crate::convert::value::{attributes, item};
use crate::expiry::Expiry;
use crate::read::items::{incomplete, shape};
use crate::read::projection::ReadProjection;

/// Maximum number of consecutive attempts without any progress.
const RESUBMITS_MAX: u32 = 8;

/// The request for one table.
struct TableRequest<'a> {
    shape: ReadProjection,
    expiry: Option<Expiry<'a>>,
    projection: Option<Projection>,
    consistent: bool,
}

impl Remote {
    pub(crate) async fn get_batch(&self, batch: BatchGet) -> Result<BatchGetOutput, StoreError> {
        let mut schemas = Vec::with_capacity(batch.tables.len());
        for keys in &batch.tables {
            schemas.push(self.table(&keys.table).await?);
        }
        let now_secs = self.clock.now_secs();
        let mut asked: HashMap<String, TableRequest<'_>> = HashMap::new();
        let mut rest: HashMap<String, KeysAndAttributes> = HashMap::new();
        for (keys, schema) in batch.tables.into_iter().zip(&schemas) {
            let expiry = Expiry::of(schema, now_secs);
            let shape = shape(keys.projection.as_ref(), expiry)?;
            let entry = keys_and_attributes(&keys, &shape)?;
            let more = TableRequest {
                shape,
                expiry,
                projection: keys.projection,
                consistent: keys.consistent,
            };
            let Some(before) = asked.get(&keys.table) else {
                asked.insert(keys.table.clone(), more);
                rest.insert(keys.table, entry);
                continue;
            };
            if before.projection != more.projection || before.consistent != more.consistent {
                return Err(StoreError::invalid(format!(
                    "a batch reads table {:?} in two ways, which DynamoDB cannot do",
                    keys.table
                )));
            }
            if let Some(before) = rest.get_mut(&keys.table) {
                before.keys.extend(entry.keys);
            }
        }
        let mut answer = BatchGetOutput::default();
        let mut backoff = Backoff::new(RESUBMITS_MAX);
        loop {
            let count = keys_in(&rest);
            let sent = self
                .client
                .batch_get_item()
                .set_request_items(Some(rest.clone()))
                .send()
                .await
                .map_err(Failure::from);
            let unprocessed = match sent {
                Ok(sent) => {
                    for (table, items) in sent.responses.unwrap_or_default() {
                        let Some(asked) = asked.get(&table) else {
                            continue;
                        };
                        for found in items {
                            let found = item(found)?;
                            if asked
                                .expiry
                                .is_some_and(|expiry| expiry.has_expired(&found))
                            {
                                continue;
                            }
                            answer
                                .items
                                .push((table.clone(), asked.shape.restore(found)));
                        }
                    }
                    sent.unprocessed_keys.unwrap_or_default()
                }
                // Items that were already read are kept.
                Err(failure) if failure.is_throttling() => rest.clone(),
                Err(failure) => {
                    let tables = rest.keys().map(String::as_str);
                    return Err(self.tables_error(failure, tables).await);
                }
            };
            if keys_in(&unprocessed) == 0 {
                return Ok(answer);
            }
            if keys_in(&unprocessed) < count {
                backoff.reset();
            }
            rest = unprocessed;
            if !backoff.wait().await {
                break;
            }
        }
        if answer.items.is_empty() {
            return Err(StoreError::Throttled);
        }
        for (table, keys) in rest {
            let Some(asked) = asked.remove(&table) else {
                continue;
            };
            answer.unprocessed.push(TableKeys {
                table,
                keys: keys.keys.into_iter().map(item).collect::<Result<_, _>>()?,
                projection: asked.projection,
                consistent: asked.consistent,
            });
        }
        Ok(answer)
    }

    pub(crate) async fn write_batch(
        &self,
        batch: BatchWrite,
    ) -> Result<BatchWriteOutput, StoreError> {
        let all = batch.writes.len();
        let mut rest: HashMap<String, Vec<types::WriteRequest>> = HashMap::new();
        for write in batch.writes {
            let (table, write) = write_request(write)?;
            rest.entry(table).or_default().push(write);
        }
        let mut backoff = Backoff::new(RESUBMITS_MAX);
        loop {
            let count = writes_in(&rest);
            let sent = self
                .client
                .batch_write_item()
                .set_request_items(Some(rest.clone()))
                .send()
                .await
                .map_err(Failure::from);
            let unprocessed = match sent {
                Ok(sent) => sent.unprocessed_items.unwrap_or_default(),
                Err(failure) if failure.is_throttling() => rest.clone(),
                Err(failure) => {
                    let tables = rest.keys().map(String::as_str);
                    return Err(self.tables_error(failure, tables).await);
                }
            };
            if writes_in(&unprocessed) == 0 {
                return Ok(BatchWriteOutput::default());
            }
            if writes_in(&unprocessed) < count {
                backoff.reset();
            }
            rest = unprocessed;
            if !backoff.wait().await {
                break;
            }
        }
        if writes_in(&rest) >= all {
            return Err(StoreError::Throttled);
        }
        let mut answer = BatchWriteOutput::default();
        for (table, writes) in rest {
            for write in writes {
                answer.unprocessed.extend(unprocessed_write(&table, write)?);
            }
        }
        Ok(answer)
    }
}

fn keys_and_attributes(
    keys: &TableKeys,
    shape: &ReadProjection,
) -> Result<KeysAndAttributes, StoreError> {
    let mut expressions = Expressions::default();
    let projection = expressions.projection(shape.projection.as_ref());
    let (names, _) = expressions.placeholders();
    KeysAndAttributes::builder()
        .set_keys(Some(keys.keys.iter().cloned().map(attributes).collect()))
        .set_projection_expression(projection)
        .set_expression_attribute_names(names)
        .consistent_read(keys.consistent)
        .build()
        .map_err(incomplete)
}

fn write_request(write: WriteRequest) -> Result<(String, types::WriteRequest), StoreError> {
    let request = types::WriteRequest::builder();
    Ok(match write {
        WriteRequest::Put { table, item } => {
            let put = PutRequest::builder().set_item(Some(attributes(item)));
            let put = put.build().map_err(incomplete)?;
            (table, request.put_request(put).build())
        }
        WriteRequest::Delete { table, key } => {
            let delete = DeleteRequest::builder().set_key(Some(attributes(key)));
            let delete = delete.build().map_err(incomplete)?;
            (table, request.delete_request(delete).build())
        }
    })
}

fn unprocessed_write(
    table: &str,
    write: types::WriteRequest,
) -> Result<Option<WriteRequest>, StoreError> {
    let table = table.to_owned();
    Ok(match (write.put_request, write.delete_request) {
        (Some(put), _) => Some(WriteRequest::Put {
            table,
            item: item(put.item)?,
        }),
        (None, Some(delete)) => Some(WriteRequest::Delete {
            table,
            key: item(delete.key)?,
        }),
        (None, None) => None,
    })
}

fn keys_in(tables: &HashMap<String, KeysAndAttributes>) -> usize {
    tables.values().map(|table| table.keys.len()).sum()
}

fn writes_in(tables: &HashMap<String, Vec<types::WriteRequest>>) -> usize {
    tables.values().map(Vec::len).sum()
}
