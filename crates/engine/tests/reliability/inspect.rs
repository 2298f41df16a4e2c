//! Commands on damaged stores: `check` changes nothing and finds all damage, `salvage` copies the rest.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use homeport_engine::{CheckReport, Engine, NewTable, OpenError, SalvageReport};
use homeport_item::schema::TableSchema;
use homeport_item::{Item, KeyKind};
use homeport_store::{Put, Store};

use crate::copy::copy_directory;
use crate::damage::{files_below, flip};
use crate::incomplete::{cut, fill, options, split_journal};
use crate::verify::{self, Kept};
use crate::workload;

/// The tables whose items do not expire.
const TABLES: [&str; 3] = [workload::PAIRS, workload::MIRRORS, workload::MARKS];

const ENGINE_KEYSPACES: u64 = 7;
const WIDE_ITEMS: u64 = 400;

/// Every file, including locks, with its content and modification time; and the modification time of each
/// folder.
fn everything(directory: &Path) -> BTreeMap<PathBuf, (SystemTime, Vec<u8>)> {
    let changed = |path: &Path| fs::metadata(path).unwrap().modified().unwrap();
    let mut found = BTreeMap::from([(directory.to_owned(), (changed(directory), Vec::new()))]);
    for path in files_below(directory) {
        for folder in path.ancestors().skip(1) {
            if folder.starts_with(directory) {
                found.insert(folder.to_owned(), (changed(folder), Vec::new()));
            }
        }
        let file = (changed(&path), fs::read(&path).unwrap());
        found.insert(path, file);
    }
    found
}

/// Checks a directory, which must stay unchanged.
fn check(directory: &Path, kept: Kept) -> Result<CheckReport, OpenError> {
    let before = everything(directory);
    let checked = homeport_engine::check_directory(directory, &options(kept));
    assert!(everything(directory) == before, "check has changed a file");
    checked
}

/// Salvages a directory, which must stay unchanged. Returns the items of each table.
fn salvage(from: &Path, to: &Path, kept: Kept) -> (SalvageReport, BTreeMap<String, Vec<String>>) {
    let before = everything(from);
    let _ = fs::remove_dir_all(to);
    let runtime = verify::runtime();
    let salvaged = runtime.block_on(homeport_engine::salvage(from, to, options(kept), &[]));
    assert!(everything(from) == before, "salvage has changed a file");
    let report = salvaged.unwrap();
    println!("{report:#?}");
    (report, items_of(to, kept))
}

fn items_of(directory: &Path, kept: Kept) -> BTreeMap<String, Vec<String>> {
    let engine = Engine::open(directory, options(kept)).unwrap();
    verify::runtime().block_on(async {
        assert_eq!(engine.check().await.unwrap().problems, 0);
        let mut tables = BTreeMap::new();
        assert_eq!(engine.table_names().len(), workload::tables().len());
        for name in TABLES {
            verify::check_indexes(&engine, name).await;
            let items = verify::scan(&engine, name, None).await;
            let mut items: Vec<_> = items.iter().map(|item| format!("{item:?}")).collect();
            items.sort();
            tables.insert(name.to_owned(), items);
        }
        tables
    })
}

struct Room {
    room: tempfile::TempDir,
    kept: Kept,
}

impl Room {
    fn new(kept: Kept) -> Self {
        let room = tempfile::tempdir().unwrap();
        fill(&room.path().join("data"), kept);
        Self { room, kept }
    }

    fn copy(&self) -> PathBuf {
        let copy = self.room.path().join("copy");
        let _ = fs::remove_dir_all(&copy);
        copy_directory(&self.room.path().join("data"), &copy);
        copy
    }

    fn salvage(&self, from: &Path) -> (SalvageReport, BTreeMap<String, Vec<String>>) {
        salvage(from, &self.room.path().join("salvaged"), self.kept)
    }

    fn items(&self) -> BTreeMap<String, Vec<String>> {
        items_of(&self.copy(), self.kept)
    }
}

/// The largest table file.
fn table_file(directory: &Path) -> PathBuf {
    let files = files_below(&directory.join("store/keyspaces")).into_iter();
    files
        .filter(|path| path.parent().unwrap().ends_with("tables"))
        .filter(|path| !path.to_string_lossy().contains("keyspaces/0/"))
        .max_by_key(|path| fs::metadata(path).unwrap().len())
        .unwrap()
}

