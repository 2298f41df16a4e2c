//! Single-item writes.

use aws_sdk_dynamodb::Config;
use aws_sdk_dynamodb::config::{self, retry::RetryConfig};
use aws_sdk_dynamodb::types::{ReturnValue, ReturnValuesOnConditionCheckFailure};
use homeport_item::Item;
use homeport_item::expression::{self, Condition, Projection, UpdateOperand};
use homeport_store::{Delete, Put, ReturnValues, StoreError, Update, WriteError};

use crate::connect::Remote;
use crate::connect::backoff::Backoff;
use crate::convert::expressions::Expressions;
use crate::convert::failure::{Failure, throttled};
use crate::convert::value::{Attributes, attributes, item};
use crate::expiry::{Expiry, new_item};

/// Maximum number of restarts of an update of an expired item that others replace first.
pub(crate) const RESTARTS_MAX: usize = 5;
/// Maximum number of attempts of a non-idempotent update that is throttled.
const THROTTLED_ATTEMPTS_MAX: u32 = 5;

impl Remote {
    pub(crate) async fn put_item(&self, put: Put) -> Result<Option<Item>, WriteError> {
        let schema = self.table(&put.table).await?;
        let expiry = Expiry::of(&schema, self.clock.now_secs());
        let condition = guarded(put.condition, expiry);
        let mut expressions = Expressions::default();
        let condition = expressions.condition(condition.as_ref());
        let (names, values) = expressions.placeholders();
        let answer = self
            .client
            .put_item()
            .table_name(&put.table)
            .set_item(Some(attributes(put.item)))
            .set_condition_expression(condition)
            .set_expression_attribute_names(names)
            .set_expression_attribute_values(values)
            .set_return_values(returned(put.returning))
            .set_return_values_on_condition_check_failure(on_failure(put.old_on_failure))
            .send()
            .await
            .map_err(|error| self.not_written(error.into(), &put.table, expiry))?;
        visible(answer.attributes, expiry)
    }

    pub(crate) async fn delete_item(&self, delete: Delete) -> Result<Option<Item>, WriteError> {
        let schema = self.table(&delete.table).await?;
        let expiry = Expiry::of(&schema, self.clock.now_secs());
        let condition = guarded(delete.condition, expiry);
        let mut expressions = Expressions::default();
        let condition = expressions.condition(condition.as_ref());
        let (names, values) = expressions.placeholders();
        let answer = self
            .client
            .delete_item()
            .table_name(&delete.table)
            .set_key(Some(attributes(delete.key)))
            .set_condition_expression(condition)
            .set_expression_attribute_names(names)
            .set_expression_attribute_values(values)
            .set_return_values(returned(delete.returning))
            .set_return_values_on_condition_check_failure(on_failure(delete.old_on_failure))
            .send()
            .await
            .map_err(|error| self.not_written(error.into(), &delete.table, expiry))?;
        visible(answer.attributes, expiry)
    }

