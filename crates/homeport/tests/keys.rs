//! API keys from the command line: in a data directory, and through its server.
#![cfg(unix)]

mod support;

use homeport_engine::{Engine, Options};
use serde_json::Value;
use support::{Server, complaint, output, path, run, text};

const DEVICES: &str = "/v1/sensors/devices";

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

#[test]
fn key_created_without_a_server_works() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = ["--data-dir", path(directory.path())];
    let keys = |arguments: &[&str]| output(&[&["keys"], arguments, &at].concat());
    let created = json(&keys(&[
        "create",
        "--description",
        "roof",
        "--scope",
        "AA:BB:CC:DD:EE:FF",
        "--json",
    ]));
    let key = created["api_key"].as_str().expect("a key");
    let key_id = created["key_id"].as_str().expect("an id");

    let listed = keys(&["list"]);
    assert!(!listed.contains(key));
    let line = listed.lines().nth(1).expect("a line");
    for word in [key_id, "active", "sensors", "AA:BB:CC:DD:EE:FF", "roof"] {
        assert!(line.contains(word), "{word}: {line}");
    }
    let server = Server::start(directory.path(), &[]);
    // The scope covers this device, which is not registered, and not the list of all devices.
    let device = format!("{DEVICES}/AA:BB:CC:DD:EE:FF");
    assert_eq!(server.status(&device, ("x-api-key", key)), 404);
    assert_eq!(server.status(DEVICES, ("x-api-key", key)), 403);
    server.stop("-TERM");

    assert_eq!(
        keys(&["revoke", key_id]),
        format!("{key_id} is now revoked\n")
    );
    assert_eq!(
        keys(&["revoke", key_id]),
        format!("{key_id} was already revoked\n")
    );
    assert_eq!(
        json(&keys(&["list", "--json"]))["keys"][0]["is_active"],
        false
    );
    let server = Server::start(directory.path(), &[]);
    assert_eq!(server.status(DEVICES, ("x-api-key", key)), 401);
}

#[test]
fn directory_in_use_is_reached_through_its_server() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start(directory.path(), &[]);
    let at = ["--data-dir", path(directory.path())];
    let keys = |arguments: &[&str]| run(&[&["keys"], arguments, &at].concat());

    let created = keys(&["create", "--all", "--json"]);
    assert!(
        text(&created.stderr).contains(&server.url),
        "{}",
        text(&created.stderr)
    );
    let created = json(&text(&created.stdout));
    let key = created["api_key"].as_str().expect("a key");
    assert_eq!(server.status(DEVICES, ("x-api-key", key)), 200);
    let key_id = created["key_id"].as_str().expect("an id");
    let revoked = keys(&["revoke", key_id]);
    assert_eq!(text(&revoked.stdout), format!("{key_id} is now revoked\n"));
    // Through the server, a revocation takes effect at once, although the key was used a moment ago.
    assert_eq!(server.status(DEVICES, ("x-api-key", key)), 401);
    assert!(text(&keys(&["list"]).stdout).contains("revoked"));

    let refused = keys(&["create", "--all", "--system", "toasters"]);
    assert!(!refused.status.success());
    assert!(
        text(&refused.stderr).contains("system must be one of"),
        "{}",
        text(&refused.stderr)
    );
    server.stop("-TERM");
    assert!(!directory.path().join("address").exists());
}

#[test]
fn named_server_requires_the_admin_token() {
    let directory = tempfile::tempdir().expect("a directory");
    let elsewhere = tempfile::tempdir().expect("a directory");
    let server = Server::start(directory.path(), &[]);
    let at = ["--data-dir", path(elsewhere.path())];
    let list = ["keys", "list", "--url", &server.url];
    let message = complaint(&[&list[..], &at].concat());
    assert!(message.contains("needs the admin token"), "{message}");
    let wrong = ["--admin-token", "sixteen-characters"];
    let message = complaint(&[&list[..], &at, &wrong].concat());
    assert!(message.contains("TOKEN_INVALID"), "{message}");
    let token = std::fs::read_to_string(directory.path().join("admin-token")).expect("a token");
    let right = ["--admin-token", token.trim()];
    let listed = output(&[&list[..], &at, &right].concat());
    assert!(listed.starts_with("KEY ID"), "{listed}");
    assert_eq!(
        std::fs::read_dir(elsewhere.path())
            .expect("a directory")
            .count(),
        0
    );
}

