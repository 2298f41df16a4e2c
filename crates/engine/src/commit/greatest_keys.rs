//! The greatest keys of partitions that items are appended to.
//!
//! A device sends its readings in time order. A condition "does not exist" would have to search all memtables
//! and the filter of every file; a key beyond the greatest one of its partition cannot exist, so the search
//! is skipped.

use homeport_item::KeyKind;
use rustc_hash::FxHashMap;

use crate::catalogue::table::Table;
use crate::storage::layout::TableId;
use crate::storage::vault::UserKey;

/// Partitions to remember; beyond this, every second one is forgotten.
const PARTITIONS_MAX: usize = 16 * 1024;
/// Consecutive misses in a partition before its greatest key is looked up, which costs about as much as this
/// many lookups.
const MISSES_MIN: usize = 4;

#[derive(Default)]
pub(crate) struct GreatestKeys {
    /// No item of the partition has a greater key, including pending writes.
    greatest: FxHashMap<TableId, FxHashMap<Vec<u8>, UserKey>>,
    count: usize,
    /// The partition of the last failed lookups.
    miss_streak: MissStreak,
}

#[derive(Default)]
struct MissStreak {
    table: TableId,
    partition: Vec<u8>,
    length: usize,
}

impl GreatestKeys {
    /// Whether a key is greater than all keys of its partition, so that the item cannot exist.
    pub(crate) fn exceeds_greatest(&self, table: &Table, key: &[u8]) -> bool {
        let greatest = partition(table, key).and_then(|partition| self.of(table.id(), partition));
        greatest.is_some_and(|greatest| key > greatest.as_ref())
    }

    /// Records that an item was looked up and does not exist. Returns its partition if looking up its
    /// greatest key is now worthwhile.
    pub(crate) fn note_miss<'k>(&mut self, table: &Table, key: &'k [u8]) -> Option<&'k [u8]> {
        let partition = partition(table, key)?;
        let streak = &mut self.miss_streak;
        if streak.table != table.id() || streak.partition != partition {
            streak.table = table.id();
            streak.partition.clear();
            streak.partition.extend_from_slice(partition);
            streak.length = 0;
        }
        streak.length += 1;
        let pays = streak.length >= MISSES_MIN && self.of(table.id(), partition).is_none();
        pays.then_some(partition)
    }

    pub(crate) fn remember(&mut self, table: TableId, partition: &[u8], greatest: UserKey) {
        if self.count >= PARTITIONS_MAX {
            self.forget_half();
        }
        let partitions = self.greatest.entry(table).or_default();
        if partitions.insert(partition.to_vec(), greatest).is_none() {
            self.count += 1;
        }
    }

    fn forget_half(&mut self) {
        let mut is_kept = false;
        for partitions in self.greatest.values_mut() {
            partitions.retain(|_, _| {
                is_kept = !is_kept;
                is_kept
            });
        }
        self.greatest.retain(|_, partitions| !partitions.is_empty());
        self.count = self.greatest.values().map(FxHashMap::len).sum();
    }

    /// Records that an item is stored.
    pub(crate) fn note_stored(&mut self, table: &Table, key: &UserKey) {
        if let Some(partition) = partition(table, key)
            && let Some(partitions) = self.greatest.get_mut(&table.id())
            && let Some(greatest) = partitions.get_mut(partition)
            && key > greatest
        {
            *greatest = key.clone();
        }
    }

    fn of(&self, table: TableId, partition: &[u8]) -> Option<&UserKey> {
        self.greatest.get(&table)?.get(partition)
    }
}

/// The common prefix of all keys in the item's partition, if items can be appended to it.
fn partition<'k>(table: &Table, key: &'k [u8]) -> Option<&'k [u8]> {
    if table.key.sort.is_none() || table.key.partition.kind == KeyKind::N {
        return None;
    }
    // Encoded strings and bytes end with 00 01, which cannot occur inside them.
    let rest = key.get(1..)?;
    let end = rest.windows(2).position(|pair| pair == [0, 1])?;
    key.get(..1 + end + 2)
}

#[cfg(test)]
mod tests {
    use homeport_item::expression::Condition;
    use homeport_item::schema::TableSchema;
    use homeport_item::{Item, Value};
    use homeport_store::{Delete, Put, Store as _, Transaction};

    use super::*;
    use crate::engine::Engine;
    use crate::options::Options;
    use crate::storage::layout;

    struct Fixture {
        engine: Engine,
        _directory: tempfile::TempDir,
    }

    impl Fixture {
        async fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let engine = Engine::open(directory.path(), Options::default()).unwrap();
            let table = TableSchema::new("readings", "device", KeyKind::S);
            let table = table.with_sort("at", KeyKind::N);
            engine.create_table(table).await.unwrap();
            Self {
                engine,
                _directory: directory,
            }
        }

