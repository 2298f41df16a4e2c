//! Runs the contract suite against the reference model, which checks both.

use std::sync::Arc;

use homeport_store::Store;
use homeport_store::model::MemoryStore;

async fn model() -> Arc<dyn Store> {
    Arc::new(MemoryStore::with_system_clock())
}

homeport_store::contract_tests!(model);
