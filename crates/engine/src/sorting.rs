//! Sorting pages: those of a window that nobody adds to any more are put into the order of keys.
//!
//! Devices take turns, so that neighbours in a page share little. Sorted, an item's neighbours are those
//! of its own device, and a page compresses to a third. Nothing depends on it: a crash in between leaves
//! items listed twice, and what is not sorted takes more room.

use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};

use homeport_store::StoreError;
use rustc_hash::FxHashMap;

use crate::error::unavailable;
use crate::expiry;
use crate::layout::{self, TableId};
use crate::shared::{Shared, run_exclusive, stopped};
use crate::vault::{self, UserKey};

/// A window is sorted when nothing was added to it for this long.
const QUIET_MS: i64 = 60_000;
/// Fewer pages than this are not worth it.
const PAGES_MIN: usize = 8;
/// Windows that are remembered; others stay as they are.
const WINDOWS_MAX: usize = 10_000;
/// Items that are sorted in memory at a time.
const PART_ITEMS: usize = 64 * 1024;
/// Every so many items, one is taken to find out where the parts begin.
const SAMPLE_EVERY: usize = 256;
/// Items, or pages to be removed, that one commit covers.
const COMMIT_ITEMS: usize = 4096;
/// Pages that are read from one snapshot. While one is open, all that is written stays in memory, flushed or
/// not.
const READ_PAGES: usize = 32;

/// Windows with pages that are not sorted.
#[derive(Default)]
pub(crate) struct Unsorted(Mutex<FxHashMap<u64, Added>>);

struct Added {
    pages: usize,
    at_ms: i64,
}

impl Unsorted {
    /// Remembers that a page was added to a window.
    pub(crate) fn added(&self, window: u64, at_ms: i64) {
        let mut windows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if windows.len() >= WINDOWS_MAX && !windows.contains_key(&window) {
            return;
        }
        let added = windows.entry(window).or_insert(Added { pages: 0, at_ms });
        added.pages += 1;
        added.at_ms = at_ms;
    }

    /// Forgets the windows that nothing is added to any more, and returns those that are worth sorting.
    fn take_quiet(&self, now_ms: i64) -> Vec<u64> {
        let mut windows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let quiet = windows.extract_if(|_, added| now_ms - added.at_ms >= QUIET_MS);
        let worth = quiet.filter(|(_, added)| added.pages >= PAGES_MIN);
        worth.map(|(window, _)| window).collect()
    }
}

pub(crate) fn sort_quiet(shared: &Shared) -> Result<(), StoreError> {
    let now_ms = shared.options.clock.now_ms();
    for window in shared.unsorted.take_quiet(now_ms) {
        sort(shared, window, PART_ITEMS)?;
    }
    Ok(())
}

pub(crate) fn sort_all(shared: &Shared) -> Result<(), StoreError> {
    let mut next = 0;
    loop {
        let snapshot = shared.database.snapshot();
        let from = layout::expiry_page_key(next, 0, 0);
        let Some(first) = snapshot
            .range(&shared.keyspaces.expiry_pages, from..)
            .next()
        else {
            return Ok(());
        };
        let at = first.key().map_err(unavailable)?;
        let Some(window) = layout::window_of_page(&at) else {
            return Err(unavailable("the key of a page is damaged"));
        };
        sort(shared, window, PART_ITEMS)?;
        next = window + 1;
    }
}

/// An item of a page: its table and its name.
type Listed = (TableId, Vec<u8>);

