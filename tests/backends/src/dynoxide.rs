//! dynoxide in a process of its own, with its tables in memory.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::Instant;

/// How long a process may take until it can be connected to.
const START_TIMEOUT: Duration = Duration::from_secs(20);
/// How often another port is tried.
const STARTS_MAX: usize = 5;
/// The pause between two looks.
const LOOK_PAUSE: Duration = Duration::from_millis(5);

/// A running process, which ends when this is dropped.
pub(crate) struct Dynoxide {
    pub(crate) url: String,
    process: Child,
}

impl Dynoxide {
    pub(crate) async fn start(program: &Path) -> Self {
        for _ in 0..STARTS_MAX {
            // It does not tell which port it has got when it may choose, so it is told one. Someone
            // else may take the port in between: then it ends at once, and another is tried.
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

    /// Waits until the process can be connected to; false when it has ended.
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
        // It may have ended by itself, which is just as well.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    listener.local_addr().expect("an address").port()
}
