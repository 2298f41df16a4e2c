//! Encryption at rest: the contents of the disk, the keys that open it, and the detection of changes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use homeport_engine::{
    Engine, MasterKey, NewTable, OpenError, Options, RestorePoint, SealError, change_master_key,
    copy_sealed, restore, seal_status,
};
use homeport_item::expression::KeyCondition;
use homeport_item::schema::{IndexProjection, IndexSchema, KeyAttribute, StreamView, TableSchema};
use homeport_item::{Item, KeyKind};
use homeport_store::{Get, Put, Query, Scan, Store};

/// A unique text, short enough to stay in one piece wherever it is stored.
const MARKER: &str = "p1ainT3xt!";
/// A unique text in a key.
const KEY_MARKER: &str = "readableKey";

fn key(number: u8) -> MasterKey {
    MasterKey::parse(&format!("{number:02x}5ea1ed").repeat(8)).expect("a key")
}

fn options(master_key: Option<MasterKey>) -> Options {
    Options {
        master_key,
        background_sweep: false,
        workers: 1,
        ..Options::default()
    }
}

fn open(path: &Path, master_key: Option<MasterKey>) -> Result<Engine, OpenError> {
    Engine::open(path, options(master_key))
}

fn schema(name: &str) -> TableSchema {
    let kind = || KeyAttribute::new("kind", KeyKind::S);
    let some = IndexProjection::Include(vec!["secret".to_owned()]);
    TableSchema::new(name, "id", KeyKind::S)
        .with_index(IndexSchema::global("all", kind(), None))
        .with_index(IndexSchema::global("some", kind(), None).projecting(some))
        .with_stream(StreamView::NewAndOldImages)
}

fn thing(id: &str, number: usize) -> Item {
    let number = i64::try_from(number).expect("small");
    Item::new()
        .with("id", format!("{KEY_MARKER}-{id}"))
        .with("kind", "plain")
        .with("n", number)
        .with("secret", format!("{MARKER} {number}"))
}

/// A table with indexes, a stream, history and a backup, written, overwritten and compacted.
async fn fill(engine: &Engine) {
    let created = engine.create_table_with(schema("things"), format!("{{\"owner\":\"{MARKER}\"}}"));
    created.await.expect("a table");
    let history = engine.set_history("things", Some(7));
    history.await.expect("a history");
    for round in 0..2 {
        for id in 0..40 {
            let put = Put::new("things", thing(&id.to_string(), round * 100 + id));
            engine.put(put).await.expect("a put");
        }
        engine.compact().await.expect("compacted");
    }
    let begun = engine.create_table_backup("things", "kept").await;
    let id = begun.expect("begun").id.clone();
    within(|| engine.table_backup(&id).filter(|backup| backup.is_complete)).await;
}

async fn within<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let wait = async {
        loop {
            if let Some(found) = look() {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(60), wait);
    waited.await.expect("timed out")
}

async fn items(engine: &Engine, table: &str) -> BTreeMap<String, Item> {
    let page = engine.scan(Scan::new(table)).await.expect("a page");
    assert_eq!(page.next, None);
    let id = |item: &Item| item.get("id").and_then(|id| id.as_str()).map(str::to_owned);
    let named = page.items.into_iter();
    named
        .map(|item| (id(&item).expect("a key"), item))
        .collect()
}

fn files(path: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![path.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            match path.is_dir() {
                true => folders.push(path),
                false => found.push(path),
            }
        }
    }
    found
}

/// The files in which a text is readable.
fn files_with(path: &Path, text: &str) -> Vec<PathBuf> {
    let has = |path: &PathBuf| {
        let bytes = std::fs::read(path).expect("a file");
        String::from_utf8_lossy(&bytes).contains(text)
    };
    files(path).into_iter().filter(has).collect()
}

fn contents(path: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let read = |path: PathBuf| (path.clone(), std::fs::read(path).expect("a file"));
    files(path).into_iter().map(read).collect()
}

fn seal_error<T>(opened: Result<T, OpenError>) -> SealError {
    match opened {
        Err(OpenError::Seal(error)) => error,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it opened"),
    }
}

