//! Deletes items of the running window as soon as they expire, using the items in memory
//! ([`crate::expiry::expiring`]).

use std::sync::Arc;
use std::time::{Duration, Instant};

use homeport_store::StoreError;

use super::CHUNK;
use super::expired::{
    ExpiryOutcome, ListingKind, ListingReader, ORDER, expiry_outcome, running_window,
    warn_unreadable,
};
use crate::commit::committer::Committer;
use crate::error::unavailable;
use crate::expiry::expiring::ExpiringItem;
use crate::shared::{Shared, run_exclusive, stopped};
use crate::storage::layout;
use crate::storage::record::Record;

/// Reading the running window takes at most one part in this many of the time.
const READING_SHARE: u32 = 10;

#[derive(Default)]
pub(super) struct RunningWindow {
    /// When the running window may be read again.
    next_read: Option<Instant>,
}

impl RunningWindow {
    pub(super) fn sweep(&mut self, shared: &Shared) -> Result<u64, StoreError> {
        let now_secs = shared.times().removal_secs();
        let now = u64::try_from(now_secs).unwrap_or(0);
        let may_read = self.next_read.is_none_or(|next| Instant::now() >= next);
        if now >= shared.expiring.complete_until_secs() && may_read {
            let started = Instant::now();
            if let Err(error) = read_window(shared, running_window(now_secs)) {
                shared.expiring.forget();
                return Err(error);
            }
            let took = started.elapsed();
            self.next_read = Some(started + took.max(Duration::from_millis(1)) * READING_SHARE);
        }
        let mut total = 0;
        loop {
            let due = shared.expiring.take_due(now, CHUNK);
            if due.is_empty() {
                return Ok(total);
            }
            match run_exclusive(shared, move |committer| expire(committer, due)) {
                Ok(expired) => {
                    shared.metrics.expired(expired);
                    total += expired;
                }
                Err(error) => {
                    shared.expiring.forget();
                    return Err(error);
                }
            }
        }
    }
}

/// Reads into memory when the items of a window expire.
fn read_window(shared: &Shared, window: u64) -> Result<(), StoreError> {
    let end = layout::window_end(window);
    shared.expiring.begin(end);
    // IMPORTANT: groups that began earlier do not add their items; after this call, the store shows them.
    run_exclusive(shared, |_| Ok::<_, StoreError>(()))?;
    for kind in ORDER {
        let mut reader = ListingReader::new(kind, window, end);
        loop {
            if shared.stopping.load(std::sync::atomic::Ordering::Acquire) {
                return Err(stopped());
            }
            let listings = reader.next(shared)?;
            if listings.is_empty() {
                break;
            }
            let catalogue = shared.catalogue.now();
            for listing in listings {
                let Some(table) = catalogue.by_id(listing.table) else {
                    continue;
                };
                for name in listing.names {
                    let item_key = layout::key_of_expiry_name(&name);
                    let value = match table.items.get(&item_key) {
                        Err(error) if error.is_damage() || error.is_damaged_block() => None,
                        value => value.map_err(unavailable)?,
                    };
                    // Items that cannot be decoded stay for the check to report.
                    let expires_at_secs = value.and_then(|value| {
                        let record = Record::new(&table.key, &item_key, &value).ok()?;
                        table.expires_at(&record).ok()?
                    });
                    if let Some(expires_at_secs) = expires_at_secs
                        && layout::expiry_window(expires_at_secs) == window
                    {
                        shared.expiring.insert(ExpiringItem {
                            expires_at_secs,
                            table: table.id(),
                            name,
                            is_only_in_pages: kind == ListingKind::Page,
                        });
                    }
                }
            }
        }
    }
    Ok(())
}

/// Deletes expired items. Pages that list them stay until their window is over.
fn expire(committer: &mut Committer, due: Vec<ExpiringItem>) -> Result<u64, StoreError> {
    let shared = Arc::clone(&committer.shared);
    committer.write(|group| {
        let catalogue = shared.catalogue.now();
        let mut expired = 0;
        for item in due {
            let Some(table) = catalogue.by_id(item.table) else {
                continue;
            };
            let window = layout::expiry_window(item.expires_at_secs);
            let item_key = layout::key_of_expiry_name(&item.name);
            let outcome = expiry_outcome(group, table, window, &item_key);
            // If an item's expiry has changed, memory also has it with its new time and listing.
            let ExpiryOutcome::Expired { value, at_secs } = outcome else {
                continue;
            };
            if at_secs != item.expires_at_secs {
                continue;
            }
            if let Err(error) = group.expire(table, item_key.clone(), value) {
                warn_unreadable(table, &error);
                continue;
            }
            expired += 1;
            if !item.is_only_in_pages {
                group.remove_expiry(window, table, &item_key);
            }
        }
        Ok(expired)
    })
}

#[cfg(test)]
mod tests {
    use super::super::{SweepMode, sweep};
    use super::*;
    use crate::engine::Engine;
    use crate::options::Options;
    use homeport_item::schema::{StreamView, TableSchema};
    use homeport_item::{Item, KeyKind};
    use homeport_store::{ManualClock, Put, Store as _};

