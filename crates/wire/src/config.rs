//! The configuration of the protocol.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use homeport_engine::{Clock, SystemClock};

use crate::access::Policy;
use homeport_listen::{AllowedOrigins, Connections, Tls};

/// The defaults suit a small machine and local use.
#[derive(Debug, Clone)]
pub struct Config {
    /// The region in ARNs. Requests may be signed for any region.
    pub region: String,
    /// The credentials that may sign requests. Without credentials every request is allowed, and only loopback addresses can
    /// be served.
    pub credentials: Vec<Credential>,
    /// Concurrent connections of this port. Further connections get a 503 response.
    pub connections_max: usize,
    /// The connections of all ports together.
    pub connections: Connections,
    /// TLS of this port; without it, the port speaks plain HTTP.
    pub tls: Option<Tls>,
    /// Allowed origins of web pages, and hosts that requests may name when there are no credentials.
    pub allowed_origins: AllowedOrigins,
    /// Time for the head of a request.
    pub header_timeout: Duration,
    /// The longest time without bytes between two requests of a connection.
    pub idle_timeout: Duration,
    /// The longest time to receive the body of a request.
    pub body_timeout: Duration,
    /// The directory of exports and imports: each folder in it is a bucket. Without it, both are disabled.
    pub buckets: Option<PathBuf>,
    /// The clock that the times of signatures are compared with.
    pub clock: Arc<dyn Clock>,
}

/// An access key with the permissions of its user.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential {
    pub access_key_id: String,
    secret: String,
    user_name: String,
    /// Without a policy everything is permitted.
    policy: Option<Arc<Policy>>,
}

/// The address is reachable from other machines, but there are no credentials.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0} is not a loopback address, which requires credentials; set an access key, or listen on 127.0.0.1"
)]
pub struct NotLoopback(pub SocketAddr);

impl Default for Config {
    fn default() -> Self {
        Self {
            region: "us-east-1".to_owned(),
            credentials: Vec::new(),
            connections_max: 1024,
            connections: Connections::default(),
            tls: None,
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
    /// Checks that `address` may be served.
    ///
    /// # Errors
    /// If other machines can reach it and there are no credentials.
    pub fn check_address(&self, address: SocketAddr) -> Result<(), NotLoopback> {
        if self.credentials.is_empty() && !address.ip().is_loopback() {
            return Err(NotLoopback(address));
        }
        Ok(())
    }
}

impl Credential {
    /// A credential that permits everything. Its user name is the access key id.
    pub fn new(access_key_id: impl Into<String>, secret: impl Into<String>) -> Self {
        let access_key_id = access_key_id.into();
        Self {
            user_name: access_key_id.clone(),
            access_key_id,
            secret: secret.into(),
            policy: None,
        }
    }

    /// Sets the user name in messages and in the audit log.
    #[must_use]
    pub fn of_user(mut self, name: impl Into<String>) -> Self {
        self.user_name = name.into();
        self
    }

    /// Limits the permissions to those of a policy.
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
    /// Omits the secret, so that it never appears in logs.
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
    fn only_loopback_is_served_without_credentials() {
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
