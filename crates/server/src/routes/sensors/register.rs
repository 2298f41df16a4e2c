//! `POST /v1/sensors/register`

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use homeport_systems::sensors::{Capabilities, InvalidField, Registration, SensorName};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::auth::{Action, ApiKeys, Authenticated, Subject};
use crate::openapi::schemas;
use crate::problem::Problem;
use crate::request::{JsonBody, json_object};
use crate::state::AppState;

/// A device's description of itself.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::routes) struct RegisterDevice {
    #[schema(schema_with = schemas::hardware_id)]
    hardware_id: String,
    #[schema(schema_with = schemas::uuid_v4)]
    boot_id: String,
    #[schema(schema_with = schemas::firmware_version)]
    firmware_version: String,
    #[serde(default, deserialize_with = "json_object::present")]
    #[schema(schema_with = schemas::friendly_name_change, required = false)]
    friendly_name: Option<Option<String>>,
    #[serde(deserialize_with = "json_object::deserialize")]
    capabilities: CapabilitiesBody,
}

/// Capabilities of a device.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::routes) struct CapabilitiesBody {
    #[serde(default)]
    #[schema(schema_with = schemas::sensor_names, required = false)]
    pub(super) sensors: Vec<String>,
    #[serde(default)]
    #[schema(schema_with = schemas::features, required = false)]
    pub(super) features: BTreeMap<String, bool>,
}

/// A registered device.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::routes) struct RegisteredDevice {
    #[schema(example = "registered")]
    status: &'static str,
    #[schema(format = Uuid)]
    confirmation_id: String,
    hardware_id: String,
    /// Time of the first registration
    #[schema(example = "2024-01-15T10:30:00Z")]
    registered_at: String,
}

impl CapabilitiesBody {
    fn parse(self) -> Result<Capabilities, InvalidField> {
        let sensors = self.sensors.into_iter().map(SensorName::try_from);
        let features = self
            .features
            .into_iter()
            .map(|(name, on)| Ok((SensorName::try_from(name)?, on)));
        Capabilities::new(
            sensors.collect::<Result<_, _>>()?,
            features.collect::<Result<_, _>>()?,
        )
    }
}

impl From<&Capabilities> for CapabilitiesBody {
    fn from(capabilities: &Capabilities) -> Self {
        let features = capabilities.features().iter();
        Self {
            sensors: capabilities
                .sensors()
                .iter()
                .map(ToString::to_string)
                .collect(),
            features: features.map(|(name, on)| (name.to_string(), *on)).collect(),
        }
    }
}

impl RegisterDevice {
    fn parse(self) -> Result<Registration, Problem> {
        Ok(Registration {
            hardware_id: self.hardware_id.try_into()?,
            boot_id: self
                .boot_id
                .parse()
                .map_err(|error| Problem::invalid(format!("boot_id: {error}")))?,
            firmware_version: self.firmware_version.try_into()?,
            friendly_name: super::name_change(self.friendly_name)?,
            capabilities: self.capabilities.parse()?,
        })
    }
}

/// Register a device, or update its registration
#[utoipa::path(post, path = "/v1/sensors/register", tag = "sensors", security(("device_key" = [])),
    request_body = RegisterDevice, responses(
    (status = 200, description = "The registration", body = RegisteredDevice),
    (status = 409, description = "The device is being decommissioned and can register again when its data is deleted"),
))]
pub(in crate::routes) async fn register_device(
    caller: Authenticated<ApiKeys>,
    State(state): State<AppState>,
    JsonBody(body): JsonBody<RegisterDevice>,
) -> Result<Json<RegisteredDevice>, Problem> {
    let registration = body.parse()?;
    let hardware_id = registration.hardware_id.as_str();
    caller.check(Action::Write, super::SYSTEM, Subject::One(hardware_id))?;
    let registered = state.sensors.register(registration).await?;
    Ok(Json(RegisteredDevice {
        status: "registered",
        confirmation_id: registered.confirmation_id.to_string(),
        hardware_id: registered.hardware_id.to_string(),
        registered_at: registered.registered_at.to_string(),
    }))
}
