//! Sorting pages: those of a window that nobody adds to any more are put into the order of keys.
//!
//! Devices take turns, so that neighbours in a page share little. Sorted, an item's neighbours are those
//! of its own device, and a page compresses to a third. Nothing depends on it: a crash in between leaves
//! items listed twice, and what is not sorted takes more room. Pages are read once and sorted a run at a time,
//! so that the work grows with what was added and memory does not.

use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use homeport_store::StoreError;
use rustc_hash::FxHashMap;

use crate::error::unavailable;
use crate::expiry;
use crate::layout::{self, TableId};
use crate::shared::{Shared, run_exclusive, stopped};
use crate::vault::{self, UserKey};

/// A window is sorted when nothing was added to it for this long.
const QUIET_MS: i64 = 60_000;
/// Fewer pages than this are not worth it, unless more come soon.
const PAGES_MIN: usize = 8;
/// How long a window with few pages is remembered.
const FORGET_MS: i64 = 60 * 60_000;
/// Windows that are remembered; others stay as they are.
const WINDOWS_MAX: usize = 10_000;
/// Items that are sorted in memory at a time.
const RUN_ITEMS: usize = 64 * 1024;
/// How long sorting goes on before other upkeep has its turn.
const TURN: Duration = Duration::from_millis(500);
/// Items, or pages to be removed, that one commit covers.
const COMMIT_ITEMS: usize = 4096;
/// Pages that are read from one snapshot. While one is open, all that is written stays in memory, flushed or
/// not.
const READ_PAGES: usize = 32;

/// Windows with pages that are not sorted.
#[derive(Default)]
pub(crate) struct Unsorted(Mutex<FxHashMap<u64, Added>>);

/// What was added to a window since it was sorted.
#[derive(Debug, Clone, Copy)]
struct Added {
    pages: usize,
    at_ms: i64,
    /// The first and the last group that added to it.
    first_commit: u64,
    last_commit: u64,
}

impl Unsorted {
    /// Remembers that group number `commit` added a page to a window.
    pub(crate) fn added(&self, window: u64, commit: u64, at_ms: i64) {
        let mut windows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if windows.len() >= WINDOWS_MAX && !windows.contains_key(&window) {
            return;
        }
        let added = windows.entry(window).or_insert(Added {
            pages: 0,
            at_ms,
            first_commit: commit,
            last_commit: commit,
        });
        added.pages += 1;
        added.at_ms = at_ms;
        added.last_commit = commit;
    }

    /// Forgets the windows that nothing is added to any more, and returns those of them that are worth sorting.
    fn take_quiet(&self, now_ms: i64) -> Vec<(u64, Added)> {
        let mut windows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = windows.extract_if(|_, added| {
            let quiet_ms = now_ms - added.at_ms;
            quiet_ms >= FORGET_MS || (quiet_ms >= QUIET_MS && added.pages >= PAGES_MIN)
        });
        taken
            .filter(|(_, added)| added.pages >= PAGES_MIN)
            .collect()
    }

    /// Remembers again what is left to be sorted of a window.
    fn put_back(&self, window: u64, left: Added) {
        let mut windows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let added = windows.entry(window).or_insert(left);
        added.first_commit = added.first_commit.min(left.first_commit);
        added.pages = added.pages.max(left.pages);
    }
}

/// Sorts windows that nobody adds to any more, for as long as a turn takes; what is left waits for the next.
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

