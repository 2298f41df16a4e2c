//! Sorts pages: pages of a window that receives no more items are rewritten in key order.
//!
//! Devices take turns, so neighbouring names in a page share little. In sorted pages the neighbours belong to
//! the same device, and a page compresses to a third (ADR 020 has the numbers). Nothing depends on sorting: a
//! crash in between leaves items listed twice, and unsorted pages only take more space. Pages are read once
//! and sorted in runs, so that the work grows with the number of new items and memory is bounded.

use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use homeport_store::StoreError;
use rustc_hash::FxHashMap;

use crate::error::unavailable;
use crate::expiry::pages;
use crate::shared::{Shared, run_exclusive, stopped};
use crate::storage::layout::{self, TableId};
use crate::storage::vault::{self, UserKey};

/// A window is sorted when nothing was added to it for this long.
const QUIET_MS: i64 = 60_000;
/// Fewer pages than this are not worth sorting, unless more follow soon.
const PAGES_MIN: usize = 8;
/// How long a window with few pages is remembered.
const FORGET_MS: i64 = 60 * 60_000;
/// The number of windows to remember; pages of others stay unsorted.
const WINDOWS_MAX: usize = 10_000;
/// Items that are sorted in memory at a time.
const RUN_ITEMS: usize = 64 * 1024;
/// How long sorting runs before other maintenance gets its turn.
const TURN: Duration = Duration::from_millis(500);
/// Items, or pages to delete, per commit.
const COMMIT_ITEMS: usize = 4096;
/// Pages per snapshot. An open snapshot keeps everything that is written in memory, flushed or not.
const READ_PAGES: usize = 32;

/// Windows with unsorted pages.
#[derive(Default)]
pub(crate) struct UnsortedWindows(Mutex<FxHashMap<u64, AddedPages>>);

/// The pages that were added to a window since it was sorted.
#[derive(Debug, Clone, Copy)]
struct AddedPages {
    pages: usize,
    at_ms: i64,
    /// The first and the last group that added pages.
    first_commit: u64,
    last_commit: u64,
}

impl UnsortedWindows {
    /// Records that group number `commit` added a page to a window.
    pub(crate) fn added(&self, window: u64, commit: u64, at_ms: i64) {
        let mut windows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if windows.len() >= WINDOWS_MAX && !windows.contains_key(&window) {
            return;
        }
        let added = windows.entry(window).or_insert(AddedPages {
            pages: 0,
            at_ms,
            first_commit: commit,
            last_commit: commit,
        });
        added.pages += 1;
        added.at_ms = at_ms;
        added.last_commit = commit;
    }

    /// Removes the windows that receive no more items, and returns those that are worth sorting.
    fn take_quiet(&self, now_ms: i64) -> Vec<(u64, AddedPages)> {
        let mut windows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = windows.extract_if(|_, added| {
            let quiet_ms = now_ms - added.at_ms;
            quiet_ms >= FORGET_MS || (quiet_ms >= QUIET_MS && added.pages >= PAGES_MIN)
        });
        taken
            .filter(|(_, added)| added.pages >= PAGES_MIN)
            .collect()
    }

    /// Records again the part of a window that is still unsorted.
    fn put_back(&self, window: u64, left: AddedPages) {
        let mut windows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let added = windows.entry(window).or_insert(left);
        added.first_commit = added.first_commit.min(left.first_commit);
        added.pages = added.pages.max(left.pages);
    }
}

/// Sorts windows that receive no more items, for at most one turn; the rest waits for the next turn.
pub(crate) fn sort_quiet(shared: &Shared) -> Result<(), StoreError> {
    let started = Instant::now();
    let mut sorted = Ok(());
    for (window, mut left) in shared.unsorted.take_quiet(shared.times().commit_ms) {
        let end = layout::expiry_page_key(window, left.last_commit + 1, 0);
        while sorted.is_ok() && left.first_commit <= left.last_commit {
            if started.elapsed() >= TURN {
                break;
            }
            let from = layout::expiry_page_key(window, left.first_commit, 0);
            match sort_run(shared, window, &from, &end, RUN_ITEMS) {
                Ok(Some(next_commit)) => left.first_commit = next_commit,
                Ok(None) => left.first_commit = left.last_commit + 1,
                Err(error) => sorted = Err(error),
            }
        }
        if left.first_commit <= left.last_commit {
            shared.unsorted.put_back(window, left);
        }
    }
    sorted
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
        drop(snapshot);
        let Some(window) = layout::window_of_page(&at) else {
            return Err(unavailable("the key of a page is damaged"));
        };
        sort_window(shared, window, RUN_ITEMS)?;
        next = window + 1;
    }
}

