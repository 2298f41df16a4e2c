//! Items that expire soon, in memory, ordered by time.
//!
//! On disk, items are listed by the hour in which they expire. The sweeper reads the running hour once, when
//! it begins, and commits add to it from then on. So expired items are deleted within seconds without reading
//! the hour again. Memory is bounded: items that do not fit are read again closer to their time.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::storage::layout::{self, TableId};

/// The maximum size of the items in memory.
const EXPIRING_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The memory that an item takes in addition to its name.
const ITEM_OVERHEAD_BYTES: usize = 96;

/// An item that was listed as expiring; it may have changed since.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ExpiringItem {
    pub(crate) expires_at_secs: u64,
    pub(crate) table: TableId,
    /// The item's name, as in pages.
    pub(crate) name: Vec<u8>,
    /// False if it also has an entry of its own. Those sort first, because the entry is deleted together with
    /// its item.
    pub(crate) is_only_in_pages: bool,
}

impl ExpiringItem {
    fn bytes(&self) -> usize {
        self.name.len() + ITEM_OVERHEAD_BYTES
    }
}

#[derive(Default)]
pub(crate) struct Expiring(Mutex<State>);

#[derive(Default)]
struct State {
    /// Every listed item that expires before this time is in `items`.
    complete_until_secs: u64,
    items: BTreeSet<ExpiringItem>,
    bytes: usize,
    /// No window before this one lists anything that can be deleted.
    swept_until: u64,
}

/// The items and windows that a group lists as expiring.
#[derive(Debug)]
pub(crate) struct GroupExpiry {
    complete_until_secs: u64,
    items: Vec<ExpiringItem>,
    first_window: Option<u64>,
}

impl GroupExpiry {
    /// Adds an item that expires at `at_secs`.
    pub(crate) fn note_item(
        &mut self,
        at_secs: u64,
        table: TableId,
        item_key: &[u8],
        is_only_in_pages: bool,
    ) {
        if at_secs < self.complete_until_secs {
            self.items.push(ExpiringItem {
                expires_at_secs: at_secs,
                table,
                name: layout::expiry_name(item_key),
                is_only_in_pages,
            });
        }
    }

    /// Records that the group lists something in a window.
    pub(crate) fn note_window(&mut self, window: u64) {
        let first = self.first_window.unwrap_or(window);
        self.first_window = Some(first.min(window));
    }
}

impl Expiring {
    /// An empty list for a new group.
    pub(crate) fn begin_group(&self) -> GroupExpiry {
        GroupExpiry {
            complete_until_secs: self.lock().complete_until_secs,
            items: Vec::new(),
            first_window: None,
        }
    }

    /// Adds the items of a group that is now written.
    pub(crate) fn written(&self, expiry: GroupExpiry) {
        if expiry.first_window.is_none() && expiry.items.is_empty() {
            return;
        }
        let mut state = self.lock();
        if let Some(window) = expiry.first_window {
            state.swept_until = state.swept_until.min(window);
        }
        for item in expiry.items {
            state.insert(item);
        }
    }

    /// Starts collecting all items that expire before `until_secs`. Groups that begin from now on add theirs;
    /// the caller inserts the items that are already listed.
    pub(crate) fn begin(&self, until_secs: u64) {
        let mut state = self.lock();
        state.forget();
        state.complete_until_secs = until_secs;
    }

    pub(crate) fn insert(&self, item: ExpiringItem) {
        self.lock().insert(item);
    }

    /// Starts over, because the items in memory may no longer be complete.
    pub(crate) fn forget(&self) {
        self.lock().forget();
    }

    pub(crate) fn complete_until_secs(&self) -> u64 {
        self.lock().complete_until_secs
    }

    /// Takes up to `count` items that expire at or before `now_secs`.
    pub(crate) fn take_due(&self, now_secs: u64, count: usize) -> Vec<ExpiringItem> {
        let mut state = self.lock();
        let mut due = Vec::new();
        while due.len() < count
            && let Some(first) = state.items.first()
            && first.expires_at_secs <= now_secs
            && let Some(first) = state.items.pop_first()
        {
            state.bytes -= first.bytes();
            due.push(first);
        }
        due
    }

    /// Starts a sweep of the windows before `until`, and returns the first of them that may list something.
    pub(crate) fn begin_sweep(&self, until: u64) -> u64 {
        let mut state = self.lock();
        let from = state.swept_until;
        state.swept_until = from.max(until);
        from
    }

    /// Makes the next sweep start at this window again.
    pub(crate) fn sweep_again_from(&self, window: u64) {
        let mut state = self.lock();
        state.swept_until = state.swept_until.min(window);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn insert(&mut self, item: ExpiringItem) {
        if item.expires_at_secs >= self.complete_until_secs {
            return;
        }
        let bytes = item.bytes();
        if self.items.insert(item) {
            self.bytes += bytes;
        }
        while self.bytes > EXPIRING_BYTES_MAX
            && let Some(last) = self.items.pop_last()
        {
            self.bytes -= last.bytes();
            self.complete_until_secs = self.complete_until_secs.min(last.expires_at_secs);
        }
    }

    fn forget(&mut self) {
        self.items.clear();
        self.bytes = 0;
        self.complete_until_secs = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(at: u64, name: &[u8]) -> ExpiringItem {
        ExpiringItem {
            expires_at_secs: at,
            table: 1,
            name: name.to_vec(),
            is_only_in_pages: true,
        }
    }

    #[test]
    fn due_items_are_returned_in_time_order() {
        let expiring = Expiring::default();
        expiring.begin(100);
        for at in [30, 10, 20, 100] {
            expiring.insert(item(at, b"k"));
        }
        assert_eq!(expiring.take_due(9, 10), []);
        assert_eq!(expiring.take_due(20, 10), [item(10, b"k"), item(20, b"k")]);
        assert_eq!(expiring.take_due(1000, 10), [item(30, b"k")]);
    }

    #[test]
    fn latest_items_are_dropped_when_memory_is_full() {
        let expiring = Expiring::default();
        expiring.begin(u64::MAX);
        let name = vec![0; 64 * 1024];
        for at in 0..1000 {
            expiring.insert(item(at, &name));
        }
        let known_until = expiring.complete_until_secs();
        assert!((200..300).contains(&known_until), "{known_until}");
        let due = expiring.take_due(u64::MAX, 1000);
        let times: Vec<u64> = due.iter().map(|item| item.expires_at_secs).collect();
        assert_eq!(times, (0..known_until).collect::<Vec<_>>());
    }

    #[test]
    fn windows_with_new_items_are_swept_again() {
        let expiring = Expiring::default();
        assert_eq!(expiring.begin_sweep(7200), 0);
        assert_eq!(expiring.begin_sweep(7200), 7200);
        let mut expiry = expiring.begin_group();
        expiry.note_window(10_800);
        expiry.note_window(3600);
        expiring.written(expiry);
        assert_eq!(expiring.begin_sweep(7200), 3600);
    }
}
