//! Request bodies.

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use homeport_systems::json_object::Object;
use serde::de::{Deserialize, DeserializeOwned};

use crate::problem::Problem;

/// Largest body.
pub(crate) const BODY_BYTES_MAX: usize = 1024 * 1024;

/// The bytes of a body.
pub(crate) struct Body(pub(crate) Bytes);

/// A body that is a JSON object without unknown members.
pub(crate) struct JsonBody<T>(pub(crate) T);

impl<S: Send + Sync> FromRequest<S> for Body {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        Bytes::from_request(request, state)
            .await
            .map(Self)
            .map_err(|error| match error.status() {
                StatusCode::PAYLOAD_TOO_LARGE => Problem::new(
                    StatusCode::PAYLOAD_TOO_LARGE,
                    "BODY_TOO_LARGE",
                    format!("the body is larger than {BODY_BYTES_MAX} bytes"),
                ),
                _ => Problem::invalid("the body could not be read"),
            })
    }
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for JsonBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let Body(bytes) = Body::from_request(request, state).await?;
        parse_object(&bytes).map(Self)
    }
}

/// Parses a body that is a JSON object; fields may borrow from it.
pub(crate) fn parse_object<'de, T: Deserialize<'de>>(bytes: &'de [u8]) -> Result<T, Problem> {
    serde_json::from_slice(bytes)
        .map(|Object(body)| body)
        .map_err(|error| Problem::invalid(format!("invalid body: {error}")))
}
