//! Write transactions.

use aws_sdk_dynamodb::types::{self, CancellationReason, TransactWriteItem};
use homeport_item::Item;
use homeport_store::{
    Action, CancelReason, ConditionCheck, Put, StoreError, TransactError, Transaction,
};

use crate::connect::Remote;
use crate::connect::backoff::Backoff;
use crate::convert::expressions::Expressions;
use crate::convert::failure::Failure;
use crate::convert::value::{attributes, item};
use crate::expiry::{Expiry, new_item};
use crate::read::items::incomplete;
use crate::write::item::{RESTARTS_MAX, on_failure};

/// Maximum number of attempts of a transaction that conflicts with others.
pub(crate) const CONFLICT_ATTEMPTS_MAX: u32 = 6;

/// An action that is being sent.
struct PendingAction {
    /// The action as submitted by the caller.
    asked: Action,
    /// The update's item had expired at the last attempt, so it is replaced instead of updated.
    replaces_expired: bool,
}

impl Remote {
    pub(crate) async fn write_together(
        &self,
        transaction: Transaction,
    ) -> Result<(), TransactError> {
        let Transaction { actions, token } = transaction;
        // IMPORTANT: with the caller's token a repeated request must be byte-identical, which a
        // condition that contains the time is not.
        // DIFFERENCE: the conditions of such a transaction see expired items that DynamoDB has not
        // deleted yet.
        let guards = token.is_none();
        let mut schemas = Vec::with_capacity(actions.len());
        let mut sending = Vec::with_capacity(actions.len());
        for asked in actions {
            schemas.push(self.table(asked.table()).await?);
            sending.push(PendingAction {
                asked,
                replaces_expired: false,
            });
        }
        for _ in 0..RESTARTS_MAX {
            // One token per form of the transaction, so a repeated request is not applied twice.
            let form_token = token.clone().unwrap_or_else(new_token);
            let now_secs = self.clock.now_secs();
            let expiries: Vec<_> = schemas
                .iter()
                .map(|schema| Expiry::of(schema, now_secs).filter(|_| guards))
                .collect();
            let items: Vec<_> = sending
                .iter()
                .zip(&expiries)
                .map(|(action, expiry)| action.print(*expiry))
                .collect::<Result<_, _>>()?;
            let reasons = match self.send_together(items, form_token).await {
                Ok(()) => return Ok(()),
                Err(Failure::Cancelled(reasons)) => reasons,
                Err(Failure::TokenMismatch) => return Err(TransactError::TokenMismatch),
                Err(failure) => {
                    let tables = sending.iter().map(|action| action.asked.table());
                    return Err(self.tables_error(failure, tables).await.into());
                }
            };
            let mut restart = false;
            let mut told = Vec::with_capacity(reasons.len());
            for (at, found) in reasons.into_iter().enumerate() {
                let expiry = expiries.get(at).copied().flatten();
                let (reason, old) = reason_with_old(found, expiry)?;
                let needs_other_form = match sending.get(at) {
                    Some(action) => action.needs_other_form(&reason, old.as_ref(), expiry),
                    None => false,
                };
                if needs_other_form {
                    sending[at].replaces_expired = !sending[at].replaces_expired;
                    restart = true;
                    told.push(CancelReason::None);
                } else {
                    told.push(match (sending.get(at), reason) {
                        (Some(action), CancelReason::ConditionFailed { .. })
                            if !action.wants_old() =>
                        {
                            CancelReason::ConditionFailed { old: None }
                        }
                        (_, reason) => reason,
                    });
                }
            }
            if !restart || told.iter().any(|reason| *reason != CancelReason::None) {
                return Err(TransactError::Cancelled(told));
            }
        }
        Err(StoreError::Throttled.into())
    }

    /// Sends one form of a transaction until it succeeds, fails, or has conflicted too often.
    async fn send_together(
        &self,
        items: Vec<TransactWriteItem>,
        token: String,
    ) -> Result<(), Failure> {
        let mut backoff = Backoff::new(CONFLICT_ATTEMPTS_MAX);
        loop {
            let sent = self
                .client
                .transact_write_items()
                .set_transact_items(Some(items.clone()))
                .client_request_token(&token)
                .send()
                .await;
            match sent.map_err(Failure::from) {
                Ok(_) => return Ok(()),
                Err(failure) if is_transient(&failure) && backoff.wait().await => {}
                Err(failure) => return Err(failure),
            }
        }
    }
}

