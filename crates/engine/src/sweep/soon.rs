//! Removing items of the running window as soon as they expire, by what [`crate::expiring`] has in memory.

use std::sync::Arc;
use std::time::{Duration, Instant};

use homeport_store::StoreError;

use super::CHUNK;
use super::expired::{
    ExpiryOutcome, Kind, Leads, ORDER, expiry_outcome, running_window, warn_unreadable,
};
use crate::committer::Committer;
use crate::error::unavailable;
use crate::expiring::ExpiringItem;
use crate::layout;
use crate::record::Record;
use crate::shared::{Shared, run_exclusive, stopped};

/// Reading the running window takes at most this part of the time.
const READING_SHARE: u32 = 10;

#[derive(Default)]
pub(super) struct Progress {
    /// When the running window may be read again.
    next_read: Option<Instant>,
}

impl Progress {
    pub(super) fn sweep(&mut self, shared: &Shared) -> Result<u64, StoreError> {
        let now_secs = shared.times().removal_secs();
        let now = u64::try_from(now_secs).unwrap_or(0);
        let may_read = self.next_read.is_none_or(|next| Instant::now() >= next);
        if now >= shared.expiring.known_until_secs() && may_read {
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

/// Reads when the items of a window expire.
fn read_window(shared: &Shared, window: u64) -> Result<(), StoreError> {
    let end = layout::window_end(window);
    shared.expiring.begin(end);
    // IMPORTANT: groups that were begun before this feed nothing; when this returns, they can be read.
    run_exclusive(shared, |_| Ok(()))?;
    for kind in ORDER {
        let mut pieces = Leads::new(kind, window, end);
        loop {
            if shared.stopping.load(std::sync::atomic::Ordering::Acquire) {
                return Err(stopped());
            }
            let leads = pieces.next(shared)?;
            if leads.is_empty() {
                break;
            }
            let catalogue = shared.catalogue.now();
            for lead in leads {
                let Some(table) = catalogue.by_id(lead.table) else {
                    continue;
                };
                for name in lead.names {
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
                            is_only_in_pages: kind == Kind::Page,
                        });
                    }
                }
            }
        }
    }
    Ok(())
}

/// Removes items that have expired. Pages that list them stay until their window is over.
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
            // An item whose time has changed is in memory with that time too, and with where it is listed then.
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
    use super::super::{Due, sweep};
    use super::*;
    use crate::engine::Engine;
    use crate::options::Options;
    use homeport_item::schema::{StreamView, TableSchema};
    use homeport_item::{Item, KeyKind};
    use homeport_store::{ManualClock, Put, Store as _};

    /// The beginning of a window.
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

        /// As the background thread sweeps.
        async fn swept_after_secs(&self, secs: i64) -> u64 {
            self.clock.advance_ms(secs * 1000);
            let shared = Arc::clone(self.engine.shared());
            let swept = tokio::task::spawn_blocking(move || sweep(&shared, Due::InTime));
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
        let options = Options {
            clock: Arc::clone(clock) as _,
            background_sweep: false,
            ..Options::default()
        };
        Engine::open(directory, options).unwrap()
    }

    #[tokio::test]
    async fn expired_item_is_removed_within_its_hour() {
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
    async fn item_whose_time_moves_within_the_hour_is_removed_then() {
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
    async fn item_with_an_entry_leaves_no_entry_behind() {
        let store = Fixture::new().await;
        for until in [10, 2 * 3600, 20] {
            store.put("a", until).await;
        }
        store.swept_after_secs(0).await;
        // Also where the entry is written after the hour was read.
        store.put("b", 10).await;
        store.put("b", 2 * 3600).await;
        store.put("b", 20).await;
        assert_eq!(store.swept_after_secs(20).await, 2);
        store.assert_good().await;
        assert_eq!(store.engine.check().await.unwrap().expiry_entries, 0);
    }

    #[tokio::test]
    async fn items_written_before_a_restart_are_removed_in_time() {
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
    async fn item_that_expires_in_the_past_is_removed_at_once() {
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
