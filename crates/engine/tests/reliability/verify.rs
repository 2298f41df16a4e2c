//! The invariants of a data directory, whatever happened to its process.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use homeport_engine::{Durability, Engine, ManualClock, MasterKey, Options};
use homeport_item::schema::{IndexSchema, TableSchema};
use homeport_item::{Item, Value};
use homeport_store::{Scan, Store, StoreError};

use crate::workload::{self, BRIEF, MARKS, MIRRORS, PAIRS, SECOND_MIRROR};

/// Options with a fixed clock at the present, so that two reads see the same items.
pub(crate) fn options() -> Options {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Options {
        clock: Arc::new(ManualClock::at_ms(now.as_millis() as i64)),
        background_sweep: false,
        durability: Durability::Sync,
        workers: 1,
        ..Options::default()
    }
}

/// Whether values are sealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    Plain,
    Sealed,
    /// With another master key.
    SealedAnew,
}

impl Kept {
    /// With the other of the two master keys.
    pub(crate) fn rotated(self) -> Self {
        match self {
            Self::Plain => Self::Plain,
            Self::Sealed => Self::SealedAnew,
            Self::SealedAnew => Self::Sealed,
        }
    }

    /// The key to open a directory with.
    pub(crate) fn master_key(self) -> Option<MasterKey> {
        let text = match self {
            Self::Plain => return None,
            Self::Sealed => "5ea1ed00",
            Self::SealedAnew => "0123abcd",
        };
        Some(MasterKey::parse(&text.repeat(8)).unwrap())
    }
}

/// Opens the directory of a child and checks everything. `acknowledged` are the numbers of the transactions
/// that were acknowledged to it.
pub(crate) fn check_directory(path: &Path, kept: Kept, acknowledged: &[u64]) {
    runtime().block_on(async {
        let options = Options {
            master_key: kept.master_key(),
            ..options()
        };
        let engine = Engine::open(path, options)
            .unwrap_or_else(|error| panic!("cannot open after the crash: {error}"));
        check(&engine, acknowledged).await;
    });
}

pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

/// Checks that every acknowledged transaction is present, none is partial, and that indexes and change log
/// match the tables.
pub(crate) async fn check(engine: &Engine, acknowledged: &[u64]) {
    if engine.table_names().len() < workload::tables().len() {
        assert!(acknowledged.is_empty(), "acknowledged without tables");
        return;
    }
    let marks: BTreeSet<u64> = scan(engine, MARKS, None)
        .await
        .iter()
        .map(|item| workload::number_in(item, "number"))
        .collect();
    let lost: Vec<_> = acknowledged
        .iter()
        .filter(|number| !marks.contains(number))
        .collect();
    assert!(lost.is_empty(), "acknowledged and lost: {lost:?}");

    // The newest mark of a slot determines what its items must contain.
    let mut newest: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    for number in &marks {
        let slot = (workload::writer_of(*number), workload::slot_of(*number));
        let entry = newest.entry(slot).or_default();
        *entry = (*entry).max(*number);
    }
    let mut expected = BTreeSet::new();
    for ((writer, slot), number) in &newest {
        let owner = workload::owner(*writer);
        expected.insert((PAIRS, owner.clone(), *slot, *number));
        expected.insert((MIRRORS, owner.clone(), *slot, *number));
        expected.insert((MIRRORS, owner, slot + SECOND_MIRROR, *number));
    }
    let mut found = BTreeSet::new();
    for table in [PAIRS, MIRRORS] {
        for item in scan(engine, table, None).await {
            let Some(Value::S(owner)) = item.get("owner") else {
                panic!("no owner in {item:?}");
            };
            let slot = workload::number_in(&item, "slot");
            let number = workload::number_in(&item, "value");
            found.insert((table, owner.clone(), slot, number));
        }
    }
    assert_eq!(found, expected, "half a transaction");

    let report = engine.check().await.unwrap();
    assert_eq!(report.descriptions, Vec::<String>::new());
    for table in [PAIRS, MIRRORS, BRIEF] {
        check_indexes(engine, table).await;
    }
    for table in [PAIRS, BRIEF] {
        check_change_log(engine, table).await;
    }
}