impl PendingAction {
    fn print(&self, expiry: Option<Expiry<'_>>) -> Result<TransactWriteItem, StoreError> {
        let write = TransactWriteItem::builder();
        let mut expressions = Expressions::default();
        let guarded = |condition| match expiry {
            Some(expiry) => expiry.guard(condition),
            None => condition.clone(),
        };
        Ok(match (&self.asked, expiry) {
            (Action::Put(put), _) => {
                let condition = put.condition.as_ref().map(guarded);
                let condition = expressions.condition(condition.as_ref());
                write.put(print_put(put, condition, expressions)?)
            }
            (Action::Update(update), Some(expiry))
                if self.replaces_expired && !update.update.creates_item() =>
            {
                let expired =
                    ConditionCheck::new(&update.table, update.key.clone(), expiry.expired());
                let condition = expressions.condition(Some(&expired.condition));
                write.condition_check(print_check(&expired, condition, expressions)?)
            }
            (Action::Update(update), Some(expiry)) if self.replaces_expired => {
                let created = new_item(&update.key, &update.update).map_err(StoreError::Invalid)?;
                let condition = expressions.condition(Some(&expiry.expired()));
                let put = Put::new(&update.table, created);
                write.put(print_put(&put, condition, expressions)?)
            }
            (Action::Update(update), expiry) => {
                let guarded = expiry.map(|expiry| expiry.guard_update(update.condition.as_ref()));
                let needs_replacement = guarded
                    .as_ref()
                    .is_some_and(|guarded| guarded.needs_replacement);
                let condition = match &guarded {
                    Some(guarded) => Some(&guarded.condition),
                    None => update.condition.as_ref(),
                };
                // An update in a transaction must contain a change, unlike a single update.
                // DynamoDB reports the error.
                let changes = expressions.update(&update.update).unwrap_or_default();
                let condition = expressions.condition(condition);
                let (names, values) = expressions.placeholders();
                let update = types::Update::builder()
                    .table_name(&update.table)
                    .set_key(Some(attributes(update.key.clone())))
                    .update_expression(changes)
                    .set_condition_expression(condition)
                    .set_expression_attribute_names(names)
                    .set_expression_attribute_values(values)
                    .set_return_values_on_condition_check_failure(on_failure(
                        update.old_on_failure || needs_replacement,
                    ));
                write.update(update.build().map_err(incomplete)?)
            }
            (Action::Delete(delete), _) => {
                let condition = delete.condition.as_ref().map(guarded);
                let condition = expressions.condition(condition.as_ref());
                let (names, values) = expressions.placeholders();
                let delete = types::Delete::builder()
                    .table_name(&delete.table)
                    .set_key(Some(attributes(delete.key.clone())))
                    .set_condition_expression(condition)
                    .set_expression_attribute_names(names)
                    .set_expression_attribute_values(values)
                    .set_return_values_on_condition_check_failure(on_failure(
                        delete.old_on_failure,
                    ));
                write.delete(delete.build().map_err(incomplete)?)
            }
            (Action::Check(check), _) => {
                let condition = expressions.condition(Some(&guarded(&check.condition)));
                write.condition_check(print_check(check, condition, expressions)?)
            }
        }
        .build())
    }

    /// Whether the action failed only because its item has expired, so it must be sent in its other
    /// form.
    fn needs_other_form(
        &self,
        reason: &CancelReason,
        old: Option<&Item>,
        expiry: Option<Expiry<'_>>,
    ) -> bool {
        let (Action::Update(update), CancelReason::ConditionFailed { .. }, Some(expiry)) =
            (&self.asked, reason, expiry)
        else {
            return false;
        };
        // A replacement fails if another writer has replaced the item.
        self.replaces_expired
            || (expiry
                .guard_update(update.condition.as_ref())
                .needs_replacement
                && old.is_some_and(|old| expiry.has_expired(old)))
    }

    fn wants_old(&self) -> bool {
        match &self.asked {
            Action::Put(put) => put.old_on_failure,
            Action::Update(update) => update.old_on_failure,
            Action::Delete(delete) => delete.old_on_failure,
            Action::Check(check) => check.old_on_failure,
        }
    }
}

fn print_put(
    put: &Put,
    condition: Option<String>,
    expressions: Expressions,
) -> Result<types::Put, StoreError> {
    let (names, values) = expressions.placeholders();
    types::Put::builder()
        .table_name(&put.table)
        .set_item(Some(attributes(put.item.clone())))
        .set_condition_expression(condition)
        .set_expression_attribute_names(names)
        .set_expression_attribute_values(values)
        .set_return_values_on_condition_check_failure(on_failure(put.old_on_failure))
        .build()
        .map_err(incomplete)
}