#[test]
fn check_does_not_change_a_healthy_store() {
    for kept in [Kept::Plain, Kept::Sealed] {
        let room = Room::new(kept);
        let report = check(&room.copy(), kept).unwrap();
        assert_eq!(report.descriptions, Vec::<String>::new());
        assert_eq!(report.tables, 4);
        assert!(report.items > 0 && report.table_files > 0, "{report:?}");
    }
}

#[test]
fn check_does_not_change_a_killed_store() {
    let room = tempfile::tempdir().unwrap();
    let (data, killed) = (room.path().join("data"), room.path().join("killed"));
    verify::runtime().block_on(async {
        let engine = Engine::open(&data, options(Kept::Plain)).unwrap();
        engine.ensure_tables(&workload::tables()).await.unwrap();
        for number in 1_000_001..1_000_020 {
            workload::write(&engine, number).await.unwrap();
        }
        // The files that a process leaves that dies now.
        copy_directory(&data, &killed);
    });
    let report = check(&killed, Kept::Plain).unwrap();
    assert_eq!(report.descriptions, Vec::<String>::new());
    assert_eq!(report.tables, 4);
}

#[test]
fn check_does_not_change_rotated_journals() {
    let room = tempfile::tempdir().unwrap();
    let middle = fill(room.path(), Kept::Plain);
    split_journal(room.path(), middle);
    let report = check(room.path(), Kept::Plain).unwrap();
    assert_eq!(report.descriptions, Vec::<String>::new());
    assert_eq!(report.tables, 4);
}

#[test]
fn check_finds_every_flipped_bit_in_table_files() {
    let room = Room::new(Kept::Plain);
    let copy = room.copy();
    let table = table_file(&copy);
    let len = fs::metadata(&table).unwrap().len();
    for part in 0..12 {
        let at = (len - 1) * part / 11;
        flip(&table, at, 3);
        match check(&copy, Kept::Plain) {
            Ok(report) => {
                let path = table.display().to_string();
                let is_named = report.descriptions.iter().any(|text| text.contains(&path));
                assert!(is_named, "byte {at}: {report:?}");
            }
            Err(error) => println!("byte {at}: {error}"),
        }
        flip(&table, at, 3);
    }
    assert_eq!(check(&copy, Kept::Plain).unwrap().problems, 0);
}

#[test]
fn check_refuses_a_store_with_a_cut_journal() {
    let room = Room::new(Kept::Plain);
    for per_mille in [500, 999] {
        let copy = room.copy();
        cut(&copy.join("store/0.jnl"), per_mille);
        let error = check(&copy, Kept::Plain).unwrap_err().to_string();
        assert!(error.contains("was acknowledged"), "{error}");
    }
    let copy = room.copy();
    fs::remove_file(copy.join("store/0.jnl")).unwrap();
    let error = check(&copy, Kept::Plain).unwrap_err().to_string();
    assert!(error.contains("the journal is missing"), "{error}");
}

#[test]
fn salvage_of_a_healthy_store_is_complete() {
    for kept in [Kept::Plain, Kept::Sealed] {
        let room = Room::new(kept);
        let (report, items) = room.salvage(&room.copy());
        assert!(report.is_complete());
        assert_eq!(items, room.items());
        assert_eq!(report.tables, 4);
    }
}

#[test]
fn salvage_recovers_table_files_without_the_journal() {
    let room = Room::new(Kept::Plain);
    let copy = room.copy();
    fs::remove_file(copy.join("store/0.jnl")).unwrap();
    let (report, items) = room.salvage(&copy);
    assert!(!report.is_complete());
    let texts = report.descriptions.join("\n");
    assert!(texts.contains("all journals are missing"), "{texts}");
    let whole = room.items();
    for table in TABLES {
        assert!(!items[table].is_empty(), "{table}");
    }
    assert!(items[workload::MARKS].len() < whole[workload::MARKS].len());
    for mark in &items[workload::MARKS] {
        assert!(whole[workload::MARKS].contains(mark), "{mark}");
    }
}

