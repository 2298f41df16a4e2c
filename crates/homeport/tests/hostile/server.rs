//! The server process under attack.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Lines of the log to keep.
const LOG_LINES_MAX: usize = 1000;
const STOP_MAX: Duration = Duration::from_secs(60);

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    child: Child,
    log: Arc<Mutex<Vec<String>>>,
}

impl Server {
    pub(crate) fn start(data_dir: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_homeport"));
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("HOMEPORT_") {
                command.env_remove(name);
            }
        }
        let mut child = command
            .args(["serve", "--http-listen", "127.0.0.1:0"])
            .args(["--mqtt-listen", "127.0.0.1:0"])
            .args(["--dynamodb-listen", "127.0.0.1:0", "--data-dir"])
            .arg(data_dir)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let log: Arc<Mutex<Vec<String>>> = Arc::default();
        let errors = BufReader::new(child.stderr.take().expect("its log"));
        let kept = Arc::clone(&log);
        std::thread::spawn(move || {
            for line in errors.lines().map_while(Result::ok) {
                let mut kept = kept.lock().expect("nobody panics with the lock");
                if kept.len() < LOG_LINES_MAX {
                    kept.push(line);
                }
            }
        });
        let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        let address = loop {
            let line = lines.next().expect("it listens").expect("a line");
            if let Some((_, address)) = line.split_once("DynamoDB's protocol on http://") {
                break address.parse().expect("an address");
            }
        };
        // Later output must not fill the pipe.
        std::thread::spawn(move || lines.for_each(drop));
        Self {
            address,
            child,
            log,
        }
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("a state").is_some()
    }

    /// Lines of the log that report a panic or an internal error.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let log = self.log.lock().expect("nobody panics with the lock");
        log.iter()
            .filter(|line| line.contains("panicked") || line.contains("ERROR"))
            .cloned()
            .collect()
    }

    /// Resident memory in bytes without pages of the executable, which grow as more of it is used. `None` if the system does
    /// not report it.
    pub(crate) fn resident_bytes(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("RssAnon:"))?;
        let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
        Some(kib * 1024)
    }

    /// Stops the server with SIGTERM. Returns whether it ended cleanly.
    pub(crate) fn stop(mut self) -> bool {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &id]).status();
        assert!(sent.expect("kill runs").success());
        let requested = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("a state") {
                return status.success();
            }
            if requested.elapsed() > STOP_MAX {
                return false;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
