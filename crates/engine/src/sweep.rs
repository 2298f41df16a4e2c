//! Background upkeep: items whose time has come, changes that are too old, tokens that have served.
//! All of it goes through the committer in small pieces.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use homeport_store::StoreError;

use crate::changes;
use crate::committer::Committer;
use crate::error::unavailable;
use crate::expiry::{self, Page};
use crate::group::Group;
use crate::layout::{self, TableId};
use crate::options::Durability;
use crate::record::{self, Record};
use crate::shared::{Shared, run_exclusive};
use crate::sorting;
use crate::streams;
use crate::table::Table;
use crate::tokens;
use crate::vault::{self, Keyspace, PersistMode, UserKey, UserValue};

/// Entries that one commit of the sweeper covers.
const CHUNK: usize = 256;
/// How often the sweeper looks.
const SWEEP_EVERY: Duration = Duration::from_secs(1);
/// How often there is a look at the room on the disk.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How often relaxed durability syncs.
const SYNC_EVERY: Duration = Duration::from_millis(50);

/// What one pass of the sweeper did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Swept {
    pub expired: u64,
    pub changes_trimmed: u64,
    pub tokens: u64,
}

/// Sweeps until the engine closes.
pub(crate) fn run(shared: &Arc<Shared>) {
    while !shared.stopping.load(Ordering::Acquire) {
        std::thread::park_timeout(SWEEP_EVERY);
        if shared.options.background_sweep
            && let Err(error) = sweep(shared, Due::WholeWindows)
            && !shared.stopping.load(Ordering::Acquire)
        {
            tracing::warn!(%error, "sweeping failed; trying again");
        }
    }
}

/// Looks after the room on the disk, and syncs where durability is relaxed, until the engine closes. Not
/// in the sweeper's thread, as there may be much to sweep.
pub(crate) fn watch(shared: &Arc<Shared>) {
    let relaxed = shared.options.durability == Durability::Relaxed;
    let pause = if relaxed { SYNC_EVERY } else { LOOK_EVERY };
    let mut since_look = Duration::ZERO;
    while !shared.stopping.load(Ordering::Acquire) {
        std::thread::park_timeout(pause);
        if relaxed {
            sync(shared);
        }
        since_look += pause;
        if since_look >= LOOK_EVERY {
            since_look = Duration::ZERO;
            shared.room.look();
        }
    }
}

/// Makes durable what has been written, where that is not done at once.
pub(crate) fn sync(shared: &Shared) {
    let written = shared.written_commit.load(Ordering::Acquire);
    if written == shared.synced_commit.load(Ordering::Acquire) {
        return;
    }
    match shared.database.persist(PersistMode::SyncData) {
        Ok(()) => shared.synced_commit.store(written, Ordering::Release),
        Err(error) => shared.latch.close(&error.to_string()),
    }
}

/// Which expired items a pass looks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Due {
    /// Those of windows that are over. The window that is running would have to be read as a whole,
    /// again and again, for the few that have expired in it.
    WholeWindows,
    /// All of them.
    Now,
}

/// One pass over everything that is due.
pub(crate) fn sweep(shared: &Arc<Shared>, due: Due) -> Result<Swept, StoreError> {
    // None of them is left undone because another fails.
    let streams = streams::upkeep(shared);
    let expired = sweep_expired(shared, due);
    let changes_trimmed = trim_changes(shared);
    let tokens = sweep_tokens(shared);
    let sorted = sorting::sort_quiet(shared);
    let swept = Swept {
        expired: expired?,
        changes_trimmed: changes_trimmed?,
        tokens: tokens?,
    };
    streams.and(sorted)?;
    Ok(swept)
}

fn sweep_expired(shared: &Shared, due: Due) -> Result<u64, StoreError> {
    let mut total = 0;
    for kind in ORDER {
        total += sweep_leads(shared, due, kind)?;
    }
    Ok(total)
}

/// Where it stands that items expire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// In a page, with others.
    Page,
    /// In an entry of its own.
    Entry,
}

/// Entries come first: one goes together with its item, and a page may list what is gone.
const ORDER: [Kind; 2] = [Kind::Entry, Kind::Page];

