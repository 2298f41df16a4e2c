//! The server process of a run: started with limits, watched, killed and stopped.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::target::Addresses;

pub(crate) const ADMIN_TOKEN: &str = "torture-admin-token-0123456789";
const PEPPER: &str = "torture-pepper-0123456789abcdef";
/// Master key of encrypted stores.
const MASTER_KEY: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
const STOP_MAX: Duration = Duration::from_secs(60);
const POLL_EVERY: Duration = Duration::from_millis(10);
/// The server's limit of descriptors, soft and hard.
pub(crate) const DESCRIPTORS: usize = 1024;

/// How servers of a run are started.
#[derive(Debug, Clone)]
pub(crate) struct Launch {
    pub(crate) binary: PathBuf,
    pub(crate) is_sealed: bool,
    /// libfaketime, and the file with the clock's shift.
    pub(crate) clock: Option<(PathBuf, PathBuf)>,
    pub(crate) limits_descriptors: bool,
    /// Timeout until a server listens.
    pub(crate) start_max: Duration,
    /// Directory for logs.
    pub(crate) log_dir: PathBuf,
}

pub(crate) struct Server {
    child: Child,
    pub(crate) addresses: Addresses,
    pub(crate) log: PathBuf,
}

/// Why a server does not listen.
#[derive(Debug)]
pub(crate) enum NoStart {
    /// It ended with an error message.
    Refused(String),
    /// It ended in another way, or neither listens nor ends.
    Broken(String),
}

impl Launch {
    /// A command on a data directory.
    pub(crate) fn command(&self, arguments: &[&str], data_dir: &Path) -> Command {
        let mut command = if self.limits_descriptors {
            let mut command = Command::new("prlimit");
            command.arg(format!("--nofile={DESCRIPTORS}:{DESCRIPTORS}"));
            command.arg(&self.binary);
            command
        } else {
            Command::new(&self.binary)
        };
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("HOMEPORT_") {
                command.env_remove(name);
            }
        }
        command
            .args(arguments)
            .arg("--data-dir")
            .arg(data_dir)
            .env("HOMEPORT_ADMIN_TOKEN", ADMIN_TOKEN)
            .env("API_KEY_PEPPER", PEPPER)
            .stdin(Stdio::null());
        if self.is_sealed {
            command.env("HOMEPORT_MASTER_KEY", MASTER_KEY);
        }
        if let Some((library, offset)) = &self.clock {
            command
                .env("LD_PRELOAD", library)
                .env("FAKETIME_TIMESTAMP_FILE", offset)
                .env("FAKETIME_NO_CACHE", "1")
                .env("DONT_FAKE_MONOTONIC", "1")
                .env("NO_FAKE_STAT", "1");
        }
        command
    }

    /// Starts a server and waits until it listens.
    pub(crate) fn start(&self, data_dir: &Path, name: &str) -> Result<Server, NoStart> {
        let log = self.log_dir.join(format!("{name}.log"));
        let broken = |error: std::io::Error| NoStart::Broken(error.to_string());
        let file = std::fs::File::create(&log).map_err(broken)?;
        let mut command = self.command(&["serve"], data_dir);
        let mut child = command
            .args(["--http-listen", "127.0.0.1:0"])
            .args(["--mqtt-listen", "127.0.0.1:0", "--mqtt-queue-max", "100000"])
            .args(["--dynamodb-listen", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .stderr(file)
            .spawn()
            .map_err(broken)?;
        let Some(output) = child.stdout.take() else {
            return Err(NoStart::Broken("no output".to_owned()));
        };
        let (said, heard) = mpsc::channel();
        // Read to the end, so that the server never blocks on a full pipe.
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let _ = said.send(line);
            }
        });
        match listening(&heard, self.start_max) {
            Ok(addresses) => Ok(Server {
                child,
                addresses,
                log,
            }),
            Err(why) => {
                let _ = std::io::stdout().flush();
                Err(not_started(child, &log, why))
            }
        }
    }
}

