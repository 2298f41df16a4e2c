//! The contract of the seam, run against the embedded engine.

use std::sync::Arc;

use homeport_engine::{Engine, Options};
use homeport_store::Store;

async fn engine() -> Arc<dyn Store> {
    let directory = tempfile::tempdir().expect("a directory");
    let engine = Engine::open(directory.path(), Options::default()).expect("opens");
    // The directory goes with the process: a case is over before it could matter.
    std::mem::forget(directory);
    Arc::new(engine)
}

homeport_store::contract_tests!(engine);