#[tokio::test]
async fn only_plain_stores_show_values_on_disk() {
    for sealed in [false, true] {
        let room = tempfile::tempdir().expect("a directory");
        let data = room.path().join("data");
        let master_key = sealed.then(|| key(1));
        let engine = open(&data, master_key.clone()).expect("opens");
        fill(&engine).await;
        let backup = room.path().join("all.backup");
        engine.backup(&backup).await.expect("a backup");
        // While it is open, and after it is closed.
        let while_open = files_with(room.path(), MARKER);
        drop(engine);
        let closed = files_with(room.path(), MARKER);
        drop(open(&data, master_key).expect("opens again"));
        let again = files_with(room.path(), MARKER);
        if sealed {
            let found = [while_open, closed, again].concat();
            assert_eq!(found, Vec::<PathBuf>::new());
        } else {
            let journal = while_open.iter().any(|path| path.ends_with("0.jnl"));
            let table = closed
                .iter()
                .any(|path| path.starts_with(data.join("store/keyspaces")));
            assert!(journal && table, "{while_open:?} {closed:?}");
        }
        // Keys keep their order, so they are readable.
        assert_ne!(files_with(&data, KEY_MARKER), Vec::<PathBuf>::new());
    }
}

#[tokio::test]
async fn sealed_store_works_like_a_plain_one() {
    let room = tempfile::tempdir().expect("a directory");
    for _ in 0..3 {
        let engine = open(room.path(), Some(key(1))).expect("opens");
        if engine.table_names().is_empty() {
            fill(&engine).await;
        }
        let by_index = Query::new("things", KeyCondition::new("kind", "plain")).on_index("all");
        let page = engine.query(by_index).await.expect("a page");
        assert_eq!(page.items.len(), 40);
        let all = items(&engine, "things").await;
        let id = format!("{KEY_MARKER}-7");
        assert_eq!(all[&id], thing("7", 107));
        let changes = engine.changes("things", 0, 1000).expect("changes");
        assert_eq!(changes.changes.len(), 80);
        let report = engine.check().await.expect("a report");
        assert_eq!(report.descriptions, Vec::<String>::new());
        let put = Put::new("things", thing("7", 107));
        engine.put(put).await.expect("a put");
    }
}

#[tokio::test]
async fn wrong_missing_or_extra_keys_are_refused() {
    let room = tempfile::tempdir().expect("a directory");
    let (sealed, plain) = (room.path().join("sealed"), room.path().join("plain"));
    fill(&open(&sealed, Some(key(1))).expect("opens")).await;
    fill(&open(&plain, None).expect("opens")).await;
    let before = contents(room.path());
    let error = seal_error(open(&sealed, Some(key(2))));
    assert!(matches!(error, SealError::OtherKey { .. }), "{error}");
    for fingerprint in [key(1), key(2)].map(|key| key.fingerprint().to_string()) {
        assert!(error.to_string().contains(&fingerprint), "{error}");
    }
    let error = seal_error(open(&sealed, None));
    assert!(matches!(error, SealError::KeyMissing { .. }), "{error}");
    assert!(error.to_string().contains("give the master key"), "{error}");
    let error = seal_error(open(&plain, Some(key(1))));
    assert!(matches!(error, SealError::NotSealed(_)), "{error}");
    assert!(
        error.to_string().contains("homeport encryption seal"),
        "{error}"
    );
    let refused = change_master_key(&sealed, &key(2), &key(3));
    assert!(matches!(seal_error(refused), SealError::OtherKey { .. }));
    let refused = change_master_key(&plain, &key(1), &key(3));
    assert!(matches!(seal_error(refused), SealError::NotSealed(_)));
    assert!(before == contents(room.path()), "something was written");
    assert_eq!(seal_status(&plain).expect("a status"), None);
}

#[tokio::test]
async fn damaged_or_missing_keyring_is_refused() {
    let room = tempfile::tempdir().expect("a directory");
    fill(&open(room.path(), Some(key(1))).expect("opens")).await;
    let keyring = room.path().join("keyring");
    let whole = std::fs::read(&keyring).expect("a keyring");
    let mut flipped = whole.clone();
    flipped[60] ^= 4;
    for damaged in [&flipped[..], &whole[..whole.len() / 2], b""] {
        std::fs::write(&keyring, damaged).expect("damaged");
        let before = contents(room.path());
        for master_key in [None, Some(key(1)), Some(key(2))] {
            let error = seal_error(open(room.path(), master_key));
            assert!(matches!(error, SealError::Damaged { .. }), "{error}");
        }
        assert!(before == contents(room.path()), "something was written");
    }
    std::fs::remove_file(&keyring).expect("removed");
    for master_key in [None, Some(key(1))] {
        let error = seal_error(open(room.path(), master_key));
        assert!(matches!(error, SealError::KeyringMissing(_)), "{error}");
    }
    std::fs::write(&keyring, whole).expect("put back");
    let engine = open(room.path(), Some(key(1))).expect("opens again");
    assert_eq!(items(&engine, "things").await.len(), 40);
}

