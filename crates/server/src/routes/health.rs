//! Whether the server lives, whether it can work, and its metrics.

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::measure;
use crate::problem::{Problem, ProblemBody};
use crate::state::AppState;

/// Whether the process lives
#[utoipa::path(get, path = "/healthz", tag = "operation", responses(
    (status = 200, description = "It lives", body = String, content_type = "text/plain")
))]
pub(super) async fn get_health() -> &'static str {
    "ok\n"
}

/// Whether requests can be served
#[utoipa::path(get, path = "/readyz", tag = "operation", responses(
    (status = 200, description = "They can", body = String, content_type = "text/plain"),
    (status = 503, description = "They cannot", body = ProblemBody, content_type = "application/problem+json")
))]
pub(super) async fn get_readiness(State(state): State<AppState>) -> Result<&'static str, Problem> {
    match state.health.problem() {
        None => Ok("ready\n"),
        Some(reason) => Err(Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "NOT_READY",
            reason,
        )),
    }
}

/// Metrics in Prometheus' text form
#[utoipa::path(get, path = "/metrics", tag = "operation", responses(
    (status = 200, description = "The metrics", body = String, content_type = "text/plain")
))]
pub(super) async fn get_metrics(State(state): State<AppState>) -> Response {
    let text = measure::render(&state.metrics, &*state.gauges, state.api_keys.cached());
    let kind = [(header::CONTENT_TYPE, "text/plain; version=0.0.4")];
    (kind, text).into_response()
}
