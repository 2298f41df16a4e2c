//! Conditional writes that wait for concurrent ones.

use std::time::Duration;

use homeport_store::{
    Action, CancelReason, Store, StoreError, TransactError, Transaction, WriteError,
};

const CONFLICT_RETRIES_MAX: u32 = 6;
/// The pause after the first conflict. Each further one is twice as long.
const CONFLICT_PAUSE: Duration = Duration::from_millis(20);

/// Writes all actions or none; false when a condition does not hold.
pub(crate) async fn commit(store: &dyn Store, actions: Vec<Action>) -> Result<bool, StoreError> {
    let mut pause = CONFLICT_PAUSE;
    for _ in 0..CONFLICT_RETRIES_MAX {
        match store.transact(Transaction::new(actions.clone())).await {
            Ok(()) => return Ok(true),
            Err(TransactError::Cancelled(reasons)) => {
                let is_failed =
                    |reason: &CancelReason| matches!(reason, CancelReason::ConditionFailed { .. });
                if reasons.iter().any(is_failed) {
                    return Ok(false);
                }
                tokio::time::sleep(pause).await;
                pause *= 2;
            }
            Err(TransactError::TokenMismatch) => break,
            Err(TransactError::Store(error)) => return Err(error),
        }
    }
    Err(StoreError::Throttled)
}

/// Writes a single action; false when its condition does not hold.
pub(super) async fn commit_one(store: &dyn Store, action: Action) -> Result<bool, StoreError> {
    let written = match action {
        Action::Put(put) => store.put(put).await,
        Action::Update(update) => store.update(update).await,
        Action::Delete(delete) => store.delete(delete).await,
        Action::Check(_) => return commit(store, vec![action]).await,
    };
    match written {
        Ok(_) => Ok(true),
        Err(WriteError::ConditionFailed { .. }) => Ok(false),
        Err(WriteError::Store(error)) => Err(error),
    }
}