#[tokio::test]
async fn changed_master_key_opens_old_data() {
    let room = tempfile::tempdir().expect("a directory");
    let data = room.path().join("data");
    let outside = room.path().join("all.backup");
    let engine = open(&data, Some(key(1))).expect("opens");
    fill(&engine).await;
    engine.backup(&outside).await.expect("a backup");
    let before = items(&engine, "things").await;
    let refused = change_master_key(&data, &key(1), &key(2));
    assert!(matches!(refused, Err(OpenError::Locked(_))), "{refused:?}");
    drop(engine);
    let tables = contents(&data.join("store"));
    let status = change_master_key(&data, &key(1), &key(2)).expect("changed");
    assert_eq!(status.fingerprint, key(2).fingerprint());
    assert!(
        tables == contents(&data.join("store")),
        "data was rewritten"
    );
    let error = seal_error(open(&data, Some(key(1))));
    assert!(matches!(error, SealError::OtherKey { .. }), "{error}");
    let engine = open(&data, Some(key(2))).expect("opens");
    assert_eq!(items(&engine, "things").await, before);
    let put = Put::new("things", thing("new", 7));
    engine.put(put).await.expect("a put");
    // Backups of tables are opened by the store's own keyring, after any change of the master key.
    let backup = engine.table_backups()[0].id.clone();
    let target = NewTable {
        schema: schema("restored"),
        settings: String::new(),
    };
    let begun = engine.restore_table_backup(&backup, target).await;
    begun.expect("begun");
    let whole = || {
        let described = engine.describe_table("restored").expect("being restored");
        (!described.is_restoring).then_some(())
    };
    within(whole).await;
    assert_eq!(items(&engine, "restored").await, before);
    // A backup outside the store needs the key of its time.
    for (number, opens) in [(2, false), (1, true)] {
        let restored = room.path().join(format!("restored-{number}"));
        let done = restore(&outside, &restored, options(Some(key(number)))).await;
        assert_eq!(done.is_ok(), opens, "{done:?}");
        assert_eq!(restored.exists(), opens);
    }
}

#[tokio::test]
async fn crash_during_key_change_leaves_one_working_key() {
    let room = tempfile::tempdir().expect("a directory");
    let data = room.path().join("data");
    fill(&open(&data, Some(key(1))).expect("opens")).await;
    let (keyring, unfinished) = (data.join("keyring"), data.join("keyring.new"));
    let old = std::fs::read(&keyring).expect("a keyring");
    change_master_key(&data, &key(1), &key(2)).expect("changed");
    let new = std::fs::read(&keyring).expect("a keyring");
    // The new file is created, written step by step, and then replaces the old one.
    let written = [0, 1, new.len() / 2, new.len()];
    let before_rename = written.map(|len| (Some(&new[..len]), &old, 1));
    for (unfinished_bytes, keyring_bytes, number) in
        before_rename.into_iter().chain([(None, &new, 2)])
    {
        std::fs::write(&keyring, keyring_bytes).expect("written");
        match unfinished_bytes {
            Some(bytes) => std::fs::write(&unfinished, bytes).expect("written"),
            None => std::fs::remove_file(&unfinished).expect("removed"),
        }
        let other = 3 - number;
        assert!(matches!(
            seal_error(open(&data, Some(key(other)))),
            SealError::OtherKey { .. }
        ));
        let engine = open(&data, Some(key(number))).expect("opens");
        assert_eq!(items(&engine, "things").await.len(), 40);
        drop(engine);
        // The change can be repeated.
        std::fs::write(&keyring, keyring_bytes).expect("written");
        change_master_key(&data, &key(number), &key(other)).expect("changed");
        let engine = open(&data, Some(key(other))).expect("opens");
        assert_eq!(items(&engine, "things").await.len(), 40);
        drop(engine);
        std::fs::write(&unfinished, b"").expect("written");
    }
}

