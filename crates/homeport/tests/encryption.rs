//! Encryption at rest: sources of the master key, and commands with the right and the wrong key.

#![cfg(unix)]

mod support;

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use homeport_engine::{Engine, Options};
use homeport_item::schema::TableSchema;
use homeport_item::{Item, KeyKind};
use homeport_store::{Put, Store};
use support::{Server, complaint, homeport, output, path, text};

const OLD: &str = "5ea1ed015ea1ed025ea1ed035ea1ed045ea1ed055ea1ed065ea1ed075ea1ed08";
const NEW: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

struct Room {
    directory: tempfile::TempDir,
}

impl Room {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let room = Self { directory };
        room.key_file("old.key", OLD, 0o600);
        room.key_file("new.key", NEW, 0o600);
        room
    }

    fn at(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn key_file(&self, name: &str, text: &str, mode: u32) {
        let file = self.at(name);
        std::fs::write(&file, format!("{text}\n")).expect("written");
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(&file, mode).expect("a mode");
    }

    fn with_key(&self, command: &[&str], key: &str, more: &[&str]) -> Vec<String> {
        let data = self.at("data");
        let key = self.at(key);
        let flags = ["--data-dir", path(&data), "--master-key-file", path(&key)];
        let parts = [command, &flags, more].concat();
        parts.into_iter().map(str::to_owned).collect()
    }
}

fn words(parts: &[String]) -> Vec<&str> {
    parts.iter().map(String::as_str).collect()
}

async fn fill(directory: &Path) {
    let engine = Engine::open(directory, Options::default()).expect("opens");
    let table = TableSchema::new("things", "id", KeyKind::S);
    engine.create_table(table).await.expect("a table");
    for number in 0..50 {
        let item = Item::new()
            .with("id", number.to_string())
            .with("secret", "p1ainT3xt!");
        engine.put(Put::new("things", item)).await.expect("a put");
    }
}

#[test]
fn sealed_store_opens_with_its_key_only() {
    let room = Room::new();
    let data = room.at("data");
    let key = room.at("old.key");
    Server::start(&data, &["--master-key-file", path(&key)]).stop("-TERM");
    let status = output(&["encryption", "status", "--data-dir", path(&data)]);
    assert!(status.contains("sealed under the master key"), "{status}");
    let backup = room.at("all.backup");
    let commands: [(&[&str], &[&str]); 5] = [
        (&["check"], &[]),
        (&["backup"], &[path(&backup)]),
        (&["keys", "list"], &[]),
        (&["rules", "list"], &[]),
        (&["export"], &["sensors"]),
    ];
    for (command, more) in commands {
        let without = [command, &["--data-dir", path(&data)], more].concat();
        let told = complaint(&without);
        assert!(told.contains("give the master key"), "{command:?}: {told}");
        let told = complaint(&words(&room.with_key(command, "new.key", more)));
        assert!(
            told.contains("sealed under the master key"),
            "{command:?}: {told}"
        );
        output(&words(&room.with_key(command, "old.key", more)));
    }
    let restored = room.at("restored");
    let key = [
        "--data-dir",
        path(&restored),
        "--master-key-file",
        path(&key),
    ];
    let told = complaint(&["restore", "--data-dir", path(&restored), path(&backup)]);
    assert!(told.contains("give the master key"), "{told}");
    assert!(!restored.exists());
    output(&[&["restore"], &key[..], &[path(&backup)]].concat());
    output(&[&["check"], &key[..]].concat());
}

