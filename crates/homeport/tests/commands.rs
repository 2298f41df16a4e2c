//! The commands on a data directory: serve, check, backup, restore, salvage.

mod support;

use std::path::Path;

use homeport_engine::{Engine, Options};
use homeport_item::schema::{StreamView, TableSchema};
use homeport_item::{Item, KeyKind};
use homeport_store::{Get, Put, Store};
use support::{Server, path, run, text};

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
        let server = Server::start(&data, &[]);
        let (rest, _) = server.stop(signal);
        assert!(rest.contains("stopped"), "{signal}: {rest}");
    }
}

#[tokio::test]
async fn backup_restores_into_an_equal_directory() {
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
    assert!(text(&again.stderr).contains("already exists"));
    let onto = run(&["restore", "--data-dir", path(&data), path(&file)]);
    assert!(!onto.status.success());
    assert!(text(&onto.stderr).contains("already exists"));
}

#[tokio::test]
async fn damaged_backup_restores_nothing() {
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
async fn directory_in_use_is_rejected() {
    let directory = tempfile::tempdir().expect("a directory");
    let _engine = Engine::open(directory.path(), Options::default()).expect("opens");
    let checked = run(&["check", "--data-dir", path(directory.path())]);
    assert!(!checked.status.success());
    assert!(text(&checked.stderr).contains("in use by another process"));
}

#[tokio::test]
async fn damaged_store_is_rejected_and_salvaged() {
    let directory = tempfile::tempdir().expect("a directory");
    let data = directory.path().join("data");
    let rescued = directory.path().join("rescued");
    fill(&data).await;
    let journal = data.join("store/0.jnl");
    let whole = std::fs::read(&journal).expect("a journal");
    let used = whole.iter().rposition(|byte| *byte != 0).expect("batches");
    std::fs::write(&journal, &whole[..used * 9 / 10]).expect("written");
    let backup = directory.path().join("all.backup");
    for command in [vec!["check"], vec!["backup", path(&backup)]] {
        let refused = run(&[&command[..], &["--data-dir", path(&data)]].concat());
        assert!(!refused.status.success(), "{command:?}");
        let told = text(&refused.stderr);
        assert!(told.contains("0.jnl: the journal has commits"), "{told}");
        assert!(told.contains("homeport salvage"), "{told}");
    }
    let salvage = run(&["salvage", "--data-dir", path(&data), "--to", path(&rescued)]);
    assert!(!salvage.status.success());
    let told = text(&salvage.stdout);
    assert!(
        told.contains("items of 1 tables and 0 backups of tables are in"),
        "{told}"
    );
    assert!(told.contains("are in no journal"), "{told}");
    let checked = run(&["check", "--data-dir", path(&rescued)]);
    assert!(checked.status.success(), "{}", text(&checked.stderr));
    let again = run(&["salvage", "--data-dir", path(&rescued), "--to", path(&data)]);
    assert!(!again.status.success());
    assert!(text(&again.stderr).contains("already exists"));
}

#[cfg(unix)]
#[test]
fn stored_files_are_private() {
    use std::os::unix::fs::PermissionsExt as _;
    fn assert_private(path: &Path) {
        let mode = std::fs::metadata(path)
            .expect("a file")
            .permissions()
            .mode();
        assert_eq!(mode & 0o077, 0, "{}", path.display());
        if path.is_dir() {
            for entry in std::fs::read_dir(path).expect("a folder") {
                assert_private(&entry.expect("an entry").path());
            }
        }
    }
    let directory = tempfile::tempdir().expect("a directory");
    let data = directory.path().join("data");
    Server::start(&data, &[]).stop("-TERM");
    assert_private(&data);
}

#[test]
fn check_does_not_create_a_directory() {
    let directory = tempfile::tempdir().expect("a directory");
    let missing = directory.path().join("missing");
    let checked = run(&["check", "--data-dir", path(&missing)]);
    assert!(!checked.status.success());
    assert!(text(&checked.stderr).contains("there is no data directory"));
    assert!(!missing.exists());
}

/// Creates old charger tables with one device, its events and a day, and the two unused ones.
async fn fill_old_chargers(directory: &Path) {
    use homeport_systems::chargers::migration::{OLD_DAILY, OLD_DEVICES, OLD_EVENTS, ORPHANS};
    let engine = Engine::open(directory, Options::default()).expect("opens");
    let mut tables = homeport_systems::chargers::migration::old_tables();
    tables.extend(ORPHANS.map(|name| TableSchema::new(name, "id", KeyKind::S)));
    engine.ensure_tables(&tables).await.expect("tables");
    let uuid = "b319d001-6b08-4d88-b4ca-4d2d98a6d43c";
    let event = |timestamp: i64| {
        let item = Item::new()
            .with("device_id", uuid)
            .with("timestamp", timestamp);
        Put::new(OLD_EVENTS, item.with("event_type", "telemetry"))
    };
    for timestamp in [0, -1, 1_708_425_600_000, 1_708_426_500_000] {
        engine.put(event(timestamp)).await.expect("a put");
    }
    let device = Item::new()
        .with("device_id", "SC-C014EA63")
        .with("wireless_device_id", uuid);
    engine
        .put(Put::new(OLD_DEVICES, device))
        .await
        .expect("a put");
    let day = Item::new()
        .with("device_id", uuid)
        .with("date", "2024-02-20");
    engine.put(Put::new(OLD_DAILY, day)).await.expect("a put");
}

fn table_names(directory: &Path) -> Vec<String> {
    let engine = Engine::open(directory, Options::default()).expect("opens");
    engine.table_names()
}

#[tokio::test]
async fn chargers_are_migrated_from_old_tables() {
    let directory = tempfile::tempdir().expect("a directory");
    let data = directory.path();
    fill_old_chargers(data).await;
    let orphan = "sidewalk-v1-device_config";
    let before = table_names(data);
    let migrate = |more: &[&str]| {
        let arguments = [&["chargers", "migrate", "--data-dir", path(data)], more].concat();
        run(&arguments)
    };
    let dry = migrate(&["--dry-run", "--delete-table", orphan]);
    assert!(dry.status.success(), "{}", text(&dry.stderr));
    assert!(
        text(&dry.stdout).contains("1 devices, 2 events, 2 states, 1 days"),
        "{}",
        text(&dry.stdout)
    );
    assert!(text(&dry.stdout).contains("nothing was written"));
    assert_eq!(table_names(data), before);
    let done = migrate(&[]);
    assert!(done.status.success(), "{}", text(&done.stdout));
    assert!(
        text(&done.stdout).contains("0 refused, 6 verified, 0 missing"),
        "{}",
        text(&done.stdout)
    );
    assert!(
        table_names(data).contains(&orphan.to_owned()),
        "only if requested by name"
    );
    let again = migrate(&["--delete-table", orphan]);
    assert!(text(&again.stdout).contains("deleted the table sidewalk-v1-device_config"));
    let after = table_names(data);
    assert!(!after.contains(&orphan.to_owned()));
    assert!(after.contains(&"sidewalk-v1-device_events_dedupe_v2".to_owned()));
    let other = migrate(&["--delete-table", "evse-events"]);
    assert!(!other.status.success());
    let rebuilt = run(&[
        "chargers",
        "rebuild",
        "--data-dir",
        path(data),
        "--from",
        "2024-02-01",
        "--to",
        "2024-02-29",
    ]);
    assert!(rebuilt.status.success(), "{}", text(&rebuilt.stderr));
    assert_eq!(text(&rebuilt.stdout), "1 days recounted\n");
}

#[tokio::test]
async fn refused_items_fail_dry_and_real_runs_alike() {
    let directory = tempfile::tempdir().expect("a directory");
    let data = directory.path();
    fill_old_chargers(data).await;
    let engine = Engine::open(data, Options::default()).expect("opens");
    let refused = Item::new()
        .with("device_id", "not-a-uuid")
        .with("timestamp", 7);
    let table = homeport_systems::chargers::migration::OLD_EVENTS;
    engine.put(Put::new(table, refused)).await.expect("a put");
    drop(engine);
    let migrate = |more: &[&str]| {
        let arguments = [&["chargers", "migrate", "--data-dir", path(data)], more].concat();
        run(&arguments)
    };
    for more in [&["--dry-run"][..], &[], &[]] {
        let output = migrate(more);
        assert!(!output.status.success(), "{more:?}");
        let printed = text(&output.stdout);
        let row = format!("refused: {table}: not-a-uuid 7: not-a-uuid is not a UUID");
        assert!(printed.contains(&row), "{printed}");
        assert!(printed.contains("--accept-refused"), "{printed}");
    }
    for more in [
        &["--dry-run", "--accept-refused"][..],
        &["--accept-refused"],
        &[],
    ] {
        let output = migrate(more);
        assert!(
            output.status.success(),
            "{more:?}: {}",
            text(&output.stdout)
        );
    }
    let printed = text(&migrate(&[]).stdout);
    assert!(printed.contains("--restart"), "{printed}");
    assert!(!printed.contains("not-a-uuid"), "{printed}");
}

/// The end of a pipe without a reader.
#[cfg(unix)]
fn closed_pipe() -> std::process::Stdio {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    writer.into()
}

#[cfg(unix)]
#[tokio::test]
async fn closed_output_ends_commands_quietly() {
    let directory = tempfile::tempdir().expect("a directory");
    let data = directory.path().join("data");
    fill(&data).await;
    let backup = directory.path().join("all.backup");
    let copy = directory.path().join("copy");
    for arguments in [
        &["tables", "create", "--data-dir", path(&data)][..],
        &["check", "--data-dir", path(&data)],
        &["backup", "--data-dir", path(&data), path(&backup)],
        &["restore", "--data-dir", path(&copy), path(&backup)],
        &["encryption", "status", "--data-dir", path(&data)],
        &[
            "chargers",
            "rebuild",
            "--data-dir",
            path(&data),
            "--from",
            "2027-01-01",
            "--to",
            "2027-01-02",
        ],
        &["export", "sensors", "--data-dir", path(&data)],
        &["config", "template"],
    ] {
        let output = support::homeport(arguments)
            .stdout(closed_pipe())
            .output()
            .expect("it runs");
        let log = text(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {log}");
        assert!(!log.contains("panicked"), "{arguments:?}: {log}");
        assert!(!log.to_lowercase().contains("pipe"), "{arguments:?}: {log}");
    }
    // The error message cannot be written, but the exit code reports the failure.
    let status = support::homeport(&["check", "--data-dir", "/nowhere"])
        .stdout(closed_pipe())
        .stderr(closed_pipe())
        .status();
    assert_eq!(status.expect("it runs").code(), Some(1));
}

#[cfg(unix)]
#[test]
fn server_survives_closed_output() {
    let directory = tempfile::tempdir().expect("a directory");
    let data = directory.path().join("data");
    let mut command = support::homeport(&["serve", "--data-dir", path(&data), "--log", "trace"]);
    for flag in ["--http-listen", "--dynamodb-listen", "--mqtt-listen"] {
        command.args([flag, "127.0.0.1:0"]);
    }
    let mut process = command
        .stdout(closed_pipe())
        .stderr(closed_pipe())
        .spawn()
        .expect("it starts");
    let patience = std::time::Instant::now() + std::time::Duration::from_secs(30);
    let url = loop {
        if let Ok(url) = std::fs::read_to_string(data.join("address")) {
            break url.trim().to_owned();
        }
        let ended = process.try_wait().expect("a status");
        let is_waiting = ended.is_none() && std::time::Instant::now() < patience;
        if !is_waiting {
            let _ = process.kill();
            panic!("it does not listen: {ended:?}");
        }
        std::thread::yield_now();
    };
    let answer = ureq::get(format!("{url}/healthz")).call();
    let id = process.id().to_string();
    let sent = std::process::Command::new("kill")
        .args(["-TERM", &id])
        .status();
    assert!(sent.expect("kill runs").success());
    assert!(process.wait().expect("it ends").success());
    assert_eq!(answer.expect("an answer").status().as_u16(), 200);
}
