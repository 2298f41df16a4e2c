//! Writes of one item.

use aws_sdk_dynamodb::Config;
use aws_sdk_dynamodb::config::{self, retry::RetryConfig};
use aws_sdk_dynamodb::types::{ReturnValue, ReturnValuesOnConditionCheckFailure};
use homeport_item::Item;
use homeport_item::expression::{self, Condition, Projection, UpdateOperand};
use homeport_store::{Delete, Put, Returning, StoreError, Update, WriteError};

use crate::backoff::Backoff;
use crate::connect::Remote;
use crate::expiry::{Expiry, made_anew};
use crate::expressions::Expressions;
use crate::failure::{Failure, throttled};
use crate::value::{Attributes, attributes, item};

/// How often an update of an expired item is begun, when others are quicker to replace the item.
pub(crate) const RESTARTS_MAX: usize = 5;
/// How often an update that must not be sent twice is sent, while it is refused for its rate.
const THROTTLED_TRIES_MAX: u32 = 5;

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
                .send_update(&update, Some(&guarded.condition), guarded.starts_anew)
                .await;
            let old = match sent {
                // An item as it was is visible: the condition says so.
                Ok(answer) => return visible(answer, None),
                Err(Failure::ConditionFailed(old)) => old.map(item).transpose()?,
                Err(failure) => {
                    return Err(self.not_written(failure, &update.table, Some(expiry)));
                }
            };
            let has_expired = old.as_ref().is_some_and(|old| expiry.has_expired(old));
            if !(has_expired && guarded.starts_anew) {
                let old = old.filter(|_| update.old_on_failure && !has_expired);
                let old = old.map(Box::new);
                return Err(WriteError::ConditionFailed { old });
            }
            if !update.update.creates_item() {
                return Ok(None);
            }
            // DIFFERENCE: DynamoDB would update the expired item. It is replaced instead, unless
            // someone else was quicker; then the update begins again.
            let anew = made_anew(&update.key, &update.update).map_err(StoreError::Invalid)?;
            let answer = answer_anew(&update, &anew);
            let put = Put::new(&update.table, anew);
            let is_counted = counts_twice(&update.update);
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
        if !counts_twice(&update.update) {
            return Ok(request.send().await?.attributes);
        }
        let answer = send_once(|once| request.clone().customize().config_override(once).send());
        Ok(answer.await?.attributes)
    }

    /// Puts what an update makes anew in the place of an expired item.
    ///
    /// IMPORTANT: sent again after it was carried out, it fails on what it has put there itself, and the
    /// update begins again on that. One that counts twice must therefore be sent once.
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
            failure => self.refused(failure, table).into(),
        }
    }
}

/// Sends a request without the SDK's repeats.
///
/// IMPORTANT: an attempt without an answer may have been carried out. Sent again it would count twice, so
/// the SDK must not; only what was refused for its rate is sent again.
async fn send_once<T, E, F>(send: impl Fn(config::Builder) -> F) -> Result<T, Failure>
where
    F: Future<Output = Result<T, E>>,
    Failure: From<E>,
{
    let mut backoff = Backoff::new(THROTTLED_TRIES_MAX);
    loop {
        let once = Config::builder().retry_config(RetryConfig::disabled());
        match send(once).await.map_err(Failure::from) {
            Ok(answer) => return Ok(answer),
            Err(failure) if failure.is_throttling() && backoff.wait().await => {}
            Err(failure) => return Err(failure),
        }
    }
}

/// The condition of a put or delete, to whom an expired item is absent.
fn guarded(condition: Option<Condition>, expiry: Option<Expiry<'_>>) -> Option<Condition> {
    match (condition, expiry) {
        (Some(condition), Some(expiry)) => Some(expiry.guard(&condition)),
        (condition, _) => condition,
    }
}

fn returned(returning: Returning) -> Option<ReturnValue> {
    match returning {
        Returning::Nothing => None,
        Returning::AllOld => Some(ReturnValue::AllOld),
        Returning::AllNew => Some(ReturnValue::AllNew),
        Returning::UpdatedOld => Some(ReturnValue::UpdatedOld),
        Returning::UpdatedNew => Some(ReturnValue::UpdatedNew),
    }
}

pub(crate) fn on_failure(wants_old: bool) -> Option<ReturnValuesOnConditionCheckFailure> {
    wants_old.then_some(ReturnValuesOnConditionCheckFailure::AllOld)
}

/// An item in an answer, if there is one and it has not expired.
fn visible(
    found: Option<Attributes>,
    expiry: Option<Expiry<'_>>,
) -> Result<Option<Item>, WriteError> {
    // What claims to be DynamoDB may answer with an empty item for none.
    let Some(found) = found.filter(|found| !found.is_empty()) else {
        return Ok(None);
    };
    let found = item(found)?;
    Ok(match expiry {
        Some(expiry) => expiry.visible(found),
        None => Some(found),
    })
}

/// What an update of nothing answers with.
fn answer_anew(update: &Update, anew: &Item) -> Option<Item> {
    match update.returning {
        Returning::Nothing | Returning::AllOld | Returning::UpdatedOld => None,
        Returning::AllNew => Some(anew.clone()),
        Returning::UpdatedNew => {
            let touched = Projection::from(update.update.paths()).apply(anew);
            (!touched.is_empty()).then_some(touched)
        }
    }
}

/// Whether doing the update twice is not the same as doing it once.
fn counts_twice(update: &expression::Update) -> bool {
    fn computes(operand: &UpdateOperand) -> bool {
        match operand {
            // `a = b` after `b = a` is an exchange: only values and first values are safe.
            UpdateOperand::Value(_) => false,
            UpdateOperand::IfNotExists(_, default) => computes(default),
            UpdateOperand::Path(_)
            | UpdateOperand::ListAppend(..)
            | UpdateOperand::Plus(..)
            | UpdateOperand::Minus(..) => true,
        }
    }
    // Removing an element of a list moves the next one into its place.
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
    fn only_updates_that_give_the_same_again_may_be_sent_again() {
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
            assert_eq!(counts_twice(&update), expected, "{update:?}");
        }
    }
}
