//! The binary as a person meets it: started, stopped, checked, backed up and restored.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use homeport_engine::{Engine, Options};
use homeport_item::schema::{StreamView, TableSchema};
use homeport_item::{Item, KeyKind};
use homeport_store::{Get, Put, Store};

fn homeport(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_homeport"));
    command.args(arguments);
    command
}

fn run(arguments: &[&str]) -> Output {
    homeport(arguments).output().expect("the binary runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn path(path: &Path) -> &str {
    path.to_str().expect("a UTF-8 path")
}

async fn fill(directory: &Path) {
    let engine = Engine::open(directory, Options::default()).expect("opens");
    let table = TableSchema::new("things", "id", KeyKind::S).with_stream(StreamView::NewImage);
    engine
        .create_table_with(table, "{\"tags\":1}".to_owned())
        .await
        .expect("a table");
    for number in 0..50 {
        let item = Item::new()
            .with("id", format!("thing-{number}"))
            .with("n", number);
        engine.put(Put::new("things", item)).await.expect("a put");
    }
}

#[cfg(unix)]
#[test]
fn serve_starts_and_stops_on_signals() {
    for signal in ["-TERM", "-INT"] {
        let directory = tempfile::tempdir().expect("a directory");
        let data = directory.path().join("data");
        let mut server = homeport(&[
            "serve",
            "--data-dir",
            path(&data),
            "--http-listen",
            "127.0.0.1:0",
            "--dynamodb-listen",
            "127.0.0.1:0",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the server starts");
        let mut output = BufReader::new(server.stdout.take().expect("its output"));
        let mut line = String::new();
        while !line.contains("listening") {
            line.clear();
            assert_ne!(
                output.read_line(&mut line).expect("a line"),
                0,
                "ended early"
            );
        }
        let id = server.id().to_string();
        let sent = Command::new("kill").args([signal, &id]).status();
        assert!(sent.expect("kill runs").success());
        let mut rest = String::new();
        output.read_to_string(&mut rest).expect("the rest");
        let status = server.wait().expect("it ends");
        assert!(status.success(), "{signal}: {status}");
        assert!(rest.contains("stopped"), "{signal}: {rest}");
    }
}

#[tokio::test]
async fn a_backup_restores_into_an_equal_directory() {
    let directory = tempfile::tempdir().expect("a directory");
    let data = directory.path().join("data");
    let file = directory.path().join("all.backup");
    let copy = directory.path().join("copy");
    fill(&data).await;
    let backup = run(&["backup", "--data-dir", path(&data), path(&file)]);
    assert!(backup.status.success(), "{}", text(&backup.stderr));
    assert!(text(&backup.stdout).starts_with("50 items of 1 tables"));
    let restored = run(&["restore", "--data-dir", path(&copy), path(&file)]);
    assert!(restored.status.success(), "{}", text(&restored.stderr));
    let checked = run(&["check", "--data-dir", path(&copy)]);
    assert!(
        text(&checked.stdout).contains("50 items"),
        "{}",
        text(&checked.stdout)
    );
    assert!(checked.status.success());
    let engine = Engine::open(&copy, Options::default()).expect("opens");
    let item = engine
        .get(Get::new("things", Item::new().with("id", "thing-7")))
        .await;
    assert_eq!(
        item.expect("a read").expect("an item").get("n"),
        Some(&7.into())
    );
    let settings = engine.describe_table("things").expect("a table").settings;
    assert_eq!(settings, "{\"tags\":1}");
    assert_eq!(
        engine
            .describe_table("things")
            .expect("a table")
            .schema
            .stream,
        Some(StreamView::NewImage)
    );
    assert!(
        engine
            .changes("things", 0, 10)
            .expect("changes")
            .changes
            .is_empty()
    );
}

#[tokio::test]
async fn nothing_is_overwritten() {
    let directory = tempfile::tempdir().expect("a directory");
    let data = directory.path().join("data");
    let file = directory.path().join("all.backup");
    fill(&data).await;
    assert!(
        run(&["backup", "--data-dir", path(&data), path(&file)])
            .status
            .success()
    );
    let again = run(&["backup", "--data-dir", path(&data), path(&file)]);
    assert!(!again.status.success());
    assert!(text(&again.stderr).contains("already there"));
    let onto = run(&["restore", "--data-dir", path(&data), path(&file)]);
    assert!(!onto.status.success());
    assert!(text(&onto.stderr).contains("already there"));
}

#[tokio::test]
async fn a_damaged_backup_restores_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let data = directory.path().join("data");
    let file = directory.path().join("all.backup");
    fill(&data).await;
    assert!(
        run(&["backup", "--data-dir", path(&data), path(&file)])
            .status
            .success()
    );
    let whole = std::fs::read(&file).expect("the backup");
    let copy = directory.path().join("copy");
    let mut flipped = whole.clone();
    flipped[700] ^= 0xFF;
    for damaged in [&whole[..whole.len() / 2], &flipped] {
        std::fs::write(&file, damaged).expect("written");
        let restored = run(&["restore", "--data-dir", path(&copy), path(&file)]);
        assert!(!restored.status.success());
        assert!(
            text(&restored.stderr).contains("damaged"),
            "{}",
            text(&restored.stderr)
        );
        assert!(!copy.exists());
    }
}

#[tokio::test]
async fn a_directory_in_use_is_refused_by_name() {
    let directory = tempfile::tempdir().expect("a directory");
    let _engine = Engine::open(directory.path(), Options::default()).expect("opens");
    let checked = run(&["check", "--data-dir", path(directory.path())]);
    assert!(!checked.status.success());
    assert!(text(&checked.stderr).contains("in use by another process"));
}

#[test]
fn a_missing_directory_is_not_made_by_check() {
    let directory = tempfile::tempdir().expect("a directory");
    let missing = directory.path().join("missing");
    let checked = run(&["check", "--data-dir", path(&missing)]);
    assert!(!checked.status.success());
    assert!(text(&checked.stderr).contains("there is no data directory"));
    assert!(!missing.exists());
}
