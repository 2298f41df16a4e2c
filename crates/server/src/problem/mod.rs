//! Error responses: RFC 9457 problems, and the record store's own envelope. `conversions` is the one place
//! that maps errors of the systems to HTTP.

mod conversions;
mod limits;

pub(crate) use limits::limit_of;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

/// The detail of every internal error; the cause is only logged.
pub(crate) const INTERNAL_DETAIL: &str =
    "internal error; the server's log has the cause under this request id";

/// Wait before a retry while a table is missing.
const MISSING_TABLE_RETRY_AFTER_SECS: u64 = 60;

/// What operators read about a missing table.
pub(crate) fn missing_table_detail(table: &str) -> String {
    format!(
        "missing table: {table}; restart the server, which creates missing tables, or run `homeport tables create`"
    )
}

/// An error response that does not have its request id yet.
#[derive(Debug, Clone)]
pub(crate) struct Problem {
    status: StatusCode,
    code: &'static str,
    detail: String,
    retry_after_secs: Option<u64>,
    /// The limit that was exceeded, for the metric.
    limit: Option<&'static str>,
}

/// A problem in a response.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Problem)]
pub(crate) struct ProblemBody {
    /// Always `about:blank`; `code` identifies the error
    #[serde(rename = "type")]
    #[schema(example = "about:blank")]
    kind: &'static str,
    /// Name of the HTTP status
    #[schema(example = "Bad Request")]
    title: &'static str,
    /// HTTP status
    #[schema(example = 400)]
    status: u16,
    /// Error message for people
    detail: String,
    /// Error code for programs; stable
    #[schema(example = "INVALID_REQUEST")]
    code: &'static str,
    /// Id of this request in the server's log
    request_id: String,
}

/// An error of the record store.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RecordsError)]
pub(crate) struct ErrorEnvelope {
    #[schema(example = "ERROR")]
    status: &'static str,
    /// Error message for people
    #[serde(rename = "errorMessage")]
    #[schema(example = "Encoded id is not valid.")]
    error_message: String,
    /// Error code for programs; stable
    #[serde(rename = "errorCode")]
    #[schema(example = "FORMAT_INVALID")]
    error_code: &'static str,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        Self {
            status,
            code,
            detail: detail.into(),
            retry_after_secs: None,
            limit: limits::limit_of(code),
        }
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    /// The same problem with another status.
    pub(crate) fn with_status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    pub(crate) fn invalid(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "INVALID_REQUEST", detail)
    }

    /// A table that an operator has to create.
    pub(crate) fn missing_table(table: &str) -> Self {
        tracing::warn!(table, "a table is missing");
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "TABLE_MISSING",
            missing_table_detail(table),
        )
        .retry_after(MISSING_TABLE_RETRY_AFTER_SECS)
    }

    /// Names the limit that an invalid request exceeds.
    pub(crate) fn exceeding(mut self, limit: &'static str) -> Self {
        self.limit = Some(limit);
        self
    }

    /// The limit that was exceeded.
    pub(crate) fn limit(&self) -> Option<&'static str> {
        self.limit
    }

    pub(crate) fn retry_after(mut self, secs: u64) -> Self {
        self.retry_after_secs = Some(secs);
        self
    }

    /// The error message, for answers that have a result for each item.
    pub(crate) fn into_detail(self) -> String {
        self.detail
    }

    /// An internal error. Its cause is logged and not sent.
    pub(crate) fn internal(error: &dyn std::fmt::Display) -> Self {
        tracing::error!(%error, "internal error");
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "INTERNAL",
            INTERNAL_DETAIL,
        )
    }

    /// The response for a request.
    pub(crate) fn into_problem_response(self, request_id: &str) -> Response {
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
        set_headers(&mut response, self.retry_after_secs);
        response
    }

    /// The response of the record store.
    pub(crate) fn into_envelope_response(self) -> Response {
        let (status, retry_after_secs) = (self.status, self.retry_after_secs);
        let (error_code, error_message) = self.into_record_error();
        let body = ErrorEnvelope {
            status: "ERROR",
            error_message,
            error_code,
        };
        let mut response = (status, axum::Json(body)).into_response();
        set_headers(&mut response, retry_after_secs);
        response
    }

    /// The code and the message of an error of the record store, which has its own codes for some errors.
    pub(crate) fn into_record_error(self) -> (&'static str, String) {
        let code = match self.code {
            "INVALID_REQUEST" => "FORMAT_INVALID",
            "NOT_FOUND" => "ERROR_NOTFOUND",
            code => code,
        };
        (code, self.detail)
    }
}

fn set_headers(response: &mut Response, retry_after_secs: Option<u64>) {
    let is_unauthorized = response.status() == StatusCode::UNAUTHORIZED;
    let headers = response.headers_mut();
    if let Some(secs) = retry_after_secs {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(secs));
    }
    if is_unauthorized {
        headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
}

impl IntoResponse for Problem {
    /// Attaches the problem for the outermost layer, which knows the request id and writes the body.
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}
