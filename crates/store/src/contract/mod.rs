//! The contract that every backend must fulfil, as test cases for the embedded engine, Amazon
//! DynamoDB and the in-memory model. Each case checks the claim in its name and panics if it is
//! false. No case depends on a backend.
//!
//! ```ignore
//! async fn make_store() -> Arc<dyn Store> { /* … */ }
//! homeport_store::contract_tests!(make_store);
//! ```
//!
//! The cases allow everything that DynamoDB allows: they use consistent reads for their own writes,
//! wait for indexes, follow all pages and resubmit unprocessed requests.

mod case;
mod list;
mod outcome;

pub mod batches;
pub mod concurrency;
pub mod conditions;
pub mod errors;
pub mod expired_reads;
pub mod expired_writes;
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

/// Timeout of a case; no case takes as long on a healthy backend.
const CASE_TIMEOUT: Duration = Duration::from_secs(120);

/// A store together with the resources that must outlive it, such as its directory.
pub trait Fixture {
    fn store(&self) -> Arc<dyn Store>;

    /// The expected result of the case `group::case`. Override it only for third-party stores: ours
    /// pass every case.
    fn expectation(&self, _case: &str) -> Expectation {
        Expectation::Passes
    }
}

/// The expected result of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expectation {
    Passes,
    /// The store is known to fail this case. The test fails as soon as the case passes.
    Fails,
}

impl Fixture for Arc<dyn Store> {
    fn store(&self) -> Arc<dyn Store> {
        Arc::clone(self)
    }
}

/// Creates a store and runs one case against it.
///
/// # Panics
/// When the case fails or times out, or passes although it is expected to fail.
pub fn run<F: Fixture>(name: &str, make: impl Future<Output = F>, case: impl AsyncFnOnce(&Case)) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime can be built");
    let fixture = runtime.block_on(make);
    let expectation = fixture.expectation(name);
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        runtime.block_on(async {
            let case_store = Case::new(fixture.store());
            tokio::time::timeout(CASE_TIMEOUT, case(&case_store))
                .await
                .expect("the case ends in time");
        });
    }));
    match (expectation, outcome) {
        (Expectation::Fails, Ok(())) => {
            panic!("{name} passes now: remove it from the known deviations of this store")
        }
        (Expectation::Passes, Err(panic)) => resume_unwind(panic),
        (Expectation::Fails, Err(_)) | (Expectation::Passes, Ok(())) => {}
    }
}
