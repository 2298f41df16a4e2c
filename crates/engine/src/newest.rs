//! The greatest keys of partitions that items are appended to.
//!
//! A device sends its readings in the order of time. Whether one is there already would have to be
//! looked up in everything that is in memory and in the filter of every file; behind the greatest key of its
//! partition there is nothing.

use homeport_item::KeyKind;
use rustc_hash::FxHashMap;

use crate::layout::TableId;
use crate::table::Table;
use crate::vault::UserKey;

/// Partitions that are remembered; when there are more, every other one is forgotten.
const PARTITIONS_MAX: usize = 16 * 1024;
/// So many items of a partition must be missed in a row before its greatest key is found out, which costs about as
/// much as looking these up.
const MISSES_MIN: usize = 4;

#[derive(Default)]
pub(crate) struct Newest {
    /// No item of the partition has a greater key, also among those that are not written yet.
    greatest: FxHashMap<TableId, FxHashMap<Vec<u8>, UserKey>>,
    count: usize,
    /// Where items were looked up last and were not there.
    missed: Missed,
}

#[derive(Default)]
struct Missed {
    table: TableId,
    partition: Vec<u8>,
    in_a_row: usize,
}

impl Newest {
    /// Whether a key is known to be behind all items of its partition: there is no such item.
    pub(crate) fn is_behind_all(&self, table: &Table, key: &[u8]) -> bool {
        let greatest = partition(table, key).and_then(|partition| self.of(table.id(), partition));
        greatest.is_some_and(|greatest| key > greatest.as_ref())
    }

    /// Takes note of an item that was looked up and is not there. Returns its partition if it pays to find out
    /// the greatest key of it.
    pub(crate) fn missed<'k>(&mut self, table: &Table, key: &'k [u8]) -> Option<&'k [u8]> {
        let partition = partition(table, key)?;
        let missed = &mut self.missed;
        if missed.table != table.id() || missed.partition != partition {
            missed.table = table.id();
            missed.partition.clear();
            missed.partition.extend_from_slice(partition);
            missed.in_a_row = 0;
        }
        missed.in_a_row += 1;
        let pays = missed.in_a_row >= MISSES_MIN && self.of(table.id(), partition).is_none();
        pays.then_some(partition)
    }

    pub(crate) fn learn(&mut self, table: TableId, partition: &[u8], greatest: UserKey) {
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

    /// Takes note of an item that is stored.
    pub(crate) fn stored(&mut self, table: &Table, key: &UserKey) {
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

/// The start that all keys of the item's partition have in common, where items can be appended to it.
fn partition<'k>(table: &Table, key: &'k [u8]) -> Option<&'k [u8]> {
    if table.key.sort.is_none() || table.key.partition.kind == KeyKind::N {
        return None;
    }
    // Strings and bytes end with 00 01, which is nowhere else in them.
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
    use crate::layout;
    use crate::options::Options;

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

        /// Stores readings in one call; whether each was new.
        async fn add(&self, device: &str, times: &[u64]) -> Vec<bool> {
            let transactions = times.iter().map(|at| {
                let put = Put::new("readings", reading(device, *at));
                let put = put.when(Condition::not_exists("device"));
                Transaction::new(vec![put.into()])
            });
            let outcomes = self.engine.transact_each(transactions.collect()).await;
            outcomes.iter().map(Result::is_ok).collect()
        }

        async fn is_behind_all(&self, device: &str, at: u64) -> bool {
            let key = layout::item_key(&Value::from(device), Some(&Value::from(at)));
            let asked = self.engine.shared().exclusive(move |committer| {
                let table = committer.shared.catalogue.table("readings").unwrap();
                committer.newest.is_behind_all(&table, &key)
            });
            asked.await.unwrap()
        }
    }

    fn reading(device: &str, at: u64) -> Item {
        Item::new().with("device", device).with("at", at)
    }

    #[tokio::test]
    async fn what_is_appended_is_new_and_what_is_there_is_found() {
        let store = Fixture::new().await;
        assert_eq!(store.add("a", &[10]).await, [true]);
        assert!(!store.is_behind_all("a", 20).await);
        assert_eq!(store.add("a", &[20, 30]).await, [true; 2]);
        assert!(!store.is_behind_all("a", 31).await);
        assert_eq!(store.add("a", &[40]).await, [true]);
        assert!(store.is_behind_all("a", 41).await);
        assert!(!store.is_behind_all("a", 40).await);
        assert!(!store.is_behind_all("b", 41).await);
        // Again, in between, before all, and twice in one call.
        assert_eq!(store.add("a", &[10, 40, 30]).await, [false; 3]);
        assert_eq!(
            store.add("a", &[35, 35, 5, 5]).await,
            [true, false, true, false]
        );
        assert_eq!(
            store.add("a", &[50, 60, 50, 60]).await,
            [true, true, false, false]
        );
        assert!(!store.is_behind_all("a", 60).await);
    }

    #[tokio::test]
    async fn the_greatest_key_of_a_partition_may_be_removed_and_stored_again() {
        let store = Fixture::new().await;
        assert_eq!(store.add("a", &[5, 10, 20, 30]).await, [true; 4]);
        assert!(store.is_behind_all("a", 31).await);
        let delete = Delete::new("readings", reading("a", 30));
        store.engine.delete(delete).await.unwrap();
        assert_eq!(store.add("a", &[30, 30, 40]).await, [true, false, true]);
    }

    #[tokio::test]
    async fn what_other_groups_and_the_same_one_write_counts() {
        let store = Fixture::new().await;
        assert_eq!(store.add("a", &[90]).await, [true]);
        // The fourth that is not there has the greatest looked up, which is in a group before.
        assert_eq!(
            store.add("a", &[10, 20, 30, 40, 90, 95, 95]).await,
            [true, true, true, true, false, true, false]
        );
        assert!(store.is_behind_all("a", 96).await);
        // Here it is in the same group.
        assert_eq!(
            store.add("b", &[70, 10, 20, 30, 70, 80]).await,
            [true, true, true, true, false, true]
        );
        assert!(store.is_behind_all("b", 81).await);
    }

    #[tokio::test]
    async fn partitions_that_begin_alike_are_told_apart() {
        let store = Fixture::new().await;
        for device in ["a", "a\0", "a\0\u{1}", "aa"] {
            assert_eq!(
                store.add(device, &[5, 10, 20, 30]).await,
                [true; 4],
                "{device:?}"
            );
            assert!(store.is_behind_all(device, 31).await);
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
    fn more_partitions_than_are_remembered_are_forgotten() {
        let mut newest = Newest::default();
        for partition in 0..=PARTITIONS_MAX {
            let partition = partition.to_be_bytes();
            newest.learn(1, &partition, UserKey::from(&partition[..]));
        }
        assert_eq!(newest.count, PARTITIONS_MAX / 2 + 1);
        assert_eq!(newest.greatest[&1].len(), newest.count);
        assert!(newest.of(1, &PARTITIONS_MAX.to_be_bytes()).is_some());
    }
}
