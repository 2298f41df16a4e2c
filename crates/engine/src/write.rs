//! Writes that say what they cost, for protocols that have to tell. What they do is what the seam's
//! writes do.

use homeport_item::Item;
use homeport_store::{Action, CancelReason, StoreError, TransactError, Transaction, WriteError};

use crate::cost::WriteCost;
use crate::engine::Engine;
use crate::evaluate::Outcome;
use crate::prepare::{self, Unprepared};
use crate::shared::stopped;

/// A write that happened.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Written {
    /// The attributes that were asked for.
    pub attributes: Option<Item>,
    /// What it cost, where that was asked for.
    pub cost: Option<WriteCost>,
}

/// A transaction that happened.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TransactionDone {
    /// What each action cost, where that was asked for.
    pub costs: Vec<WriteCost>,
    /// The token was seen before: it had happened already.
    pub repeated: bool,
}

impl Engine {
    /// One write.
    ///
    /// # Errors
    /// When its condition does not hold, or as any write can fail.
    pub async fn write(
        &self,
        action: impl Into<Action>,
        measure: bool,
    ) -> Result<Written, WriteError> {
        let prepared = prepare::action(&self.shared().catalogue.now(), action)?.measured(measure);
        let mut outcomes = self.shared().submit(vec![prepared]).await;
        written(outcomes.pop().unwrap_or_else(|| Err(stopped().into())))
    }

    /// Independent writes handed over at once, each on another item; each has its own outcome, in
    /// order.
    ///
    /// # Errors
    /// When one is not valid or two are on one item; none happens then.
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
        if prepare::write_twice(&prepared) {
            return Err(StoreError::Invalid(
                "Provided list of item keys contains duplicates".to_owned(),
            ));
        }
        let outcomes = self.shared().submit(prepared).await;
        Ok(outcomes.into_iter().map(written).collect())
    }

    /// All actions or none. An action that does not fit its table cancels the transaction.
    ///
    /// # Errors
    /// As any transaction can fail.
    pub async fn write_together(
        &self,
        transaction: Transaction,
        measure: bool,
    ) -> Result<TransactionDone, TransactError> {
        let count = transaction.actions.len();
        let prepared = prepare::transaction(&self.shared().catalogue.now(), transaction);
        let prepared = match prepared {
            Ok(prepared) => prepared.measured(measure),
            Err(Unprepared::Action(at, StoreError::Invalid(text))) => {
                let mut reasons = vec![CancelReason::None; count];
                reasons[at] = CancelReason::Invalid(text);
                return Err(TransactError::Cancelled(reasons));
            }
            Err(other) => return Err(TransactError::Store(other.into())),
        };
        let mut outcomes = self.shared().submit(vec![prepared]).await;
        let done = outcomes.pop().unwrap_or_else(|| Err(stopped().into()))?;
        Ok(TransactionDone {
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
            Some(CancelReason::Invalid(text)) => StoreError::Invalid(text).into(),
            _ => StoreError::Throttled.into(),
        }),
        Err(error @ TransactError::TokenMismatch) => {
            Err(StoreError::Invalid(error.to_string()).into())
        }
    }
}
