//! Reads one item by its key, or several items from one snapshot.

use aws_sdk_dynamodb::types;
use homeport_item::Item;
use homeport_item::expression::Projection;
use homeport_store::{Get, StoreError, TransactError};

use crate::connect::Remote;
use crate::connect::backoff::Backoff;
use crate::convert::expressions::Expressions;
use crate::convert::failure::Failure;
use crate::convert::value::{Attributes, attributes, item};
use crate::expiry::Expiry;
use crate::read::projection::ReadProjection;
use crate::write::transact::{self, CONFLICT_ATTEMPTS_MAX};

impl Remote {
    pub(crate) async fn get_item(&self, get: Get) -> Result<Option<Item>, StoreError> {
        let schema = self.table(&get.table).await?;
        let expiry = Expiry::of(&schema, self.clock.now_secs());
        let shape = shape(get.projection.as_ref(), expiry)?;
        let mut expressions = Expressions::default();
        let projection = expressions.projection(shape.projection.as_ref());
        let (names, _) = expressions.placeholders();
        let answer = self
            .client
            .get_item()
            .table_name(&get.table)
            .set_key(Some(attributes(get.key)))
            .set_projection_expression(projection)
            .set_expression_attribute_names(names)
            .consistent_read(get.consistent)
            .send()
            .await
            .map_err(|error| self.table_error(error.into(), &get.table))?;
        found(answer.item, &shape, expiry)
    }

    pub(crate) async fn get_together(
        &self,
        gets: Vec<Get>,
    ) -> Result<Vec<Option<Item>>, TransactError> {
        let mut schemas = Vec::with_capacity(gets.len());
        for get in &gets {
            schemas.push(self.table(&get.table).await?);
        }
        let now_secs = self.clock.now_secs();
        let mut shapes = Vec::with_capacity(gets.len());
        let mut items = Vec::with_capacity(gets.len());
        for (get, schema) in gets.iter().zip(&schemas) {
            let expiry = Expiry::of(schema, now_secs);
            let shape = shape(get.projection.as_ref(), expiry)?;
            let mut expressions = Expressions::default();
            let projection = expressions.projection(shape.projection.as_ref());
            let (names, _) = expressions.placeholders();
            let get = types::Get::builder()
                .table_name(&get.table)
                .set_key(Some(attributes(get.key.clone())))
                .set_projection_expression(projection)
                .set_expression_attribute_names(names)
                .build()
                .map_err(incomplete)?;
            items.push(types::TransactGetItem::builder().get(get).build());
            shapes.push((shape, expiry));
        }
        let mut backoff = Backoff::new(CONFLICT_ATTEMPTS_MAX);
        let answer = loop {
            let request = self.client.transact_get_items();
            let sent = request.set_transact_items(Some(items.clone())).send().await;
            match sent.map_err(Failure::from) {
                Ok(answer) => break answer,
                Err(failure) if transact::is_transient(&failure) && backoff.wait().await => {}
                Err(Failure::Cancelled(reasons)) => {
                    let reasons = reasons
                        .into_iter()
                        .map(|reason| transact::reason(reason, None));
                    return Err(TransactError::Cancelled(reasons.collect::<Result<_, _>>()?));
                }
                Err(failure) => {
                    let tables = gets.iter().map(|get| get.table.as_str());
                    return Err(self.tables_error(failure, tables).await.into());
                }
            }
        };
        let responses = answer.responses.unwrap_or_default();
        responses
            .into_iter()
            .zip(&shapes)
            .map(|(response, (shape, expiry))| Ok(found(response.item, shape, *expiry)?))
            .collect()
    }

    /// The error of a request on one table. Removes a missing table from the cache.
    pub(crate) fn table_error(&self, failure: Failure, table: &str) -> StoreError {
        if matches!(failure, Failure::NotFound) {
            self.forget(table);
        }
        failure.of_table(table)
    }

    /// The error of a request on several tables. DynamoDB does not report which of them is missing.
    pub(crate) async fn tables_error<'a>(
        &self,
        failure: Failure,
        tables: impl Iterator<Item = &'a str>,
    ) -> StoreError {
        if !matches!(failure, Failure::NotFound) {
            return failure.of_table("");
        }
        for table in tables {
            self.forget(table);
            if let Err(error) = self.table(table).await {
                return error;
            }
        }
        // The table exists again.
        StoreError::Throttled
    }
}

/// The projection to read so that expired items can be recognised.
pub(crate) fn shape(
    asked: Option<&Projection>,
    expiry: Option<Expiry<'_>>,
) -> Result<ReadProjection, StoreError> {
    if let Some(projection) = asked {
        projection.check().map_err(StoreError::invalid)?;
    }
    let need = expiry.map(|expiry| expiry.attribute);
    Ok(ReadProjection::new(asked, need.as_slice()))
}

/// The item in a response, if it is visible.
fn found(
    found: Option<Attributes>,
    shape: &ReadProjection,
    expiry: Option<Expiry<'_>>,
) -> Result<Option<Item>, StoreError> {
    let Some(found) = found.map(item).transpose()? else {
        return Ok(None);
    };
    let visible = match expiry {
        Some(expiry) => expiry.visible(found),
        None => Some(found),
    };
    Ok(visible.map(|item| shape.restore(item)))
}

/// The SDK rejects requests without mandatory fields. Ours are always complete.
pub(crate) fn incomplete(error: aws_sdk_dynamodb::error::BuildError) -> StoreError {
    StoreError::invalid(error.to_string())
}
