//! What every backend must do, as cases to run against one: the embedded engine, Amazon DynamoDB,
//! the model in memory. A case states one claim, which is its name, and panics when it does not
//! hold. Nothing here knows a backend.
//!
//! ```ignore
//! async fn make_store() -> Arc<dyn Store> { /* … */ }
//! homeport_store::contract_tests!(make_store);
//! ```
//!
//! What DynamoDB leaves open, the cases leave open too: they read their own writes with consistent
//! reads, wait for indexes, follow every page to its end and resubmit what was not processed.

mod case;
mod list;
mod outcome;

pub mod batches;
pub mod concurrency;
pub mod conditions;
pub mod errors;
pub mod expired_reads;
pub mod expired_strictly;
pub mod indexes;
pub mod key_order;
pub mod paging;
pub mod queries;
pub mod returning;
pub mod scans;
pub mod tables;
pub mod tokens;
pub mod transactions;
pub mod updates;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::Duration;

pub use case::Case;

use crate::Store;

/// No case takes longer than this on a healthy backend.
const CASE_TIMEOUT: Duration = Duration::from_secs(120);

/// A store together with what must live as long as it does, such as its directory.
pub trait Fixture {
    fn store(&self) -> Arc<dyn Store>;

    /// What is known of a case, by the name `group::case`. Only for stores that others wrote: of our
    /// own, every case holds.
    fn expectation(&self, _case: &str) -> Expectation {
        Expectation::Holds
    }
}

/// What is known of a case on a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expectation {
    Holds,
    /// The store is known to be wrong here. That is a claim too: the test fails when the case holds.
    Fails,
}

impl Fixture for Arc<dyn Store> {
    fn store(&self) -> Arc<dyn Store> {
        Arc::clone(self)
    }
}

/// Makes a store and runs one case against it.
///
/// # Panics
/// When the case's claim does not hold, or it takes too long. When the case is expected to fail and
/// does not.
pub fn run<F: Fixture>(name: &str, make: impl Future<Output = F>, case: impl AsyncFnOnce(&Case)) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime can be built");
    let fixture = runtime.block_on(make);
    let expectation = fixture.expectation(name);
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        runtime.block_on(async {
            let ground = Case::new(fixture.store());
            tokio::time::timeout(CASE_TIMEOUT, case(&ground))
                .await
                .expect("the case ends in time");
        });
    }));
    match (expectation, outcome) {
        (Expectation::Fails, Ok(())) => {
            panic!("{name} holds here now: take it off the list of what this store does wrong")
        }
        (Expectation::Holds, Err(panic)) => resume_unwind(panic),
        (Expectation::Fails, Err(_)) | (Expectation::Holds, Ok(())) => {}
    }
}
