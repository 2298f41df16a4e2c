//! The bridge: this server as a client of an existing broker. Messages of that broker are processed like
//! all messages, and acknowledged when they are durable. `dial` opens connections, `link` is one
//! connection, `status` is for readiness and metrics; this file reconnects.
//!
//! The broker is trusted: a message on the topic of a thing counts as a message of that thing. The
//! broker decides which client may publish on it.

mod dial;
mod link;
mod settings;
mod status;

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::time::Duration;

use super::broker::Broker;
use link::{Link, LinkEnd};

pub use dial::BridgeTlsError;
pub use settings::{BridgeAddress, BridgeSettings, BridgeTls};
pub use status::BridgeStatus;

/// The wait after the first failure; each further failure doubles it.
const RETRY_FIRST: Duration = Duration::from_millis(250);
const RETRY_LONGEST: Duration = Duration::from_secs(30);
/// Failures in a row after which the wait no longer grows.
const DOUBLINGS_MAX: u32 = 16;

/// A bridge that is ready to run.
#[derive(Debug)]
pub struct Bridge {
    settings: BridgeSettings,
    dial: dial::Dial,
    broker: Broker,
    status: Arc<BridgeStatus>,
}

impl Bridge {
    /// Reads the files for TLS. It does not connect.
    ///
    /// # Errors
    /// When a file cannot be read or is invalid.
    pub fn new(
        settings: BridgeSettings,
        broker: Broker,
        status: Arc<BridgeStatus>,
    ) -> Result<Self, BridgeTlsError> {
        let dial = dial::Dial::new(&settings)?;
        Ok(Self {
            settings,
            dial,
            broker,
            status,
        })
    }

    /// Receives messages until `stop` completes, and reconnects after failures. Messages that were
    /// delivered by then are processed and acknowledged first.
    pub async fn run_until(self, stop: impl Future<Output = ()> + Send) {
        let mut stop = std::pin::pin!(stop);
        let mut failures = 0;
        loop {
            let connected = tokio::select! {
                () = &mut stop => return,
                connected = self.connect() => connected,
            };
            let ended = match connected {
                Ok(link) => {
                    failures = 0;
                    self.status.connected();
                    tracing::info!(broker = %self.settings.address, "the bridge is connected");
                    link.run(&mut stop).await
                }
                Err(ended) => ended,
            };
            let reason = match ended {
                LinkEnd::Stopped => {
                    self.status
                        .disconnected("the bridge was stopped".to_owned());
                    return;
                }
                LinkEnd::Failed(reason) => reason,
            };
            tracing::warn!(broker = %self.settings.address, reason, "the bridge is not connected");
            self.status.disconnected(reason);
            tokio::select! {
                () = &mut stop => return,
                () = tokio::time::sleep(wait_after(failures)) => {}
            }
            failures += 1;
        }
    }

    async fn connect(&self) -> Result<Link, LinkEnd> {
        let limit = self.settings.connect_timeout;
        let connect = async {
            let io = self.dial.connect().await?;
            Link::open(io, &self.settings, &self.broker, &self.status).await
        };
        match tokio::time::timeout(limit, connect).await {
            Ok(outcome) => outcome.map_err(LinkEnd::Failed),
            Err(_) => Err(LinkEnd::Failed(
                "the broker did not answer in time".to_owned(),
            )),
        }
    }
}

/// The wait after a failure. It is random within its upper half, so that clients that lost a broker
/// together do not reconnect together.
fn wait_after(failures_before: u32) -> Duration {
    let longest = RETRY_FIRST
        .saturating_mul(1 << failures_before.min(DOUBLINGS_MAX))
        .min(RETRY_LONGEST);
    let random = RandomState::new().hash_one(()) % 1024;
    let share = 0.5 + random as f64 / 2048.0;
    longest.mul_f64(share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_a_limit() {
        assert!(wait_after(0) <= RETRY_FIRST && wait_after(0) >= RETRY_FIRST / 2);
        assert!(wait_after(3) > RETRY_FIRST);
        for failures in [10, 1000, u32::MAX] {
            let wait = wait_after(failures);
            assert!(wait <= RETRY_LONGEST && wait >= RETRY_LONGEST / 2);
        }
    }
}
