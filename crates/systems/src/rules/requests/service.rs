//! The interface to HTTP requests of rules. The server implements it and blocks requests to private
//! addresses.

use async_trait::async_trait;
use bytes::Bytes;

use crate::outbox::SendError;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutgoingRequest {
    /// The same for every attempt, so that receivers recognize repeats.
    pub id: String,
    /// The time of the attempt, in seconds since the epoch.
    pub timestamp_secs: i64,
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub body: Bytes,
}

#[async_trait]
pub trait RequestService: Send + Sync + 'static {
    /// Posts the request, signed.
    ///
    /// # Errors
    /// When it was not answered with success.
    async fn post(&self, request: &OutgoingRequest) -> Result<(), SendError>;
}