impl Kind {
    fn keyspace(self, shared: &Shared) -> &Keyspace {
        match self {
            Self::Page => &shared.keyspaces.expiry_pages,
            Self::Entry => &shared.keyspaces.expiry,
        }
    }
}

/// What leads the sweeper to items that may have expired.
struct Lead {
    kind: Kind,
    at: UserKey,
    window: u64,
    table: TableId,
    names: Vec<Vec<u8>>,
}

impl Lead {
    /// Nothing, where it is damaged.
    fn read(kind: Kind, at: UserKey, value: &[u8]) -> Option<Self> {
        let (window, table, names) = match kind {
            Kind::Page => {
                let (table, names) = expiry::read_page(value)?;
                (layout::window_of_page(&at)?, table, names)
            }
            Kind::Entry => {
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

    /// Leaves only the items in it that are `kept`.
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

fn sweep_leads(shared: &Shared, due: Due, kind: Kind) -> Result<u64, StoreError> {
    let mut total = 0;
    let oldest = record::oldest_expiry_secs(shared.now_secs());
    let mut from = layout::expiry_window(oldest).to_be_bytes().to_vec();
    loop {
        let now_secs = u64::try_from(shared.now_secs()).unwrap_or(0);
        let running = layout::expiry_window(now_secs);
        let to = match due {
            Due::WholeWindows => running,
            Due::Now => running + 1,
        };
        let to = to.to_be_bytes().to_vec();
        if from >= to {
            return Ok(total);
        }
        let mut leads = Vec::new();
        let mut items = 0;
        let snapshot = shared.database.snapshot();
        for guard in snapshot.range(kind.keyspace(shared), from.clone()..to) {
            let (at, lead) = match guard.into_inner() {
                Err(vault::Error::Unopened { key, .. }) => (key, None),
                entry => {
                    let (at, value) = entry.map_err(unavailable)?;
                    (at.clone(), Lead::read(kind, at, &value))
                }
            };
            from = [at.as_ref(), &[0]].concat();
            let Some(lead) = lead else {
                // It is left for the check to find. The items stay hidden and take room.
                tracing::warn!(?kind, ?at, "what lists items that expire is damaged");
                continue;
            };
            items += lead.names.len();
            leads.push(lead);
            if items >= CHUNK {
                break;
            }
        }
        let is_last = items < CHUNK;
        if !leads.is_empty() {
            let expired = run_exclusive(shared, move |committer| expire(committer, leads))?;
            shared.metrics.expired(expired);
            total += expired;
        }
        if is_last {
            return Ok(total);
        }
    }
}

/// Removes the items that have expired, and what leads to no item that will.
fn expire(committer: &mut Committer, leads: Vec<Lead>) -> Result<u64, StoreError> {
    let shared = Arc::clone(&committer.shared);
    committer.write(|group| {
        let catalogue = shared.catalogue.now();
        let mut expired = 0;
        for lead in leads {
            let mut kept = Vec::new();
            if let Some(table) = catalogue.by_id(lead.table) {
                for name in &lead.names {
                    let item_key = layout::key_of_expiry_name(name);
                    let fate = fate(group, table, lead.window, &item_key);
                    match fate.unwrap_or_else(|error| unreadable(table, &error)) {
                        Fate::Elsewhere => {}
                        Fate::Later => kept.push(name.as_slice()),
                        Fate::Expired(value) => {
                            group.expire(table, item_key, value)?;
                            expired += 1;
                        }
                    }
                }
            }
            lead.keep(&kept, &shared, group);
        }
        Ok(expired)
    })
}

/// What becomes of an item that was to expire in a window.
enum Fate {
    Expired(UserValue),
    /// Its time comes later in the window.
    Later,
    /// It is gone, or expires in another window, or no longer.
    Elsewhere,
}

fn fate(
    group: &mut Group<'_>,
    table: &Table,
    window: u64,
    item_key: &UserKey,
) -> Result<Fate, StoreError> {
    let (Some(attribute), Some(value)) = (table.ttl_attribute(), group.load(table, item_key)?)
    else {
        return Ok(Fate::Elsewhere);
    };
    let record = Record::new(&table.key, item_key, &value).map_err(unavailable)?;
    let expires_at = record.expires_at(attribute).map_err(unavailable)?;
    Ok(match expires_at {
        Some(at) if layout::expiry_window(at) == window => {
            if record::is_expired(at, group.now_secs()) {
                Fate::Expired(value)
            } else {
                Fate::Later
            }
        }
        _ => Fate::Elsewhere,
    })
}

/// An item that cannot be read stays where it is, for the check to find, and keeps nothing else from going.
fn unreadable(table: &Table, error: &StoreError) -> Fate {
    let table = &table.schema().name;
    tracing::warn!(table, %error, "an item that may have expired cannot be read");
    Fate::Later
}

/// The time before which changes of a table need not be kept: a stream shows a day of them, and a
/// table's history needs more.
fn kept_since_ms(shared: &Shared, table: TableId) -> i64 {
    let now_ms = shared.options.clock.now_ms();
    let for_streams = now_ms - shared.options.change_retention_ms;
    let catalogue = shared.catalogue.now();
    let history = catalogue
        .by_id(table)
        .and_then(|table| table.record.history);
    history.map_or(for_streams, |history| {
        history.reaches_back_to_ms(now_ms).min(for_streams)
    })
}

fn trim_changes(shared: &Shared) -> Result<u64, StoreError> {
    let mut total = 0;
    let mut next_table: TableId = 0;
    loop {
        let from = layout::change_key(next_table, 0);
        let first = shared
            .database
            .snapshot()
            .range(&shared.keyspaces.changes, from..)
            .next();
        let Some(first) = first else {
            return Ok(total);
        };
        let key = first.key().map_err(unavailable)?;
        let Some(table) = key.first_chunk::<4>() else {
            return Err(unavailable("a change's key is damaged"));
        };
        let table = TableId::from_be_bytes(*table);
        total += trim_table(shared, table, kept_since_ms(shared, table))?;
        match table.checked_add(1) {
            Some(next) => next_table = next,
            None => return Ok(total),
        }
    }
}

fn trim_table(shared: &Shared, table: TableId, cutoff_ms: i64) -> Result<u64, StoreError> {
    let mut total = 0;
    loop {
        let range = layout::change_key(table, 0)..=layout::change_key(table, u64::MAX);
        let mut old = Vec::new();
        for guard in shared
            .database
            .snapshot()
            .range(&shared.keyspaces.changes, range)
            .take(CHUNK)
        {
            let (key, value) = guard.into_inner().map_err(unavailable)?;
            let at_ms = changes::changed_at_ms(&value)
                .ok_or_else(|| unavailable("a change's record is damaged"))?;
            if at_ms >= cutoff_ms {
                break;
            }
            old.push(key);
        }
        if old.is_empty() {
            return Ok(total);
        }
        let is_last = old.len() < CHUNK;
        let trimmed = run_exclusive(shared, move |committer| {
            let shared = Arc::clone(&committer.shared);
            committer.write(|group| {
                let count = old.len() as u64;
                // With the last of them, a late reader can be told that it is late.
                if let Some(last) = old.last() {
                    let key = layout::trimmed_key(table);
                    group.insert(&shared.keyspaces.meta, key.into(), last.clone());
                }
                for key in old {
                    group.remove(&shared.keyspaces.changes, key);
                }
                Ok(count)
            })
        })?;
        shared.metrics.changes_trimmed(trimmed);
        total += trimmed;
        if is_last {
            return Ok(total);
        }
    }
}

fn sweep_tokens(shared: &Shared) -> Result<u64, StoreError> {
    let mut total = 0;
    loop {
        let range = tokens::expired_range(shared.options.clock.now_ms());
        let due: Vec<UserKey> = shared
            .database
            .snapshot()
            .range(&shared.keyspaces.tokens, range)
            .take(CHUNK)
            .map(|guard| guard.key().map_err(unavailable))
            .collect::<Result<_, _>>()?;
        if due.is_empty() {
            return Ok(total);
        }
        let is_last = due.len() < CHUNK;
        total += run_exclusive(shared, move |committer| forget_tokens(committer, due))?;
        if is_last {
            return Ok(total);
        }
    }
}

fn forget_tokens(committer: &mut Committer, due: Vec<UserKey>) -> Result<u64, StoreError> {
    let shared = Arc::clone(&committer.shared);
    committer.write(|group| {
        let count = due.len() as u64;
        for time_key in due {
            if let Some((at_ms, token_key)) = tokens::token_of_time_key(&time_key) {
                // A token used again since then has a newer time and stays.
                let seen = group.load_token(&token_key).map_err(unavailable)?;
                if seen.and_then(|value| tokens::seen_at_ms(&value)) == Some(at_ms) {
                    group.remove(&shared.keyspaces.tokens, token_key);
                }
            }
            group.remove(&shared.keyspaces.tokens, time_key);
        }
        Ok(count)
    })
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

        /// All in one group.
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

        /// How many items the pages list, and how many entries there are.
        fn listed(&self) -> (usize, usize) {
            let keyspaces = &self.engine.shared().keyspaces;
            let pages = keyspaces.expiry_pages.iter().map(|guard| {
                let page = expiry::read_page(&guard.value().unwrap()).unwrap();
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
        let options = Options {
            clock: Arc::clone(clock) as _,
            background_sweep: false,
            ..Options::default()
        };
        Engine::open(directory, options).unwrap()
    }

    fn thing(id: &str, until: i64) -> Item {
        Item::new().with("id", id).with("until", NOW_SECS + until)
    }

    #[tokio::test]
    async fn what_expires_later_in_the_window_stays_listed() {
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
    async fn an_item_that_moves_to_a_later_window_goes_then_and_leaves_no_trace() {
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
    async fn an_item_that_moves_there_and_back_goes_once() {
        let store = Fixture::new().await;
        for until in [10, 2 * HOUR_SECS, 10] {
            store.put("a", until).await;
        }
        assert_eq!(store.listed(), (1, 1));
        assert_eq!(store.swept_at(10).await, 1);
        assert_eq!(store.listed(), (0, 0));
    }

    #[tokio::test]
    async fn a_sweep_that_is_cut_off_leaves_no_entry_without_its_item() {
        let store = Fixture::new().await;
        for until in [10, 2 * HOUR_SECS, 10] {
            store.put("a", until).await;
        }
        store.clock.advance_ms(10_000);
        let shared = Arc::clone(store.engine.shared());
        let sweeping = move || sweep_leads(&shared, Due::Now, ORDER[0]);
        let expired = tokio::task::spawn_blocking(sweeping).await.unwrap();
        assert_eq!(expired.unwrap(), 1);
        assert_eq!(store.problems().await, Vec::<String>::new());
        assert_eq!(store.swept_at(10).await, 0);
        assert_eq!(store.listed(), (0, 0));
    }

    #[tokio::test]
    async fn an_item_that_cannot_be_read_keeps_no_other_from_going() {
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
    async fn an_item_that_moves_with_every_write_is_listed_twice_at_most() {
        let store = Fixture::new().await;
        for hours in 1..50 {
            store.put("a", hours * HOUR_SECS).await;
        }
        assert_eq!(store.listed(), (1, 1));
    }

    #[tokio::test]
    async fn an_item_that_is_removed_and_put_again_goes_once() {
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
    async fn what_was_listed_goes_with_its_table_when_it_is_due() {
        let store = Fixture::new().await;
        store.put("a", 10).await;
        store.engine.delete_table("things").await.unwrap();
        assert_eq!(store.problems().await, Vec::<String>::new());
        assert_eq!(store.swept_at(10).await, 0);
        assert_eq!(store.listed(), (0, 0));
    }

    #[tokio::test]
    async fn a_damaged_page_is_reported_and_keeps_no_other_item() {
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
        let expected = "a page of items that expire cannot be read";
        assert_eq!(store.problems().await, [expected]);
    }

    #[tokio::test]
    async fn an_item_that_is_not_listed_is_reported() {
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
    async fn a_store_of_the_format_before_pages_is_swept_as_it_is() {
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
        assert_eq!(std::fs::read_to_string(&format).unwrap(), "homeport 3\n");
        assert_eq!(store.listed(), (0, 2));
        store.put("c", 10).await;
        assert_eq!(store.listed(), (1, 2));
        assert_eq!(store.problems().await, Vec::<String>::new());
        assert_eq!(store.swept_at(10).await, 3);
        assert_eq!(store.listed(), (0, 0));
        assert!(store.directory.path().exists());
    }
}
