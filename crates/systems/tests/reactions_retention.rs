//! Reactions on a log that was cut off before they had read it. Only the engine can be made to do that.

mod recorder;

use std::sync::Arc;

use homeport_engine::{Engine, Options};
use homeport_store::{ManualClock, Put, Store as _};
use homeport_systems::reactions::{Reactions, schema};
use recorder::{Recorder, THINGS};

/// 2027-01-15T08:00:00Z
const NOW_MS: i64 = 1_800_000_000_000;
const RETENTION_MS: i64 = 60_000;

#[tokio::test]
async fn lost_changes_start_a_reaction_over() {
    let directory = tempfile::tempdir().expect("a directory");
    let clock = Arc::new(ManualClock::at_ms(NOW_MS));
    let options = Options {
        clock: Arc::clone(&clock) as _,
        background_sweep: false,
        change_retention_ms: RETENTION_MS,
        ..Options::default()
    };
    let engine = Engine::open(directory.path(), options).expect("opens");
    let tables = [vec![recorder::things()], schema::tables()].concat();
    engine.ensure_tables(&tables).await.expect("tables");
    let put = async |id: &str, value: &str| {
        let item = recorder::thing(id, value);
        engine.put(Put::new(THINGS, item)).await.expect("put");
    };
    let (store, feed) = (Arc::new(engine.clone()), Arc::new(engine.clone()));
    let reactions = Reactions::new(store, feed, Arc::clone(&clock) as _);
    let recorder = Recorder::default();
    reactions.catch_up(&recorder).await.expect("caught up");
    put("a", "1").await;
    put("a", "2").await;
    clock.advance_ms(2 * RETENTION_MS);
    engine.sweep().await.expect("swept");
    recorder.take();
    put("a", "3").await;
    reactions.catch_up(&recorder).await.expect("caught up");
    assert_eq!(recorder.take(), ["start over"]);
    put("a", "4").await;
    reactions.catch_up(&recorder).await.expect("caught up");
    assert_eq!(recorder.take(), ["a: 3 to 4"]);
}
