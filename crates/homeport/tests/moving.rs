//! `homeport move`: beside a running server, after kills, finished, and back again.

mod support;

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use homeport_engine::{Engine, Options};
use homeport_item::schema::TableSchema;
use homeport_item::{Item, KeyKind};
use homeport_store::{BatchWrite, Scan, Store, SystemClock, WriteRequest};
use homeport_test_backends::{Backend, Kind};
use support::{Server, homeport, path, text};

const TABLE: &str = "readings";
/// Enough for several pages.
const ITEMS: usize = 3000;
/// How often a move is killed.
const KILLS: usize = 6;

/// A store of another implementation.
async fn other_store() -> Backend {
    Backend::start(Kind::Dynoxide, Arc::new(SystemClock)).await
}

/// `homeport move` between a data directory and another store.
fn moving(data: &Path, other: &Backend, more: &[&str]) -> Command {
    let endpoint = other.endpoint();
    let mut command = homeport(&["move", "--data-dir", path(data)]);
    command
        .args(["--store-endpoint-url", &endpoint.url])
        .args(["--store-region", &endpoint.region])
        .args(more)
        .env("AWS_ACCESS_KEY_ID", "test")
        .env("AWS_SECRET_ACCESS_KEY", "test");
    command
}

#[track_caller]
fn succeeds(mut command: Command) -> String {
    let output = command.output().expect("the binary runs");
    let printed = text(&output.stdout);
    assert!(
        output.status.success(),
        "{printed}\n{}",
        text(&output.stderr)
    );
    printed
}

#[track_caller]
fn fails(mut command: Command) -> String {
    let output = command.output().expect("the binary runs");
    assert!(!output.status.success(), "{}", text(&output.stdout));
    text(&output.stderr)
}

async fn fill(data: &Path) {
    let engine = Engine::open(data, Options::default()).expect("opens");
    let table = TableSchema::new(TABLE, "id", KeyKind::S);
    engine.create_table(table).await.expect("a table");
    let filling = "x".repeat(2000);
    for first in (0..ITEMS).step_by(25) {
        let writes = (first..ITEMS.min(first + 25)).map(|number| WriteRequest::Put {
            table: TABLE.to_owned(),
            item: Item::new()
                .with("id", format!("reading-{number}"))
                .with("filling", filling.as_str()),
        });
        let writes = writes.collect();
        let answer = engine.batch_write(BatchWrite { writes }).await;
        assert!(answer.expect("a batch").unprocessed.is_empty());
    }
}

async fn items(store: &dyn Store, table: &str) -> BTreeMap<String, Item> {
    let mut items = BTreeMap::new();
    let mut start = None;
    loop {
        let mut scan = Scan::new(table);
        scan.start = start;
        scan.consistent = true;
        let page = store.scan(scan).await.expect("a page");
        items.extend(
            page.items
                .into_iter()
                .map(|item| (format!("{:?}", item.get("id")), item)),
        );
        start = page.next;
        if start.is_none() {
            return items;
        }
    }
}

async fn items_in(data: &Path) -> BTreeMap<String, Item> {
    let engine = Engine::open(data, Options::default()).expect("opens");
    let checked = engine.check().await.expect("a check");
    assert_eq!(checked.problems, 0, "{:?}", checked.descriptions);
    items(&engine, TABLE).await
}

