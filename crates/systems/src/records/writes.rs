//! Transactions of the record store, retried on conflicts.

use std::time::Duration;

use homeport_item::Item;
use homeport_item::expression::Condition;
use homeport_store::{
    Action, CancelReason, ConditionCheck, StoreError, TransactError, Transaction,
};

use super::types::GroupId;
use super::{Records, RecordsError, schema};
use crate::sensors::InvalidField;

/// Attempts at a transaction that conflicts with another one.
const ATTEMPTS_MAX: u32 = 8;
/// The pause before the second attempt. It doubles with every further attempt.
const PAUSE_FIRST: Duration = Duration::from_millis(2);

impl Records {
    /// Executes all actions or none. The answer has the indexes of actions whose condition failed; it is empty
    /// on success.
    pub(super) async fn all_or_none(&self, actions: &[Action]) -> Result<Vec<usize>, RecordsError> {
        let mut pause = PAUSE_FIRST;
        for _ in 0..ATTEMPTS_MAX {
            let transaction = Transaction::new(actions.to_vec());
            if let Some(failed) = failed_actions(self.store.transact(transaction).await)? {
                return Ok(failed);
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
        Err(StoreError::Throttled.into())
    }

    /// A check that an item of a group's partition exists.
    pub(super) fn must_exist(&self, group: GroupId, sort: String) -> Action {
        let key: Item = schema::key_in(group, sort);
        ConditionCheck::new(self.table(), key, Condition::exists(schema::PK)).into()
    }
}

/// The actions of a transaction whose condition failed, none on success; `None` asks for another attempt.
pub(super) fn failed_actions(
    answer: Result<(), TransactError>,
) -> Result<Option<Vec<usize>>, RecordsError> {
    match answer {
        Ok(()) => Ok(Some(Vec::new())),
        Err(TransactError::Cancelled(reasons)) => failed_conditions(&reasons),
        Err(TransactError::Store(StoreError::Throttled)) => Ok(None),
        Err(TransactError::Store(error)) => Err(error.into()),
        Err(TransactError::TokenMismatch) => {
            Err(StoreError::Unavailable("no token was sent".to_owned()).into())
        }
    }
}

/// The actions whose condition failed; `None` asks for another attempt.
fn failed_conditions(reasons: &[CancelReason]) -> Result<Option<Vec<usize>>, RecordsError> {
    let mut failed = Vec::new();
    for (at, reason) in reasons.iter().enumerate() {
        match reason {
            CancelReason::ConditionFailed { .. } => failed.push(at),
            CancelReason::Invalid(_) => {
                return Err(InvalidField {
                    field: "the item",
                    expected: "one that the store can keep",
                }
                .into());
            }
            CancelReason::Conflict | CancelReason::Throttled => return Ok(None),
            CancelReason::None => {}
        }
    }
    Ok((!failed.is_empty()).then_some(failed))
}
