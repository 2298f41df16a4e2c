//! People from the command line: in a data directory, and through its server.
#![cfg(unix)]

mod support;

use std::io::Write as _;
use std::process::Stdio;

use serde_json::Value;
use support::{Server, complaint, homeport, output, path, text};

const PASSWORD: &str = "correct horse battery";

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

/// The status of a sign-in.
fn sign_in(server: &Server, name: &str, password: &str) -> u16 {
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .build()
        .into();
    let body = serde_json::json!({"name": name, "password": password});
    let answer = agent
        .post(format!("{}/v1/session", server.url))
        .send_json(body);
    answer.expect("an answer").status().as_u16()
}

#[test]
fn people_are_managed_without_a_server() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = ["--data-dir", path(directory.path())];
    let users = |arguments: &[&str]| output(&[&["users"], arguments, &at].concat());
    let created = json(&users(&[
        "create",
        "anna",
        "--role",
        "administrator",
        "--json",
    ]));
    let generated = created["password"].as_str().expect("a password").to_owned();
    users(&["create", "bert", "--role", "viewer", "--system", "sensors"]);
    let listed = users(&["list"]);
    assert!(!listed.contains("argon2"), "{listed}");
    for words in ["anna", "administrator", "viewer of sensors", "enabled"] {
        assert!(listed.contains(words), "{words}: {listed}");
    }
    assert!(users(&["disable", "bert"]).starts_with("bert is disabled"));
    let refused = complaint(&[&["users", "disable", "anna"][..], &at].concat());
    assert!(refused.contains("last administrator"), "{refused}");
    let server = Server::start(directory.path(), &[]);
    assert_eq!(sign_in(&server, "anna", &generated), 204);
    assert_eq!(sign_in(&server, "anna", "wrong"), 401);

    // The same directory, through its server. The password comes from standard input.
    let mut reset = homeport(
        &[
            &["users", "reset-password", "anna", "--password-stdin"][..],
            &at,
        ]
        .concat(),
    )
    .stdin(Stdio::piped())
    .stdout(Stdio::piped())
    .spawn()
    .expect("it starts");
    let mut stdin = reset.stdin.take().expect("its input");
    writeln!(stdin, "{PASSWORD}").expect("written");
    drop(stdin);
    let reset = reset.wait_with_output().expect("it ends");
    assert_eq!(text(&reset.stdout), "anna has another password\n");
    assert_eq!(sign_in(&server, "anna", PASSWORD), 204);
    assert_eq!(sign_in(&server, "anna", &generated), 401);
    server.stop("-TERM");
}

#[test]
fn password_is_never_an_argument() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = ["--data-dir", path(directory.path())];
    let given = [
        "users",
        "create",
        "anna",
        "--role",
        "viewer",
        "--password",
        PASSWORD,
    ];
    let refused = complaint(&[&given[..], &at].concat());
    assert!(refused.contains("--password-stdin"), "{refused}");
}