        /// Stores readings in one call and returns whether each was new.
        async fn add(&self, device: &str, times: &[u64]) -> Vec<bool> {
            let transactions = times.iter().map(|at| {
                let put = Put::new("readings", reading(device, *at));
                let put = put.when(Condition::not_exists("device"));
                Transaction::new(vec![put.into()])
            });
            let outcomes = self.engine.transact_each(transactions.collect()).await;
            outcomes.iter().map(Result::is_ok).collect()
        }

        async fn exceeds_greatest(&self, device: &str, at: u64) -> bool {
            let key = layout::item_key(&Value::from(device), Some(&Value::from(at)));
            let asked = self.engine.shared().exclusive(move |committer| {
                let table = committer.shared.catalogue.table("readings").unwrap();
                committer.greatest_keys.exceeds_greatest(&table, &key)
            });
            asked.await.unwrap()
        }
    }

    fn reading(device: &str, at: u64) -> Item {
        Item::new().with("device", device).with("at", at)
    }

    #[tokio::test]
    async fn appended_items_are_new_and_existing_ones_found() {
        let store = Fixture::new().await;
        assert_eq!(store.add("a", &[10]).await, [true]);
        assert!(!store.exceeds_greatest("a", 20).await);
        assert_eq!(store.add("a", &[20, 30]).await, [true; 2]);
        assert!(!store.exceeds_greatest("a", 31).await);
        assert_eq!(store.add("a", &[40]).await, [true]);
        assert!(store.exceeds_greatest("a", 41).await);
        assert!(!store.exceeds_greatest("a", 40).await);
        assert!(!store.exceeds_greatest("b", 41).await);
        // Repeats, one between existing items, one before all, and duplicates in one call.
        assert_eq!(store.add("a", &[10, 40, 30]).await, [false; 3]);
        assert_eq!(
            store.add("a", &[35, 35, 5, 5]).await,
            [true, false, true, false]
        );
        assert_eq!(
            store.add("a", &[50, 60, 50, 60]).await,
            [true, true, false, false]
        );
        assert!(!store.exceeds_greatest("a", 60).await);
    }

    #[tokio::test]
    async fn deleted_greatest_key_can_be_stored_again() {
        let store = Fixture::new().await;
        assert_eq!(store.add("a", &[5, 10, 20, 30]).await, [true; 4]);
        assert!(store.exceeds_greatest("a", 31).await);
        let delete = Delete::new("readings", reading("a", 30));
        store.engine.delete(delete).await.unwrap();
        assert_eq!(store.add("a", &[30, 30, 40]).await, [true, false, true]);
    }

    #[tokio::test]
    async fn writes_of_pending_groups_count() {
        let store = Fixture::new().await;
        assert_eq!(store.add("a", &[90]).await, [true]);
        // The fourth miss looks up the greatest key, which the previous group wrote.
        assert_eq!(
            store.add("a", &[10, 20, 30, 40, 90, 95, 95]).await,
            [true, true, true, true, false, true, false]
        );
        assert!(store.exceeds_greatest("a", 96).await);
        // Here the same group writes it.
        assert_eq!(
            store.add("b", &[70, 10, 20, 30, 70, 80]).await,
            [true, true, true, true, false, true]
        );
        assert!(store.exceeds_greatest("b", 81).await);
    }

    #[tokio::test]
    async fn partitions_with_common_prefixes_are_distinguished() {
        let store = Fixture::new().await;
        for device in ["a", "a\0", "a\0\u{1}", "aa"] {
            assert_eq!(
                store.add(device, &[5, 10, 20, 30]).await,
                [true; 4],
                "{device:?}"
            );
            assert!(store.exceeds_greatest(device, 31).await);
        }
        for device in ["a", "a\0", "a\0\u{1}", "aa"] {
            assert_eq!(
                store.add(device, &[30, 40]).await,
                [false, true],
                "{device:?}"
            );
        }
    }

    #[test]
    fn number_of_remembered_partitions_is_bounded() {
        let mut greatest_keys = GreatestKeys::default();
        for partition in 0..=PARTITIONS_MAX {
            let partition = partition.to_be_bytes();
            greatest_keys.remember(1, &partition, UserKey::from(&partition[..]));
        }
        assert_eq!(greatest_keys.count, PARTITIONS_MAX / 2 + 1);
        assert_eq!(greatest_keys.greatest[&1].len(), greatest_keys.count);
        assert!(greatest_keys.of(1, &PARTITIONS_MAX.to_be_bytes()).is_some());
    }
}
