//! Errors as clients see them: RFC 9457 problems. This is the one place where errors become HTTP.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use homeport_store::StoreError;
use homeport_systems::api_keys::ApiKeyError;
use homeport_systems::cursor::CursorError;
use homeport_systems::sensors::{InvalidField, SensorsError};
use serde::Serialize;
use utoipa::ToSchema;

/// When to come back after the store could not be reached.
const RETRY_AFTER_SECS: u64 = 1;

/// A problem, before it knows the id of its request.
#[derive(Debug, Clone)]
pub(crate) struct Problem {
    status: StatusCode,
    code: &'static str,
    detail: String,
    retry_after_secs: Option<u64>,
}

/// A problem as it is sent.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Problem)]
pub(crate) struct ProblemBody {
    /// Always `about:blank`: the code says what happened
    #[serde(rename = "type")]
    #[schema(example = "about:blank")]
    kind: &'static str,
    /// The status in words
    #[schema(example = "Bad Request")]
    title: &'static str,
    /// The HTTP status
    #[schema(example = 400)]
    status: u16,
    /// What happened, for people
    detail: String,
    /// What happened, for programs; never changes
    #[schema(example = "INVALID_REQUEST")]
    code: &'static str,
    /// Names this request in the server's log
    request_id: String,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        Self {
            status,
            code,
            detail: detail.into(),
            retry_after_secs: None,
        }
    }

    pub(crate) fn invalid(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "INVALID_REQUEST", detail)
    }

    pub(crate) fn retry_after(mut self, secs: u64) -> Self {
        self.retry_after_secs = Some(secs);
        self
    }

    /// What only the log may know is left out of the answer.
    fn internal(error: &dyn std::fmt::Display) -> Self {
        tracing::error!(%error, "a request failed inside");
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "INTERNAL",
            "something went wrong on the server; its log has this request's id",
        )
    }

    pub(crate) fn into_sent(self, request_id: &str) -> Response {
        let body = ProblemBody {
            kind: "about:blank",
            title: self.status.canonical_reason().unwrap_or("Error"),
            status: self.status.as_u16(),
            detail: self.detail,
            code: self.code,
            request_id: request_id.to_owned(),
        };
        let mut response = (self.status, axum::Json(body)).into_response();
        response.headers_mut().insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/problem+json"),
        );
        if let Some(secs) = self.retry_after_secs {
            response
                .headers_mut()
                .insert(header::RETRY_AFTER, HeaderValue::from(secs));
        }
        response
    }
}

impl IntoResponse for Problem {
    /// Leaves the problem for the outermost layer, which knows the request's id.
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Throttled | StoreError::Unavailable(_) => {
                tracing::warn!(%error, "the store could not answer");
                Self::new(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "STORE_UNAVAILABLE",
                    "the store cannot answer now; try again",
                )
                .retry_after(RETRY_AFTER_SECS)
            }
            StoreError::Invalid(_)
            | StoreError::TableMissing(_)
            | StoreError::IndexMissing { .. } => Self::internal(&error),
        }
    }
}

impl From<CursorError> for Problem {
    fn from(error: CursorError) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "INVALID_CURSOR", error.to_string())
    }
}

impl From<InvalidField> for Problem {
    fn from(error: InvalidField) -> Self {
        Self::invalid(error.to_string())
    }
}

impl From<SensorsError> for Problem {
    fn from(error: SensorsError) -> Self {
        let missing = |code| Self::new(StatusCode::NOT_FOUND, code, error.to_string());
        match error {
            SensorsError::DeviceMissing(_) => missing("DEVICE_NOT_FOUND"),
            SensorsError::NoReadings(_) => missing("NO_READINGS"),
            SensorsError::Cursor(error) => error.into(),
            SensorsError::Malformed { .. } => Self::internal(&error),
            SensorsError::Store(error) => error.into(),
        }
    }
}

impl From<ApiKeyError> for Problem {
    fn from(error: ApiKeyError) -> Self {
        match error {
            ApiKeyError::Invalid(detail) => Self::invalid(detail),
            ApiKeyError::Missing(_) => {
                Self::new(StatusCode::NOT_FOUND, "KEY_NOT_FOUND", error.to_string())
            }
            ApiKeyError::Cursor(error) => error.into(),
            ApiKeyError::Malformed(_) => Self::internal(&error),
            ApiKeyError::Store(error) => error.into(),
        }
    }
}
