//! Runs dynoxide in its own process, with tables in memory.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::Instant;

/// Timeout until a process accepts connections.
const START_TIMEOUT: Duration = Duration::from_secs(20);
/// Number of ports to try.
const STARTS_MAX: usize = 5;
/// Interval of connection attempts.
const LOOK_PAUSE: Duration = Duration::from_millis(5);

/// A running process, which ends when this is dropped.
pub(crate) struct Dynoxide {
    pub(crate) url: String,
    process: Child,
}

impl Dynoxide {
    pub(crate) async fn start(program: &Path) -> Self {
        for _ in 0..STARTS_MAX {
            // It cannot report a port of its own choice, so one is chosen here. If another program takes the port in between, it
            // exits at once, and the next port is tried.
            let port = free_port();
            let process = Command::new(program)
                .args(["serve", "--log", "quiet", "--port", &port.to_string()])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn();
            let mut dynoxide = Self {
                url: format!("http://127.0.0.1:{port}"),
                process: process
                    .unwrap_or_else(|error| panic!("cannot start {}: {error}", program.display())),
            };
            if dynoxide.is_up(port).await {
                return dynoxide;
            }
        }
        panic!("{} did not start", program.display());
    }

    /// Waits until the process accepts connections; false if it has ended.
    async fn is_up(&mut self, port: u16) -> bool {
        let deadline = Instant::now() + START_TIMEOUT;
        while Instant::now() < deadline {
            if self.process.try_wait().expect("our own process").is_some() {
                return false;
            }
            if TcpStream::connect(("127.0.0.1", port)).await.is_ok() {
                return true;
            }
            tokio::time::sleep(LOOK_PAUSE).await;
        }
        false
    }
}

impl Drop for Dynoxide {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    listener.local_addr().expect("an address").port()
}
