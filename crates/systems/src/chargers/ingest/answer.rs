//! Processes the answer of the store to a transaction.

use homeport_store::{CancelReason, StoreError, TransactError};

use super::attempt::{Attempt, NONE_OPEN_AT, PROVISION_ACTIONS};
use super::{EventOutcome, Pending, Rejection, Work, collide};
use crate::chargers::event::UplinkId;
use crate::chargers::state::{NotInState, StateDraft};
use crate::chargers::{ChargersError, schema};

/// Occupied keys that are found one by one before all keys around them are read.
const CROWD_MIN: usize = 4;
/// Attempts at a device's transaction while the store is busy.
const BUSY_MAX: usize = 8;

/// Processes the store's answer: stored events, occupied keys, a newer state.
pub(super) fn judge(
    work: &mut Work,
    mut attempt: Attempt,
    answer: Result<(), TransactError>,
    pending: &[Pending],
    outcomes: &mut [Option<EventOutcome>],
) -> Result<(), ChargersError> {
    let mut settle = |work: &mut Work, at: usize, outcome: EventOutcome| {
        outcomes[at] = Some(outcome);
        work.open.retain(|open| *open != at);
    };
    let reasons = match answer {
        Ok(()) => {
            for (at, event) in attempt.placed {
                let uplink_id = pending[at].uplink_id.clone();
                work.occupied.insert(event.timestamp_mt, uplink_id);
                let not_in_state = attempt.not_in_state.remove(&at).unwrap_or_default();
                for NotInState { reason, .. } in &not_in_state {
                    metrics::counter!(
                        "homeport_charger_attributes_not_in_state_total", "reason" => reason.code()
                    )
                    .increment(1);
                }
                let stored = EventOutcome::Stored {
                    device_id: event.device_id,
                    timestamp_mt: event.timestamp_mt,
                    timestamp_utc: event.timestamp_utc,
                    not_in_state,
                };
                settle(work, at, stored);
            }
            work.is_provisioned = true;
            work.state = attempt.state;
            return Ok(());
        }
        Err(TransactError::Cancelled(reasons)) => reasons,
        Err(TransactError::Store(StoreError::Throttled)) => vec![CancelReason::Throttled],
        Err(TransactError::Store(StoreError::Invalid(reason))) => {
            for (at, _) in attempt.placed {
                let unstorable = Rejection::Unstorable(reason.to_string());
                settle(work, at, EventOutcome::Rejected(unstorable));
            }
            return Ok(());
        }
        Err(TransactError::Store(error)) => return Err(error.into()),
        Err(TransactError::TokenMismatch) => {
            return Err(StoreError::Unavailable("no token was sent".to_owned()).into());
        }
    };
    let mut learned = false;
    let events_at = if attempt.provisions {
        PROVISION_ACTIONS
    } else {
        0
    };
    let state_at = events_at + attempt.placed.len();
    for (action, reason) in reasons.into_iter().enumerate() {
        let placed = action
            .checked_sub(events_at)
            .and_then(|at| attempt.placed.get(at));
        match (reason, placed) {
            (CancelReason::ConditionFailed { old: Some(old) }, Some((_, event))) => {
                let other = UplinkId::stored_in(&old);
                work.occupied.insert(event.timestamp_mt, other);
                work.met += 1;
                work.crowd = (work.met >= CROWD_MIN).then_some(event.timestamp_utc);
                learned = true;
            }
            (CancelReason::ConditionFailed { .. }, None)
                if attempt.provisions && action == NONE_OPEN_AT =>
            {
                for at in std::mem::take(&mut work.open) {
                    let rejection = Rejection::BeingDecommissioned(work.device_id.clone());
                    outcomes[at] = Some(EventOutcome::Rejected(rejection));
                }
                return Ok(());
            }
            (CancelReason::ConditionFailed { old }, None) if action == state_at => {
                // A registered device without a state may have been decommissioned just now.
                work.is_provisioned &= old.is_some();
                work.state = Some(StateDraft::new(old.map(|item| *item)));
                learned = true;
            }
            (CancelReason::ConditionFailed { old: Some(old) }, None) => {
                let owner = old.get(schema::WIRELESS_DEVICE_ID);
                let owner = owner.and_then(|owner| owner.as_str()).unwrap_or("another");
                let open = std::mem::take(&mut work.open);
                collide(&open, &work.device_id, work.wireless, owner, outcomes);
                return Ok(());
            }
            (CancelReason::Invalid(reason), Some((at, _))) => {
                let unstorable = Rejection::Unstorable(reason.to_string());
                settle(work, *at, EventOutcome::Rejected(unstorable));
                learned = true;
            }
            (CancelReason::Invalid(reason), None) if action == state_at => {
                tracing::warn!(device_id = %work.device_id, %reason, "the store rejects the state of a device");
                work.state = None;
                learned = true;
            }
            _ => {}
        }
    }
    if !learned {
        work.busy += 1;
        if work.busy > BUSY_MAX {
            return Err(StoreError::Throttled.into());
        }
    }
    Ok(())
}