/// Reads every table, index and change log, and reads items one by one, which reads blocks that a scan does
/// not.
pub(crate) async fn read_all(engine: &Engine) -> Result<(), StoreError> {
    for table in engine.table_names() {
        let schema = engine.describe_table(&table).unwrap().schema;
        let sources = schema.indexes.iter().map(|index| Some(index.name.clone()));
        for index in sources.chain([None]) {
            let mut scan = Scan::new(&table);
            scan.index = index;
            engine.scan(scan).await?;
        }
        if schema.stream.is_some() {
            engine.changes(&table, 0, 1000)?;
        }
    }
    engine.check().await?;
    Ok(())
}

/// All items of a table or index.
pub(crate) async fn scan(engine: &Engine, table: &str, index: Option<&str>) -> Vec<Item> {
    let mut items = Vec::new();
    let mut start = None;
    loop {
        let mut request = Scan::new(table).starting_after(start);
        request.index = index.map(str::to_owned);
        let page = engine.scan(request).await.unwrap();
        items.extend(page.items);
        match page.next {
            Some(next) => start = Some(next),
            None => return items,
        }
    }
}

/// Every index of a table matches its items exactly.
pub(crate) async fn check_indexes(engine: &Engine, table: &str) {
    let schema = engine.describe_table(table).unwrap().schema;
    let items = scan(engine, table, None).await;
    for index in &schema.indexes {
        let expected = sorted(entries(&schema, index, &items));
        let found = sorted(scan(engine, table, Some(&index.name)).await);
        assert_eq!(found, expected, "index {} of {table}", index.name);
    }
}

/// The expected contents of an index over `items`.
pub(crate) fn entries(schema: &TableSchema, index: &IndexSchema, items: &[Item]) -> Vec<Item> {
    items
        .iter()
        .filter(|item| index.key.values(item).is_ok())
        .map(|item| {
            item.iter()
                .filter(|(name, _)| index.projects(&schema.key, name))
                .map(|(name, value)| (name, value.clone()))
                .collect()
        })
        .collect()
}

fn sorted(items: Vec<Item>) -> Vec<String> {
    let mut texts: Vec<_> = items.iter().map(|item| format!("{item:?}")).collect();
    texts.sort_unstable();
    texts
}

/// Replaying the change log gives the current table.
async fn check_change_log(engine: &Engine, table: &str) {
    let replayed: Vec<_> = replay(engine, table).into_values().collect();
    let now_secs = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs();
    // The log has expired items until they are swept, but they are no longer visible; items that expire right
    // now may be either.
    let visible = |items: Vec<Item>| -> Vec<String> {
        sorted(
            items
                .into_iter()
                .filter(|item| {
                    table != BRIEF || workload::number_in(item, "expires") > now_secs + 1
                })
                .collect(),
        )
    };
    let items = scan(engine, table, None).await;
    assert_eq!(visible(replayed), visible(items), "change log of {table}");
}

/// The items that result from replaying the change log of a table.
pub(crate) fn replay(engine: &Engine, table: &str) -> BTreeMap<String, Item> {
    let mut items = BTreeMap::new();
    let mut from = 0;
    let mut last = None;
    loop {
        let page = engine.changes(table, from, 100).unwrap();
        if page.changes.is_empty() {
            return items;
        }
        for change in page.changes {
            assert!(last < Some(change.sequence), "sequence numbers must ascend");
            last = Some(change.sequence);
            let key = format!("{:?}", change.key);
            let before = match change.new {
                Some(new) => items.insert(key, new),
                None => items.remove(&key),
            };
            assert_eq!(before, change.old, "old image of change {last:?}");
        }
        from = page.next;
    }
}
