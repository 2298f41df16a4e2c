//! `/v1/push/cleanup`, `/v1/push/check` and `DELETE /v1/push/users/{user_id}`: maintenance by operators.

use axum::Json;
use axum::extract::State;
use homeport_store::StoreError;
use homeport_systems::push::{
    CLEANUP_AGE_DAYS_DEFAULT, CleanedUp, DeviceVerdict, Erased, LastNotification, PushError,
    TableCheck, UserDeviceCheck, UserId,
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::SYSTEM;
use crate::auth::needs::{Manage, Read};
use crate::auth::{Action, Authenticated, People, Subject};
use crate::openapi::enums::PushVerdict;
use crate::openapi::schemas::{self, UserPath};
use crate::problem::Problem;
use crate::request::{JsonBody, PathPart, UrlQuery, WholeNumber};
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
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = CleanedUpBody)]
pub struct PushCleanup {
    pub found: usize,
    pub deleted: usize,
}

/// The user to check.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(in crate::routes) struct CheckedUser {
    /// Also check each device of this user
    #[param(schema_with = schemas::graphic_id, required = false)]
    user_id: Option<String>,
}

/// Counts of the device table and the outbox, and the devices of a user.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct PushCheck {
    pub devices: usize,
    pub active: usize,
    /// Active devices with iOS: those that a broadcast to this platform reaches
    pub active_ios: usize,
    /// Active devices with Android
    pub active_android: usize,
    /// Devices that never expire
    pub without_expiry: usize,
    /// Devices whose token Expo does not accept
    pub wrong_token: usize,
    /// Unfinished notifications; a notification to more than 100 devices counts once for every 100
    pub outbox_open: i64,
    /// The devices of the requested user
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_devices: Option<Vec<PushDeviceCheck>>,
}

/// Whether a device gets notifications.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct PushDeviceCheck {
    pub device_id: String,
    verdict: PushVerdict,
    /// The verdict in words
    #[schema(example = "gets notifications")]
    pub explanation: String,
    pub is_active: bool,
    /// Seconds since 1970; absent if the device never expires
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<i64>,
    /// Whether the token has Expo's format
    pub has_valid_token: bool,
    /// Absent if none of the user's last notifications was for this device
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_notification: Option<PushLastNotification>,
}

/// The delivery of the last notification to a device.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct PushLastNotification {
    pub notification_id: String,
    #[schema(example = "delivered")]
    pub state: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What was deleted.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ErasedPushUser)]
pub(in crate::routes) struct ErasedUser {
    devices: usize,
    notifications: usize,
}

impl From<CleanedUp> for PushCleanup {
    fn from(cleaned: CleanedUp) -> Self {
        Self {
            found: cleaned.found,
            deleted: cleaned.deleted,
        }
    }
}

impl PushCheck {
    /// The body for the checks of a table and, if requested, of a user's devices.
    #[must_use]
    pub fn new(table: &TableCheck, devices: Option<Vec<UserDeviceCheck>>) -> Self {
        Self {
            devices: table.devices,
            active: table.active,
            active_ios: table.active_ios,
            active_android: table.active_android,
            without_expiry: table.without_expiry,
            wrong_token: table.wrong_token,
            outbox_open: table.outbox_open,
            user_devices: devices
                .map(|devices| devices.into_iter().map(PushDeviceCheck::from).collect()),
        }
    }
}

impl From<UserDeviceCheck> for PushDeviceCheck {
    fn from(device: UserDeviceCheck) -> Self {
        let explanation = match device.verdict {
            DeviceVerdict::Reachable => "gets notifications",
            DeviceVerdict::Inactive => "gets no notifications until it registers again: inactive",
            DeviceVerdict::Expired => "gets no notifications until it registers again: expired",
            DeviceVerdict::InvalidToken => "gets no notifications: invalid Expo push token",
            DeviceVerdict::LastFailed => "gets notifications, but the last one failed",
        };
        Self {
            device_id: device.device_id,
            verdict: device.verdict.into(),
            explanation: explanation.to_owned(),
            is_active: device.is_active,
            expires_at: device.expires_at.map(|at| at.0),
            has_valid_token: device.has_valid_token,
            last_notification: device.last_notification.map(PushLastNotification::from),
        }
    }
}

impl From<LastNotification> for PushLastNotification {
    fn from(last: LastNotification) -> Self {
        Self {
            notification_id: last.id.to_string(),
            state: last.state.as_str().to_owned(),
            reason: last.reason,
        }
    }
}

/// Names a missing table, which operators can create.
fn for_operator(error: PushError) -> Problem {
    match error {
        PushError::Store(StoreError::TableNotFound(table)) => Problem::missing_table(&table),
        error => error.into(),
    }
}

/// Delete devices that have been inactive for a long time
#[utoipa::path(post, path = "/v1/push/cleanup", tag = "push", security(("admin_token" = [])),
    request_body = CleanUp, responses(
    (status = 200, description = "The number of devices found and deleted", body = PushCleanup),
))]
pub(in crate::routes) async fn clean_up_push_devices(
    caller: Authenticated<People<Manage>>,
    State(state): State<AppState>,
    JsonBody(body): JsonBody<CleanUp>,
) -> Result<Json<PushCleanup>, Problem> {
    caller.check(Action::Manage, SYSTEM, Subject::All)?;
    let days = match body.older_than_days {
        Some(days) => days.up_to("older_than_days", CLEANUP_AGE_DAYS_MAX)?,
        None => CLEANUP_AGE_DAYS_DEFAULT,
    };
    let cleaned = state.push.clean_up(days, body.dry_run).await;
    Ok(Json(cleaned.map_err(for_operator)?.into()))
}

/// Check the device table and the outbox, and the devices of a user
#[utoipa::path(get, path = "/v1/push/check", tag = "push", security(("admin_token" = [])), params(CheckedUser), responses(
    (status = 200, description = "The counts and verdicts", body = PushCheck),
    (status = 503, description = "A table is missing, or the store is unavailable"),
))]
pub(in crate::routes) async fn check_push_devices(
    caller: Authenticated<People<Read>>,
    State(state): State<AppState>,
    UrlQuery(query): UrlQuery<CheckedUser>,
) -> Result<Json<PushCheck>, Problem> {
    let user: Option<UserId> = query.user_id.as_deref().map(str::parse).transpose()?;
    caller.check(Action::Read, SYSTEM, Subject::All)?;
    let table = state.push.check_table().await.map_err(for_operator)?;
    let devices = match &user {
        Some(user) => Some(state.push.check_user(user).await.map_err(for_operator)?),
        None => None,
    };
    Ok(Json(PushCheck::new(&table, devices)))
}

/// Erase a user: delete all devices and notifications
///
/// Queued notifications are not sent any more. Repeat the request if it fails; it continues.
#[utoipa::path(delete, path = "/v1/push/users/{user_id}", tag = "push", security(("admin_token" = [])),
    params(UserPath), responses(
    (status = 200, description = "The number of deleted devices and notifications", body = ErasedUser),
))]
pub(in crate::routes) async fn erase_push_user(
    caller: Authenticated<People<Manage>>,
    State(state): State<AppState>,
    PathPart(user_id): PathPart<UserId>,
) -> Result<Json<ErasedUser>, Problem> {
    caller.check(Action::Manage, SYSTEM, Subject::One(user_id.as_str()))?;
    let erased = state.push.erase_user(&user_id).await;
    let Erased {
        devices,
        notifications,
    } = erased.map_err(for_operator)?;
    Ok(Json(ErasedUser {
        devices,
        notifications,
    }))
}
