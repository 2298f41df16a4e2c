//! The counters behind the document's three alarms: what the store refused, what it failed at, and
//! which conditions did not hold. The names follow those of CloudWatch.

use homeport_store::{StoreError, WriteError};

use super::PushError;
use crate::pages::PageError;

const USER_ERRORS: &str = "homeport_push_user_errors_total";
const SYSTEM_ERRORS: &str = "homeport_push_system_errors_total";
const CONDITION_FAILURES: &str = "homeport_push_conditional_check_failed_total";

/// Counts a failure of the store on its way through.
pub(super) fn store_error(error: StoreError) -> PushError {
    match &error {
        // Too little capacity or no right to the table: what the first alarm is about.
        StoreError::Invalid(_)
        | StoreError::TableMissing(_)
        | StoreError::IndexMissing { .. }
        | StoreError::Throttled => metrics::counter!(USER_ERRORS).increment(1),
        StoreError::Unavailable(_) => metrics::counter!(SYSTEM_ERRORS).increment(1),
    }
    error.into()
}

/// Counts a failure of the store in reading a page.
pub(super) fn page_error(error: PageError) -> PushError {
    match error {
        PageError::Cursor(error) => error.into(),
        PageError::Store(error) => store_error(error),
    }
}

/// Counts a write's failure on its way through; a condition that did not hold means that the device
/// is not there.
pub(super) fn write_error(error: WriteError) -> PushError {
    match error {
        WriteError::ConditionFailed { .. } => {
            metrics::counter!(CONDITION_FAILURES).increment(1);
            PushError::DeviceMissing
        }
        WriteError::Store(error) => store_error(error),
    }
}

/// Makes the counters known, so that an alarm on them sees a zero and not nothing.
pub(super) fn announce() {
    for name in [USER_ERRORS, SYSTEM_ERRORS, CONDITION_FAILURES] {
        metrics::counter!(name).increment(0);
    }
}