/// Writes the items of a window in pages that are sorted, in place of those that they were in.
fn sort(shared: &Shared, window: u64, part_items: usize) -> Result<(), StoreError> {
    let mut pages = Vec::new();
    let mut sample = Vec::new();
    let mut count = 0;
    let window_end = layout::expiry_page_key(window + 1, 0, 0);
    each_page(shared, window, &window_end, |at, items| {
        pages.push(at);
        for item in items {
            if count % SAMPLE_EVERY == 0 {
                sample.push(item);
            }
            count += 1;
        }
    })?;
    let Some(last) = pages.last() else {
        return Ok(());
    };
    // What is added from here on, as the sorted pages are, comes behind.
    let pages_end = [last.as_ref(), &[0]].concat();
    sample.sort_unstable();
    let parts = count.div_ceil(part_items);
    for part in 0..parts {
        let edge = |part: usize| sample.get(part * sample.len() / parts);
        let first = edge(part).filter(|_| part > 0);
        let end = edge(part + 1);
        let mut within = Vec::new();
        each_page(shared, window, &pages_end, |_, items| {
            let is_within = |item: &Listed| {
                first.is_none_or(|first| item >= first) && end.is_none_or(|end| item < end)
            };
            within.extend(items.filter(is_within));
        })?;
        within.sort_unstable();
        within.dedup();
        let mut within = within.into_iter().peekable();
        while within.peek().is_some() {
            let chunk: Vec<Listed> = within.by_ref().take(COMMIT_ITEMS).collect();
            commit(shared, move |group| {
                for (table, name) in chunk {
                    group.list_sorted(window, table, &name);
                }
            })?;
        }
    }
    for chunk in pages.chunks(COMMIT_ITEMS) {
        let chunk = chunk.to_vec();
        let keyspace = shared.keyspaces.expiry_pages.clone();
        commit(shared, move |group| {
            for page in chunk {
                group.remove(&keyspace, page);
            }
        })?;
    }
    Ok(())
}

/// Reads the pages of a window before `end` one by one. What is damaged is left alone, for the check to find.
fn each_page(
    shared: &Shared,
    window: u64,
    end: &[u8],
    mut take: impl FnMut(UserKey, &mut dyn Iterator<Item = Listed>),
) -> Result<(), StoreError> {
    let mut from = layout::expiry_page_key(window, 0, 0).to_vec();
    while from.as_slice() < end {
        let snapshot = shared.database.snapshot();
        let range = from.clone()..end.to_vec();
        let mut read = 0;
        for guard in snapshot
            .range(&shared.keyspaces.expiry_pages, range)
            .take(READ_PAGES)
        {
            read += 1;
            let (at, page) = match guard.into_inner() {
                Err(vault::Error::Unopened { key, .. }) => (key, None),
                entry => {
                    let (at, value) = entry.map_err(unavailable)?;
                    (at, expiry::read_page(&value))
                }
            };
            from = [at.as_ref(), &[0]].concat();
            if let Some((table, names)) = page {
                take(at, &mut names.into_iter().map(|name| (table, name)));
            }
        }
        if read < READ_PAGES {
            break;
        }
    }
    Ok(())
}

