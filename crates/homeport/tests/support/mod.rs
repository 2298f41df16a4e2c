//! Runs the binary, without the configuration of the person who runs the tests.

// Each test file is its own program and uses a part of this module.
#![allow(dead_code)]

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Limit for every wait.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(120);
const POLL_EVERY: Duration = Duration::from_millis(10);

pub(crate) fn homeport(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_homeport"));
    for (name, _) in std::env::vars_os() {
        let is_ours = name
            .to_str()
            .is_some_and(|name| name.starts_with("HOMEPORT_"));
        if is_ours || name == "API_KEY_PEPPER" {
            command.env_remove(name);
        }
    }
    command.args(arguments).stdin(Stdio::null());
    command
}

/// Polls a condition until it holds. Returns false after a timeout.
pub(crate) fn wait_until(mut holds: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + WAIT_MAX;
    while Instant::now() < deadline {
        if holds() {
            return true;
        }
        std::thread::sleep(POLL_EVERY);
    }
    false
}

pub(crate) fn run(arguments: &[&str]) -> Output {
    homeport(arguments).output().expect("the binary runs")
}

/// Runs a command that must succeed, and returns its output.
#[track_caller]
pub(crate) fn output(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

/// Runs a command that must fail, and returns its error output.
#[track_caller]
pub(crate) fn complaint(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert!(!output.status.success(), "{}", text(&output.stdout));
    text(&output.stderr)
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub(crate) fn path(path: &Path) -> &str {
    path.to_str().expect("a UTF-8 path")
}

/// A server process on its own ports.
pub(crate) struct Server {
    process: Child,
    output: BufReader<ChildStdout>,
    log: Option<JoinHandle<String>>,
    pub(crate) url: String,
}

impl Server {
    /// Starts a server and waits until it listens.
    pub(crate) fn start(data_dir: &Path, more: &[&str]) -> Self {
        let mut command = homeport(&["serve", "--data-dir", path(data_dir)]);
        command
            .args(["--http-listen", "127.0.0.1:0"])
            .args(["--dynamodb-listen", "127.0.0.1:0"])
            .args(["--mqtt-listen", "127.0.0.1:0"])
            .args(more);
        Self::spawn(command)
    }

    pub(crate) fn spawn(mut command: Command) -> Self {
        let mut process = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let mut output = BufReader::new(process.stdout.take().expect("its output"));
        let mut stderr = process.stderr.take().expect("its log");
        // Read continuously, because a server stops when its log pipe is full.
        let log = std::thread::spawn(move || {
            let mut log = String::new();
            stderr.read_to_string(&mut log).expect("a log in UTF-8");
            log
        });
        let mut line = String::new();
        let url = loop {
            line.clear();
            let read = output.read_line(&mut line).expect("a line");
            assert_ne!(read, 0, "ended early");
            if let Some((_, url)) = line.trim().split_once("listening on ") {
                break url.to_owned();
            }
        };
        Self {
            process,
            output,
            log: Some(log),
            url,
        }
    }

    /// The process id.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    pub(crate) fn signal(&self, signal: &str) {
        let id = self.process.id().to_string();
        let sent = Command::new("kill").args([signal, &id]).status();
        assert!(sent.expect("kill runs").success());
    }

    /// Sends a signal and waits for a clean end. Returns the rest of the output, and the log.
    pub(crate) fn stop(mut self, signal: &str) -> (String, String) {
        self.signal(signal);
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).expect("the rest");
        let log = self.log.take().expect("read once");
        let log = log.join().expect("the log");
        let status = self.process.wait().expect("it ends");
        assert!(status.success(), "{signal}: {status}");
        (rest, log)
    }

    /// The status of a GET with one header.
    pub(crate) fn status(&self, path: &str, header: (&str, &str)) -> u16 {
        let agent: ureq::Agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .build()
            .into();
        let request = agent.get(format!("{}{path}", self.url));
        let answer = request.header(header.0, header.1).call();
        answer.expect("an answer").status().as_u16()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Leaves no process behind when a test fails.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