#[test]
fn unreachable_keys_are_reported() {
    let directory = tempfile::tempdir().expect("a directory");
    let missing = directory.path().join("missing");
    let message = complaint(&["keys", "list", "--data-dir", path(&missing)]);
    assert!(message.contains("there is no data directory"), "{message}");
    assert!(!missing.exists());

    let _engine = Engine::open(directory.path(), Options::default()).expect("opens");
    let message = complaint(&["keys", "list", "--data-dir", path(directory.path())]);
    assert!(message.contains("in use by another process"), "{message}");
    assert!(message.contains("--url"), "{message}");
}

#[test]
fn wrong_pepper_is_refused_until_keys_are_revoked() {
    const WRONG: [&str; 2] = ["--api-key-pepper", "a pepper of another server"];
    let directory = tempfile::tempdir().expect("a directory");
    let at = ["--data-dir", path(directory.path())];
    let serve = ["serve", at[0], at[1], "--http-listen", "127.0.0.1:0"];
    let create = ["keys", "create", "--all", "--json", at[0], at[1]];
    let created = json(&output(&create));
    for command in [&create[..], &serve] {
        let message = complaint(&[command, &WRONG].concat());
        assert!(message.contains("not the one that hashed"), "{message}");
        assert!(message.contains("API_KEY_PEPPER"), "{message}");
    }
    let server = Server::start(directory.path(), &[]);
    let key = created["api_key"].as_str().expect("a key");
    assert_eq!(server.status(DEVICES, ("x-api-key", key)), 200);
    server.stop("-TERM");
    // If the pepper is lost, the keys are given up.
    let key_id = created["key_id"].as_str().expect("an id");
    output(&["keys", "revoke", key_id, at[0], at[1]]);
    let server = Server::start(directory.path(), &WRONG);
    server.stop("-TERM");
    let renewed = json(&output(&[&create[..], &WRONG].concat()));
    let message = complaint(&serve);
    assert!(message.contains("not the one that hashed"), "{message}");
    let server = Server::start(directory.path(), &WRONG);
    let key = renewed["api_key"].as_str().expect("a key");
    assert_eq!(server.status(DEVICES, ("x-api-key", key)), 200);
    server.stop("-TERM");
}

#[test]
fn every_start_needs_the_pepper_of_existing_keys() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = ["--data-dir", path(directory.path())];
    Server::start(directory.path(), &[]).stop("-TERM");
    let created = json(&output(
        &[&["keys", "create", "--all", "--json"][..], &at].concat(),
    ));
    let file = directory.path().join("api-key-pepper");
    let pepper = std::fs::read_to_string(&file).expect("a pepper");
    std::fs::remove_file(&file).expect("removed");

    let message = complaint(&[&["keys", "create", "--all"][..], &at].concat());
    assert!(message.contains("API_KEY_PEPPER"), "{message}");
    let key_id = created["key_id"].as_str().expect("an id");
    let listed = output(&[&["keys", "list"][..], &at].concat());
    assert!(listed.contains(key_id), "{listed}");
    for _ in 0..2 {
        let message = complaint(&["serve", at[0], at[1], "--http-listen", "127.0.0.1:0"]);
        assert!(message.contains("API_KEY_PEPPER"), "{message}");
        assert!(!file.exists());
    }

    let given = [
        &["keys", "create", "--all", "--api-key-pepper", pepper.trim()][..],
        &at,
    ]
    .concat();
    output(&given);
    let server = Server::start(directory.path(), &["--api-key-pepper", pepper.trim()]);
    let key = created["api_key"].as_str().expect("a key");
    assert_eq!(server.status(DEVICES, ("x-api-key", key)), 200);
    server.stop("-TERM");
}
