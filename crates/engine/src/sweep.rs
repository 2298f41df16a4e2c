//! Background upkeep: items whose time has come, changes that are too old, tokens that have served.
//! All of it goes through the committer in small pieces.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use homeport_store::StoreError;

use crate::changes;
use crate::committer::Committer;
use crate::error::unavailable;
use crate::layout::{self, TableId};
use crate::options::Durability;
use crate::record::{self, Record};
use crate::shared::{Shared, stopped};
use crate::streams;
use crate::tokens;
use crate::vault::{PersistMode, UserKey};

/// Entries that one commit of the sweeper covers.
const CHUNK: usize = 256;
/// How often the sweeper looks.
const SWEEP_EVERY: Duration = Duration::from_secs(1);
/// How often relaxed durability syncs.
const SYNC_EVERY: Duration = Duration::from_millis(50);

/// What one pass of the sweeper did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Swept {
    pub expired: u64,
    pub changes_trimmed: u64,
    pub tokens: u64,
}

/// Sweeps, looks after the room on the disk, and syncs where durability is relaxed, until the
/// engine closes.
pub(crate) fn run(shared: &Arc<Shared>) {
    let relaxed = shared.options.durability == Durability::Relaxed;
    let pause = if relaxed { SYNC_EVERY } else { SWEEP_EVERY };
    let mut since_sweep = Duration::ZERO;
    while !shared.stopping.load(Ordering::Acquire) {
        std::thread::park_timeout(pause);
        since_sweep += pause;
        if relaxed {
            sync(shared);
        }
        if since_sweep < SWEEP_EVERY {
            continue;
        }
        since_sweep = Duration::ZERO;
        shared.room.look();
        if shared.options.background_sweep
            && let Err(error) = sweep(shared, Due::WholeWindows)
            && !shared.stopping.load(Ordering::Acquire)
        {
            tracing::warn!(%error, "sweeping failed; trying again");
        }
    }
    if relaxed {
        sync(shared);
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
    streams::upkeep(shared)?;
    let swept = Swept {
        expired: sweep_expired(shared, due)?,
        changes_trimmed: trim_changes(shared)?,
        tokens: sweep_tokens(shared)?,
    };
    shared.metrics.expired(swept.expired);
    shared.metrics.changes_trimmed(swept.changes_trimmed);
    Ok(swept)
}

fn sweep_expired(shared: &Shared, due: Due) -> Result<u64, StoreError> {
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
        let due: Vec<UserKey> = shared
            .database
            .snapshot()
            .range(&shared.keyspaces.expiry, from.clone()..to)
            .take(CHUNK)
            .map(|guard| guard.key().map_err(unavailable))
            .collect::<Result<_, _>>()?;
        let Some(last) = due.last() else {
            return Ok(total);
        };
        from = [last.as_ref(), &[0]].concat();
        let is_last = due.len() < CHUNK;
        total += run_exclusive(shared, move |committer| expire(committer, &due))?;
        if is_last {
            return Ok(total);
        }
    }
}

/// Removes the items behind expiry entries that have expired; entries that no item stands behind go
/// alone.
fn expire(committer: &mut Committer, due: &[UserKey]) -> Result<u64, StoreError> {
    let shared = Arc::clone(&committer.shared);
    committer.write(|group| {
        let catalogue = shared.catalogue.now();
        let mut expired = 0;
        for entry in due {
            let Some((window, table, item_key)) = layout::split_expiry_key(entry) else {
                return Err(unavailable("an expiry entry is damaged"));
            };
            let table = catalogue.by_id(table);
            let stored = match table {
                Some(table) => group.load(table, &item_key)?,
                None => None,
            };
            if let (Some(table), Some(value)) = (table, stored) {
                let record = Record::new(&table.key, &item_key, &value).map_err(unavailable)?;
                let current = match table.ttl_attribute() {
                    Some(attribute) => record.expires_at(attribute).map_err(unavailable)?,
                    None => None,
                };
                if let Some(at) = current
                    && layout::expiry_window(at) == window
                {
                    if record::is_expired(at, group.now_secs()) {
                        group.expire(table, item_key, value)?;
                        expired += 1;
                    }
                    continue;
                }
            }
            group.remove(&shared.keyspaces.expiry, entry.clone());
        }
        Ok(expired)
    })
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
        total += run_exclusive(shared, move |committer| {
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

fn run_exclusive<T: Send + 'static>(
    shared: &Shared,
    work: impl FnOnce(&mut Committer) -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    shared
        .exclusive(work)
        .blocking_recv()
        .map_err(|_| stopped())?
}
