//! A fleet while its server is killed and restarted.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Output, Stdio};
use std::sync::mpsc;
use std::thread;

use crate::support::{WAIT_MAX, wait_until};
use crate::{count, homeport, show};

pub(crate) const TOKEN: &str = "admin-token-of-the-tests";
const READINGS_PER_SENSOR: u64 = 40;
/// Number of sensors, for longer runs.
const SENSORS_VARIABLE: &str = "HOMEPORT_TEST_SENSORS";
const SENSORS_DEFAULT: u64 = 200;
const KILLS: u64 = 4;

/// A process that is killed when this value is dropped.
pub(crate) struct Killed(Option<Child>);

pub(crate) struct Server(Killed);

impl Drop for Killed {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Killed {
    pub(crate) fn new(child: Child) -> Self {
        Self(Some(child))
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child().try_wait().expect("its state").is_none()
    }

    fn child(&mut self) -> &mut Child {
        self.0.as_mut().expect("it runs")
    }

    pub(crate) fn finish(mut self) -> Output {
        let child = self.0.take().expect("it runs");
        child.wait_with_output().expect("it ends")
    }
}

impl Server {
    /// Starts a server and waits until it listens. Returns `None` if it exited instead.
    pub(crate) fn start(data_dir: &Path, port: u16, more: &[&str]) -> Option<Self> {
        let address = format!("127.0.0.1:{port}");
        let data_dir = data_dir.to_str().expect("a UTF-8 path");
        let mut command = homeport(&["serve", "--data-dir", data_dir, "--http-listen", &address]);
        command
            .args(["--dynamodb-listen", "127.0.0.1:0"])
            .args(more);
        if !more.contains(&"--mqtt-listen") {
            command.args(["--mqtt-listen", "127.0.0.1:0"]);
        }
        let command = command
            .env("HOMEPORT_ADMIN_TOKEN", TOKEN)
            .stdout(Stdio::piped());
        let mut server = Self(Killed::new(command.spawn().expect("the server starts")));
        let output = BufReader::new(server.0.child().stdout.take().expect("its output"));
        let (said, heard) = mpsc::channel();
        // Read to the end, so that the server never blocks on a full pipe.
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let _ = said.send(line);
            }
        });
        loop {
            match heard.recv_timeout(WAIT_MAX) {
                Ok(line) if line.starts_with("listening") => return Some(server),
                Ok(_) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => return None,
                Err(mpsc::RecvTimeoutError::Timeout) => panic!("the server does not listen"),
            }
        }
    }
}

/// A server on a port that it keeps across restarts. The port is below the ephemeral range, so no connection of the fleet
/// takes it while the server is down.
pub(crate) fn start_on_a_free_port(data_dir: &Path, more: &[&str]) -> (u16, Server) {
    let first = std::process::id() % 12_000;
    (0..100)
        .find_map(|attempt| {
            let offset = u16::try_from((first + attempt * 37) % 12_000).expect("below 12,000");
            let port = 20_000 + offset;
            Server::start(data_dir, port, more).map(|server| (port, server))
        })
        .expect("one of many ports is free")
}

/// Readings that this server process has processed.
fn readings_answered(port: u16) -> u64 {
    metric(port, "homeport_readings_total{")
}

/// The sum of this process's metrics whose lines begin with this text.
pub(crate) fn metric(port: u16, beginning: &str) -> u64 {
    let metrics = ureq::get(format!("http://127.0.0.1:{port}/metrics"))
        .call()
        .expect("metrics")
        .into_body()
        .read_to_string()
        .expect("text");
    let lines = metrics.lines();
    lines
        .filter(|line| line.starts_with(beginning))
        .filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok())
        .sum()
}

#[test]
fn acknowledged_readings_survive_kills() {
    let sensors = std::env::var(SENSORS_VARIABLE)
        .ok()
        .map_or(SENSORS_DEFAULT, |text| text.parse().expect("a number"));
    let total = sensors * READINGS_PER_SENSOR;
    let directory = tempfile::tempdir().expect("a directory");
    let data_dir = directory.path().join("data");
    let (port, mut server) = start_on_a_free_port(&data_dir, &[]);
    let fleet = homeport(&["simulate", "--url", &format!("http://127.0.0.1:{port}")])
        .args(["--sensors", &sensors.to_string()])
        .args(["--readings-per-sensor", &READINGS_PER_SENSOR.to_string()])
        .args(["--interval", "5m", "--speed-up", "3000", "--batch", "5"])
        .args(["--disconnects", "0.1", "--seed", "11"])
        .env("HOMEPORT_ADMIN_TOKEN", TOKEN)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the fleet starts");
    let mut fleet = Killed::new(fleet);
    for kill in 0..KILLS {
        let is_reached = wait_until(|| {
            assert!(fleet.is_running(), "the fleet ended before kill {kill}");
            readings_answered(port) >= total / (KILLS + 2)
        });
        assert!(is_reached, "the fleet came to a halt before kill {kill}");
        drop(server);
        server = Server::start(&data_dir, port, &[]).expect("the port is still free");
    }
    let output = fleet.finish();
    assert!(output.status.success(), "{}", show(&output));
    assert_eq!(count(&output, "made"), total);
    assert_eq!(count(&output, "read back"), total);
    assert_eq!(
        count(&output, "acknowledged") + count(&output, "duplicates"),
        total
    );
    for problem in ["missing", "repeated", "altered", "unanswered", "rejected"] {
        assert_eq!(count(&output, problem), 0, "{problem}: {}", show(&output));
    }
    assert!(count(&output, "duplicates") > 0, "{}", show(&output));
    assert!(
        count(&output, "retries") > count(&output, "disconnects"),
        "no request met a dead server: {}",
        show(&output)
    );
}
