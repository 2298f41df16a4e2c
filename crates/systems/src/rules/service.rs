//! Requests over HTTP as this module knows them. Whoever implements the service does the HTTP and
//! keeps requests away from addresses where they must not go.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

/// A request to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutgoingRequest {
    /// The same for every attempt, so that a receiver can tell repeats.
    pub id: String,
    /// When it is made, in seconds since the epoch.
    pub timestamp_secs: i64,
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub body: Bytes,
}

/// Why a request was not answered with success.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// It may be answered better later.
    #[error("{reason}")]
    Later {
        reason: String,
        retry_after: Option<Duration>,
    },
    /// It will never be.
    #[error("{0}")]
    Never(String),
}

/// The service.
#[async_trait]
pub trait RequestService: Send + Sync + 'static {
    /// Posts the request, signed.
    ///
    /// # Errors
    /// When it was not answered with success.
    async fn post(&self, request: &OutgoingRequest) -> Result<(), RequestError>;
}