    pub(crate) async fn update_item(&self, update: Update) -> Result<Option<Item>, WriteError> {
        let schema = self.table(&update.table).await?;
        for _ in 0..RESTARTS_MAX {
            let Some(expiry) = Expiry::of(&schema, self.clock.now_secs()) else {
                let sent = self
                    .send_update(&update, update.condition.as_ref(), false)
                    .await;
                let answer =
                    sent.map_err(|failure| self.not_written(failure, &update.table, None))?;
                return visible(answer, None);
            };
            let guarded = expiry.guard_update(update.condition.as_ref());
            let sent = self
                .send_update(&update, Some(&guarded.condition), guarded.needs_replacement)
                .await;
            let old = match sent {
                // A returned old item is visible, because the condition has checked that.
                Ok(answer) => return visible(answer, None),
                Err(Failure::ConditionFailed(old)) => old.map(item).transpose()?,
                Err(failure) => {
                    return Err(self.not_written(failure, &update.table, Some(expiry)));
                }
            };
            let has_expired = old.as_ref().is_some_and(|old| expiry.has_expired(old));
            if !(has_expired && guarded.needs_replacement) {
                let old = old.filter(|_| update.old_on_failure && !has_expired);
                let old = old.map(Box::new);
                return Err(WriteError::ConditionFailed { old });
            }
            if !update.update.creates_item() {
                return Ok(None);
            }
            // DIFFERENCE: DynamoDB would update the expired item. It is replaced instead, unless
            // another writer was faster; then the update restarts.
            let created = new_item(&update.key, &update.update).map_err(StoreError::Invalid)?;
            let answer = return_values_of_new_item(&update, &created);
            let put = Put::new(&update.table, created);
            let is_counted = is_not_idempotent(&update.update);
            match self.replace_expired(put, expiry, is_counted).await {
                Ok(()) => return Ok(answer),
                Err(Failure::ConditionFailed(_)) => {}
                Err(failure) => {
                    return Err(self.not_written(failure, &update.table, Some(expiry)));
                }
            }
        }
        Err(throttled())
    }

    async fn send_update(
        &self,
        update: &Update,
        condition: Option<&Condition>,
        wants_old: bool,
    ) -> Result<Option<Attributes>, Failure> {
        let mut expressions = Expressions::default();
        let changes = expressions.update(&update.update);
        let condition = expressions.condition(condition);
        let (names, values) = expressions.placeholders();
        let request = self
            .client
            .update_item()
            .table_name(&update.table)
            .set_key(Some(attributes(update.key.clone())))
            .set_update_expression(changes)
            .set_condition_expression(condition)
            .set_expression_attribute_names(names)
            .set_expression_attribute_values(values)
            .set_return_values(returned(update.returning))
            .set_return_values_on_condition_check_failure(on_failure(
                update.old_on_failure || wants_old,
            ));
        if !is_not_idempotent(&update.update) {
            return Ok(request.send().await?.attributes);
        }
        let answer = send_once(|once| request.clone().customize().config_override(once).send());
        Ok(answer.await?.attributes)
    }

    /// Replaces an expired item by the new item that an update creates.
    ///
    /// IMPORTANT: if it is sent again after it succeeded, it fails on its own new item and the
    /// update restarts on that. A non-idempotent update must therefore be sent only once.
    async fn replace_expired(
        &self,
        put: Put,
        expiry: Expiry<'_>,
        is_counted: bool,
    ) -> Result<(), Failure> {
        let mut expressions = Expressions::default();
        let condition = expressions.condition(Some(&expiry.expired()));
        let (names, values) = expressions.placeholders();
        let request = self
            .client
            .put_item()
            .table_name(put.table)
            .set_item(Some(attributes(put.item)))
            .set_condition_expression(condition)
            .set_expression_attribute_names(names)
            .set_expression_attribute_values(values);
        if is_counted {
            send_once(|once| request.clone().customize().config_override(once).send()).await?;
        } else {
            request.send().await?;
        }
        Ok(())
    }

    fn not_written(&self, failure: Failure, table: &str, expiry: Option<Expiry<'_>>) -> WriteError {
        match failure {
            Failure::ConditionFailed(old) => match visible(old, expiry) {
                Ok(old) => WriteError::ConditionFailed {
                    old: old.map(Box::new),
                },
                Err(error) => error,
            },
            failure => self.table_error(failure, table).into(),
        }
    }
}

/// Sends a request without the SDK's retries.
///
/// IMPORTANT: an attempt without a response may have succeeded. Sending it again would apply it
/// twice, so the SDK must not retry; only throttled requests are sent again.
async fn send_once<T, E, F>(send: impl Fn(config::Builder) -> F) -> Result<T, Failure>
where
    F: Future<Output = Result<T, E>>,
    Failure: From<E>,
{
    let mut backoff = Backoff::new(THROTTLED_ATTEMPTS_MAX);
    loop {
        let once = Config::builder().retry_config(RetryConfig::disabled());
        match send(once).await.map_err(Failure::from) {
            Ok(answer) => return Ok(answer),
            Err(failure) if failure.is_throttling() && backoff.wait().await => {}
            Err(failure) => return Err(failure),
        }
    }
}

