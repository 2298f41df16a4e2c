//! Health checks and metrics.

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::metrics;
use crate::problem::{Problem, missing_table_detail};
use crate::state::AppState;

/// Check whether the process is alive
///
/// Returns `ok`, or `degraded:` and the reason while some requests fail and a restart would not help. An optional
/// second line holds a warning.
#[utoipa::path(get, path = "/healthz", tag = "operation", security(()), responses(
    (status = 200, description = "Alive; `degraded: <reason>` if some requests fail; an optional second line holds a warning", body = String, content_type = "text/plain"),
    (status = 503, description = "The process must be restarted")
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
fn with_warning(state: &AppState, text: String) -> String {
    match state.health.warning() {
        None => text,
        Some(warning) => format!("{text}warning: {warning}\n"),
    }
}

fn not_ready(reason: String) -> Problem {
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "NOT_READY", reason)
}

/// Check whether all requests can succeed
///
/// The response names missing tables.
#[utoipa::path(get, path = "/readyz", tag = "operation", security(()), responses(
    (status = 200, description = "Ready; an optional second line holds a warning", body = String, content_type = "text/plain"),
    (status = 503, description = "Some or all requests fail")
))]
pub(super) async fn get_readiness(State(state): State<AppState>) -> Result<String, Problem> {
    if let Some(reason) = state.health.problem() {
        return Err(not_ready(reason));
    }
    let missing = state.health.missing_tables().await;
    match missing.first() {
        None => Ok(with_warning(&state, "ready\n".to_owned())),
        Some(_) => Err(not_ready(missing_table_detail(&missing.join(", ")))),
    }
}

/// Get metrics in the Prometheus text format
#[utoipa::path(get, path = "/metrics", tag = "operation", security(()), responses(
    (status = 200, description = "The metrics", body = String, content_type = "text/plain")
))]
pub(super) async fn get_metrics(State(state): State<AppState>) -> Response {
    let text = metrics::render(&state.metrics, &*state.gauges, state.api_keys.cached());
    let kind = [(header::CONTENT_TYPE, "text/plain; version=0.0.4")];
    (kind, text).into_response()
}
