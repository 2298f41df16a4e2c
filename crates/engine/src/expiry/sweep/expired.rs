//! Deletes expired items window by window, using their listings on disk.

use std::sync::Arc;

use homeport_store::StoreError;

use super::{CHUNK, first_readable};
use crate::catalogue::table::Table;
use crate::commit::committer::Committer;
use crate::commit::group::Group;
use crate::error::unavailable;
use crate::expiry::pages::{self, Page};
use crate::shared::{Shared, run_exclusive};
use crate::storage::layout::{self, TableId};
use crate::storage::record::{self, Record};
use crate::storage::vault::{self, Keyspace, Snapshot, UserKey, UserValue};

/// Which windows have been swept completely.
#[derive(Default)]
pub(super) struct SweptWindows {
    /// The running window during the last complete sweep of earlier windows. Items that could not be read
    /// then are tried again in the next window.
    read_all_before: Option<u64>,
}

impl SweptWindows {
    /// Sweeps the windows that are over and list something.
    pub(super) fn sweep_windows(&mut self, shared: &Shared) -> Result<u64, StoreError> {
        let now_secs = shared.times().removal_secs();
        let running = running_window(now_secs);
        let from = shared.expiring.begin_sweep(running);
        let from = if self.read_all_before == Some(running) {
            from
        } else {
            0
        };
        let from = from.max(oldest_window(now_secs));
        let swept = sweep_between(shared, from, running);
        match swept {
            Ok(_) => self.read_all_before = Some(running),
            Err(_) => shared.expiring.sweep_again_from(from),
        }
        swept
    }
}

/// Sweeps all windows, including the running one.
pub(super) fn sweep_all(shared: &Shared) -> Result<u64, StoreError> {
    let now_secs = shared.times().removal_secs();
    sweep_between(
        shared,
        oldest_window(now_secs),
        running_window(now_secs) + 1,
    )
}

pub(super) fn running_window(now_secs: i64) -> u64 {
    layout::expiry_window(u64::try_from(now_secs).unwrap_or(0))
}

fn oldest_window(now_secs: i64) -> u64 {
    layout::expiry_window(record::oldest_expiry_secs(now_secs))
}

fn sweep_between(shared: &Shared, from: u64, to: u64) -> Result<u64, StoreError> {
    let mut total = 0;
    for kind in ORDER {
        total += sweep_listings(shared, kind, from, to)?;
    }
    Ok(total)
}

/// How an item is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListingKind {
    /// In a page, together with others.
    Page,
    /// In an entry of its own.
    Entry,
}

/// Entries come first: an entry is deleted together with its item, while a page may list a deleted item.
pub(super) const ORDER: [ListingKind; 2] = [ListingKind::Entry, ListingKind::Page];

impl ListingKind {
    pub(super) fn keyspace(self, shared: &Shared) -> &Keyspace {
        match self {
            Self::Page => &shared.keyspaces.expiry_pages,
            Self::Entry => &shared.keyspaces.expiry,
        }
    }
}

/// A page or an entry.
pub(super) struct ExpiryListing {
    kind: ListingKind,
    at: UserKey,
    pub(super) window: u64,
    pub(super) table: TableId,
    pub(super) names: Vec<Vec<u8>>,
}

impl ExpiryListing {
    /// Decodes a listing; `None` if it is damaged.
    fn read(kind: ListingKind, at: UserKey, value: &[u8]) -> Option<Self> {
        let (window, table, names) = match kind {
            ListingKind::Page => {
                let (table, names) = pages::read_page(value)?;
                (layout::window_of_page(&at)?, table, names)
            }
            ListingKind::Entry => {
                let (window, table, name) = layout::split_expiry_key(&at)?;
                (window, table, vec![name.to_vec()])
            }
        };
        Some(Self {
            kind,
            at,
            window,
            table,
            names,
        })
    }

    /// Reduces the listing to the items in `kept`.
    fn keep(&self, kept: &[&[u8]], shared: &Shared, group: &mut Group<'_>) {
        if kept.len() == self.names.len() {
            return;
        }
        let keyspace = self.kind.keyspace(shared);
        if kept.is_empty() {
            group.remove(keyspace, self.at.clone());
            return;
        }
        let mut page = Page::new(self.table);
        for name in kept {
            page.push(name);
        }
        group.insert(keyspace, self.at.clone(), page.into_value());
    }
}

