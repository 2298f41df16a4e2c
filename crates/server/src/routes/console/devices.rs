//! `/v1/devices`: the devices of all systems as one list, and one of them.

use axum::Json;
use axum::extract::{Path, State};
use homeport_systems::fleet::{
    DeviceFilter, DeviceRef, DeviceSummary, DeviceView, FleetError, Health, LIST_MAX, SystemName,
};
use homeport_systems::time::{EpochMillis, UtcMillis};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::auth::Admin;
use crate::problem::{Problem, ProblemBody};
use crate::routes::json::{PlainItem, PlainValue};
use crate::state::AppState;
use crate::url::{self, UrlQuery};

/// A system that has devices.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = DeviceSystem)]
pub(in crate::routes) enum SystemWord {
    Sensors,
    Chargers,
    Telemetry,
    Records,
    Push,
}

/// How a device does, by when it was last heard from.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = DeviceHealth)]
pub(in crate::routes) enum HealthWord {
    Online,
    Late,
    Silent,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = FleetDevice)]
pub(super) struct DeviceBody {
    system: SystemWord,
    /// Unique within its system; percent-encode it in addresses, since it may have a slash
    id: String,
    /// What people call it, else its id
    name: String,
    /// Firmware, model or platform
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    /// RFC 3339; absent when it was never heard from
    #[serde(skip_serializing_if = "Option::is_none")]
    last_seen_at: Option<String>,
    health: HealthWord,
    /// The group of a device with records, the user of a phone
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
    /// System by system, each in the order of names
    devices: Vec<DeviceBody>,
    /// Of all devices that fit but for their health
    counts: CountsBody,
    /// Whether there are more devices than the list can have: some are missing then
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
    /// Absent on the last page
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<String>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct DevicesQuery {
    /// Of one system only
    #[param(inline)]
    system: Option<SystemWord>,
    /// In one health only
    #[param(inline)]
    health: Option<HealthWord>,
    /// A part of a name, an id or a group, whatever the case
    #[param(max_length = 128)]
    search: Option<String>,
    /// Devices of a page
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<usize>,
    /// Where the page before ended
    cursor: Option<String>,
}

/// The part of an address that names a device of any system.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(in crate::routes) struct AnyDevicePath {
    #[param(inline)]
    system: SystemWord,
    /// As the list of devices has it, percent-encoded
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
#[serde(rename_all = "camelCase")]
#[schema(as = FleetDeviceView)]
pub(super) struct DeviceViewBody {
    #[serde(flatten)]
    device: DeviceBody,
    /// Who it is; what is in it differs from system to system
    #[schema(value_type = Object)]
    identity: PlainItem,
    /// How it stands; what is in it differs from system to system
    #[schema(value_type = Object)]
    state: PlainItem,
    latest: Vec<LatestBody>,
}

impl From<SystemWord> for SystemName {
    fn from(word: SystemWord) -> Self {
        match word {
            SystemWord::Sensors => Self::Sensors,
            SystemWord::Chargers => Self::Chargers,
            SystemWord::Telemetry => Self::Telemetry,
            SystemWord::Records => Self::Records,
            SystemWord::Push => Self::Push,
        }
    }
}

impl From<SystemName> for SystemWord {
    fn from(system: SystemName) -> Self {
        match system {
            SystemName::Sensors => Self::Sensors,
            SystemName::Chargers => Self::Chargers,
            SystemName::Telemetry => Self::Telemetry,
            SystemName::Records => Self::Records,
            SystemName::Push => Self::Push,
        }
    }
}

impl From<HealthWord> for Health {
    fn from(word: HealthWord) -> Self {
        match word {
            HealthWord::Online => Self::Online,
            HealthWord::Late => Self::Late,
            HealthWord::Silent => Self::Silent,
        }
    }
}

impl From<Health> for HealthWord {
    fn from(health: Health) -> Self {
        match health {
            Health::Online => Self::Online,
            Health::Late => Self::Late,
            Health::Silent => Self::Silent,
        }
    }
}

impl DeviceBody {
    fn new(device: &DeviceSummary, health: Health) -> Self {
        Self {
            system: device.system.into(),
            name: device.name.clone().unwrap_or_else(|| device.id.clone()),
            id: device.id.clone(),
            kind: device.kind.clone(),
            last_seen_at: device.last_seen.map(shown),
            health: health.into(),
            group: device.group.clone(),
        }
    }
}

impl From<DeviceView> for DeviceViewBody {
    fn from(view: DeviceView) -> Self {
        let latest = view.latest.into_iter().map(|latest| LatestBody {
            name: latest.name,
            value: PlainValue(latest.value),
            unit: latest.unit,
            at: shown(latest.at),
        });
        Self {
            device: DeviceBody::new(&view.summary, view.health),
            identity: PlainItem(view.identity),
            state: PlainItem(view.state),
            latest: latest.collect(),
        }
    }
}

/// A time as all routes of the console show it.
pub(super) fn shown(at: EpochMillis) -> String {
    UtcMillis::new(at).to_string()
}

impl AnyDevicePath {
    pub(super) async fn resolve(&self, state: &AppState) -> Result<DeviceRef, Problem> {
        let fleet = &state.console.fleet;
        match fleet.device_ref(self.system.into(), &self.id).await {
            // What cannot be an id of the system is the id of no device.
            Err(FleetError::Invalid(_)) => Err(FleetError::DeviceMissing.into()),
            device => Ok(device?),
        }
    }
}

/// The devices of all systems, searched and counted
#[utoipa::path(get, path = "/v1/devices", tag = "console", security(("admin_token" = [])),
    params(DevicesQuery), responses(
    (status = 200, description = "A page of devices", body = DeviceList),
    (status = 400, description = "The filter, the limit or the cursor is not right", body = ProblemBody, content_type = "application/problem+json"),
    (status = 401, description = "No operator", body = ProblemBody, content_type = "application/problem+json"),
    (status = 503, description = "The store cannot answer", body = ProblemBody, content_type = "application/problem+json")
))]
pub(super) async fn list_fleet_devices(
    _: Admin,
    State(state): State<AppState>,
    UrlQuery(query): UrlQuery<DevicesQuery>,
) -> Result<Json<DeviceList>, Problem> {
    let filter = DeviceFilter {
        system: query.system.map(Into::into),
        health: query.health.map(Into::into),
        search: query.search,
    };
    let limit = url::limit(query.limit, LIST_MAX)?;
    let cursor = url::cursor(query.cursor.as_deref())?;
    let page = state.console.fleet.devices(&filter, limit, cursor).await?;
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
        cursor: page.next.map(|cursor| cursor.encode()),
    }))
}

