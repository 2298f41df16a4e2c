//! Mosquitto as the existing broker, and its client as the devices.

use std::fmt::Write as _;
use std::io::Write as _;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::support::{WAIT_MAX, wait_until};

/// Debian installs it outside of an ordinary user's path.
const PROGRAMS: [&str; 2] = ["mosquitto", "/usr/sbin/mosquitto"];

pub(crate) struct Mosquitto {
    process: Option<Child>,
    address: SocketAddr,
    config: PathBuf,
}

impl Mosquitto {
    /// A broker without authentication that keeps sessions across restarts.
    pub(crate) fn start(directory: &Path) -> Self {
        Self::start_with(directory, "allow_anonymous true")
    }

    pub(crate) fn start_with(directory: &Path, more: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        drop(listener);
        let config = directory.join("mosquitto.conf");
        let text = format!(
            "user root\nlistener {} 127.0.0.1\npersistence true\npersistence_location {}/\n\
             max_queued_messages 0\n{more}\n",
            address.port(),
            directory.display()
        );
        std::fs::write(&config, text).expect("written");
        let mut broker = Self {
            process: None,
            address,
            config,
        };
        broker.resume();
        broker
    }

    pub(crate) fn url(&self) -> String {
        format!("mqtt://{}", self.address)
    }

    /// Restarts it with its persisted state.
    pub(crate) fn resume(&mut self) {
        let started = PROGRAMS.iter().find_map(|program| {
            let mut command = Command::new(program);
            command.arg("-c").arg(&self.config);
            let command = command.stdout(Stdio::null()).stderr(Stdio::null());
            command.spawn().ok()
        });
        self.process = Some(started.expect("mosquitto is installed, as cargo xtask test does it"));
        let is_there = || TcpStream::connect(self.address).is_ok();
        assert!(wait_until(is_there), "mosquitto does not listen");
    }

    /// Stops it with SIGTERM, so that it persists its state.
    pub(crate) fn stop(&mut self) {
        let mut process = self.process.take().expect("it runs");
        let id = process.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &id]).status();
        assert!(sent.expect("kill runs").success());
        process.wait().expect("it ends");
    }

    /// Publishes a message for each number with QoS 1, and returns when all are acknowledged.
    pub(crate) fn publish(&self, thing: &str, numbers: std::ops::Range<u32>) {
        self.publishing(thing, numbers).finish();
    }

    /// Publishes one message.
    pub(crate) fn publish_one(&self, topic: &str, payload: &str) {
        let status = Command::new("mosquitto_pub")
            .args(["-h", "127.0.0.1", "-p", &self.address.port().to_string()])
            .args(["-q", "1", "-t", topic, "-m", payload])
            .status();
        assert!(status.expect("mosquitto_pub runs").success());
    }

    /// Publishes in the background.
    pub(crate) fn publishing(&self, thing: &str, numbers: std::ops::Range<u32>) -> Publishing {
        let lines = numbers.fold(String::new(), |mut lines, number| {
            let _ = writeln!(lines, "{{\"seq\":{number}}}");
            lines
        });
        let mut process = Command::new("mosquitto_pub")
            .args(["-h", "127.0.0.1", "-p", &self.address.port().to_string()])
            .args(["-V", "mqttv5", "-q", "1", "-l", "-t"])
            .arg(format!("fleet/{thing}/telemetry"))
            .stdin(Stdio::piped())
            .spawn()
            .expect("mosquitto_pub is installed, as cargo xtask test does it");
        let mut input = process.stdin.take().expect("its input");
        let writer = std::thread::spawn(move || {
            input.write_all(lines.as_bytes()).expect("it reads");
        });
        Publishing { process, writer }
    }
}

/// A running publisher.
pub(crate) struct Publishing {
    process: Child,
    writer: std::thread::JoinHandle<()>,
}

impl Publishing {
    pub(crate) fn finish(mut self) {
        self.writer.join().expect("everything is written");
        let mut ended = None;
        let is_over = wait_until(|| {
            ended = self.process.try_wait().expect("its state");
            ended.is_some()
        });
        if !is_over {
            let _ = self.process.kill();
        }
        let status = ended.unwrap_or_else(|| panic!("mosquitto_pub takes more than {WAIT_MAX:?}"));
        assert!(status.success(), "{status}");
    }
}

impl Drop for Mosquitto {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}
