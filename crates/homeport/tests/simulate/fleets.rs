//! Short runs of charger and meter fleets against a real server.

use std::path::Path;
use std::process::Output;

use crate::restarts::{Server, TOKEN, start_on_a_free_port};
use crate::{count, homeport, show};

const DEVICES: u64 = 20;
/// A day and a half of events, a quarter of an hour apart.
const EVENTS_PER_DEVICE: u64 = 144;

fn run(fleet: &str, data_dir: &Path) -> Output {
    let (port, server): (u16, Server) = start_on_a_free_port(data_dir, &[]);
    let output = homeport(&["simulate", "--fleet", fleet])
        .args(["--url", &format!("http://127.0.0.1:{port}")])
        .args(["--devices", &DEVICES.to_string()])
        .args(["--readings-per-sensor", &EVENTS_PER_DEVICE.to_string()])
        .args(["--interval", "15m", "--speed-up", "100000", "--batch", "7"])
        .args(["--disconnects", "0.2", "--seed", "5"])
        .env("HOMEPORT_ADMIN_TOKEN", TOKEN)
        .output()
        .expect("the fleet runs");
    drop(server);
    assert!(output.status.success(), "{}", show(&output));
    assert_eq!(count(&output, "made"), DEVICES * EVENTS_PER_DEVICE);
    for problem in [
        "missing",
        "repeated",
        "altered",
        "unanswered",
        "rejected",
        "uncounted",
        "undelivered",
    ] {
        assert_eq!(count(&output, problem), 0, "{problem}: {}", show(&output));
    }
    assert!(count(&output, "disconnects") > 0, "{}", show(&output));
    output
}

#[test]
fn charger_events_are_stored_once_and_counted() {
    let directory = tempfile::tempdir().expect("a directory");
    let output = run("chargers", &directory.path().join("data"));
    assert_eq!(count(&output, "read back"), DEVICES * EVENTS_PER_DEVICE);
    assert!(count(&output, "duplicates") > 0, "{}", show(&output));
    assert_eq!(count(&output, "stored again"), 0, "{}", show(&output));
}

#[test]
fn meter_records_are_stored_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let output = run("meters", &directory.path().join("data"));
    assert!(count(&output, "retries") > 0, "{}", show(&output));
    assert_eq!(count(&output, "read back"), DEVICES * EVENTS_PER_DEVICE);
    assert_eq!(count(&output, "stored again"), 0, "{}", show(&output));
}