/// One device: who it is, how it stands, its latest values
#[utoipa::path(get, path = "/v1/devices/{system}/{id}", tag = "console", security(("admin_token" = [])),
    params(AnyDevicePath), responses(
    (status = 200, description = "The device", body = DeviceViewBody),
    (status = 400, description = "There is no such system", body = ProblemBody, content_type = "application/problem+json"),
    (status = 401, description = "No operator", body = ProblemBody, content_type = "application/problem+json"),
    (status = 404, description = "There is no such device", body = ProblemBody, content_type = "application/problem+json"),
    (status = 503, description = "The store cannot answer", body = ProblemBody, content_type = "application/problem+json")
))]
pub(super) async fn get_fleet_device(
    _: Admin,
    State(state): State<AppState>,
    DevicePart(path): DevicePart,
) -> Result<Json<DeviceViewBody>, Problem> {
    let device = path.resolve(&state).await?;
    Ok(Json(state.console.fleet.device(&device).await?.into()))
}

/// The two parts of the address, with errors in our own form.
pub(super) struct DevicePart(pub(super) AnyDevicePath);

impl axum::extract::FromRequestParts<AppState> for DevicePart {
    type Rejection = Problem;

    async fn from_request_parts(
        parts: &mut axum::http::request::Parts,
        state: &AppState,
    ) -> Result<Self, Problem> {
        let path = Path::<AnyDevicePath>::from_request_parts(parts, state).await;
        path.map(|Path(path)| Self(path))
            .map_err(|error| Problem::invalid(error.body_text()))
    }
}
