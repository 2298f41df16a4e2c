//! `homeport push` on a data directory and through the server that has it open.

mod support;

use std::path::Path;
use std::sync::Arc;

use homeport_engine::{Engine, Options};
use homeport_store::SystemClock;
use homeport_systems::push::{NewDevice, Platform, Push, Settings, schema};
use support::{Server, path, run, text};

async fn with_store(data: &Path, work: impl AsyncFnOnce(&Engine)) {
    let engine = Engine::open(data, Options::default()).expect("opens");
    work(&engine).await;
}

async fn register(data: &Path) {
    with_store(data, async |engine| {
        let store: Arc<dyn homeport_store::Store> = Arc::new(engine.clone());
        let tables = schema::tables(&Settings::default().table, false);
        store.ensure_tables(&tables).await.expect("tables");
        let push = Push::new(store, Arc::new(SystemClock), Settings::default());
        let device = NewDevice {
            user_id: "user-1".parse().expect("a user"),
            device_id: "phone".parse().expect("a device"),
            expo_push_token: "ExpoPushToken[a]".parse().expect("a token"),
            platform: Platform::Ios,
        };
        push.register(device).await.expect("registered");
    })
    .await;
}

#[tokio::test]
async fn commands_work_with_and_without_a_server() {
    let directory = tempfile::tempdir().expect("a directory");
    let data = directory.path().join("data");
    register(&data).await;
    let check = || {
        run(&[
            "push",
            "check",
            "--user",
            "user-1",
            "--data-dir",
            path(&data),
        ])
    };
    let cleanup = || run(&["push", "cleanup", "--dry-run", "--data-dir", path(&data)]);
    let alone = (check(), cleanup());
    assert!(alone.0.status.success(), "{alone:?}");
    let shown = text(&alone.0.stdout);
    assert!(
        shown.contains("device phone: gets notifications"),
        "{shown}"
    );
    let server = Server::start(&data, &[]);
    let through_server = (check(), cleanup());
    assert_eq!(text(&through_server.0.stdout), shown, "{through_server:?}");
    assert_eq!(through_server.1.stdout, alone.1.stdout);
    drop(server);
}