/// The condition of a put or delete, for which an expired item is missing.
fn guarded(condition: Option<Condition>, expiry: Option<Expiry<'_>>) -> Option<Condition> {
    match (condition, expiry) {
        (Some(condition), Some(expiry)) => Some(expiry.guard(&condition)),
        (condition, _) => condition,
    }
}

fn returned(returning: ReturnValues) -> Option<ReturnValue> {
    match returning {
        ReturnValues::None => None,
        ReturnValues::AllOld => Some(ReturnValue::AllOld),
        ReturnValues::AllNew => Some(ReturnValue::AllNew),
        ReturnValues::UpdatedOld => Some(ReturnValue::UpdatedOld),
        ReturnValues::UpdatedNew => Some(ReturnValue::UpdatedNew),
    }
}

pub(crate) fn on_failure(wants_old: bool) -> Option<ReturnValuesOnConditionCheckFailure> {
    wants_old.then_some(ReturnValuesOnConditionCheckFailure::AllOld)
}

/// The item in a response, if present and not expired.
fn visible(
    found: Option<Attributes>,
    expiry: Option<Expiry<'_>>,
) -> Result<Option<Item>, WriteError> {
    // A compatible service may return an empty item for a missing one.
    let Some(found) = found.filter(|found| !found.is_empty()) else {
        return Ok(None);
    };
    let found = item(found)?;
    Ok(match expiry {
        Some(expiry) => expiry.visible(found),
        None => Some(found),
    })
}

/// The return values of an update that created a new item.
fn return_values_of_new_item(update: &Update, created: &Item) -> Option<Item> {
    match update.returning {
        ReturnValues::None | ReturnValues::AllOld | ReturnValues::UpdatedOld => None,
        ReturnValues::AllNew => Some(created.clone()),
        ReturnValues::UpdatedNew => {
            let touched = Projection::from(update.update.paths()).apply(created);
            (!touched.is_empty()).then_some(touched)
        }
    }
}

/// Whether applying the update twice differs from applying it once.
fn is_not_idempotent(update: &expression::Update) -> bool {
    fn computes(operand: &UpdateOperand) -> bool {
        match operand {
            // `a = b` with `b = a` swaps values: only constants and initial values are safe.
            UpdateOperand::Value(_) => false,
            UpdateOperand::IfNotExists(_, default) => computes(default),
            UpdateOperand::Path(_)
            | UpdateOperand::ListAppend(..)
            | UpdateOperand::Plus(..)
            | UpdateOperand::Minus(..) => true,
        }
    }
    // Removing a list element moves the next one into its place.
    let elements = |path: &expression::Path| !path.nested().is_empty();
    !update.add.is_empty()
        || update.set.iter().any(|(_, operand)| computes(operand))
        || update.remove.iter().any(elements)
}

#[cfg(test)]
mod tests {
    use homeport_item::expression::{Path, Update as Changes};

    use super::*;

    #[test]
    fn only_idempotent_updates_may_be_retried() {
        let counted = UpdateOperand::from(Path::new("n")).plus(1);
        for (update, expected) in [
            (Changes::new(), false),
            (Changes::new().set("a", 1).remove("b"), false),
            (
                Changes::new().set("a", UpdateOperand::if_not_exists("a", 1)),
                false,
            ),
            (Changes::new().add("n", 1), true),
            (Changes::new().set("n", counted), true),
            (Changes::new().set("a", Path::new("b")), true),
            (Changes::new().remove(Path::new("l").element(0)), true),
        ] {
            assert_eq!(is_not_idempotent(&update), expected, "{update:?}");
        }
    }
}
