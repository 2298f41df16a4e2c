//! What the tests of all systems share: a fresh store and a clock that is moved by hand.

use std::sync::Arc;

use homeport_engine::{Engine, Options};
use homeport_item::schema::TableSchema;
use homeport_store::{ManualClock, Store};

/// 2027-01-15T08:00:00Z
pub(crate) const NOW_MS: i64 = 1_800_000_000_000;

pub(crate) struct Fixture {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<ManualClock>,
    _directory: tempfile::TempDir,
}

pub(crate) async fn fixture(tables: &[TableSchema]) -> Fixture {
    let directory = tempfile::tempdir().expect("a directory");
    let clock = Arc::new(ManualClock::at_ms(NOW_MS));
    let options = Options {
        clock: Arc::clone(&clock) as _,
        background_sweep: false,
        ..Options::default()
    };
    let engine = Engine::open(directory.path(), options).expect("opens");
    engine.ensure_tables(tables).await.expect("tables");
    Fixture {
        store: Arc::new(engine),
        clock,
        _directory: directory,
    }
}