fn print_check(
    check: &ConditionCheck,
    condition: Option<String>,
    expressions: Expressions,
) -> Result<types::ConditionCheck, StoreError> {
    let (names, values) = expressions.placeholders();
    types::ConditionCheck::builder()
        .table_name(&check.table)
        .set_key(Some(attributes(check.key.clone())))
        .set_condition_expression(condition)
        .set_expression_attribute_names(names)
        .set_expression_attribute_values(values)
        .set_return_values_on_condition_check_failure(on_failure(check.old_on_failure))
        .build()
        .map_err(incomplete)
}

/// Whether a request failed only because of conflicts or throttling.
pub(crate) fn is_transient(failure: &Failure) -> bool {
    match failure {
        Failure::Cancelled(reasons) => {
            let code = |reason: &CancellationReason| reason.code.clone().unwrap_or_default();
            let none = |code: &str| code.is_empty() || code == "None";
            let passing = |code: &str| {
                matches!(
                    code,
                    "TransactionConflict" | "ThrottlingError" | "ProvisionedThroughputExceeded"
                )
            };
            let codes: Vec<_> = reasons.iter().map(code).collect();
            codes.iter().any(|code| passing(code))
                && codes.iter().all(|code| none(code) || passing(code))
        }
        failure => failure.is_throttling(),
    }
}

/// Parses the cancellation reason of one action.
pub(crate) fn reason(
    found: CancellationReason,
    expiry: Option<Expiry<'_>>,
) -> Result<CancelReason, StoreError> {
    reason_with_old(found, expiry).map(|(reason, _)| reason)
}

/// Parses a reason, with the current item even if it has expired.
fn reason_with_old(
    found: CancellationReason,
    expiry: Option<Expiry<'_>>,
) -> Result<(CancelReason, Option<Item>), StoreError> {
    let message = found.message.unwrap_or_default();
    let reason = match found.code.as_deref().unwrap_or("None") {
        "None" => CancelReason::None,
        "ConditionalCheckFailed" => {
            let old = found.item.filter(|old| !old.is_empty());
            let old = old.map(item).transpose()?;
            let visible = old.clone().and_then(|old| match expiry {
                Some(expiry) => expiry.visible(old),
                None => Some(old),
            });
            let reason = CancelReason::ConditionFailed {
                old: visible.map(Box::new),
            };
            return Ok((reason, old));
        }
        "TransactionConflict" => CancelReason::Conflict,
        "ThrottlingError" | "ProvisionedThroughputExceeded" => CancelReason::Throttled,
        "ValidationError" => CancelReason::invalid(message),
        code @ "ItemCollectionSizeLimitExceeded" => {
            CancelReason::invalid(format!("{code}: {message}"))
        }
        // Nothing indicates that the request is invalid, so callers must not drop it.
        code => return Err(StoreError::Unavailable(format!("{code}: {message}"))),
    };
    Ok((reason, None))
}

/// DynamoDB allows 36 characters, the length of a UUID.
fn new_token() -> String {
    uuid::Uuid::new_v4().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cancelled(codes: &[&str]) -> Failure {
        let reason = |code: &&str| CancellationReason::builder().code(*code).build();
        Failure::Cancelled(codes.iter().map(reason).collect())
    }

    #[test]
    fn only_transient_failures_are_retried() {
        assert!(is_transient(&cancelled(&["None", "TransactionConflict"])));
        assert!(is_transient(&cancelled(&[
            "ThrottlingError",
            "TransactionConflict"
        ])));
        assert!(!is_transient(&cancelled(&[
            "TransactionConflict",
            "ConditionalCheckFailed"
        ])));
        assert!(!is_transient(&cancelled(&["None", "ValidationError"])));
        assert!(!is_transient(&cancelled(&["None"])));
        assert!(!is_transient(&cancelled(&[])));
    }

    #[test]
    fn cancel_reasons_are_parsed() {
        let of = |code: &str| {
            let found = CancellationReason::builder()
                .code(code)
                .message("why")
                .build();
            reason(found, None).expect("it is understood")
        };
        assert_eq!(of("None"), CancelReason::None);
        assert_eq!(
            of("ConditionalCheckFailed"),
            CancelReason::ConditionFailed { old: None }
        );
        assert_eq!(of("TransactionConflict"), CancelReason::Conflict);
        assert_eq!(of("ThrottlingError"), CancelReason::Throttled);
        assert_eq!(of("ProvisionedThroughputExceeded"), CancelReason::Throttled);
        assert_eq!(of("ValidationError"), CancelReason::invalid("why"));
        assert_eq!(
            of("ItemCollectionSizeLimitExceeded"),
            CancelReason::invalid("ItemCollectionSizeLimitExceeded: why")
        );
        let unknown = CancellationReason::builder()
            .code("SomethingNew")
            .message("why")
            .build();
        assert_eq!(
            reason(unknown, None),
            Err(StoreError::Unavailable("SomethingNew: why".to_owned()))
        );
    }
}
