//! Whether the server lives, whether it can work, and its metrics.

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::measure;
use crate::problem::{Problem, ProblemBody};
use crate::state::AppState;

/// Whether the process is alive
///
/// `ok`, or `degraded:` and the reason while some requests fail and a restart would not help. A second line holds a warning, if
/// there is one.
#[utoipa::path(get, path = "/healthz", tag = "operation", responses(
    (status = 200, description = "Alive; `degraded: <reason>` if some requests fail; an optional second line holds a warning", body = String, content_type = "text/plain"),
    (status = 503, description = "The process must be restarted", body = ProblemBody, content_type = "application/problem+json")
))]
pub(super) async fn get_health(State(state): State<AppState>) -> Result<String, Problem> {
    if let Some(reason) = state.health.needs_restart() {
        return Err(not_ready(reason));
    }
    Ok(with_warning(
        &state,
        match state.health.problem() {
            None => "ok\n".to_owned(),
            Some(reason) => format!("degraded: {reason}\n"),
        },
    ))
}

/// Appends the warning for operators, if there is one.
fn with_warning(state: &AppState, answer: String) -> String {
    match state.health.warning() {
        None => answer,
        Some(warning) => format!("{answer}warning: {warning}\n"),
    }
}

fn not_ready(reason: String) -> Problem {
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "NOT_READY", reason)
}

/// Whether all requests can be served
#[utoipa::path(get, path = "/readyz", tag = "operation", responses(
    (status = 200, description = "All requests can be served; an optional second line holds a warning", body = String, content_type = "text/plain"),
    (status = 503, description = "Some or all requests fail", body = ProblemBody, content_type = "application/problem+json")
))]
pub(super) async fn get_readiness(State(state): State<AppState>) -> Result<String, Problem> {
    match state.health.problem() {
        None => Ok(with_warning(&state, "ready\n".to_owned())),
        Some(reason) => Err(not_ready(reason)),
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
