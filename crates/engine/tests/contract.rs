//! The contract of the seam, run against the embedded engine.

use std::sync::Arc;

use homeport_engine::{Engine, Options};
use homeport_store::Store;
use homeport_store::contract::Fixture;

/// A store of its own for every case, gone with it.
struct Fresh {
    engine: Arc<Engine>,
    _directory: tempfile::TempDir,
}

impl Fixture for Fresh {
    fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.engine) as _
    }
}

async fn engine() -> Fresh {
    let directory = tempfile::tempdir().expect("a directory");
    let engine = Engine::open(directory.path(), Options::default()).expect("opens");
    Fresh {
        engine: Arc::new(engine),
        _directory: directory,
    }
}

homeport_store::contract_tests!(engine);
