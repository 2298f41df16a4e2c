//! `/v1/sensors/devices`

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use homeport_systems::sensors::{Device, HardwareId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::register::CapabilitiesBody;
use super::{Page, SYSTEM};
use crate::auth::needs::{Manage, Read};
use crate::auth::{Action, ApiKeysOrPeople, Authenticated, People, Subject};
use crate::openapi::schemas::{self, DevicePath};
use crate::problem::Problem;
use crate::request::{JsonBody, PathPart, json_object};
use crate::state::AppState;

/// A registered device.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Device)]
pub(in crate::routes) struct DeviceBody {
    #[schema(example = "AA:BB:CC:DD:EE:FF")]
    hardware_id: String,
    #[schema(format = Uuid)]
    confirmation_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    friendly_name: Option<String>,
    firmware_version: String,
    capabilities: CapabilitiesBody,
    #[schema(example = "2024-01-15T10:30:00Z")]
    first_registered_at: String,
    #[schema(example = "2024-01-15T14:22:00Z")]
    last_seen_at: String,
    #[schema(format = Uuid)]
    last_boot_id: String,
}

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::routes) struct DeviceList {
    devices: Vec<DeviceBody>,
    /// Cursor of the next page; absent on the last page
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// Fields to change.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::routes) struct PatchDevice {
    #[serde(default, deserialize_with = "json_object::present")]
    #[schema(schema_with = schemas::friendly_name_change)]
    friendly_name: Option<Option<String>>,
}

impl From<&Device> for DeviceBody {
    fn from(device: &Device) -> Self {
        Self {
            hardware_id: device.hardware_id.to_string(),
            confirmation_id: device.confirmation_id.to_string(),
            friendly_name: device.friendly_name.as_ref().map(ToString::to_string),
            firmware_version: device.firmware_version.to_string(),
            capabilities: CapabilitiesBody::from(&device.capabilities),
            first_registered_at: device.first_registered_at.to_string(),
            last_seen_at: device.last_seen_at.to_string(),
            last_boot_id: device.last_boot_id.to_string(),
        }
    }
}

/// List devices, the most recently active first
#[utoipa::path(get, path = "/v1/sensors/devices", tag = "sensors",
    security(("admin_token" = []), ("device_key" = [])), params(Page), responses(
    (status = 200, description = "A page of devices", body = DeviceList),
))]
pub(in crate::routes) async fn list_devices(
    caller: Authenticated<ApiKeysOrPeople<Read>>,
    State(state): State<AppState>,
    page: Page,
) -> Result<Json<DeviceList>, Problem> {
    caller.check(Action::Read, SYSTEM, Subject::All)?;
    let page = state.sensors.list_devices(page.limit, page.cursor).await?;
    Ok(Json(DeviceList {
        devices: page.items.iter().map(DeviceBody::from).collect(),
        next_cursor: page.next.map(|cursor| cursor.encode()),
    }))
}

/// Get a device
#[utoipa::path(get, path = "/v1/sensors/devices/{hardware_id}", tag = "sensors",
    security(("admin_token" = []), ("device_key" = [])),
    params(DevicePath), responses(
    (status = 200, description = "The device", body = DeviceBody),
    (status = 404, description = "Device not found"),
))]
pub(in crate::routes) async fn get_device(
    caller: Authenticated<ApiKeysOrPeople<Read>>,
    State(state): State<AppState>,
    PathPart(hardware_id): PathPart<HardwareId>,
) -> Result<Json<DeviceBody>, Problem> {
    caller.check(Action::Read, SYSTEM, Subject::One(hardware_id.as_str()))?;
    let device = state.sensors.device(&hardware_id).await?;
    Ok(Json(DeviceBody::from(&device)))
}

/// Rename a device
#[utoipa::path(patch, path = "/v1/sensors/devices/{hardware_id}", tag = "sensors",
    security(("admin_token" = [])), request_body = PatchDevice,
    params(DevicePath), responses(
    (status = 200, description = "The updated device", body = DeviceBody),
    (status = 404, description = "Device not found"),
))]
pub(in crate::routes) async fn patch_device(
    caller: Authenticated<People<Manage>>,
    State(state): State<AppState>,
    PathPart(hardware_id): PathPart<HardwareId>,
    JsonBody(body): JsonBody<PatchDevice>,
) -> Result<Json<DeviceBody>, Problem> {
    caller.check(Action::Manage, SYSTEM, Subject::One(hardware_id.as_str()))?;
    let name = super::name_change(body.friendly_name)?;
    let device = state.sensors.rename_device(&hardware_id, name).await?;
    Ok(Json(DeviceBody::from(&device)))
}

/// Decommission a device: remove it with all of its readings. They are invisible at once and deleted in the background;
/// until then the device cannot register again
#[utoipa::path(delete, path = "/v1/sensors/devices/{hardware_id}", tag = "sensors",
    security(("admin_token" = [])), params(DevicePath), responses(
    (status = 202, description = "The device is being removed"),
    (status = 404, description = "Device not found"),
))]
pub(in crate::routes) async fn decommission_device(
    caller: Authenticated<People<Manage>>,
    State(state): State<AppState>,
    PathPart(hardware_id): PathPart<HardwareId>,
) -> Result<StatusCode, Problem> {
    caller.check(Action::Manage, SYSTEM, Subject::One(hardware_id.as_str()))?;
    state.sensors.decommission(&hardware_id).await?;
    Ok(StatusCode::ACCEPTED)
}
