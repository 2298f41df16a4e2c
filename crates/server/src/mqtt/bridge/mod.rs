//! The bridge: this server as a client of an existing broker. What that broker delivers takes the way
//! of every message here, and is acknowledged to it when it is durable. `dial` opens connections,
//! `link` is one connection, `status` what is known of them from outside; here they follow each other.
//!
//! The broker is trusted: a message is taken for the topic that it is delivered on, and so for the
//! thing that the topic names. Who may publish there is the broker's affair.

mod dial;
mod link;
mod settings;
mod status;

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::time::Duration;

use super::broker::Broker;
use link::{Ended, Link};

pub use dial::BridgeTlsError;
pub use settings::{BridgeAddress, BridgeProtocol, BridgeSettings, BridgeTls};
pub use status::BridgeStatus;

/// The wait after a first failure; each further one doubles it.
const RETRY_FIRST: Duration = Duration::from_millis(250);
const RETRY_LONGEST: Duration = Duration::from_secs(30);
/// Beyond as many failures in a row the wait has long stopped growing.
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
    /// Reads what TLS needs; nothing is connected yet.
    ///
    /// # Errors
    /// When a file cannot be read or does not have what it should.
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

    /// Takes messages until `stop` is done, connecting as often as it has to. What was delivered by
    /// then is brought to its end and acknowledged first.
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
                Ended::Stopped => {
                    self.status.disconnected("it was stopped".to_owned());
                    return;
                }
                Ended::Failed(reason) => reason,
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

    async fn connect(&self) -> Result<Link, Ended> {
        let limit = self.settings.connect_timeout;
        let connect = async {
            let io = self.dial.connect().await?;
            Link::open(io, &self.settings, &self.broker, &self.status).await
        };
        match tokio::time::timeout(limit, connect).await {
            Ok(outcome) => outcome.map_err(Ended::Failed),
            Err(_) => Err(Ended::Failed("the broker does not answer".to_owned())),
        }
    }
}

/// How long to wait after a failure; drawn from the upper half, so that those who lost a broker
/// together do not come back together.
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