/// Sorts all current pages of a window.
fn sort_window(shared: &Shared, window: u64, run_items: usize) -> Result<(), StoreError> {
    // Pages that are added later, including the sorted ones, have greater keys.
    let end_commit = shared.written_commit.load(Ordering::Acquire) + 1;
    let end = layout::expiry_page_key(window, end_commit, 0);
    let mut from_commit = Some(0);
    while let Some(commit) = from_commit {
        let from = layout::expiry_page_key(window, commit, 0);
        from_commit = sort_run(shared, window, &from, &end, run_items)?;
    }
    Ok(())
}

/// An item of a page: its table and its name.
type ListedItem = (TableId, Vec<u8>);

/// Replaces the first pages between `from` and `end` by sorted pages: at least `run_items` items, and whole
/// groups. Returns the number of the group to continue with.
fn sort_run(
    shared: &Shared,
    window: u64,
    from: &UserKey,
    end: &UserKey,
    run_items: usize,
) -> Result<Option<u64>, StoreError> {
    let mut pages: Vec<UserKey> = Vec::new();
    let mut items: Vec<ListedItem> = Vec::new();
    let next_commit = each_page(shared, from, end, |commit, at, names| {
        let last_commit = pages.last().and_then(|last| layout::commit_of_page(last));
        if items.len() >= run_items && last_commit != Some(commit) {
            return false;
        }
        pages.push(at);
        items.extend(names);
        true
    })?;
    items.sort_unstable();
    items.dedup();
    let mut items = items.into_iter().peekable();
    while items.peek().is_some() {
        let chunk: Vec<ListedItem> = items.by_ref().take(COMMIT_ITEMS).collect();
        commit(shared, move |group| {
            for (table, name) in chunk {
                group.list_sorted(window, table, &name);
            }
        })?;
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
    Ok(next_commit)
}

/// Reads the pages between `from` and `end` one by one, with the numbers of their groups, until `take`
/// returns false; returns the group of the first page that was not taken. Damaged pages stay for the check to
/// report.
fn each_page(
    shared: &Shared,
    from: &[u8],
    end: &[u8],
    mut take: impl FnMut(u64, UserKey, Vec<ListedItem>) -> bool,
) -> Result<Option<u64>, StoreError> {
    let mut from = from.to_vec();
    while from.as_slice() < end {
        if shared.stopping.load(Ordering::Acquire) {
            return Err(stopped());
        }
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
                    (at, pages::read_page(&value))
                }
            };
            from = [at.as_ref(), &[0]].concat();
            if let Some((table, names)) = page
                && let Some(commit) = layout::commit_of_page(&at)
            {
                let names = names.into_iter().map(|name| (table, name)).collect();
                if !take(commit, at, names) {
                    return Ok(Some(commit));
                }
            }
        }
        if read < READ_PAGES {
            break;
        }
    }
    Ok(None)
}