    /// The start of a window.
    const NOW_SECS: i64 = 1_800_000_000;

    struct Fixture {
        engine: Engine,
        clock: Arc<ManualClock>,
        directory: tempfile::TempDir,
    }

    impl Fixture {
        async fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let clock = Arc::new(ManualClock::at_ms(NOW_SECS * 1000));
            let engine = open(directory.path(), &clock);
            let mut table = TableSchema::new("things", "id", KeyKind::S).with_ttl("until");
            table.stream = Some(StreamView::KeysOnly);
            engine.create_table(table).await.unwrap();
            Self {
                engine,
                clock,
                directory,
            }
        }

        async fn put(&self, id: &str, until: i64) {
            let item = Item::new().with("id", id).with("until", NOW_SECS + until);
            self.engine.put(Put::new("things", item)).await.unwrap();
        }

        /// Sweeps like the background thread.
        async fn swept_after_secs(&self, secs: i64) -> u64 {
            self.clock.advance_ms(secs * 1000);
            let shared = Arc::clone(self.engine.shared());
            let swept = tokio::task::spawn_blocking(move || sweep(&shared, SweepMode::Background));
            swept.await.unwrap().unwrap().expired
        }

        async fn assert_good(&self) {
            let report = self.engine.check().await.unwrap();
            assert_eq!(report.descriptions, Vec::<String>::new());
        }

        fn removed(&self) -> usize {
            let changes = self.engine.changes("things", 0, 1000).unwrap().changes;
            changes.iter().filter(|change| change.by_expiry).count()
        }
    }

    fn open(directory: &std::path::Path, clock: &Arc<ManualClock>) -> Engine {
        let options = Options::for_tests().with_clock(clock);
        Engine::open(directory, options).unwrap()
    }

    #[tokio::test]
    async fn expired_item_is_deleted_within_its_hour() {
        let store = Fixture::new().await;
        store.put("a", 10).await;
        store.put("b", 20).await;
        assert_eq!(store.swept_after_secs(9).await, 0);
        assert_eq!(store.swept_after_secs(1).await, 1);
        assert_eq!(store.removed(), 1);
        store.put("c", 15).await;
        assert_eq!(store.swept_after_secs(10).await, 2);
        assert_eq!(store.removed(), 3);
        store.assert_good().await;
    }

    #[tokio::test]
    async fn moved_expiry_is_respected_within_the_hour() {
        let store = Fixture::new().await;
        store.put("a", 10).await;
        store.swept_after_secs(0).await;
        store.put("a", 30).await;
        assert_eq!(store.swept_after_secs(10).await, 0);
        store.put("a", 12).await;
        assert_eq!(store.swept_after_secs(2).await, 1);
        store.assert_good().await;
    }

    #[tokio::test]
    async fn expired_item_leaves_no_entry() {
        let store = Fixture::new().await;
        for until in [10, 2 * 3600, 20] {
            store.put("a", until).await;
        }
        store.swept_after_secs(0).await;
        // The same if the entry is written after the hour was read.
        store.put("b", 10).await;
        store.put("b", 2 * 3600).await;
        store.put("b", 20).await;
        assert_eq!(store.swept_after_secs(20).await, 2);
        store.assert_good().await;
        assert_eq!(store.engine.check().await.unwrap().expiry_entries, 0);
    }

    #[tokio::test]
    async fn items_written_before_a_restart_expire_in_time() {
        let store = Fixture::new().await;
        store.put("a", 10).await;
        let Fixture {
            engine,
            clock,
            directory,
        } = store;
        drop(engine);
        let store = Fixture {
            engine: open(directory.path(), &clock),
            clock,
            directory,
        };
        assert_eq!(store.swept_after_secs(10).await, 1);
        assert!(store.directory.path().exists());
    }

    #[tokio::test]
    async fn already_expired_item_is_deleted_at_once() {
        let store = Fixture::new().await;
        store.swept_after_secs(0).await;
        store.put("a", -2 * 3600).await;
        assert_eq!(store.swept_after_secs(1).await, 1);
        let pages = &store.engine.shared().keyspaces.expiry_pages;
        assert_eq!(pages.iter().count(), 0);
        store.assert_good().await;
    }

    #[tokio::test]
    async fn next_hour_is_read_when_it_begins() {
        let store = Fixture::new().await;
        store.put("a", 3600 + 5).await;
        store.put("b", 3600 + 50).await;
        assert_eq!(store.swept_after_secs(3600).await, 0);
        assert_eq!(store.swept_after_secs(10).await, 1);
        assert_eq!(store.swept_after_secs(40).await, 1);
        assert_eq!(store.swept_after_secs(3600).await, 0);
        assert_eq!(store.engine.check().await.unwrap().expiry_entries, 0);
        let pages = &store.engine.shared().keyspaces.expiry_pages;
        assert_eq!(pages.iter().count(), 0);
    }
}
