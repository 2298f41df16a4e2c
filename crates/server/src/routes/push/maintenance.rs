//! `/v1/push/cleanup` and `/v1/push/check`: maintenance by operators.

use axum::Json;
use axum::extract::State;
use homeport_systems::push::CLEANUP_AGE_DAYS_DEFAULT;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::auth::{Authenticated, Operators};
use crate::problem::Problem;
use crate::request::{JsonBody, WholeNumber};
use crate::state::AppState;

/// A hundred years.
const CLEANUP_AGE_DAYS_MAX: u32 = 36_500;

/// Which devices to delete.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::routes) struct CleanUp {
    /// Minimum days of inactivity; default 30
    #[schema(value_type = Option<u32>, maximum = 36_500)]
    older_than_days: Option<WholeNumber>,
    /// Count only
    #[serde(default)]
    dry_run: bool,
}

/// The result of a cleanup.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::routes) struct CleanedUpBody {
    found: usize,
    deleted: usize,
}

/// Counts of the device table and the outbox.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::routes) struct PushCheck {
    devices: usize,
    active: usize,
    /// Devices that never expire
    without_expiry: usize,
    /// Devices whose token Expo does not accept
    wrong_token: usize,
    /// Unfinished notifications
    outbox_open: i64,
}

/// Delete devices that have been inactive for a long time
#[utoipa::path(post, path = "/v1/push/cleanup", tag = "push", security(("admin_token" = [])),
    request_body = CleanUp, responses(
    (status = 200, description = "The number of devices found and deleted", body = CleanedUpBody),
))]
pub(in crate::routes) async fn clean_up_push_devices(
    _: Authenticated<Operators>,
    State(state): State<AppState>,
    JsonBody(body): JsonBody<CleanUp>,
) -> Result<Json<CleanedUpBody>, Problem> {
    let days = match body.older_than_days {
        Some(days) => days.up_to("older_than_days", CLEANUP_AGE_DAYS_MAX)?,
        None => CLEANUP_AGE_DAYS_DEFAULT,
    };
    let cleaned = state.push.clean_up(days, body.dry_run).await?;
    Ok(Json(CleanedUpBody {
        found: cleaned.found,
        deleted: cleaned.deleted,
    }))
}

/// Check the device table and the outbox
#[utoipa::path(get, path = "/v1/push/check", tag = "push", security(("admin_token" = [])), responses(
    (status = 200, description = "The counts", body = PushCheck),
))]
pub(in crate::routes) async fn check_push_devices(
    _: Authenticated<Operators>,
    State(state): State<AppState>,
) -> Result<Json<PushCheck>, Problem> {
    let found = state.push.check_table().await?;
    Ok(Json(PushCheck {
        devices: found.devices,
        active: found.active,
        without_expiry: found.without_expiry,
        wrong_token: found.wrong_token,
        outbox_open: found.outbox_open,
    }))
}