/// Reads the listings in a range of windows, in chunks of at least [`CHUNK`] items, each from a snapshot of
/// its own.
pub(super) struct ListingReader {
    kind: ListingKind,
    from: Vec<u8>,
    to: Vec<u8>,
    is_done: bool,
}

impl ListingReader {
    pub(super) fn new(kind: ListingKind, from_window: u64, to_window: u64) -> Self {
        Self {
            kind,
            from: from_window.to_be_bytes().to_vec(),
            to: to_window.to_be_bytes().to_vec(),
            is_done: false,
        }
    }

    /// The next chunk; empty at the end. Damaged listings stay for the check to report: their items stay
    /// hidden and take space.
    pub(super) fn next(&mut self, shared: &Shared) -> Result<Vec<ExpiryListing>, StoreError> {
        loop {
            let listings = self.next_chunk(shared)?;
            if !listings.is_empty() || self.is_done {
                return Ok(listings);
            }
        }
    }

    /// The next chunk; empty at the end and at a damaged block, which is skipped.
    fn next_chunk(&mut self, shared: &Shared) -> Result<Vec<ExpiryListing>, StoreError> {
        let mut listings = Vec::new();
        let mut items = 0;
        if self.is_done || self.from >= self.to {
            self.is_done = true;
            return Ok(listings);
        }
        let snapshot = shared.database.snapshot();
        let range = self.from.clone()..self.to.clone();
        for guard in snapshot.range(self.kind.keyspace(shared), range) {
            let (at, listing) = match guard.into_inner() {
                Err(vault::Error::Unopened { key, .. }) => (key, None),
                Err(error) if error.is_damaged_block() => {
                    tracing::warn!(kind = ?self.kind, %error, "a list of expiring items cannot be read");
                    self.skip_damage(&snapshot, shared);
                    return Ok(listings);
                }
                entry => {
                    let (at, value) = entry.map_err(unavailable)?;
                    (at.clone(), ExpiryListing::read(self.kind, at, &value))
                }
            };
            self.from = [at.as_ref(), &[0]].concat();
            let Some(listing) = listing else {
                tracing::warn!(kind = ?self.kind, ?at, "a list of expiring items is damaged");
                continue;
            };
            items += listing.names.len();
            listings.push(listing);
            if items >= CHUNK {
                return Ok(listings);
            }
        }
        self.is_done = true;
        Ok(listings)
    }
}

impl ListingReader {
    /// Continues with the first window after a damaged block.
    fn skip_damage(&mut self, snapshot: &Snapshot, shared: &Shared) {
        let window = |key: &[u8]| {
            key.first_chunk()
                .map_or(0, |window| u64::from_be_bytes(*window))
        };
        let readable = first_readable(window(&self.from), window(&self.to), |window| {
            let range = window.to_be_bytes().to_vec()..self.to.clone();
            let first = snapshot.range(self.kind.keyspace(shared), range).next();
            first.is_some_and(|guard| guard.key().is_err())
        });
        self.from = readable.to_be_bytes().to_vec();
    }
}

pub(super) fn sweep_listings(
    shared: &Shared,
    kind: ListingKind,
    from_window: u64,
    to_window: u64,
) -> Result<u64, StoreError> {
    let mut total = 0;
    let mut reader = ListingReader::new(kind, from_window, to_window);
    loop {
        let listings = reader.next(shared)?;
        if listings.is_empty() {
            return Ok(total);
        }
        let expired = run_exclusive(shared, move |committer| expire(committer, listings))?;
        shared.metrics.expired(expired);
        total += expired;
    }
}

/// Deletes the expired items, and listings without items that expire later.
fn expire(committer: &mut Committer, listings: Vec<ExpiryListing>) -> Result<u64, StoreError> {
    let shared = Arc::clone(&committer.shared);
    committer.write(|group| {
        let catalogue = shared.catalogue.now();
        let mut expired = 0;
        for listing in listings {
            let mut kept = Vec::new();
            if let Some(table) = catalogue.by_id(listing.table) {
                for name in &listing.names {
                    let item_key = layout::key_of_expiry_name(name);
                    match expiry_outcome(group, table, listing.window, &item_key) {
                        ExpiryOutcome::Elsewhere => {}
                        ExpiryOutcome::Later => kept.push(name.as_slice()),
                        ExpiryOutcome::Expired { value, .. } => {
                            match group.expire(table, item_key, value) {
                                Ok(()) => expired += 1,
                                Err(error) => {
                                    warn_unreadable(table, &error);
                                    kept.push(name.as_slice());
                                }
                            }
                        }
                    }
                }
            }
            listing.keep(&kept, &shared, group);
        }
        Ok(expired)
    })
}