#[cfg(unix)]
#[tokio::test]
async fn killed_move_resumes_and_keeps_the_source() {
    let directory = tempfile::tempdir().expect("a directory");
    let data = directory.path().join("data");
    fill(&data).await;
    let other = other_store().await;
    let before = items_in(&data).await;
    assert_eq!(before.len(), ITEMS);
    let mut was_half_way = false;
    for kill in 0..KILLS {
        let mut process = moving(&data, &other, &["--to", "dynamodb"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary runs");
        // Later kills wait for more lines.
        let output = BufReader::new(process.stdout.take().expect("its output"));
        let lines = output.lines().take(2 + kill / 2).count();
        assert!(lines > 0, "it said nothing");
        process.kill().expect("killed");
        process.wait().expect("its end");
        assert!(items_in(&data).await == before, "the source has changed");
        if let Ok(notes) = std::fs::read_to_string(data.join("move-to-dynamodb.json")) {
            was_half_way |= notes.contains("\"copied_to\"");
        }
    }
    assert!(was_half_way, "it was never killed while copying");
    let finished = succeeds(moving(&data, &other, &["--to", "dynamodb", "--finish"]));
    assert!(finished.contains("finished: both stores are equal"));
    assert!(items(other.store().as_ref(), TABLE).await == before);
    assert!(items_in(&data).await == before, "the source has changed");
    let engine = Engine::open(&data, Options::default()).expect("opens");
    let stream = engine.describe_table(TABLE).expect("a table").schema.stream;
    assert_eq!(stream, None, "switched off again");
    drop(engine);
    // The target's items now come from an unknown move.
    let refused = fails(moving(&data, &other, &["--to", "dynamodb"]));
    assert!(
        refused.contains("not from this move: readings"),
        "{refused}"
    );
    assert!(refused.contains("--replace"), "{refused}");
}

#[cfg(unix)]
#[tokio::test]
async fn served_store_moves_there_and_back() {
    let directory = tempfile::tempdir().expect("a directory");
    let data = directory.path().join("data");
    let there = other_store().await;
    let server = Server::start(&data, &[]);
    let made = support::output(&[
        "keys",
        "create",
        "--all",
        "--data-dir",
        path(&data),
        "--json",
    ]);
    let key: serde_json::Value = serde_json::from_str(&made).expect("a key");
    let key = key["api_key"].as_str().expect("its text").to_owned();
    let authorised = ("x-api-key", key.as_str());
    let devices = "/v1/sensors/devices";
    assert_eq!(server.status(devices, authorised), 200);
    let told = succeeds(moving(&data, &there, &["--to", "dynamodb"]));
    assert!(
        told.contains("is in use by a server; connecting to http://127.0.0.1:"),
        "{told}"
    );
    assert!(told.contains("in sync: all"), "{told}");
    assert!(told.contains("To switch:"), "{told}");
    let refused = fails(moving(&data, &there, &["--to", "dynamodb", "--finish"]));
    assert!(
        refused.contains("stop the server, so that nothing writes"),
        "{refused}"
    );
    // The position in the streams survives a restart.
    server.signal("-KILL");
    drop(server);
    let told = succeeds(moving(&data, &there, &["--to", "dynamodb", "--finish"]));
    assert!(told.contains("store.kind = \"dynamodb\""), "{told}");
    assert!(!told.contains("copying it again"), "{told}");
    // The server on the other store knows the key, which only the moved tables contain.
    let endpoint = there.endpoint();
    let mut command = homeport(&["serve", "--data-dir", path(&data), "--store", "dynamodb"]);
    command
        .args(["--store-endpoint-url", &endpoint.url])
        .args(["--store-region", &endpoint.region])
        .args(["--store-point-in-time-recovery", "false"])
        .args(["--http-listen", "127.0.0.1:0"])
        .args(["--mqtt-listen", "127.0.0.1:0"])
        .env("AWS_ACCESS_KEY_ID", "test")
        .env("AWS_SECRET_ACCESS_KEY", "test");
    let server = Server::spawn(command);
    assert_eq!(server.status(devices, authorised), 200);
    server.stop("-TERM");
    // Back into a directory that has only the secrets. Tables of other programs stay.
    let others = TableSchema::new("others", "id", KeyKind::S);
    let made = there.store().ensure_tables(&[others]).await;
    made.expect("a table");
    let back = directory.path().join("back");
    std::fs::create_dir(&back).expect("a directory");
    std::fs::copy(data.join("api-key-pepper"), back.join("api-key-pepper")).expect("the pepper");
    let told = succeeds(moving(&back, &there, &["--to", "embedded", "--finish"]));
    assert!(told.contains("store.kind = \"embedded\""), "{told}");
    assert!(
        told.contains("1 other tables of the source are not moved"),
        "{told}"
    );
    let server = Server::start(&back, &[]);
    assert_eq!(server.status(devices, authorised), 200);
    server.stop("-TERM");
}

#[tokio::test]
async fn abandoned_move_leaves_no_state() {
    let directory = tempfile::tempdir().expect("a directory");
    let data = directory.path().join("data");
    fill(&data).await;
    let other = other_store().await;
    succeeds(moving(&data, &other, &["--to", "dynamodb"]));
    assert!(data.join("move-to-dynamodb.json").exists());
    let told = succeeds(moving(&data, &other, &["--to", "dynamodb", "--abandon"]));
    assert!(told.contains("disabled the stream again"), "{told}");
    assert!(!data.join("move-to-dynamodb.json").exists());
    let engine = Engine::open(&data, Options::default()).expect("opens");
    let stream = engine.describe_table(TABLE).expect("a table").schema.stream;
    assert_eq!(stream, None);
}

#[tokio::test]
async fn missing_source_is_reported() {
    let directory = tempfile::tempdir().expect("a directory");
    let data = directory.path().join("data");
    let other = other_store().await;
    let refused = fails(moving(&data, &other, &["--to", "dynamodb"]));
    assert!(refused.contains("there is no data directory"), "{refused}");
    let refused = fails(moving(&data, &other, &["--to", "embedded"]));
    assert!(
        refused.contains("the source has no tables to move"),
        "{refused}"
    );
    let refused = fails(moving(&data, &other, &["--to", "elsewhere"]));
    assert!(
        refused.contains("[possible values: dynamodb, embedded]"),
        "{refused}"
    );
}
