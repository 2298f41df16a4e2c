//! `/v1/devices`: the devices of all systems.

use axum::Json;
use axum::extract::{Path, State};
use homeport_systems::fleet::{
    DeviceFilter, DeviceRef, DeviceSummary, DeviceView, Health, LIST_MAX, subject,
};
use homeport_systems::time::{EpochMillis, UtcMillis};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::auth::needs::Read;
use crate::auth::{Action, Authenticated, Caller, People, Subject};
use crate::openapi::enums::{DeviceHealth, DeviceSystem};
use crate::problem::Problem;
use crate::request::plain_json::{PlainItem, PlainValue};
use crate::request::{PageQuery, UrlQuery};
use crate::state::AppState;

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = FleetDevice)]
pub(super) struct DeviceBody {
    system: DeviceSystem,
    /// Unique in its system; may contain slashes, so percent-encode it in URLs
    id: String,
    /// Friendly name, or the id
    name: String,
    /// Firmware, model or platform
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    /// RFC 3339; absent if the device was never seen
    #[serde(skip_serializing_if = "Option::is_none")]
    last_seen_at: Option<String>,
    health: DeviceHealth,
    /// Group of a record store device, user of a phone
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::routes) struct CountsBody {
    online: usize,
    late: usize,
    silent: usize,
    total: usize,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = FleetDeviceList)]
pub(super) struct DeviceList {
    /// Sorted by system and name
    devices: Vec<DeviceBody>,
    /// Counts of all devices that match the filters except health
    counts: CountsBody,
    /// Whether devices are missing because there are more than the list can hold
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
    /// Cursor of the next page; absent on the last page
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct DevicesQuery {
    /// System of the devices
    #[param(inline)]
    system: Option<DeviceSystem>,
    /// Health of the devices
    #[param(inline)]
    health: Option<DeviceHealth>,
    /// Part of a name, id or group, case-insensitive
    #[param(max_length = 128)]
    search: Option<String>,
}

/// The path parameters of a device.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(in crate::routes) struct AnyDevicePath {
    #[param(inline)]
    system: DeviceSystem,
    /// Id from the list of devices, percent-encoded
    #[param(min_length = 1, max_length = 600)]
    id: String,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LatestValue)]
pub(super) struct LatestBody {
    name: String,
    #[schema(value_type = serde_json::Value)]
    value: PlainValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<String>,
    /// RFC 3339
    at: String,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = FleetDeviceView)]
pub(super) struct DeviceViewBody {
    #[serde(flatten)]
    device: DeviceBody,
    /// Identity; its attributes depend on the system
    #[schema(value_type = Object)]
    identity: PlainItem,
    /// State; its attributes depend on the system
    #[schema(value_type = Object)]
    state: PlainItem,
    latest: Vec<LatestBody>,
}

type Page = PageQuery<LIST_MAX>;

impl DeviceBody {
    fn new(device: &DeviceSummary, health: Health) -> Self {
        Self {
            system: device.system.clone().into(),
            name: device.name.clone().unwrap_or_else(|| device.id.clone()),
            id: device.id.clone(),
            kind: device.kind.clone(),
            last_seen_at: device.last_seen.map(format_time),
            health: health.into(),
            group: device.group.clone(),
        }
    }
}

impl DeviceViewBody {
    fn new(view: DeviceView, health: Health) -> Self {
        let latest = view.latest.into_iter().map(|latest| LatestBody {
            name: latest.name,
            value: PlainValue(latest.value),
            unit: latest.unit,
            at: format_time(latest.at),
        });
        Self {
            device: DeviceBody::new(&view.summary, health),
            identity: PlainItem(view.identity),
            state: PlainItem(view.state),
            latest: latest.collect(),
        }
    }
}

/// A time in the format of all console routes.
pub(super) fn format_time(at: EpochMillis) -> String {
    UtcMillis::new(at).to_string()
}

/// Whether the caller may see a device in a list.
pub(super) fn is_visible(caller: &Caller, device: &DeviceSummary) -> bool {
    let subject = subject(&device.id);
    let checked = caller.check(Action::Read, device.system.as_str(), Subject::One(&subject));
    checked.is_ok()
}

/// List the devices of all systems
#[utoipa::path(get, path = "/v1/devices", tag = "console", security(("admin_token" = [])),
    params(DevicesQuery, Page), responses(
    (status = 200, description = "A page of devices", body = DeviceList),
))]
pub(super) async fn list_fleet_devices(
    caller: Authenticated<People<Read>>,
    State(state): State<AppState>,
    UrlQuery(query): UrlQuery<DevicesQuery>,
    page: Page,
) -> Result<Json<DeviceList>, Problem> {
    let filter = DeviceFilter {
        system: query.system.map(|system| system.0),
        health: query.health.map(|health| health.0),
        search: query.search,
    };
    let page = state
        .console
        .fleet
        .devices(
            &filter,
            |device| is_visible(&caller, device),
            page.limit,
            page.cursor,
        )
        .await?;
    let devices = page.devices.iter();
    Ok(Json(DeviceList {
        devices: devices
            .map(|(device, health)| DeviceBody::new(device, *health))
            .collect(),
        counts: CountsBody {
            online: page.counts.online,
            late: page.counts.late,
            silent: page.counts.silent,
            total: page.counts.total(),
        },
        truncated: page.is_cut,
        next_cursor: page.next.map(|cursor| cursor.encode()),
    }))
}

/// Get a device: identity, state and latest values
#[utoipa::path(get, path = "/v1/devices/{system}/{id}", tag = "console", security(("admin_token" = [])),
    params(AnyDevicePath), responses(
    (status = 200, description = "The device", body = DeviceViewBody),
    (status = 404, description = "Device not found"),
))]
pub(super) async fn get_fleet_device(
    caller: Authenticated<People<Read>>,
    State(state): State<AppState>,
    DevicePathParts(device): DevicePathParts,
) -> Result<Json<DeviceViewBody>, Problem> {
    caller.check_device(Action::Read, &device)?;
    let (view, health) = state.console.fleet.device(&device).await?;
    Ok(Json(DeviceViewBody::new(view, health)))
}

/// The extractor of the path parameters.
pub(super) struct DevicePathParts(pub(super) DeviceRef);

impl axum::extract::FromRequestParts<AppState> for DevicePathParts {
    type Rejection = Problem;

    async fn from_request_parts(
        parts: &mut axum::http::request::Parts,
        state: &AppState,
    ) -> Result<Self, Problem> {
        let path = Path::<AnyDevicePath>::from_request_parts(parts, state).await;
        let device = path.map(|Path(path)| DeviceRef {
            system: path.system.0,
            id: path.id,
        });
        device
            .map(Self)
            .map_err(|error| Problem::invalid(error.body_text()))
    }
}
