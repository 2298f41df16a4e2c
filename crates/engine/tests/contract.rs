//! The contract suite of the `Store` trait, run against the engine, sealed and unsealed.

use std::sync::Arc;

use homeport_engine::{Engine, MasterKey, Options};
use homeport_store::Store;
use homeport_store::contract::Fixture;

/// A store for one case, deleted afterwards.
struct Fresh {
    engine: Arc<Engine>,
    _directory: tempfile::TempDir,
}

impl Fixture for Fresh {
    fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.engine) as _
    }
}

fn open(master_key: Option<MasterKey>) -> Fresh {
    let directory = tempfile::tempdir().expect("a directory");
    let options = Options {
        master_key,
        ..Options::default()
    };
    let engine = Engine::open(directory.path(), options).expect("opens");
    Fresh {
        engine: Arc::new(engine),
        _directory: directory,
    }
}

async fn engine() -> Fresh {
    open(None)
}

homeport_store::contract_tests!(engine);

mod sealed {
    use homeport_engine::MasterKey;

    use super::{Fresh, open};

    async fn engine() -> Fresh {
        let key = MasterKey::parse(&"5ea1ed00".repeat(8)).expect("a key");
        open(Some(key))
    }

    homeport_store::contract_tests!(engine);
}
