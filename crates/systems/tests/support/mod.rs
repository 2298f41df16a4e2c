//! Shared test code: a fresh store and a manual clock.
//!
//! The store is the embedded engine unless `HOMEPORT_TEST_STORE` names another one. `cargo xtask test` runs all
//! of these tests on each store.

// Each test binary uses a part of this module.
#![allow(dead_code)]

use std::sync::Arc;

use homeport_item::schema::TableSchema;
use homeport_store::{ChangeFeed, ManualClock, Store};
use homeport_test_backends::{Backend, Kind};

/// 2027-01-15T08:00:00Z
pub(crate) const NOW_MS: i64 = 1_800_000_000_000;

pub(crate) struct Fixture {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<ManualClock>,
    backend: Backend,
}

impl Fixture {
    pub(crate) fn feed(&self) -> Arc<dyn ChangeFeed> {
        self.backend.feed()
    }

    /// The same store, as another process opens it.
    pub(crate) async fn reopen(self) -> Self {
        let Self {
            store,
            clock,
            backend,
        } = self;
        drop(store);
        let backend = backend.reopen(Arc::clone(&clock) as _).await;
        Self {
            store: backend.store(),
            clock,
            backend,
        }
    }
}

pub(crate) async fn fixture(tables: &[TableSchema]) -> Fixture {
    let clock = Arc::new(ManualClock::at_ms(NOW_MS));
    let backend = Backend::start(kind(), Arc::clone(&clock) as _).await;
    let store = backend.store();
    store.ensure_tables(tables).await.expect("tables");
    let removals = homeport_systems::removal::schema::tables();
    store.ensure_tables(&removals).await.expect("tables");
    Fixture {
        store,
        clock,
        backend,
    }
}

fn kind() -> Kind {
    match std::env::var("HOMEPORT_TEST_STORE").as_deref() {
        Err(_) => Kind::Engine,
        Ok("wire") => Kind::Wire,
        Ok("dynoxide") => Kind::Dynoxide,
        Ok("moto") => Kind::Moto,
        Ok(other) => panic!("there is no store {other:?} for tests"),
    }
}
