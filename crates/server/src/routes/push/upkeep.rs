//! `/v1/push/cleanup` and `/v1/push/check`: maintenance and the runbook's questions, for operators.

use axum::Json;
use axum::extract::State;
use homeport_systems::push::CLEANUP_AGE_DAYS_DEFAULT;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::auth::Admin;
use crate::body::JsonBody;
use crate::problem::{Problem, ProblemBody};
use crate::state::AppState;
use crate::whole::WholeNumber;

/// A hundred years.
const CLEANUP_AGE_DAYS_MAX: u32 = 36_500;

/// What the clean-up is to do.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::routes) struct CleanUp {
    /// Inactive for longer; 30 unless given
    #[schema(value_type = Option<u32>, maximum = 36_500)]
    older_than_days: Option<WholeNumber>,
    /// Count, and delete nothing
    #[serde(default)]
    dry_run: bool,
}

/// What the clean-up found and did.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::routes) struct CleanedUpBody {
    found: usize,
    deleted: usize,
}

/// What is in the table of device tokens.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::routes) struct PushCheck {
    devices: usize,
    active: usize,
    /// Never expire by themselves
    without_expiry: usize,
    /// Have a token that Expo does not take
    wrong_token: usize,
    /// Notifications that are not finished
    outbox_open: i64,
}

/// Delete devices that have been inactive for long
#[utoipa::path(post, path = "/v1/push/cleanup", tag = "push", security(("admin_token" = [])),
    request_body = CleanUp, responses(
    (status = 200, description = "What was found and deleted", body = CleanedUpBody),
    (status = 400, description = "Something is not as it should be", body = ProblemBody, content_type = "application/problem+json"),
    (status = 401, description = "No operator", body = ProblemBody, content_type = "application/problem+json"),
    (status = 503, description = "The store cannot answer", body = ProblemBody, content_type = "application/problem+json")
))]
pub(in crate::routes) async fn clean_up_push_devices(
    _: Admin,
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

/// Count what the runbook asks about
#[utoipa::path(get, path = "/v1/push/check", tag = "push", security(("admin_token" = [])), responses(
    (status = 200, description = "The counts", body = PushCheck),
    (status = 401, description = "No operator", body = ProblemBody, content_type = "application/problem+json"),
    (status = 503, description = "The store cannot answer", body = ProblemBody, content_type = "application/problem+json")
))]
pub(in crate::routes) async fn check_push_devices(
    _: Admin,
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