#[test]
fn salvage_recovers_a_cut_journal_and_counts_the_rest() {
    let room = Room::new(Kept::Plain);
    let whole = room.items();
    for (per_mille, at_least) in [(500, 1), (999, 40)] {
        let copy = room.copy();
        cut(&copy.join("store/0.jnl"), per_mille);
        let (report, items) = room.salvage(&copy);
        let texts = report.descriptions.join("\n");
        assert!(texts.contains("are in no journal"), "{texts}");
        assert!(items[workload::MARKS].len() >= at_least, "{per_mille}");
        assert!(items[workload::MARKS].len() < whole[workload::MARKS].len());
    }
}

#[test]
fn salvage_recovers_a_store_without_its_lists() {
    let room = Room::new(Kept::Plain);
    let whole = room.items();
    let copy = room.copy();
    for name in [
        "MARK",
        "FORMAT",
        "store/version",
        "store/keyspaces/0/current",
    ] {
        fs::remove_file(copy.join(name)).unwrap();
    }
    let (report, items) = room.salvage(&copy);
    assert!(!report.is_complete());
    assert_eq!(items, whole);
}

/// The table files of tables and indexes, whose keyspaces follow those of the engine itself.
fn table_files_of_tables(directory: &Path) -> Vec<PathBuf> {
    let files = files_below(&directory.join("store/keyspaces")).into_iter();
    files
        .filter(|path| path.parent().unwrap().ends_with("tables"))
        .filter(|path| {
            let number = path.iter().rev().nth(2).unwrap().to_str().unwrap();
            number.parse::<u64>().unwrap() > ENGINE_KEYSPACES
        })
        .collect()
}

#[test]
fn salvage_reports_losses_from_a_damaged_table_file() {
    let room = Room::new(Kept::Plain);
    let copy = room.copy();
    fs::remove_file(copy.join("store/0.jnl")).unwrap();
    let tables = table_files_of_tables(&copy);
    for table in &tables {
        flip(table, 60, 1);
    }
    let (report, _) = room.salvage(&copy);
    let texts = report.descriptions.join("\n");
    let is_named = |path: &PathBuf| texts.contains(&path.display().to_string());
    assert!(tables.iter().any(is_named), "{texts}");
}

#[test]
fn salvage_skips_the_journal_of_another_store() {
    let room = Room::new(Kept::Plain);
    let other = Room::new(Kept::Plain);
    let copy = room.copy();
    let journal = Path::new("store/0.jnl");
    fs::copy(other.copy().join(journal), copy.join(journal)).unwrap();
    let (report, items) = room.salvage(&copy);
    let texts = report.descriptions.join("\n");
    assert!(texts.contains("another store"), "{texts}");
    assert!(!items[workload::MARKS].is_empty());
}

/// A table whose items fill many blocks of a table file.
async fn fill_wide_table(engine: &Engine) {
    let schema = TableSchema::new("wide", "id", KeyKind::S).with_ttl("expires");
    let settings = "kept".to_owned();
    engine.create_table_with(schema, settings).await.unwrap();
    for id in 0..WIDE_ITEMS {
        let text = format!("{id:05} ").repeat(50);
        let item = Item::new()
            .with("id", format!("{id:05}"))
            .with("text", text);
        engine.put(Put::new("wide", item)).await.unwrap();
    }
    engine.set_history("wide", Some(7)).await.unwrap();
    let backup = engine.create_table_backup("wide", "before").await.unwrap();
    reached(|| engine.table_backup(&backup.id).unwrap().is_complete).await;
    engine.compact().await.unwrap();
}

async fn reached(state: impl Fn() -> bool) {
    let waiting = async {
        while !state() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(30), waiting);
    waited.await.unwrap();
}