fn commit(
    shared: &Shared,
    fill: impl FnOnce(&mut crate::commit::group::Group<'_>) + Send + 'static,
) -> Result<(), StoreError> {
    if shared.stopping.load(Ordering::Acquire) {
        return Err(stopped());
    }
    shared.disk_space.check()?;
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
        /// A store in which devices take turns, one reading each per group.
        async fn with_groups(groups: usize) -> Self {
            let directory = tempfile::tempdir().unwrap();
            let clock = Arc::new(ManualClock::at_ms(NOW_SECS * 1000));
            let options = Options::for_tests().with_clock(&clock);
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

        /// The pages, in order.
        fn pages(&self) -> Vec<Vec<Vec<u8>>> {
            let pages = &self.engine.shared().keyspaces.expiry_pages;
            let values = pages.iter().map(|guard| guard.value().unwrap());
            values
                .map(|value| pages::read_page(&value).unwrap().1)
                .collect()
        }

        fn page_keys(&self) -> Vec<UserKey> {
            let pages = &self.engine.shared().keyspaces.expiry_pages;
            pages.iter().map(|guard| guard.key().unwrap()).collect()
        }

        fn names(&self) -> BTreeSet<Vec<u8>> {
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
    async fn quiet_window_is_sorted_once() {
        let store = Fixture::with_groups(30).await;
        let before = store.names();
        assert_eq!((store.pages().len(), before.len()), (30, 30 * DEVICES));
        store.sweep_after_ms(QUIET_MS - 1).await;
        assert_eq!(store.pages().len(), 30);
        store.sweep_after_ms(1).await;
        let pages = store.pages();
        assert_eq!(pages.len(), (30 * DEVICES).div_ceil(256));
        assert!(pages.iter().all(|page| page.is_sorted()));
        assert_eq!(store.names(), before);
        store.assert_good(30 * DEVICES).await;
        // Sorted pages are not sorted again.
        store.sweep_after_ms(QUIET_MS).await;
        assert_eq!(store.pages(), pages);
        assert_eq!(store.sweep_after_ms(1_000_000).await, 30 * DEVICES as u64);
        assert_eq!(store.pages().len(), 0);
    }

    #[tokio::test]
    async fn window_with_many_new_pages_is_sorted_again() {
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
        // The few earlier pages are sorted with the rest.
        let pages = store.pages();
        let (first, then) = pages.split_at((30 * DEVICES).div_ceil(256));
        assert!(first.iter().flatten().is_sorted());
        assert!(then.iter().flatten().is_sorted());
        assert_eq!(then.len(), ((2 * PAGES_MIN - 1) * DEVICES).div_ceil(256));
        store.assert_good((30 + 2 * PAGES_MIN - 1) * DEVICES).await;
    }

    #[tokio::test]
    async fn large_window_is_sorted_in_runs() {
        let store = Fixture::with_groups(60).await;
        let before = store.names();
        let shared = Arc::clone(store.engine.shared());
        let window = layout::expiry_window(NOW_SECS as u64 + 1000);
        let sorting = tokio::task::spawn_blocking(move || sort_window(&shared, window, 500));
        sorting.await.unwrap().unwrap();
        let pages = store.pages();
        // Five runs of 13 groups; the last one has 8.
        assert_eq!(pages.len(), 4 * (13 * DEVICES).div_ceil(256) + 2);
        let names: Vec<_> = pages.iter().flatten().collect();
        assert_eq!(names.len(), 60 * DEVICES);
        for run in names.chunks(13 * DEVICES) {
            assert!(run.is_sorted());
        }
        assert_eq!(store.names(), before);
        store.assert_good(60 * DEVICES).await;
    }

    #[tokio::test]
    async fn sorted_pages_are_not_rewritten() {
        let store = Fixture::with_groups(30).await;
        store.sweep_after_ms(QUIET_MS).await;
        let sorted = store.page_keys();
        for group in 30..30 + PAGES_MIN {
            store.add(group).await;
        }
        store.sweep_after_ms(QUIET_MS).await;
        let after = store.page_keys();
        assert_eq!(after[..sorted.len()], sorted);
        let added = (PAGES_MIN * DEVICES).div_ceil(256);
        assert_eq!(after.len(), sorted.len() + added);
        assert!(store.pages().iter().all(|page| page.is_sorted()));
        store.assert_good((30 + PAGES_MIN) * DEVICES).await;
    }

    #[test]
    fn unsorted_rest_is_merged_with_new_pages() {
        let unsorted = UnsortedWindows::default();
        for commit in 1..=10 {
            unsorted.added(3600, commit, 0);
        }
        let (window, left) = unsorted.take_quiet(QUIET_MS)[0];
        unsorted.added(3600, 11, QUIET_MS);
        let half = AddedPages {
            first_commit: 6,
            ..left
        };
        unsorted.put_back(window, half);
        assert!(unsorted.take_quiet(QUIET_MS).is_empty());
        let (_, both) = unsorted.take_quiet(2 * QUIET_MS)[0];
        assert_eq!((both.first_commit, both.last_commit), (6, 11));
    }

    async fn assert_expires_once(is_compacted: bool) {
        let store = Fixture::with_groups(10).await;
        let shared = Arc::clone(store.engine.shared());
        // The state of a sort before it deletes the old pages.
        let names: Vec<Vec<u8>> = store.names().into_iter().collect();
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
        if is_compacted {
            store.engine.compact().await.unwrap();
            store.assert_good(10 * DEVICES).await;
        }
        assert_eq!(store.sweep_after_ms(1_000_000).await, 10 * DEVICES as u64);
        store.assert_good(0).await;
    }

    #[tokio::test]
    async fn items_listed_twice_expire_once() {
        assert_expires_once(false).await;
        assert_expires_once(true).await;
    }

    #[tokio::test]
    async fn compacting_sorts_all_pages() {
        let store = Fixture::with_groups(10).await;
        store.engine.compact().await.unwrap();
        assert!(store.pages().iter().flatten().is_sorted());
        store.assert_good(10 * DEVICES).await;
    }
}
