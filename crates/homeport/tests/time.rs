//! `homeport time` on a data directory and through its server, after the clock was far behind.

mod support;

use std::path::Path;
use std::sync::Arc;

use homeport_engine::{Engine, ManualClock, Options};
use homeport_item::schema::TableSchema;
use homeport_item::{Item, KeyKind};
use homeport_store::{Put, Store as _};
use support::{Server, path, run, text};

/// In 2024, so that the store seems to have been off for a long time.
const THEN_MS: i64 = 1_706_000_000_000;

async fn write_then(directory: &Path) {
    let options = Options {
        clock: Arc::new(ManualClock::at_ms(THEN_MS)),
        ..Options::default()
    };
    let engine = Engine::open(directory, options).expect("opens");
    let table = TableSchema::new("things", "id", KeyKind::S);
    engine.create_table(table).await.expect("a table");
    let put = engine.put(Put::new("things", Item::new().with("id", "a")));
    put.await.expect("a put");
}

fn get(server: &Server, path: &str) -> (u16, String) {
    let answer = ureq::get(format!("{}{path}", server.url)).call();
    let mut answer = answer.expect("an answer");
    let body = answer.body_mut().read_to_string().expect("a text");
    (answer.status().as_u16(), body)
}

#[tokio::test]
async fn time_is_confirmed_in_a_directory() {
    let directory = tempfile::tempdir().expect("a directory");
    let data = directory.path().join("data");
    write_then(&data).await;
    let shown = run(&["time", "show", "--data-dir", path(&data)]);
    assert!(text(&shown.stdout).contains("not confirmed"), "{shown:?}");
    let confirmed = run(&["time", "confirm", "--data-dir", path(&data)]);
    assert!(confirmed.status.success(), "{confirmed:?}");
    let shown = run(&["time", "show", "--data-dir", path(&data)]);
    assert!(!text(&shown.stdout).contains("not confirmed"), "{shown:?}");
}

#[tokio::test]
async fn server_warns_until_the_time_is_confirmed() {
    let directory = tempfile::tempdir().expect("a directory");
    let data = directory.path().join("data");
    write_then(&data).await;
    let server = Server::start(&data, &[]);
    let (status, body) = get(&server, "/readyz");
    assert_eq!(status, 200);
    assert!(body.contains("homeport time confirm"), "{body}");
    let (status, body) = get(&server, "/healthz");
    assert_eq!(status, 200);
    assert!(body.contains("homeport time confirm"), "{body}");
    let metrics = get(&server, "/metrics").1;
    assert!(
        metrics.contains("homeport_clock_unconfirmed 1"),
        "{metrics}"
    );
    let confirmed = run(&["time", "confirm", "--data-dir", path(&data)]);
    assert!(confirmed.status.success(), "{confirmed:?}");
    assert_eq!(get(&server, "/readyz"), (200, "ready\n".to_owned()));
    assert_eq!(get(&server, "/healthz"), (200, "ok\n".to_owned()));
    let metrics = get(&server, "/metrics").1;
    assert!(
        metrics.contains("homeport_clock_unconfirmed 0"),
        "{metrics}"
    );
}