/// Reads a server's output until it listens.
fn listening(heard: &mpsc::Receiver<String>, within: Duration) -> Result<Addresses, &'static str> {
    let deadline = Instant::now() + within;
    let (mut dynamodb, mut mqtt) = (None, None);
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let line = match heard.recv_timeout(left) {
            Ok(line) => line,
            Err(mpsc::RecvTimeoutError::Disconnected) => return Err("it ended"),
            Err(mpsc::RecvTimeoutError::Timeout) => return Err("it does not listen"),
        };
        let address = line.rsplit(' ').next().unwrap_or_default();
        let address = address.rsplit('/').next().unwrap_or_default();
        let address = address.parse().ok();
        if line.starts_with("DynamoDB") {
            dynamodb = address;
        } else if line.starts_with("MQTT on ") {
            mqtt = address;
        } else if line.starts_with("listening on ")
            && let (Some(http), Some(dynamodb), Some(mqtt)) = (address, dynamodb, mqtt)
        {
            return Ok(Addresses {
                http,
                dynamodb,
                mqtt,
            });
        }
    }
}

fn not_started(mut child: Child, log: &Path, why: &str) -> NoStart {
    let status = wait(&mut child, Duration::from_secs(5));
    let said = std::fs::read_to_string(log).unwrap_or_default();
    match status {
        Some(status) if status.code().is_some_and(|code| code != 0) && !said.trim().is_empty() => {
            if said.contains("panicked") {
                return NoStart::Broken(format!("it panicked: {said}"));
            }
            NoStart::Refused(said)
        }
        Some(status) => NoStart::Broken(format!("{why}: {status}, {said}")),
        None => {
            let _ = child.kill();
            let _ = child.wait();
            NoStart::Broken(format!("{why}: {said}"))
        }
    }
}

fn wait(child: &mut Child, within: Duration) -> Option<ExitStatus> {
    let deadline = Instant::now() + within;
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        if Instant::now() > deadline {
            return None;
        }
        std::thread::sleep(POLL_EVERY);
    }
}

impl Server {
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)))
    }

    /// Sends SIGSTOP, and returns when all threads are stopped.
    pub(crate) fn freeze(&self) -> Result<(), String> {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-STOP", &id]).status();
        let deadline = Instant::now() + STOP_MAX;
        while sent.as_ref().is_ok_and(ExitStatus::success) && Instant::now() < deadline {
            if is_frozen(&id) {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Err("the server could not be frozen".to_owned())
    }

    /// kill -9.
    pub(crate) fn kill(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Sends SIGTERM. Returns an error if the server does not end cleanly in time.
    pub(crate) fn terminate(mut self) -> Result<(), String> {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &id]).status();
        if !sent.is_ok_and(|status| status.success()) {
            return Err("SIGTERM could not be sent".to_owned());
        }
        match wait(&mut self.child, STOP_MAX) {
            Some(status) if status.success() => Ok(()),
            Some(status) => Err(format!("SIGTERM ended the server with {status}")),
            None => Err(format!(
                "the server did not end within {} s of SIGTERM",
                STOP_MAX.as_secs()
            )),
        }
    }

    /// Lines of the log that report a panic.
    pub(crate) fn panics(&self) -> Vec<String> {
        panics(&self.log)
    }
}

/// Whether every thread is stopped, or stops at the end of its current system call.
fn is_frozen(process: &str) -> bool {
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{process}/task")) else {
        return false;
    };
    let state = |task: std::fs::DirEntry| {
        let stat = std::fs::read_to_string(task.path().join("stat")).ok()?;
        stat.rsplit(") ").next()?.chars().next()
    };
    tasks
        .flatten()
        .all(|task| matches!(state(task), Some('T' | 'D') | None))
}

pub(crate) fn panics(log: &Path) -> Vec<String> {
    let log = std::fs::read_to_string(log).unwrap_or_default();
    let lines = log.lines().filter(|line| line.contains("panicked"));
    lines.map(str::to_owned).collect()
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
