//! Limits how many unknown API keys one address may try, over HTTP and MQTT together: each one reads the store.

use std::net::IpAddr;
use std::sync::Arc;

use homeport_listen::client_network;
use homeport_store::Clock;
use homeport_systems::api_keys::{ApiKey, ApiKeyError, ApiKeys};

use super::rate_limit::{RateLimit, RateLimiter};

/// Unknown keys from one address (IPv6: from one /64).
const UNKNOWN_PER_ADDRESS: RateLimit = RateLimit {
    per_second: 1.0,
    burst: 100.0,
};

/// Verifies API keys within the limit.
#[derive(Debug)]
pub struct KeyVerifier {
    api_keys: Arc<ApiKeys>,
    unknown_by_network: RateLimiter<IpAddr>,
}

/// Why a key is not accepted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeyRejected {
    #[error("unknown or revoked API key")]
    Unknown,
    #[error("too many unknown API keys were sent; try again later")]
    TooMany { wait_secs: u64 },
    #[error(transparent)]
    NotVerified(#[from] ApiKeyError),
}

impl KeyVerifier {
    #[must_use]
    pub fn new(api_keys: Arc<ApiKeys>, clock: Arc<dyn Clock>) -> Self {
        Self {
            api_keys,
            unknown_by_network: RateLimiter::new(UNKNOWN_PER_ADDRESS, clock),
        }
    }

    /// The active key that a client sent. Keys that were valid lately pass even when the limit is reached, so that an
    /// address that tries keys locks out no device beside it.
    pub(crate) async fn verify(
        &self,
        sent: &str,
        client: IpAddr,
    ) -> Result<Arc<ApiKey>, KeyRejected> {
        let network = client_network(client);
        let too_many = |wait_secs| KeyRejected::TooMany { wait_secs };
        let reads_store = self.api_keys.is_new(sent);
        if reads_store {
            self.unknown_by_network.check(network).map_err(too_many)?;
        }
        if let Some(key) = self.api_keys.verify(sent).await? {
            return Ok(key);
        }
        if reads_store {
            self.unknown_by_network.take(network).map_err(too_many)?;
        }
        Err(KeyRejected::Unknown)
    }
}
