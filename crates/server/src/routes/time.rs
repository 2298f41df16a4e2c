//! `/v1/time`: shows the store's time. Operators confirm the clock after it was implausibly far ahead.

use axum::Json;
use axum::extract::State;
use homeport_systems::time::{EpochMillis, UtcMillis};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::auth::needs::{ManageServer, Read};
use crate::auth::{Authenticated, Everywhere, People};
use crate::problem::Problem;
use crate::state::{AppState, ClockState};

/// The clocks of the server and the store.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct TimeBody {
    /// Time of the server's clock
    #[schema(format = DateTime)]
    pub now: String,
    /// Commit time of the store. It follows the clock, but never goes backwards and ignores unconfirmed jumps
    #[schema(format = DateTime)]
    pub commit_time: String,
    /// False while the clock is implausibly far ahead of the last commit; expired items and old changes are kept then
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
))]
pub(super) async fn get_time(
    _: Authenticated<People<Read>>,
    State(state): State<AppState>,
) -> Json<TimeBody> {
    Json(state.store_clock.state().into())
}

/// Confirm the server's clock, so that expiry and trimming resume
#[utoipa::path(post, path = "/v1/time/confirm", tag = "operation", security(("admin_token" = [])), responses(
    (status = 200, description = "The confirmed time", body = TimeBody),
))]
pub(super) async fn confirm_time(
    _: Authenticated<Everywhere<ManageServer>>,
    State(state): State<AppState>,
) -> Result<Json<TimeBody>, Problem> {
    Ok(Json(state.store_clock.confirm().await?.into()))
}
