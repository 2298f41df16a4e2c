//! A fleet of phones: accepted notifications reach them through a stand-in that sometimes fails, and a server that sends
//! them elsewhere is detected.

use std::net::{SocketAddr, TcpListener};
use std::process::Output;

use crate::restarts::{TOKEN, start_on_a_free_port};
use crate::{count, homeport, show};

const PHONES: u64 = 10;
const NOTIFICATIONS: u64 = 45;
const SECRET: &str = "a secret of users that only the tests know";

/// A free port for the stand-in. The server must know it before the stand-in listens.
fn stand_in_address() -> SocketAddr {
    let first = 32_100 + std::process::id() % 300;
    let free = (first..first + 60).find_map(|port| {
        let port = u16::try_from(port).ok()?;
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        TcpListener::bind(address).ok().map(|_| address)
    });
    free.expect("one of many ports is free")
}

fn run(expo_url: &str, listen: SocketAddr, patience: &str) -> Output {
    let directory = tempfile::tempdir().expect("a directory");
    let options = ["--push-expo-url", expo_url, "--user-jwt-secret", SECRET];
    let (port, server) = start_on_a_free_port(&directory.path().join("data"), &options);
    let output = homeport(&["simulate", "--fleet", "phones"])
        .args(["--url", &format!("http://127.0.0.1:{port}")])
        .args(["--devices", &PHONES.to_string()])
        .args(["--readings-per-sensor", &NOTIFICATIONS.to_string()])
        .args([
            "--interval",
            "1m",
            "--speed-up",
            "1000",
            "--patience",
            patience,
        ])
        .args(["--disconnects", "0.1", "--seed", "5"])
        .args(["--expo-listen", &listen.to_string()])
        .env("HOMEPORT_ADMIN_TOKEN", TOKEN)
        .env("HOMEPORT_USER_JWT_SECRET", SECRET)
        .output()
        .expect("the fleet runs");
    drop(server);
    output
}

#[test]
fn notifications_repeat_only_after_lost_responses() {
    let listen = stand_in_address();
    let output = run(&format!("http://{listen}"), listen, "2m");
    assert!(output.status.success(), "{}", show(&output));
    assert_eq!(count(&output, "made"), PHONES * NOTIFICATIONS);
    assert_eq!(count(&output, "acknowledged"), PHONES * NOTIFICATIONS);
    let again = count(&output, "stored again");
    assert!(again > 0, "no answer was lost: {}", show(&output));
    let arrived = PHONES * NOTIFICATIONS + again;
    assert_eq!(count(&output, "read back"), arrived);
    assert!(count(&output, "disconnects") > 0, "{}", show(&output));
}

#[test]
fn server_that_sends_elsewhere_is_detected() {
    let listen = stand_in_address();
    // Nothing listens on this port.
    let output = run("http://127.0.0.1:1", listen, "1s");
    assert_eq!(output.status.code(), Some(1), "{}", show(&output));
    assert!(count(&output, "read back") > 0, "{}", show(&output));
    assert_eq!(count(&output, "undelivered"), count(&output, "read back"));
    let advice = format!("--push-expo-url http://{listen}");
    assert!(show(&output).contains(&advice), "{}", show(&output));
}