#[test]
fn salvage_recovers_items_after_a_damaged_block() {
    for kept in [Kept::Plain, Kept::Sealed] {
        let room = tempfile::tempdir().unwrap();
        let (data, salvaged) = (room.path().join("data"), room.path().join("salvaged"));
        verify::runtime().block_on(async {
            let engine = Engine::open(&data, options(kept)).unwrap();
            fill_wide_table(&engine).await;
        });
        let table = table_file(&data);
        fs::remove_file(data.join("store/0.jnl")).unwrap();
        flip(&table, fs::metadata(&table).unwrap().len() / 2, 4);
        let before = everything(&data);
        let runtime = verify::runtime();
        let report = runtime.block_on(homeport_engine::salvage(
            &data,
            &salvaged,
            options(kept),
            &[],
        ));
        let report = report.unwrap();
        assert!(everything(&data) == before);
        let texts = report.descriptions.join("\n");
        assert!(texts.contains("table wide: items after {"), "{texts}");
        assert!(report.items < WIDE_ITEMS && report.items > WIDE_ITEMS * 9 / 10);
        assert_eq!(report.backups, 1);
        let checked = check(&salvaged, kept).unwrap();
        assert_eq!(checked.descriptions, Vec::<String>::new());
        let engine = Engine::open(&salvaged, options(kept)).unwrap();
        let described = engine.describe_table("wide").unwrap();
        assert_eq!(described.settings, "kept");
        assert_eq!(described.schema.ttl_attribute.as_deref(), Some("expires"));
        assert_eq!(described.history.unwrap().period_days, 7);
        let backup = engine.table_backups().remove(0);
        let restored = NewTable {
            schema: TableSchema::new("again", "id", KeyKind::S),
            settings: String::new(),
        };
        runtime.block_on(async {
            let begun = engine.restore_table_backup(&backup.id, restored).await;
            begun.unwrap();
            reached(|| !engine.describe_table("again").unwrap().is_restoring).await;
            let items = verify::scan(&engine, "again", None).await;
            assert_eq!(items.len() as u64, WIDE_ITEMS);
        });
    }
}

#[test]
fn check_finds_damaged_backups_of_tables() {
    for kept in [Kept::Plain, Kept::Sealed] {
        let room = tempfile::tempdir().unwrap();
        let data = room.path().join("data");
        verify::runtime().block_on(async {
            let engine = Engine::open(&data, options(kept)).unwrap();
            fill_wide_table(&engine).await;
        });
        let report = check(&data, kept).unwrap();
        assert_eq!((report.backups, report.problems), (1, 0), "{report:?}");
        let backup = files_below(&data.join("backups")).remove(0);
        let whole = fs::read(&backup).unwrap();
        let damages: [&dyn Fn(); 3] = [
            &|| cut(&backup, 500),
            &|| flip(&backup, whole.len() as u64 / 2, 4),
            &|| fs::remove_file(&backup).unwrap(),
        ];
        for damage in damages {
            fs::write(&backup, &whole).unwrap();
            damage();
            let report = check(&data, kept).unwrap();
            assert_eq!(report.problems, 1, "{report:?}");
            let text = &report.descriptions[0];
            assert!(text.contains("of table wide"), "{text}");
        }
    }
}

#[test]
fn salvage_reports_a_table_file_of_another_store() {
    let room = Room::new(Kept::Plain);
    let other = Room::new(Kept::Plain);
    let (copy, foreign) = (room.copy(), other.copy());
    let mut swapped = 0;
    for table in table_files_of_tables(&copy) {
        let other = foreign.join(table.strip_prefix(&copy).unwrap());
        if other.exists() {
            fs::copy(other, &table).unwrap();
            swapped += 1;
        }
    }
    assert!(swapped > 0);
    let (report, _) = room.salvage(&copy);
    let texts = report.descriptions.join("\n");
    assert!(texts.contains("or belong to another store"), "{texts}");
}

#[test]
fn salvage_lists_tables_of_a_damaged_catalogue() {
    let room = Room::new(Kept::Plain);
    let copy = room.copy();
    fs::remove_file(copy.join("store/0.jnl")).unwrap();
    // The catalogue is the first keyspace.
    fs::remove_dir_all(copy.join("store/keyspaces/1")).unwrap();
    let to = room.room.path().join("salvaged");
    let runtime = verify::runtime();
    let salvaged = runtime.block_on(homeport_engine::salvage(
        &copy,
        &to,
        options(Kept::Plain),
        &[],
    ));
    let report = salvaged.unwrap();
    let texts = report.descriptions.join("\n");
    assert!(
        texts.contains("\"catalogue\": its folder is missing"),
        "{texts}"
    );
    assert!(texts.contains("entries of a table or index"), "{texts}");
}

#[test]
fn salvage_into_the_damaged_directory_is_refused() {
    let room = Room::new(Kept::Plain);
    let copy = room.copy();
    let before = everything(&copy);
    let to = copy.join("new/salvaged");
    let runtime = verify::runtime();
    let refused = runtime.block_on(homeport_engine::salvage(
        &copy,
        &to,
        options(Kept::Plain),
        &[],
    ));
    assert!(refused.is_err());
    assert!(everything(&copy) == before);
}
