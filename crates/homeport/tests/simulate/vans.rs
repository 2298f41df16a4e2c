//! A fleet of vans over MQTT while its server is killed and restarted.

use std::net::{SocketAddr, TcpListener};
use std::process::Stdio;

use crate::restarts::{Killed, Server, TOKEN, metric, start_on_a_free_port};
use crate::support::wait_until;
use crate::{count, homeport, show};

const MESSAGES_PER_VAN: u64 = 20;
/// Number of vans, for longer runs.
const VANS_VARIABLE: &str = "HOMEPORT_TEST_VANS";
const VANS_DEFAULT: u64 = 300;
const KILLS: u64 = 3;
const RECEIVED: &str = "homeport_mqtt_messages_received_total{qos=\"1\"}";

/// A port that the server keeps across restarts, below the ephemeral range.
fn mqtt_address() -> SocketAddr {
    let first = 14_000 + std::process::id() % 4000;
    let free = (first..first + 60).find_map(|port| {
        let address = SocketAddr::from(([127, 0, 0, 1], u16::try_from(port).ok()?));
        TcpListener::bind(address).ok().map(|_| address)
    });
    free.expect("one of many ports is free")
}

#[test]
fn acknowledged_messages_survive_kills() {
    let vans = std::env::var(VANS_VARIABLE)
        .ok()
        .map_or(VANS_DEFAULT, |text| text.parse().expect("a number"));
    let total = vans * MESSAGES_PER_VAN;
    let directory = tempfile::tempdir().expect("a directory");
    let data_dir = directory.path().join("data");
    let mqtt = mqtt_address().to_string();
    let options = ["--mqtt-listen", mqtt.as_str()];
    let (port, mut server) = start_on_a_free_port(&data_dir, &options);
    let fleet = homeport(&["simulate", "--fleet", "vans", "--mqtt", &mqtt])
        .args(["--url", &format!("http://127.0.0.1:{port}")])
        .args(["--devices", &vans.to_string()])
        .args(["--readings-per-sensor", &MESSAGES_PER_VAN.to_string()])
        .args(["--interval", "1m", "--speed-up", "200", "--batch", "4"])
        .args(["--disconnects", "0.1", "--seed", "17"])
        .env("HOMEPORT_ADMIN_TOKEN", TOKEN)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the fleet starts");
    let mut fleet = Killed::new(fleet);
    for kill in 0..KILLS {
        let is_reached = wait_until(|| {
            assert!(fleet.is_running(), "the fleet ended before kill {kill}");
            metric(port, RECEIVED) >= total / (KILLS + 2)
        });
        assert!(is_reached, "the fleet came to a halt before kill {kill}");
        drop(server);
        server = Server::start(&data_dir, port, &options).expect("the ports are still free");
    }
    let output = fleet.finish();
    assert!(output.status.success(), "{}", show(&output));
    assert_eq!(count(&output, "made"), total);
    assert_eq!(count(&output, "acknowledged"), total);
    assert!(count(&output, "read back") >= total, "{}", show(&output));
    for problem in ["missing", "repeated", "altered", "unanswered", "rejected"] {
        assert_eq!(count(&output, problem), 0, "{problem}: {}", show(&output));
    }
    let (retries, disconnects) = (count(&output, "retries"), count(&output, "disconnects"));
    assert!(disconnects > 0, "{}", show(&output));
    assert!(
        retries > disconnects,
        "no van met a dead server: {}",
        show(&output)
    );
}

#[test]
fn wrong_broker_is_detected() {
    let directory = tempfile::tempdir().expect("a directory");
    let mqtt = mqtt_address().to_string();
    let options = ["--mqtt-listen", mqtt.as_str()];
    let (port, server) = start_on_a_free_port(&directory.path().join("data"), &options);
    let other = tempfile::tempdir().expect("a directory");
    let (other_port, other_server) = start_on_a_free_port(&other.path().join("data"), &[]);
    // The other server has neither the messages nor the API key.
    let output = homeport(&["simulate", "--fleet", "vans", "--mqtt", &mqtt])
        .args(["--url", &format!("http://127.0.0.1:{other_port}")])
        .args([
            "--devices",
            "2",
            "--readings-per-sensor",
            "2",
            "--patience",
            "2s",
        ])
        .env("HOMEPORT_ADMIN_TOKEN", TOKEN)
        .output()
        .expect("the fleet runs");
    assert_eq!(output.status.code(), Some(1), "{}", show(&output));
    let text = show(&output);
    assert!(text.contains("BadUserNamePassword"), "{port}: {text}");
    drop((server, other_server));
}
