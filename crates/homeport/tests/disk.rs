//! A server whose disk is nearly full or fails for a while: what it serves and reports.
#![cfg(target_os = "linux")]

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

use support::{Server, homeport, path, text};

const TOKEN: &str = "an-admin-token-of-these-tests";

struct Answer {
    status: u16,
    retry_after: Option<String>,
    body: String,
}

fn agent() -> ureq::Agent {
    let config = ureq::Agent::config_builder().http_status_as_error(false);
    config.build().into()
}

fn answer(response: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> Answer {
    let mut response = response.expect("an answer");
    let retry_after = response.headers().get("retry-after");
    Answer {
        status: response.status().as_u16(),
        retry_after: retry_after.map(|value| value.to_str().expect("a text").to_owned()),
        body: response.body_mut().read_to_string().expect("a body"),
    }
}

fn get(server: &Server, path: &str) -> Answer {
    answer(agent().get(format!("{}{path}", server.url)).call())
}

/// Creates an API key, which is a write.
fn create_key(server: &Server) -> Answer {
    let request = agent()
        .post(format!("{}/v1/api-keys", server.url))
        .header("authorization", format!("Bearer {TOKEN}"))
        .header("content-type", "application/json");
    answer(request.send(r#"{"description":"of a test","all":true}"#))
}

/// An operation of DynamoDB's protocol.
fn dynamodb(directory: &Path, operation: &str, body: &str) -> Answer {
    let url = std::fs::read_to_string(directory.join("dynamodb-address")).expect("an address");
    let request = agent()
        .post(url.trim())
        .header("x-amz-target", format!("DynamoDB_20120810.{operation}"))
        .header("content-type", "application/x-amz-json-1.0");
    answer(request.send(body))
}

fn create_table(directory: &Path) {
    let created = dynamodb(
        directory,
        "CreateTable",
        r#"{"TableName":"things","BillingMode":"PAY_PER_REQUEST","AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"}],"KeySchema":[{"AttributeName":"id","KeyType":"HASH"}]}"#,
    );
    assert_eq!(created.status, 200, "{}", created.body);
}

fn put(directory: &Path, id: &str) -> Answer {
    let body = format!(r#"{{"TableName":"things","Item":{{"id":{{"S":"{id}"}}}}}}"#);
    dynamodb(directory, "PutItem", &body)
}

fn with_key(directory: &Path, operation: &str, id: &str) -> Answer {
    let body = format!(r#"{{"TableName":"things","Key":{{"id":{{"S":"{id}"}}}}}}"#);
    dynamodb(directory, operation, &body)
}

#[track_caller]
fn assert_stored(directory: &Path, id: &str) {
    let found = with_key(directory, "GetItem", id);
    assert_eq!(found.status, 200, "{}", found.body);
    assert!(found.body.contains(id), "{id} is missing: {}", found.body);
}

#[track_caller]
fn assert_degraded(server: &Server, reason: &str) {
    let health = get(server, "/healthz");
    assert_eq!(health.status, 200);
    assert!(health.body.starts_with("degraded: "), "{}", health.body);
    assert!(health.body.contains(reason), "{}", health.body);
    let readiness = get(server, "/readyz");
    assert_eq!(readiness.status, 503);
    assert!(readiness.body.contains(reason), "{}", readiness.body);
}

fn assert_ready(server: &Server) {
    assert_eq!(get(server, "/healthz").body, "ok\n");
    assert_eq!(get(server, "/readyz").status, 200);
}

#[track_caller]
fn assert_gauge(server: &Server, line: &str) {
    let metrics = get(server, "/metrics").body;
    assert!(
        metrics.lines().any(|found| found == line),
        "{line}: {metrics}"
    );
}

fn free_mib(directory: &Path) -> u64 {
    let output = Command::new("df")
        .args(["--output=avail", "-m", path(directory)])
        .output()
        .expect("df runs");
    let text = text(&output.stdout);
    let line = text.lines().nth(1).expect("a line of figures");
    line.trim().parse().expect("a number")
}

#[test]
fn server_on_nearly_full_disk_reads_and_deletes() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start(directory.path(), &["--admin-token", TOKEN]);
    create_table(directory.path());
    for id in ["first", "second"] {
        assert_eq!(put(directory.path(), id).status, 200);
    }
    assert_ready(&server);
    assert_gauge(&server, "homeport_disk_short 0");
    server.stop("-TERM");
    // Twice the free space, so that deletes still work.
    let reserve = (free_mib(directory.path()) * 2).to_string();
    let more = ["--admin-token", TOKEN, "--disk-reserve-mib", &reserve];
    let server = Server::start(directory.path(), &more);
    assert_degraded(&server, "the disk is nearly full");
    assert_gauge(&server, "homeport_disk_short 1");
    assert_stored(directory.path(), "first");
    let refused = put(directory.path(), "third");
    assert!(
        refused.status >= 500,
        "{}: {}",
        refused.status,
        refused.body
    );
    let refused = create_key(&server);
    assert_eq!(refused.status, 503, "{}", refused.body);
    assert!(refused.retry_after.is_some());
    let deleted = with_key(directory.path(), "DeleteItem", "first");
    assert_eq!(deleted.status, 200, "{}", deleted.body);
    assert_eq!(with_key(directory.path(), "GetItem", "first").body, "{}");
    server.stop("-TERM");
    // Ten times the free space.
    let reserve = (free_mib(directory.path()) * 10).to_string();
    let more = ["--admin-token", TOKEN, "--disk-reserve-mib", &reserve];
    let server = Server::start(directory.path(), &more);
    assert_degraded(&server, "the disk is full");
    assert_stored(directory.path(), "second");
    assert!(with_key(directory.path(), "DeleteItem", "second").status >= 500);
    server.stop("-TERM");
}

/// A disk that is full while the file `full` exists and the file `freed` does not.
struct FaultyDisk {
    library: PathBuf,
    directory: PathBuf,
    full: PathBuf,
    freed: PathBuf,
}

impl FaultyDisk {
    fn new(room: &Path) -> Self {
        let library = room.join("faultdisk.so");
        let source = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../engine/tests/reliability/faultdisk.c"
        );
        let compiled = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-o", path(&library), source])
            .args(["-ldl", "-lpthread"])
            .status();
        assert!(compiled.expect("a C compiler").success());
        Self {
            library,
            directory: room.join("data"),
            full: room.join("full"),
            freed: room.join("freed"),
        }
    }

    fn fill(&self) {
        std::fs::write(&self.full, b"").expect("a full disk");
    }

    fn free(&self) {
        std::fs::write(&self.freed, b"").expect("a disk with space");
    }

    fn start(&self) -> Server {
        let mut command = homeport(&["serve", "--data-dir", path(&self.directory)]);
        command
            .args(["--http-listen", "127.0.0.1:0"])
            .args(["--dynamodb-listen", "127.0.0.1:0"])
            .args(["--mqtt-listen", "127.0.0.1:0"])
            .args(["--admin-token", TOKEN])
            .env("LD_PRELOAD", &self.library)
            .env("DISK_DIR", self.directory.join("store"))
            .env("DISK_KIND", "write")
            .env("DISK_DO", "enospc")
            .env("DISK_AT", "1")
            .env("DISK_FROM", &self.full)
            .env("DISK_UNTIL", &self.freed);
        Server::spawn(command)
    }
}

fn wait_until_ready(server: &Server) {
    let is_ready = support::wait_until(|| get(server, "/readyz").status == 200);
    assert!(is_ready, "the store does not reopen");
    assert_ready(server);
}

#[test]
fn server_started_on_a_full_disk_recovers() {
    let room = tempfile::tempdir().expect("a directory");
    let disk = FaultyDisk::new(room.path());
    let server = disk.start();
    create_table(&disk.directory);
    assert_eq!(put(&disk.directory, "before").status, 200);
    server.stop("-TERM");
    disk.fill();
    let server = disk.start();
    assert_degraded(&server, "writing to the data directory failed");
    assert_stored(&disk.directory, "before");
    disk.free();
    wait_until_ready(&server);
    assert_stored(&disk.directory, "before");
    assert_eq!(put(&disk.directory, "after").status, 200);
    server.stop("-TERM");
}

#[test]
fn server_reopens_its_store_when_writes_work_again() {
    let room = tempfile::tempdir().expect("a directory");
    let disk = FaultyDisk::new(room.path());
    let directory = disk.directory.clone();
    let server = disk.start();
    create_table(&directory);
    assert_eq!(put(&directory, "before").status, 200);
    assert_ready(&server);
    disk.fill();
    assert!(put(&directory, "meanwhile").status >= 500);
    assert_degraded(&server, "writing to the data directory failed");
    assert_gauge(&server, "homeport_writes_failed 1");
    assert_stored(&directory, "before");
    let refused = create_key(&server);
    assert_eq!(refused.status, 503, "{}", refused.body);
    assert!(refused.retry_after.is_some());
    disk.free();
    wait_until_ready(&server);
    assert_gauge(&server, "homeport_store_reopened 1");
    assert_eq!(put(&directory, "after").status, 200);
    assert_eq!(create_key(&server).status, 201);
    assert_stored(&directory, "before");
    server.stop("-TERM");
    let server = Server::start(&directory, &["--admin-token", TOKEN]);
    for id in ["before", "after"] {
        assert_stored(&directory, id);
    }
    server.stop("-TERM");
}
