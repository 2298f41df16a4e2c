//! The store's time: shown to operators, and confirmed by them after the clock was implausibly far ahead.

use axum::Json;
use axum::extract::State;
use homeport_systems::time::{EpochMillis, UtcMillis};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::auth::Admin;
use crate::problem::{Problem, ProblemBody};
use crate::state::{AppState, ClockState};

/// What the clocks say.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct TimeBody {
    /// What the server's clock says
    #[schema(format = DateTime)]
    pub now: String,
    /// The time of the store, which follows the clock but neither goes backwards nor follows an unconfirmed jump
    #[schema(format = DateTime)]
    pub commit_time: String,
    /// False while the clock is implausibly far ahead of the last commit: expired items and old changes are then kept
    pub is_confirmed: bool,
}

impl From<ClockState> for TimeBody {
    fn from(state: ClockState) -> Self {
        let text = |millis| UtcMillis::new(EpochMillis(millis)).to_string();
        Self {
            now: text(state.wall_ms),
            commit_time: text(state.commit_ms),
            is_confirmed: state.is_confirmed,
        }
    }
}

/// Show the store's time
#[utoipa::path(get, path = "/v1/time", tag = "operation", security(("admin_token" = [])), responses(
    (status = 200, description = "The time", body = TimeBody),
    (status = 401, description = "Missing or invalid admin token", body = ProblemBody, content_type = "application/problem+json")
))]
pub(super) async fn get_time(_: Admin, State(state): State<AppState>) -> Json<TimeBody> {
    Json(state.store_clock.state().into())
}

/// Confirm that the server's clock is right, so that expiry and trimming resume
#[utoipa::path(post, path = "/v1/time/confirm", tag = "operation", security(("admin_token" = [])), responses(
    (status = 200, description = "The time, confirmed", body = TimeBody),
    (status = 401, description = "Missing or invalid admin token", body = ProblemBody, content_type = "application/problem+json"),
    (status = 503, description = "The store cannot be written", body = ProblemBody, content_type = "application/problem+json")
))]
pub(super) async fn confirm_time(
    _: Admin,
    State(state): State<AppState>,
) -> Result<Json<TimeBody>, Problem> {
    Ok(Json(state.store_clock.confirm().await?.into()))
}
