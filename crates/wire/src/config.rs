//! How the protocol is served.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use homeport_engine::{Clock, SystemClock};

use crate::access::Policy;
use crate::listen::{AllowedOrigins, Connections};

/// Settings; the defaults suit a small machine and local use.
#[derive(Debug, Clone)]
pub struct Config {
    /// The region in ARNs and in the health text. Requests may be signed for any.
    pub region: String,
    /// Who may ask. With none, anyone may, and only this machine can be listened on.
    pub credentials: Vec<Credential>,
    /// Connections of this port at the same time; further ones are answered with 503.
    pub connections_max: usize,
    /// The connections of all ports together.
    pub connections: Connections,
    /// Allowed origins of web pages, and hosts that requests may name when there are no credentials.
    pub allowed_origins: AllowedOrigins,
    /// Time for the head of a request.
    pub header_timeout: Duration,
    /// How long a connection may be silent between requests.
    pub idle_timeout: Duration,
    /// How long the body of a request may take.
    pub body_timeout: Duration,
    /// Where exports go and imports come from: each folder in it is a bucket. With none there are none.
    pub buckets: Option<PathBuf>,
    /// What signatures' times are compared with.
    pub clock: Arc<dyn Clock>,
}

/// An access key id with its secret, and what its owner may do.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential {
    pub access_key_id: String,
    secret: String,
    user_name: String,
    /// Without one, everything is permitted.
    policy: Option<Arc<Policy>>,
}

/// An address that others can reach was to be listened on without credentials.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "without credentials only this machine may be served: {0} is not a loopback address; set an access key, or listen on 127.0.0.1"
)]
pub struct NotLoopback(pub SocketAddr);

impl Default for Config {
    fn default() -> Self {
        Self {
            region: "us-east-1".to_owned(),
            credentials: Vec::new(),
            connections_max: 1024,
            connections: Connections::default(),
            allowed_origins: AllowedOrigins::default(),
            header_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(120),
            body_timeout: Duration::from_secs(60),
            buckets: None,
            clock: Arc::new(SystemClock),
        }
    }
}

impl Config {
    /// Checks that `address` may be listened on.
    ///
    /// # Errors
    /// When others could reach it and no credentials are set.
    pub fn check_address(&self, address: SocketAddr) -> Result<(), NotLoopback> {
        if self.credentials.is_empty() && !address.ip().is_loopback() {
            return Err(NotLoopback(address));
        }
        Ok(())
    }
}

impl Credential {
    /// A credential that permits everything, whose owner is known by its id.
    pub fn new(access_key_id: impl Into<String>, secret: impl Into<String>) -> Self {
        let access_key_id = access_key_id.into();
        Self {
            user_name: access_key_id.clone(),
            access_key_id,
            secret: secret.into(),
            policy: None,
        }
    }

    /// The name that messages and the audit log have for its owner.
    #[must_use]
    pub fn of_user(mut self, name: impl Into<String>) -> Self {
        self.user_name = name.into();
        self
    }

    /// Permits only what the policy does.
    #[must_use]
    pub fn limited_by(mut self, policy: Policy) -> Self {
        self.policy = Some(Arc::new(policy));
        self
    }

    pub(crate) fn user_name(&self) -> &str {
        &self.user_name
    }

    pub(crate) fn policy(&self) -> Option<&Policy> {
        self.policy.as_deref()
    }

    pub(crate) fn secret(&self) -> &str {
        &self.secret
    }
}

impl fmt::Debug for Credential {
    /// Leaves the secret out, so that no log can have it.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Credential")
            .field("access_key_id", &self.access_key_id)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_credentials_only_loopback_may_be_listened_on() {
        let open: SocketAddr = "0.0.0.0:8000".parse().expect("an address");
        let local: SocketAddr = "[::1]:8000".parse().expect("an address");
        let mut config = Config::default();
        assert_eq!(config.check_address(open), Err(NotLoopback(open)));
        assert_eq!(config.check_address(local), Ok(()));
        config.credentials.push(Credential::new("id", "hush"));
        assert_eq!(config.check_address(open), Ok(()));
        assert!(!format!("{config:?}").contains("hush"));
    }
}
