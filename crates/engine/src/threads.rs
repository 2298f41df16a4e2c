//! The threads that the engine cannot work without: committer, sweeper, watch, and background jobs of tables.
//! A panic in one of them refuses writes until a restart and shows in [`crate::Engine::condition`]. Backups,
//! exports and restores run on threads of their own, which report failures to their callers.

use std::sync::Arc;
use std::thread::JoinHandle;

use crate::shared::Shared;

/// Starts a thread.
pub(crate) fn spawn(
    shared: &Arc<Shared>,
    name: &str,
    run: impl FnOnce(&Arc<Shared>) + Send + 'static,
) -> std::io::Result<JoinHandle<()>> {
    let shared = Arc::clone(shared);
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || {
            let _panics = NoticePanics(&shared);
            run(&shared);
        })
}

struct NoticePanics<'a>(&'a Shared);

impl Drop for NoticePanics<'_> {
    fn drop(&mut self) {
        self.0.latch.close_if_panicking();
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use homeport_item::schema::TableSchema;
    use homeport_item::{Item, KeyKind};
    use homeport_store::{Clock, Put, Store as _};

    use crate::engine::{Condition, Engine};
    use crate::options::Options;
    use crate::storage::disk_space::Disk;

    use super::*;

    /// Panics in the thread with this name.
    #[derive(Debug, Clone, Copy)]
    struct PanicsIn(&'static str);

    impl PanicsIn {
        fn check(self) {
            let thread = std::thread::current();
            assert_ne!(thread.name(), Some(self.0), "a test");
        }
    }

    impl Clock for PanicsIn {
        fn now_ms(&self) -> i64 {
            self.check();
            1_800_000_000_000
        }
    }

    impl Disk for PanicsIn {
        fn free_bytes(&self, _: &Path) -> Option<u64> {
            self.check();
            None
        }
    }

    fn open(directory: &Path, thread: &'static str) -> Engine {
        let options = Options {
            clock: Arc::new(PanicsIn(thread)),
            disk: Arc::new(PanicsIn(thread)),
            ..Options::default()
        };
        Engine::open(directory, options).unwrap()
    }

    async fn make_table(engine: &Engine) {
        let schema = TableSchema::new("plain", "id", KeyKind::S);
        engine.create_table(schema).await.unwrap();
    }

    async fn assert_needs_restart(engine: &Engine, thread: &str) {
        let wait = async {
            while engine.condition() == Condition::Ready {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let waited = tokio::time::timeout(Duration::from_secs(30), wait);
        waited.await.expect("the panic was not noticed");
        let Condition::NeedsRestart(reason) = engine.condition() else {
            panic!("{:?}", engine.condition());
        };
        assert!(reason.contains(thread), "{reason}");
        let put = Put::new("plain", Item::new().with("id", "a"));
        let error = engine.put(put).await.unwrap_err().to_string();
        assert!(error.contains("restarted"), "{error}");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn committer_panic_needs_a_restart() {
        let directory = tempfile::tempdir().unwrap();
        let engine = open(directory.path(), "none");
        make_table(&engine).await;
        let panicked = engine.shared().exclusive(|_| panic!("a test"));
        assert!(panicked.await.is_err());
        assert_needs_restart(&engine, "homeport-commit").await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn background_thread_panic_needs_a_restart() {
        for thread in ["homeport-sweep", "homeport-watch"] {
            let directory = tempfile::tempdir().unwrap();
            make_table(&open(directory.path(), "none")).await;
            let engine = open(directory.path(), thread);
            assert_needs_restart(&engine, thread).await;
        }
    }

    #[test]
    fn reopening_keeps_a_needed_restart() {
        let latch = crate::storage::latch::Latch::default();
        latch.close("a full disk");
        latch.close_until_restart("a panic");
        latch.open();
        assert!(latch.failure().is_some_and(|failure| failure.needs_restart));
    }
}