/// The outcome for an item that is listed in a window.
pub(super) enum ExpiryOutcome {
    Expired {
        value: UserValue,
        at_secs: u64,
    },
    /// It expires later in the window, or it cannot be read and stays for the check to report.
    Later,
    /// It was deleted, or expires in another window, or does not expire.
    Elsewhere,
}

pub(super) fn expiry_outcome(
    group: &mut Group<'_>,
    table: &Table,
    window: u64,
    item_key: &UserKey,
) -> ExpiryOutcome {
    let outcome = try_outcome(group, table, window, item_key);
    outcome.unwrap_or_else(|error| {
        warn_unreadable(table, &error);
        ExpiryOutcome::Later
    })
}

fn try_outcome(
    group: &mut Group<'_>,
    table: &Table,
    window: u64,
    item_key: &UserKey,
) -> Result<ExpiryOutcome, StoreError> {
    let Some(value) = group.load(table, item_key)? else {
        return Ok(ExpiryOutcome::Elsewhere);
    };
    let record = Record::new(&table.key, item_key, &value).map_err(unavailable)?;
    let expires_at = table.expires_at(&record).map_err(unavailable)?;
    Ok(match expires_at {
        Some(at) if layout::expiry_window(at) == window => {
            if record::is_expired(at, group.removal_secs()) {
                ExpiryOutcome::Expired { value, at_secs: at }
            } else {
                ExpiryOutcome::Later
            }
        }
        _ => ExpiryOutcome::Elsewhere,
    })
}

pub(super) fn warn_unreadable(table: &Table, error: &StoreError) {
    let table = &table.schema().name;
    tracing::warn!(table, %error, "an item that may have expired cannot be read");
}

#[cfg(test)]
mod tests {
    use super::*;
    use homeport_item::schema::TableSchema;
    use homeport_item::{Item, KeyKind};
    use homeport_store::{Clock as _, Delete, ManualClock, Put, Store as _, Transaction};

    use crate::engine::Engine;
    use crate::options::Options;

