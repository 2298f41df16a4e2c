//! Exports from the command line, the console's page, and clients of the live feed when the server stops.
#![cfg(unix)]

mod support;

use std::io::Read as _;
use std::path::Path;

use homeport_engine::{Engine, Options};
use homeport_item::{Item, Map, Number, Value};
use homeport_store::{Put, Store as _};
use homeport_systems::schema::{TableNames, tables};
use support::{Server, complaint, output, path};

const DEVICE: &str = "AA:BB:CC:DD:EE:FF";
const TOKEN: &str = "a-token-of-the-tests";
const LINES: &str = "system,device,at,name,value,unit\r\n\
    sensors,AA:BB:CC:DD:EE:FF,2027-01-15T08:00:00.000Z,bme280_temp_c,20.5,°C\r\n\
    sensors,AA:BB:CC:DD:EE:FF,2027-01-15T08:00:01.000Z,bme280_temp_c,20.5,°C\r\n";

/// A data directory with two readings of one device.
fn fill(data_dir: &Path) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let engine = Engine::open(data_dir, Options::default()).expect("opens");
        let schemas = tables(&TableNames::default());
        engine.ensure_tables(&schemas).await.expect("tables");
        let device = Item::new()
            .with("hardware_id", DEVICE)
            .with("gsi1pk", "devices")
            .with("gsi1sk", "2027-01-15T08:00:00Z");
        engine
            .put(Put::new("devices", device))
            .await
            .expect("stored");
        for second in 0..2_i64 {
            let at = 1_800_000_000_000 + second * 1000;
            let number: Number = "20.5".parse().expect("a number");
            let sensors: Map = [("bme280_temp_c".to_owned(), Value::N(number))]
                .into_iter()
                .collect();
            let reading = Item::new()
                .with("hardware_id", DEVICE)
                .with("ts_batch", format!("{at:013}#{second}"))
                .with("timestamp_ms", at)
                .with("sensors", Value::M(sensors));
            engine
                .put(Put::new("device_readings", reading))
                .await
                .expect("stored");
        }
    });
}

#[test]
fn export_works_with_and_without_a_server() {
    let directory = tempfile::tempdir().expect("a directory");
    fill(directory.path());
    let at = ["--data-dir", path(directory.path()), "--admin-token", TOKEN];
    let export = |more: &[&str]| output(&[&["export", "sensors"], more, &at[..]].concat());
    assert_eq!(export(&[]), LINES);
    let one = export(&["--device", DEVICE, "--from", "2027-01-15T08:00:01Z"]);
    assert_eq!(one.lines().count(), 2, "{one}");
    let file = directory.path().join("readings.parquet");
    let named = ["--format", "parquet", "--output", path(&file)];
    assert_eq!(export(&named), "");
    let alone = std::fs::read(&file).expect("a file");
    assert_eq!(
        (&alone[..4], &alone[alone.len() - 4..]),
        (&b"PAR1"[..], &b"PAR1"[..])
    );

    let server = Server::start(directory.path(), &["--admin-token", TOKEN]);
    assert_eq!(export(&[]), LINES);
    export(&named);
    assert_eq!(std::fs::read(&file).expect("a file"), alone);
    let refused = [&["export", "sensors", "--device", "x"], &at[..]].concat();
    assert!(complaint(&refused).contains("DEVICE_NOT_FOUND"));
    server.stop("-TERM");
}

#[test]
fn console_has_a_strict_content_policy() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start(directory.path(), &[]);
    let agent: ureq::Agent = ureq::Agent::new_with_defaults();
    let get = |path: &str| {
        agent
            .get(format!("{}{path}", server.url))
            .call()
            .expect("an answer")
    };
    let mut page = get("/");
    let header = |response: &ureq::http::Response<ureq::Body>, name: &str| {
        let value = response.headers().get(name).expect("a header");
        value.to_str().expect("text").to_owned()
    };
    let policy = header(&page, "content-security-policy");
    assert!(policy.contains("default-src 'self'") && policy.contains("frame-ancestors 'none'"));
    assert!(!policy.contains("unsafe"), "{policy}");
    assert_eq!(header(&page, "x-content-type-options"), "nosniff");
    assert_eq!(header(&page, "cache-control"), "no-cache");
    let tag = header(&page, "etag");
    let html = page.body_mut().read_to_string().expect("a page");
    let script = html
        .split("src=\"")
        .nth(1)
        .and_then(|rest| rest.split('"').next());
    let script = script.expect("a script").trim_start_matches('.').to_owned();
    // The policy would block inline scripts and styles.
    assert!(!html.contains("<style"), "{html}");
    assert!(!html.contains("<script>"), "{html}");
    let script = get(&script);
    assert_eq!(
        header(&script, "content-type"),
        "text/javascript; charset=utf-8"
    );
    assert_eq!(
        header(&script, "cache-control"),
        "public, max-age=31536000, immutable"
    );
    let again = agent
        .get(format!("{}/", server.url))
        .header("if-none-match", &tag)
        .call();
    assert_eq!(again.expect("an answer").status(), 304);
    server.stop("-TERM");
}

#[test]
fn live_feed_does_not_delay_stopping() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start(directory.path(), &["--admin-token", TOKEN]);
    let agent: ureq::Agent = ureq::Agent::new_with_defaults();
    let request = agent.get(format!("{}/v1/live", server.url));
    let response = request
        .header("authorization", format!("Bearer {TOKEN}"))
        .call();
    let mut stream = response.expect("a stream").into_body().into_reader();
    let mut first = [0; 6];
    stream.read_exact(&mut first).expect("its beginning");
    assert_eq!(&first, b"retry:");
    let (_, log) = server.stop("-TERM");
    assert!(!log.contains("did not end in time"), "{log}");
    let mut rest = String::new();
    stream.read_to_string(&mut rest).expect("an end in order");
}