#[tokio::test]
async fn sealing_copies_and_changing_the_master_key() {
    let room = Room::new();
    let (plain, data) = (room.at("plain"), room.at("data"));
    fill(&plain).await;
    let (old, new) = (room.at("old.key"), room.at("new.key"));
    let refused = complaint(&[
        "check",
        "--data-dir",
        path(&plain),
        "--master-key-file",
        path(&old),
    ]);
    assert!(refused.contains("homeport encryption seal"), "{refused}");
    let status = output(&["encryption", "status", "--data-dir", path(&plain)]);
    assert!(status.contains("is not sealed"), "{status}");
    let seal = [
        "encryption",
        "seal",
        "--data-dir",
        path(&plain),
        "--to",
        path(&data),
    ];
    assert!(complaint(&seal).contains("no master key; give it with"));
    std::fs::write(plain.join("api-key-pepper"), "what keys are hashed with").expect("written");
    output(&[&seal[..], &["--master-key-file", path(&old)]].concat());
    let pepper = std::fs::read_to_string(data.join("api-key-pepper"));
    assert_eq!(pepper.expect("copied"), "what keys are hashed with");
    let check = |key| output(&words(&room.with_key(&["check"], key, &[])));
    assert!(check("old.key").contains("50 items"));
    let rotate = room.with_key(&["encryption", "rotate"], "old.key", &[]);
    assert!(complaint(&words(&rotate)).contains("no new master key; give it with"));
    let rotate = [words(&rotate), vec!["--new-master-key-file", path(&new)]].concat();
    let told = output(&rotate);
    assert!(
        told.contains("backups made before still need that key"),
        "{told}"
    );
    assert!(complaint(&rotate).contains("sealed under the master key"));
    assert!(check("new.key").contains("50 items"));
    let back = room.at("back");
    let unseal = room.with_key(&["encryption", "unseal"], "new.key", &["--to", path(&back)]);
    output(&words(&unseal));
    assert!(output(&["check", "--data-dir", path(&back)]).contains("50 items"));
}

#[test]
fn master_key_has_exactly_one_source() {
    let room = Room::new();
    let data = room.at("data");
    let key = room.at("old.key");
    Server::start(&data, &["--master-key-file", path(&key)]).stop("-TERM");
    let check = ["check", "--data-dir", path(&data)];
    let by_variable = homeport(&check).env("HOMEPORT_MASTER_KEY", OLD).output();
    let by_variable = by_variable.expect("it runs");
    assert!(
        by_variable.status.success(),
        "{}",
        text(&by_variable.stderr)
    );
    let fetch = format!("cat '{}'", key.display());
    output(&[&check[..], &["--master-key-command", &fetch]].concat());
    let failing = [
        "--master-key-command",
        "echo the vault is closed >&2; exit 1",
    ];
    let told = complaint(&[&check[..], &failing].concat());
    assert!(told.contains("the vault is closed"), "{told}");
    let twice = [
        "--master-key-command",
        &fetch,
        "--master-key-file",
        path(&key),
    ];
    let told = complaint(&[&check[..], &twice].concat());
    assert!(told.contains("only one of encryption.master_key"), "{told}");
    let remote = complaint(&[
        "serve",
        "--store",
        "dynamodb",
        "--master-key-file",
        path(&key),
    ]);
    assert!(remote.contains("store.kind embedded"), "{remote}");
}

#[test]
fn invalid_or_shared_key_is_never_shown() {
    let room = Room::new();
    room.key_file("shared.key", OLD, 0o644);
    room.key_file("short.key", &OLD[2..], 0o600);
    let data = room.at("data");
    std::fs::create_dir(&data).expect("made");
    for (key, reason) in [("shared.key", "chmod 600"), ("short.key", "32 bytes")] {
        let told = complaint(&words(&room.with_key(&["check"], key, &[])));
        assert!(told.contains(reason), "{told}");
        assert!(!told.contains(&OLD[2..20]), "{told}");
    }
    let print = homeport(&["config", "print"])
        .env("HOMEPORT_MASTER_KEY", OLD)
        .current_dir(room.directory.path())
        .output();
    let printed = text(&print.expect("it runs").stdout);
    assert!(
        printed.contains("master_key is set and hidden"),
        "{printed}"
    );
    assert!(!printed.contains(OLD), "{printed}");
}