    const NOW_SECS: i64 = 1_800_000_000;
    const HOUR_SECS: i64 = 3600;

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
            let table = TableSchema::new("things", "id", KeyKind::S).with_ttl("until");
            engine.create_table(table).await.unwrap();
            Self {
                engine,
                clock,
                directory,
            }
        }

        async fn put(&self, id: &str, until: i64) {
            let put = Put::new("things", thing(id, until));
            self.engine.put(put).await.unwrap();
        }

        /// Puts all things in one group.
        async fn put_together(&self, things: &[(&str, i64)]) {
            let puts = things
                .iter()
                .map(|(id, until)| Put::new("things", thing(id, *until)).into());
            let transaction = Transaction::new(puts.collect());
            self.engine.transact(transaction).await.unwrap();
        }

        async fn swept_at(&self, secs: i64) -> u64 {
            let now_ms = self.clock.now_ms();
            self.clock.advance_ms((NOW_SECS + secs) * 1000 - now_ms);
            self.engine.sweep().await.unwrap().expired
        }

        /// The number of items that pages list, and the number of entries.
        fn listed(&self) -> (usize, usize) {
            let keyspaces = &self.engine.shared().keyspaces;
            let pages = keyspaces.expiry_pages.iter().map(|guard| {
                let page = pages::read_page(&guard.value().unwrap()).unwrap();
                page.1.len()
            });
            (pages.sum(), keyspaces.expiry.iter().count())
        }

        async fn write(&self, fill: impl FnOnce(&mut Group<'_>, &Shared) + Send + 'static) {
            let write = self.engine.shared().exclusive(move |committer| {
                let shared = Arc::clone(&committer.shared);
                committer.write(|group| {
                    fill(group, &shared);
                    Ok(())
                })
            });
            write.await.unwrap().unwrap();
        }

        async fn forget_pages(&self) {
            self.write(|group, shared| {
                for guard in shared.keyspaces.expiry_pages.iter() {
                    group.remove(&shared.keyspaces.expiry_pages, guard.key().unwrap());
                }
            })
            .await;
        }

        async fn problems(&self) -> Vec<String> {
            self.engine.check().await.unwrap().descriptions
        }
    }

    fn open(directory: &std::path::Path, clock: &Arc<ManualClock>) -> Engine {
        let options = Options::for_tests().with_clock(clock);
        Engine::open(directory, options).unwrap()
    }

    fn thing(id: &str, until: i64) -> Item {
        Item::new().with("id", id).with("until", NOW_SECS + until)
    }

    #[tokio::test]
    async fn item_that_expires_later_stays_listed() {
        let store = Fixture::new().await;
        store
            .put_together(&[("a", 10), ("b", 100), ("c", 10)])
            .await;
        assert_eq!(store.listed(), (3, 0));
        assert_eq!(store.swept_at(10).await, 2);
        assert_eq!(store.listed(), (1, 0));
        assert_eq!(store.problems().await, Vec::<String>::new());
        assert_eq!(store.swept_at(100).await, 1);
        assert_eq!(store.listed(), (0, 0));
    }

    #[tokio::test]
    async fn unreadable_block_does_not_block_expiry() {
        let store = Fixture::new().await;
        let shared = store.engine.shared();
        let pages = &shared.keyspaces.expiry_pages;
        let files = || {
            let tables = pages.path().unwrap().join("tables");
            let files = std::fs::read_dir(tables).unwrap();
            files.map(|file| file.unwrap().path()).collect::<Vec<_>>()
        };
        store.put("a", HOUR_SECS).await;
        crate::engine::flush(shared, pages).unwrap();
        let damaged = files();
        for (id, hours) in [("b", 2), ("c", 3)] {
            store.put(id, hours * HOUR_SECS).await;
            crate::engine::flush(shared, pages).unwrap();
        }
        assert_eq!((damaged.len(), files().len()), (1, 3));
        let mut bytes = std::fs::read(&damaged[0]).unwrap();
        bytes[60] ^= 1;
        std::fs::write(&damaged[0], bytes).unwrap();
        assert_eq!(store.swept_at(3 * HOUR_SECS).await, 2);
    }

    #[tokio::test]
    async fn moved_item_leaves_no_listing() {
        let store = Fixture::new().await;
        store.put_together(&[("a", 10), ("b", 10)]).await;
        store.put("a", 2 * HOUR_SECS).await;
        assert_eq!(store.listed(), (2, 1));
        assert_eq!(store.problems().await, Vec::<String>::new());
        assert_eq!(store.swept_at(HOUR_SECS).await, 1);
        assert_eq!(store.listed(), (0, 1));
        assert_eq!(store.problems().await, Vec::<String>::new());
        assert_eq!(store.swept_at(2 * HOUR_SECS).await, 1);
        assert_eq!(store.listed(), (0, 0));
    }

    #[tokio::test]
    async fn item_moved_back_is_deleted_once() {
        let store = Fixture::new().await;
        for until in [10, 2 * HOUR_SECS, 10] {
            store.put("a", until).await;
        }
        assert_eq!(store.listed(), (1, 1));
        assert_eq!(store.swept_at(10).await, 1);
        assert_eq!(store.listed(), (0, 0));
    }

    #[tokio::test]
    async fn interrupted_sweep_leaves_no_entry_without_item() {
        let store = Fixture::new().await;
        for until in [10, 2 * HOUR_SECS, 10] {
            store.put("a", until).await;
        }
        store.clock.advance_ms(10_000);
        let shared = Arc::clone(store.engine.shared());
        let running = running_window(NOW_SECS);
        let sweeping = move || sweep_listings(&shared, ORDER[0], 0, running + 1);
        let expired = tokio::task::spawn_blocking(sweeping).await.unwrap();
        assert_eq!(expired.unwrap(), 1);
        assert_eq!(store.problems().await, Vec::<String>::new());
        assert_eq!(store.swept_at(10).await, 0);
        assert_eq!(store.listed(), (0, 0));
    }

    #[tokio::test]
    async fn unreadable_item_does_not_block_expiry() {
        let store = Fixture::new().await;
        store.put_together(&[("a", 10), ("b", 10)]).await;
        store.put("c", HOUR_SECS).await;
        let table = store.engine.shared().catalogue.table("things").unwrap();
        store
            .write(move |group, _| {
                let damaged = layout::item_key(&homeport_item::Value::from("a"), None);
                group.insert(&table.items, damaged, UserValue::from(&b"\xffdamage"[..]));
            })
            .await;
        assert_eq!(store.swept_at(10).await, 1);
        assert_eq!(store.swept_at(2 * HOUR_SECS).await, 1);
        assert_eq!(store.problems().await.len(), 1);
    }

    #[tokio::test]
    async fn moving_item_is_listed_twice_at_most() {
        let store = Fixture::new().await;
        for hours in 1..50 {
            store.put("a", hours * HOUR_SECS).await;
        }
        assert_eq!(store.listed(), (1, 1));
    }

    #[tokio::test]
    async fn recreated_item_is_deleted_once() {
        let store = Fixture::new().await;
        store.put("a", 10).await;
        let delete = Delete::new("things", Item::new().with("id", "a"));
        store.engine.delete(delete).await.unwrap();
        assert_eq!(store.problems().await, Vec::<String>::new());
        store.put("a", 10).await;
        assert_eq!(store.problems().await, Vec::<String>::new());
        assert_eq!(store.swept_at(10).await, 1);
        assert_eq!(store.listed(), (0, 0));
    }

    #[tokio::test]
    async fn pages_of_a_deleted_table_are_deleted() {
        let store = Fixture::new().await;
        store.put("a", 10).await;
        store.engine.delete_table("things").await.unwrap();
        assert_eq!(store.problems().await, Vec::<String>::new());
        assert_eq!(store.swept_at(10).await, 0);
        assert_eq!(store.listed(), (0, 0));
    }

    #[tokio::test]
    async fn damaged_page_does_not_block_expiry() {
        let store = Fixture::new().await;
        store.put("a", 10).await;
        store
            .write(|group, shared| {
                let window = layout::expiry_window(NOW_SECS as u64);
                let before_all = layout::expiry_page_key(window, 0, 0);
                let pages = &shared.keyspaces.expiry_pages;
                group.insert(pages, before_all, UserValue::from(&b"\x01damage"[..]));
            })
            .await;
        assert_eq!(store.swept_at(10).await, 1);
        let expected = "a page of expiring items cannot be read";
        assert_eq!(store.problems().await, [expected]);
    }

    #[tokio::test]
    async fn unlisted_item_is_reported() {
        let store = Fixture::new().await;
        store.put_together(&[("a", 10), ("b", 10)]).await;
        store.forget_pages().await;
        let problems = store.problems().await;
        assert_eq!(problems.len(), 2);
        let expected = "table things: item {\"id\":{\"S\":\"a\"}} is not listed where it expires";
        assert!(
            problems.iter().any(|problem| problem == expected),
            "{problems:?}"
        );
    }

    #[tokio::test]
    async fn store_without_pages_is_swept() {
        let store = Fixture::new().await;
        store.put_together(&[("a", 10), ("b", 10)]).await;
        store.forget_pages().await;
        let table = store.engine.shared().catalogue.table("things").unwrap();
        store
            .write(move |group, _| {
                for guard in table.items.iter() {
                    group.refresh(&table, &guard.key().unwrap()).unwrap();
                }
            })
            .await;
        let Fixture {
            engine,
            clock,
            directory,
        } = store;
        drop(engine);
        let format = directory.path().join(layout::FORMAT_FILE);
        std::fs::write(&format, "homeport 1\n").unwrap();
        let store = Fixture {
            engine: open(directory.path(), &clock),
            clock,
            directory,
        };
        assert_eq!(std::fs::read_to_string(&format).unwrap(), "homeport 5\n");
        assert_eq!(store.listed(), (0, 2));
        store.put("c", 10).await;
        assert_eq!(store.listed(), (1, 2));
        assert_eq!(store.problems().await, Vec::<String>::new());
        assert_eq!(store.swept_at(10).await, 3);
        assert_eq!(store.listed(), (0, 0));
        assert!(store.directory.path().exists());
    }
}