fn commit(
    shared: &Shared,
    fill: impl FnOnce(&mut crate::group::Group<'_>) + Send + 'static,
) -> Result<(), StoreError> {
    if shared.stopping.load(Ordering::Acquire) {
        return Err(stopped());
    }
    shared.room.check()?;
    run_exclusive(shared, move |committer| {
        committer.write(|group| {
            fill(group);
            Ok(())
        })
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use super::*;
    use homeport_item::schema::TableSchema;
    use homeport_item::{Item, KeyKind};
    use homeport_store::{ManualClock, Put, Store as _, Transaction};

    use crate::engine::Engine;
    use crate::options::Options;

    const NOW_SECS: i64 = 1_800_000_000;
    const DEVICES: usize = 40;

    struct Fixture {
        engine: Engine,
        clock: Arc<ManualClock>,
        _directory: tempfile::TempDir,
    }

    impl Fixture {
        /// A store in which devices take turns, each of them once in a group.
        async fn with_groups(groups: usize) -> Self {
            let directory = tempfile::tempdir().unwrap();
            let clock = Arc::new(ManualClock::at_ms(NOW_SECS * 1000));
            let options = Options {
                clock: Arc::clone(&clock) as _,
                background_sweep: false,
                ..Options::default()
            };
            let engine = Engine::open(directory.path(), options).unwrap();
            let table = TableSchema::new("readings", "device", KeyKind::S)
                .with_sort("at", KeyKind::N)
                .with_ttl("until");
            engine.create_table(table).await.unwrap();
            let store = Self {
                engine,
                clock,
                _directory: directory,
            };
            for group in 0..groups {
                store.add(group).await;
            }
            store
        }

        async fn add(&self, group: usize) {
            let puts = (0..DEVICES).map(|device| {
                let item = Item::new()
                    .with("device", format!("device-of-some-length-{device:05}"))
                    .with("at", group as u64)
                    .with("until", NOW_SECS + 1000);
                Put::new("readings", item).into()
            });
            let transaction = Transaction::new(puts.collect());
            self.engine.transact(transaction).await.unwrap();
        }

        /// The pages in their order.
        fn pages(&self) -> Vec<Vec<Vec<u8>>> {
            let pages = &self.engine.shared().keyspaces.expiry_pages;
            let values = pages.iter().map(|guard| guard.value().unwrap());
            values
                .map(|value| expiry::read_page(&value).unwrap().1)
                .collect()
        }

        fn listed(&self) -> BTreeSet<Vec<u8>> {
            self.pages().into_iter().flatten().collect()
        }

        async fn sweep_after_ms(&self, ms: i64) -> u64 {
            self.clock.advance_ms(ms);
            self.engine.sweep().await.unwrap().expired
        }

        async fn assert_good(&self, items: usize) {
            let report = self.engine.check().await.unwrap();
            assert_eq!(report.descriptions, Vec::<String>::new());
            assert_eq!(report.expiry_entries, items as u64);
        }
    }

    #[tokio::test]
    async fn a_window_is_sorted_when_nobody_adds_to_it_any_more() {
        let store = Fixture::with_groups(30).await;
        let before = store.listed();
        assert_eq!((store.pages().len(), before.len()), (30, 30 * DEVICES));
        store.sweep_after_ms(QUIET_MS - 1).await;
        assert_eq!(store.pages().len(), 30);
        store.sweep_after_ms(1).await;
        let pages = store.pages();
        assert_eq!(pages.len(), (30 * DEVICES).div_ceil(256));
        assert!(pages.iter().all(|page| page.is_sorted()));
        assert_eq!(store.listed(), before);
        store.assert_good(30 * DEVICES).await;
        // What is sorted is not sorted again.
        store.sweep_after_ms(QUIET_MS).await;
        assert_eq!(store.pages(), pages);
        assert_eq!(store.sweep_after_ms(1_000_000).await, 30 * DEVICES as u64);
        assert_eq!(store.pages().len(), 0);
    }

    #[tokio::test]
    async fn a_window_is_sorted_again_when_enough_was_added() {
        let store = Fixture::with_groups(30).await;
        store.sweep_after_ms(QUIET_MS).await;
        for group in 30..30 + PAGES_MIN - 1 {
            store.add(group).await;
        }
        store.sweep_after_ms(QUIET_MS).await;
        assert!(!store.pages().iter().flatten().is_sorted());
        for group in 100..100 + PAGES_MIN {
            store.add(group).await;
        }
        store.sweep_after_ms(QUIET_MS).await;
        assert!(store.pages().iter().flatten().is_sorted());
        store.assert_good((30 + 2 * PAGES_MIN - 1) * DEVICES).await;
    }

    #[tokio::test]
    async fn a_window_is_sorted_part_by_part_where_it_is_large() {
        let store = Fixture::with_groups(60).await;
        let before = store.listed();
        let shared = Arc::clone(store.engine.shared());
        let window = layout::expiry_window(NOW_SECS as u64 + 1000);
        let sorting = tokio::task::spawn_blocking(move || sort(&shared, window, 500));
        sorting.await.unwrap().unwrap();
        let pages = store.pages();
        assert!(pages.iter().flatten().is_sorted());
        assert!(pages.len() <= 15, "{}", pages.len());
        assert_eq!(store.listed(), before);
        store.assert_good(60 * DEVICES).await;
    }

    #[tokio::test]
    async fn what_a_crash_left_listed_twice_goes_once() {
        let store = Fixture::with_groups(10).await;
        let shared = Arc::clone(store.engine.shared());
        // As sorting does before it removes the pages that were there.
        let names: Vec<Vec<u8>> = store.listed().into_iter().collect();
        let table = shared.catalogue.table("readings").unwrap().id();
        let window = layout::expiry_window(NOW_SECS as u64 + 1000);
        let listing = tokio::task::spawn_blocking(move || {
            commit(&shared, move |group| {
                for name in names {
                    group.list_sorted(window, table, &name);
                }
            })
        });
        listing.await.unwrap().unwrap();
        store.assert_good(2 * 10 * DEVICES).await;
        store.sweep_after_ms(QUIET_MS).await;
        store.assert_good(10 * DEVICES).await;
        assert_eq!(store.sweep_after_ms(1_000_000).await, 10 * DEVICES as u64);
    }

    #[tokio::test]
    async fn compacting_sorts_everything_at_once() {
        let store = Fixture::with_groups(10).await;
        store.engine.compact().await.unwrap();
        assert!(store.pages().iter().flatten().is_sorted());
        store.assert_good(10 * DEVICES).await;
    }
}