#[tokio::test]
async fn sealed_copy_contains_everything() {
    let room = tempfile::tempdir().expect("a directory");
    let (data, sealed, plain) = (
        room.path().join("data"),
        room.path().join("sealed"),
        room.path().join("plain"),
    );
    let engine = open(&data, None).expect("opens");
    fill(&engine).await;
    let before = items(&engine, "things").await;
    let changes = engine.changes("things", 0, 1000).expect("changes");
    let locked = copy_sealed(&data, &sealed, &options(None), Some(key(1)), &[]);
    assert!(locked.is_err(), "it is open");
    drop(engine);
    let copied = copy_sealed(&data, &sealed, &options(None), Some(key(1)), &[]).expect("copied");
    assert_eq!(copied.backups, 1);
    assert!(copied.entries > 40 * 4, "{copied:?}");
    assert_eq!(files_with(&sealed, MARKER), Vec::<PathBuf>::new());
    let again = copy_sealed(&data, &sealed, &options(None), Some(key(1)), &[]);
    assert!(again.is_err(), "the target exists");
    // With other data keys, and back to a plain store.
    let refused = copy_sealed(&sealed, &plain, &options(Some(key(2))), None, &[]);
    assert!(refused.is_err() && !plain.exists(), "it was another's key");
    copy_sealed(&sealed, &plain, &options(Some(key(1))), None, &[]).expect("copied");
    for (path, master_key) in [(&data, None), (&sealed, Some(key(1))), (&plain, None)] {
        let engine = open(path, master_key).expect("opens");
        let report = engine.check().await.expect("a report");
        assert_eq!(report.descriptions, Vec::<String>::new());
        assert_eq!(items(&engine, "things").await, before);
        let kept = engine.changes("things", 0, 1000).expect("changes");
        assert_eq!(kept.changes, changes.changes);
        let backup = engine.table_backups()[0].id.clone();
        let target = |name: &str| NewTable {
            schema: schema(name),
            settings: String::new(),
        };
        let begun = engine.restore_table_backup(&backup, target("from-backup"));
        begun.await.expect("begun");
        let latest = RestorePoint::Latest;
        let begun = engine.restore_table_to("things", latest, target("from-past"));
        begun.await.expect("begun");
        for name in ["from-backup", "from-past"] {
            let whole = || {
                let described = engine.describe_table(name).expect("being restored");
                (!described.is_restoring).then_some(())
            };
            within(whole).await;
            assert_eq!(items(&engine, name).await, before, "{name}");
        }
    }
}

#[tokio::test]
async fn only_sealed_backups_need_their_key() {
    let room = tempfile::tempdir().expect("a directory");
    let at = |name: &str| room.path().join(name);
    for (name, master_key) in [("plain", None), ("sealed", Some(key(1)))] {
        let engine = open(&at(name), master_key).expect("opens");
        fill(&engine).await;
        let file = at(&format!("{name}.backup"));
        engine.backup(&file).await.expect("a backup");
    }
    for name in ["plain", "sealed"] {
        let (file, target) = (
            at(&format!("{name}.backup")),
            at(&format!("{name}-restored")),
        );
        let done = restore(&file, &target, options(Some(key(1)))).await;
        assert_eq!(done.expect("restored").items, 40);
        assert_eq!(files_with(&target, MARKER), Vec::<PathBuf>::new());
        let engine = open(&target, Some(key(1))).expect("opens");
        assert_eq!(items(&engine, "things").await.len(), 40);
    }
    let target = at("without");
    let error = restore(&at("sealed.backup"), &target, options(None)).await;
    let error = error.expect_err("it has no key");
    assert!(error.to_string().contains("give the master key"), "{error}");
    let other = restore(&at("sealed.backup"), &target, options(Some(key(2)))).await;
    let error = other.expect_err("it has another key");
    assert!(
        error.to_string().contains("sealed under the master key"),
        "{error}"
    );
    assert!(!target.exists());
}

#[tokio::test]
async fn copy_of_a_sealed_store_uses_its_own_keys() {
    let room = tempfile::tempdir().expect("a directory");
    let (data, copy) = (room.path().join("data"), room.path().join("copy"));
    fill(&open(&data, Some(key(1))).expect("opens")).await;
    for (path, bytes) in contents(&data) {
        let inside = path.strip_prefix(&data).expect("inside");
        let to = copy.join(inside);
        std::fs::create_dir_all(to.parent().expect("a folder")).expect("made");
        std::fs::write(to, bytes).expect("copied");
    }
    let mut keyrings = Vec::new();
    for path in [&data, &copy] {
        let engine = open(path, Some(key(1))).expect("opens");
        let put = Put::new("things", thing("later", 1));
        engine.put(put).await.expect("a put");
        keyrings.push(std::fs::read(path.join("keyring")).expect("a keyring"));
    }
    assert_eq!(keyrings[0].len(), keyrings[1].len());
    assert_ne!(keyrings[0], keyrings[1]);
    // A value of one store is useless in the other one.
    std::fs::write(data.join("keyring"), &keyrings[1]).expect("swapped");
    let engine = open(&data, Some(key(1))).expect("opens");
    let get = Get::new(
        "things",
        Item::new().with("id", format!("{KEY_MARKER}-later")),
    );
    let error = engine.get(get).await.expect_err("a value of another key");
    assert!(error.to_string().contains("cannot be decrypted"), "{error}");
    let report = engine.check().await.expect("a report");
    let named = report.descriptions.iter();
    let of_item: Vec<_> = named
        .filter(|text| text.contains("readableKey-later"))
        .collect();
    assert_eq!(of_item.len(), 1, "{:?}", report.descriptions);
    assert!(report.problems >= 4, "{:?}", report.descriptions);
}
