//! The counters of the design document's three alarms: user errors, system errors and failed
//! conditions of the store. Their names follow those of CloudWatch.

use homeport_store::{StoreError, WriteError};

use super::PushError;
use crate::pages::PageError;

const USER_ERRORS: &str = "homeport_push_user_errors_total";
const SYSTEM_ERRORS: &str = "homeport_push_system_errors_total";
const CONDITION_FAILURES: &str = "homeport_push_conditional_check_failed_total";

/// Counts an error of the store on its way to the caller.
pub(super) fn store_error(error: StoreError) -> PushError {
    count(&error);
    error.into()
}

/// Counts an error that is of the store.
pub(super) fn counted(error: PushError) -> PushError {
    if let PushError::Store(error) = &error {
        count(error);
    }
    error
}

fn count(error: &StoreError) {
    match error {
        // Too little capacity, or no permission for the table: the subject of the first alarm.
        StoreError::Invalid(_)
        | StoreError::TableNotFound(_)
        | StoreError::IndexNotFound { .. }
        | StoreError::Throttled => metrics::counter!(USER_ERRORS).increment(1),
        StoreError::Unavailable(_) => metrics::counter!(SYSTEM_ERRORS).increment(1),
    }
}

/// Counts an error of the store while reading a page.
pub(super) fn page_error(error: PageError) -> PushError {
    match error {
        PageError::Cursor(error) => error.into(),
        PageError::Store(error) => store_error(error),
    }
}

/// Counts an error of a write; a failed condition means that the device does not exist.
pub(super) fn write_error(error: WriteError) -> PushError {
    match error {
        WriteError::ConditionFailed { .. } => {
            metrics::counter!(CONDITION_FAILURES).increment(1);
            PushError::DeviceMissing
        }
        WriteError::Store(error) => store_error(error),
    }
}

/// Registers the counters, so that an alarm on them sees zero instead of no data.
pub(super) fn announce() {
    for name in [USER_ERRORS, SYSTEM_ERRORS, CONDITION_FAILURES] {
        metrics::counter!(name).increment(0);
    }
}
