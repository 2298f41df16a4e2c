//! Pages: lists of items that expire in one window, as stored on disk.
//!
//! The expiring items of a group are listed in pages, usually one for each table and window: an entry for
//! each item would cost as much as the item itself. An item stays in its page when it is changed or deleted.
//! The sweeper reads the page when its window is over and loads each listed item that still exists.
//!
//! An item whose expiry moves to another window gets an entry of its own, which moves with it. Listing it in
//! another page each time would leave a growing number of obsolete listings.

use rustc_hash::FxHashMap;

use crate::storage::layout::{self, TableId};
use crate::storage::vault::{UserKey, UserValue};

const VERSION: u8 = 1;
/// A page is full when it lists this many items, which the sweeper deletes in one commit, or when it has this
/// many bytes.
const PAGE_ITEMS_MAX: usize = 256;
const PAGE_BYTES_MAX: usize = 64 * 1024;

/// The pages of one group.
#[derive(Default)]
pub(crate) struct Pages {
    open: FxHashMap<(u64, TableId), Page>,
    full: Vec<(u64, Page)>,
    /// The listed items were committed earlier and are added in key order.
    pub(crate) are_sorted: bool,
}

impl Pages {
    /// Lists an item under its name in a window. Returns the bytes that this takes.
    pub(crate) fn add(&mut self, window: u64, table: TableId, name: &[u8]) -> usize {
        let page = self
            .open
            .entry((window, table))
            .or_insert_with(|| Page::new(table));
        if page.is_full() {
            let full = std::mem::replace(page, Page::new(table));
            self.full.push((window, full));
        }
        page.push(name)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// The entries of the pages in group number `commit`, with their windows.
    pub(crate) fn into_entries(
        self,
        commit: u64,
    ) -> impl Iterator<Item = (u64, UserKey, UserValue)> {
        let open = self.open.into_iter();
        let open = open.map(|((window, _), page)| (window, page));
        let pages = (0..).zip(self.full.into_iter().chain(open));
        pages.map(move |(part, (window, page))| {
            let key = layout::expiry_page_key(window, commit, part);
            (window, key, page.into_value())
        })
    }
}

/// A page under construction.
pub(crate) struct Page {
    value: Vec<u8>,
    items: usize,
    /// The name that was listed last.
    last: Vec<u8>,
}

impl Page {
    pub(crate) fn new(table: TableId) -> Self {
        let mut value = vec![VERSION];
        value.extend_from_slice(&table.to_be_bytes());
        Self {
            value,
            items: 0,
            last: Vec::new(),
        }
    }

    /// Lists an item as the length of the prefix shared with the previous name, and the rest. Returns the
    /// bytes that this takes.
    pub(crate) fn push(&mut self, name: &[u8]) -> usize {
        let pairs = name.iter().zip(&self.last);
        let shared = pairs.take_while(|(byte, last)| byte == last).count();
        let before = self.value.len();
        for len in [shared, name.len() - shared] {
            let len = u16::try_from(len).expect("keys are under 64 KB");
            self.value.extend_from_slice(&len.to_be_bytes());
        }
        self.value.extend_from_slice(&name[shared..]);
        self.items += 1;
        self.last.truncate(shared);
        self.last.extend_from_slice(&name[shared..]);
        self.value.len() - before
    }

    fn is_full(&self) -> bool {
        self.items >= PAGE_ITEMS_MAX || self.value.len() >= PAGE_BYTES_MAX
    }

    pub(crate) fn into_value(self) -> UserValue {
        self.value.into()
    }
}

/// The table of a page and the names of its items; `None` if the bytes are damaged.
pub(crate) fn read_page(value: &[u8]) -> Option<(TableId, Vec<Vec<u8>>)> {
    let (&VERSION, rest) = value.split_first()? else {
        return None;
    };
    let (table, mut rest) = rest.split_first_chunk::<4>()?;
    let mut items: Vec<Vec<u8>> = Vec::new();
    while !rest.is_empty() {
        let (shared, after) = rest.split_first_chunk::<2>()?;
        let (len, after) = after.split_first_chunk::<2>()?;
        let (own, after) = after.split_at_checked(usize::from(u16::from_be_bytes(*len)))?;
        let last = items.last().map_or(&[][..], Vec::as_slice);
        let shared = last.get(..usize::from(u16::from_be_bytes(*shared)))?;
        let name = [shared, own].concat();
        // A name has at least its bucket byte.
        if name.is_empty() {
            return None;
        }
        items.push(name);
        rest = after;
    }
    Some((TableId::from_be_bytes(*table), items))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn entries(pages: Pages) -> Vec<(u64, TableId, Vec<Vec<u8>>)> {
        let entries = pages.into_entries(7).map(|(window, key, value)| {
            assert_eq!(layout::window_of_page(&key), Some(window));
            let (table, items) = read_page(&value).unwrap();
            (window, table, items)
        });
        entries.collect()
    }

    proptest! {
        #[test]
        fn page_returns_the_names_it_lists(names: Vec<(Vec<u8>, u8)>, table: u32) {
            let names: Vec<Vec<u8>> = names
                .into_iter()
                .map(|(key, bucket)| [key.as_slice(), &[bucket]].concat())
                .collect();
            let mut page = Page::new(table);
            for name in &names {
                page.push(name);
            }
            let value = page.into_value();
            prop_assert_eq!(read_page(&value), Some((table, names)));
        }

        #[test]
        fn damaged_pages_do_not_panic(value: Vec<u8>) {
            let _ = read_page(&value);
            let _ = read_page(&[&[VERSION, 0, 0, 0, 1], value.as_slice()].concat());
        }
    }

    #[test]
    fn items_are_listed_by_window_and_table() {
        let mut pages = Pages::default();
        for (window, table, key) in [(3600, 1, b"ka"), (7200, 1, b"kb"), (3600, 2, b"kc")] {
            pages.add(window, table, key);
        }
        pages.add(3600, 1, b"kd");
        let mut entries = entries(pages);
        entries.sort_unstable();
        let keys = |keys: &[&[u8; 2]]| keys.iter().map(|key| key.to_vec()).collect();
        let expected: [(u64, TableId, Vec<Vec<u8>>); 3] = [
            (3600, 1, keys(&[b"ka", b"kd"])),
            (3600, 2, keys(&[b"kc"])),
            (7200, 1, keys(&[b"kb"])),
        ];
        assert_eq!(entries, expected);
    }

    #[test]
    fn full_page_is_followed_by_another() {
        let mut pages = Pages::default();
        let many = PAGE_ITEMS_MAX * 2 + 1;
        for at in 0..many {
            pages.add(3600, 1, format!("k{at}").as_bytes());
        }
        let keys: std::collections::BTreeSet<UserKey> = {
            let mut again = Pages::default();
            for at in 0..many {
                again.add(3600, 1, format!("k{at}").as_bytes());
            }
            again.into_entries(7).map(|(_, key, _)| key).collect()
        };
        assert_eq!(keys.len(), 3);
        let listed: usize = entries(pages).iter().map(|(_, _, items)| items.len()).sum();
        assert_eq!(listed, many);
    }

    #[test]
    fn common_prefixes_are_stored_once() {
        let mut page = Page::new(1);
        let key = |at: u32| format!("k{}{at:04}", "p".repeat(100));
        let first = page.push(key(1).as_bytes());
        let second = page.push(key(2).as_bytes());
        assert!(first > 100);
        assert!(second < 12, "{second}");
    }
}
