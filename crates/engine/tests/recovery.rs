//! Data directories that are restored from a backup or salvaged from a damaged one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use homeport_engine::{Engine, ManualClock, Options, restore, salvage};
use homeport_item::schema::{IndexSchema, KeyAttribute, TableSchema};
use homeport_item::{Item, KeyKind};
use homeport_store::{Get, Put, Store as _};

const START_MS: i64 = 1_800_000_000_000;
const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// A data directory and places for copies of it.
struct TestDirectories {
    folder: tempfile::TempDir,
    clock: Arc<ManualClock>,
}

impl TestDirectories {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().expect("a directory"),
            clock: Arc::new(ManualClock::at_ms(START_MS)),
        }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn options(&self) -> Options {
        Options {
            clock: Arc::clone(&self.clock) as _,
            background_sweep: false,
            ..Options::default()
        }
    }

    fn open(&self, path: &Path) -> Engine {
        Engine::open(path, self.options()).expect("opens")
    }

    /// Opens a new store with a table `things`.
    async fn engine(&self) -> Engine {
        let engine = self.open(&self.at("data"));
        let table = TableSchema::new("things", "id", KeyKind::S).with_ttl("until");
        engine.create_table(table).await.expect("a table");
        engine
    }
}

async fn put(engine: &Engine, item: Item) {
    engine.put(Put::new("things", item)).await.expect("a put");
}

async fn get(engine: &Engine, id: &str) -> Option<Item> {
    let get = Get::new("things", Item::new().with("id", id));
    engine.get(get).await.expect("a get")
}

/// Adds an index on the string `x`, which skips an item whose `x` is a number.
async fn with_skipped_item(directories: &TestDirectories) -> Engine {
    let engine = directories.engine().await;
    put(&engine, Item::new().with("id", "number").with("x", 1)).await;
    let by_x = IndexSchema::global("by-x", KeyAttribute::new("x", KeyKind::S), None);
    engine.add_index("things", by_x).await.expect("an index");
    engine.wait_until_built("things").await.expect("built");
    put(&engine, Item::new().with("id", "string").with("x", "a")).await;
    engine
}

async fn expect_both_items(engine: &Engine) {
    assert!(get(engine, "number").await.is_some());
    assert!(get(engine, "string").await.is_some());
    let report = engine.check().await.expect("checked");
    assert_eq!(report.problems, 0, "{:?}", report.descriptions);
    assert_eq!(report.index_entries, 1);
}

#[tokio::test]
async fn restore_keeps_items_that_an_index_skips() {
    let directories = TestDirectories::new();
    let engine = with_skipped_item(&directories).await;
    let backup = directories.at("backup");
    engine.backup(&backup).await.expect("a backup");
    let path = directories.at("restored");
    let summary = restore(&backup, &path, directories.options()).await;
    assert_eq!(summary.expect("restored").items, 2);
    expect_both_items(&directories.open(&path)).await;
}

#[tokio::test]
async fn salvage_copies_items_that_an_index_skips() {
    let directories = TestDirectories::new();
    drop(with_skipped_item(&directories).await);
    let path = directories.at("salvaged");
    let report = salvage(&directories.at("data"), &path, directories.options(), &[]).await;
    let report = report.expect("salvaged");
    assert_eq!((report.items, report.problems), (2, 0), "{report:?}");
    expect_both_items(&directories.open(&path)).await;
}

/// A new store with an item that expires in 30 days.
async fn with_expiring_item(directories: &TestDirectories) -> Engine {
    let engine = directories.engine().await;
    let until = (START_MS + 30 * DAY_MS) / 1000;
    put(&engine, Item::new().with("id", "a").with("until", until)).await;
    engine
}

/// Sweeps while the clock is far ahead, and expects the item once the clock is right again.
async fn expect_nothing_expires(directories: &TestDirectories, path: &Path) {
    let engine = directories.open(path);
    assert!(engine.clock_status().is_suspended);
    engine.sweep().await.expect("swept");
    directories.clock.advance_ms(-400 * DAY_MS);
    assert!(get(&engine, "a").await.is_some());
}

