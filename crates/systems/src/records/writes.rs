//! Transactions of this system, tried again where another one got in the way.

use std::time::Duration;

use homeport_item::Item;
use homeport_item::expression::Condition;
use homeport_store::{Action, CancelReason, Check, StoreError, TransactError, Transaction};

use super::types::GroupId;
use super::{Records, RecordsError, schema};
use crate::sensors::InvalidField;

/// How often a transaction that got in another's way is tried again.
const ATTEMPTS_MAX: u32 = 8;
/// The pause before the second attempt; every further one is twice as long.
const PAUSE_FIRST: Duration = Duration::from_millis(2);

impl Records {
    /// Carries out all actions or none. The answer says whose conditions did not hold, in order; it
    /// is empty when everything was done.
    pub(super) async fn all_or_none(&self, actions: &[Action]) -> Result<Vec<usize>, RecordsError> {
        let mut pause = PAUSE_FIRST;
        for _ in 0..ATTEMPTS_MAX {
            match self
                .store
                .transact(Transaction::new(actions.to_vec()))
                .await
            {
                Ok(()) => return Ok(Vec::new()),
                Err(TransactError::Cancelled(reasons)) => {
                    if let Some(failed) = failed_conditions(&reasons)? {
                        return Ok(failed);
                    }
                }
                Err(TransactError::Store(StoreError::Throttled)) => {}
                Err(TransactError::Store(error)) => return Err(error.into()),
                Err(TransactError::TokenMismatch) => {
                    return Err(StoreError::Unavailable("no token was sent".to_owned()).into());
                }
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
        Err(StoreError::Throttled.into())
    }

    /// That something in a group's partition is there.
    pub(super) fn must_exist(&self, group: GroupId, sort: String) -> Action {
        let key: Item = schema::key_in(group, sort);
        Check::new(self.table(), key, Condition::exists(schema::PK)).into()
    }
}

/// Whose conditions failed; `None` asks for another attempt.
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