/// Sorts all pages that a window has now.
fn sort_window(shared: &Shared, window: u64, run_items: usize) -> Result<(), StoreError> {
    // What is added from here on, as the sorted pages are, comes behind.
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
type Listed = (TableId, Vec<u8>);

/// Writes the items of the first pages between `from` and `end` in pages that are sorted, in place of those
/// that they were in: at least `run_items`, and whole groups. Returns the number of the group to go on with.
fn sort_run(
    shared: &Shared,
    window: u64,
    from: &UserKey,
    end: &UserKey,
    run_items: usize,
) -> Result<Option<u64>, StoreError> {
    let mut pages: Vec<UserKey> = Vec::new();
    let mut items: Vec<Listed> = Vec::new();
    let next_commit = each_page(shared, from, end, |commit, at, listed| {
        let last_commit = pages.last().and_then(|last| layout::commit_of_page(last));
        if items.len() >= run_items && last_commit != Some(commit) {
            return false;
        }
        pages.push(at);
        items.extend(listed);
        true
    })?;
    items.sort_unstable();
    items.dedup();
    let mut items = items.into_iter().peekable();
    while items.peek().is_some() {
        let chunk: Vec<Listed> = items.by_ref().take(COMMIT_ITEMS).collect();
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

/// Reads the pages between `from` and `end` one by one, with the numbers of their groups, until `take` has
/// enough; returns the group of the first that it did not take. What is damaged is left alone, for the check to
/// find.
fn each_page(
    shared: &Shared,
    from: &[u8],
    end: &[u8],
    mut take: impl FnMut(u64, UserKey, Vec<Listed>) -> bool,
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
                    (at, expiry::read_page(&value))
                }
            };
            from = [at.as_ref(), &[0]].concat();
            if let Some((table, names)) = page
                && let Some(commit) = layout::commit_of_page(&at)
            {
                let listed = names.into_iter().map(|name| (table, name)).collect();
                if !take(commit, at, listed) {
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

        fn page_keys(&self) -> Vec<UserKey> {
            let pages = &self.engine.shared().keyspaces.expiry_pages;
            pages.iter().map(|guard| guard.key().unwrap()).collect()
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
        // Those that were few before are sorted with the rest.
        let pages = store.pages();
        let (first, then) = pages.split_at((30 * DEVICES).div_ceil(256));
        assert!(first.iter().flatten().is_sorted());
        assert!(then.iter().flatten().is_sorted());
        assert_eq!(then.len(), ((2 * PAGES_MIN - 1) * DEVICES).div_ceil(256));
        store.assert_good((30 + 2 * PAGES_MIN - 1) * DEVICES).await;
    }

    #[tokio::test]
    async fn a_window_is_sorted_run_by_run_where_it_is_large() {
        let store = Fixture::with_groups(60).await;
        let before = store.listed();
        let shared = Arc::clone(store.engine.shared());
        let window = layout::expiry_window(NOW_SECS as u64 + 1000);
        let sorting = tokio::task::spawn_blocking(move || sort_window(&shared, window, 500));
        sorting.await.unwrap().unwrap();
        let pages = store.pages();
        // Five runs of 13 groups, of which the last has 8.
        assert_eq!(pages.len(), 4 * (13 * DEVICES).div_ceil(256) + 2);
        let listed: Vec<_> = pages.iter().flatten().collect();
        assert_eq!(listed.len(), 60 * DEVICES);
        for run in listed.chunks(13 * DEVICES) {
            assert!(run.is_sorted());
        }
        assert_eq!(store.listed(), before);
        store.assert_good(60 * DEVICES).await;
    }

    #[tokio::test]
    async fn what_is_sorted_already_is_not_written_again() {
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
    fn what_is_left_of_a_window_is_joined_with_what_came_meanwhile() {
        let unsorted = Unsorted::default();
        for commit in 1..=10 {
            unsorted.added(3600, commit, 0);
        }
        let (window, left) = unsorted.take_quiet(QUIET_MS)[0];
        unsorted.added(3600, 11, QUIET_MS);
        let half = Added {
            first_commit: 6,
            ..left
        };
        unsorted.put_back(window, half);
        assert!(unsorted.take_quiet(QUIET_MS).is_empty());
        let (_, both) = unsorted.take_quiet(2 * QUIET_MS)[0];
        assert_eq!((both.first_commit, both.last_commit), (6, 11));
    }

    async fn goes_once(is_compacted: bool) {
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
        if is_compacted {
            store.engine.compact().await.unwrap();
            store.assert_good(10 * DEVICES).await;
        }
        assert_eq!(store.sweep_after_ms(1_000_000).await, 10 * DEVICES as u64);
        store.assert_good(0).await;
    }

    #[tokio::test]
    async fn what_a_crash_left_listed_twice_goes_once() {
        goes_once(false).await;
        goes_once(true).await;
    }

    #[tokio::test]
    async fn compacting_sorts_everything_at_once() {
        let store = Fixture::with_groups(10).await;
        store.engine.compact().await.unwrap();
        assert!(store.pages().iter().flatten().is_sorted());
        store.assert_good(10 * DEVICES).await;
    }
}
