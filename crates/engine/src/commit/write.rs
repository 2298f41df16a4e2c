//! Writes that report their cost, for protocols that return capacity units. Otherwise they equal the writes
//! of the `Store` trait.

use homeport_item::Item;
use homeport_store::{Action, CancelReason, StoreError, TransactError, Transaction, WriteError};

use crate::commit::cost::WriteCost;
use crate::commit::evaluate::Outcome;
use crate::commit::prepare::{self, PrepareError};
use crate::engine::Engine;

/// A write that was carried out.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Written {
    /// The attributes that were requested.
    pub attributes: Option<Item>,
    /// Its cost, if requested.
    pub cost: Option<WriteCost>,
}

/// A transaction that was carried out.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TransactionResult {
    /// The cost of each action, if requested.
    pub costs: Vec<WriteCost>,
    /// The token was seen before, so the transaction had already been carried out.
    pub repeated: bool,
}

impl Engine {
    /// Carries out one write.
    ///
    /// # Errors
    /// Fails if its condition does not hold, or for any reason for which a write can fail.
    pub async fn write(
        &self,
        action: impl Into<Action>,
        measure: bool,
    ) -> Result<Written, WriteError> {
        let prepared = prepare::action(&self.shared().catalogue.now(), action)?.measured(measure);
        written(self.shared().submit_one(prepared).await)
    }

    /// Carries out independent writes of different items, submitted together. Each has its own outcome, in
    /// order.
    ///
    /// # Errors
    /// Fails if a write is invalid or two writes change one item; then nothing is written.
    pub async fn write_each(
        &self,
        actions: Vec<Action>,
        measure: bool,
    ) -> Result<Vec<Result<Written, WriteError>>, StoreError> {
        let catalogue = self.shared().catalogue.now();
        let prepared = actions
            .into_iter()
            .map(|action| Ok(prepare::action(&catalogue, action)?.measured(measure)))
            .collect::<Result<Vec<_>, StoreError>>()?;
        let all_actions = prepared.iter().flat_map(|prepared| &prepared.actions);
        if prepare::has_repeated_item(all_actions) {
            return Err(StoreError::invalid(
                "Provided list of item keys contains duplicates",
            ));
        }
        let outcomes = self.shared().submit(prepared).await;
        Ok(outcomes.into_iter().map(written).collect())
    }

    /// Carries out all actions or none. An action that does not fit its table cancels the transaction.
    ///
    /// # Errors
    /// Fails for any reason for which a transaction can fail.
    pub async fn write_together(
        &self,
        transaction: Transaction,
        measure: bool,
    ) -> Result<TransactionResult, TransactError> {
        let count = transaction.actions.len();
        let prepared = prepare::transaction(&self.shared().catalogue.now(), transaction);
        let prepared = match prepared {
            Ok(prepared) => prepared.measured(measure),
            Err(PrepareError::Action(at, StoreError::Invalid(reason))) => {
                let mut reasons = vec![CancelReason::None; count];
                reasons[at] = CancelReason::Invalid(reason);
                return Err(TransactError::Cancelled(reasons));
            }
            Err(other) => return Err(TransactError::Store(other.into())),
        };
        let done = self.shared().submit_one(prepared).await?;
        Ok(TransactionResult {
            costs: done.costs,
            repeated: done.repeated,
        })
    }
}

/// The outcome of a transaction with one action.
pub(crate) fn written(outcome: Outcome) -> Result<Written, WriteError> {
    match outcome {
        Ok(mut done) => Ok(Written {
            attributes: done.returned,
            cost: done.costs.pop(),
        }),
        Err(TransactError::Store(error)) => Err(error.into()),
        Err(TransactError::Cancelled(mut reasons)) => Err(match reasons.pop() {
            Some(CancelReason::ConditionFailed { old }) => WriteError::ConditionFailed { old },
            Some(CancelReason::Invalid(reason)) => StoreError::Invalid(reason).into(),
            _ => StoreError::Throttled.into(),
        }),
        Err(error @ TransactError::TokenMismatch) => {
            Err(StoreError::invalid(error.to_string()).into())
        }
    }
}