#[tokio::test]
async fn restored_store_does_not_trust_a_clock_jump() {
    let directories = TestDirectories::new();
    let engine = with_expiring_item(&directories).await;
    let backup = directories.at("backup");
    engine.backup(&backup).await.expect("a backup");
    directories.clock.advance_ms(400 * DAY_MS);
    let path = directories.at("restored");
    let restored = restore(&backup, &path, directories.options()).await;
    restored.expect("restored");
    expect_nothing_expires(&directories, &path).await;
}

#[tokio::test]
async fn salvaged_store_does_not_trust_a_clock_jump() {
    let directories = TestDirectories::new();
    drop(with_expiring_item(&directories).await);
    directories.clock.advance_ms(400 * DAY_MS);
    let path = directories.at("salvaged");
    let report = salvage(&directories.at("data"), &path, directories.options(), &[]).await;
    assert!(report.expect("salvaged").is_complete());
    expect_nothing_expires(&directories, &path).await;
}

#[tokio::test]
async fn empty_restored_store_keeps_the_commit_time() {
    let directories = TestDirectories::new();
    let engine = directories.open(&directories.at("data"));
    let backup = directories.at("backup");
    engine.backup(&backup).await.expect("a backup");
    let path = directories.at("restored");
    let restored = restore(&backup, &path, directories.options()).await;
    restored.expect("restored");
    directories.clock.advance_ms(400 * DAY_MS);
    assert!(directories.open(&path).clock_status().is_suspended);
}

#[cfg(unix)]
mod permissions {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use homeport_engine::copy_sealed;

    use super::*;

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("set");
    }

    /// Folders have mode 0700 and files 0600.
    fn expect_private(path: &Path) {
        let found = fs::metadata(path).expect("there");
        let expected = if found.is_dir() { 0o700 } else { 0o600 };
        let mode = found.permissions().mode() & 0o777;
        assert_eq!(mode, expected, "{}", path.display());
        if found.is_dir() {
            for entry in fs::read_dir(path).expect("a folder") {
                expect_private(&entry.expect("an entry").path());
            }
        }
    }

    /// A new data directory is private, and its next start makes all files in it private.
    fn expect_owner_only(directory: &Path) {
        let found = fs::metadata(directory).expect("there");
        assert_eq!(found.permissions().mode() & 0o777, 0o700);
        let options = Options {
            background_sweep: false,
            ..Options::default()
        };
        drop(Engine::open(directory, options).expect("opens"));
        expect_private(directory);
    }

    /// A closed data directory with a secret that other users may read.
    async fn with_open_secret(directories: &TestDirectories) -> PathBuf {
        drop(with_expiring_item(directories).await);
        let secret = directories.at("data").join("token");
        fs::write(&secret, "secret").expect("written");
        set_mode(&secret, 0o644);
        directories.at("data")
    }

    #[tokio::test]
    async fn salvaged_store_is_private_with_its_secrets() {
        let directories = TestDirectories::new();
        let data = with_open_secret(&directories).await;
        let path = directories.at("salvaged");
        let report = salvage(&data, &path, directories.options(), &["token", "missing"]).await;
        report.expect("salvaged");
        assert_eq!(fs::read(path.join("token")).expect("copied"), b"secret");
        expect_private(&path.join("token"));
        expect_owner_only(&path);
    }

    #[tokio::test]
    async fn sealed_copy_is_private_with_its_secrets() {
        let directories = TestDirectories::new();
        let data = with_open_secret(&directories).await;
        let path = directories.at("copy");
        let copied = copy_sealed(&data, &path, &directories.options(), None, &["token"]);
        copied.expect("copied");
        assert_eq!(fs::read(path.join("token")).expect("copied"), b"secret");
        expect_private(&path.join("token"));
    }

    #[tokio::test]
    async fn restored_store_is_private() {
        let directories = TestDirectories::new();
        let backup = directories.at("backup");
        let engine = with_expiring_item(&directories).await;
        engine.backup(&backup).await.expect("a backup");
        let path = directories.at("restored");
        let restored = restore(&backup, &path, directories.options()).await;
        restored.expect("restored");
        expect_owner_only(&path);
        expect_private(&backup);
    }
}
