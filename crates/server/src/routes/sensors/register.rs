//! `POST /v1/sensors/register`

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use homeport_systems::sensors::{Capabilities, InvalidField, Registration, SensorName};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::auth::Device;
use crate::body::JsonBody;
use crate::forms;
use crate::object;
use crate::problem::{Problem, ProblemBody};
use crate::state::AppState;

/// What a device says about itself.
#[derive(Debug, Deserialize, ToSchema)]
pub(in crate::routes) struct RegisterDevice {
    #[schema(schema_with = forms::hardware_id)]
    hardware_id: String,
    #[schema(schema_with = forms::uuid_v4)]
    boot_id: String,
    #[schema(schema_with = forms::firmware_version)]
    firmware_version: String,
    #[serde(default, deserialize_with = "super::present")]
    #[schema(schema_with = forms::friendly_name_change, required = false)]
    friendly_name: Option<Option<String>>,
    #[serde(deserialize_with = "object::deserialize")]
    capabilities: CapabilitiesBody,
}

/// What a device can do.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub(in crate::routes) struct CapabilitiesBody {
    #[serde(default)]
    #[schema(schema_with = forms::sensor_names, required = false)]
    pub(super) sensors: Vec<String>,
    #[serde(default)]
    #[schema(schema_with = forms::features, required = false)]
    pub(super) features: BTreeMap<String, bool>,
}

/// What a device is told.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::routes) struct RegisteredDevice {
    #[schema(example = "registered")]
    status: &'static str,
    #[schema(format = Uuid)]
    confirmation_id: String,
    hardware_id: String,
    /// When it registered first
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

/// Register a device, for the first time or again
#[utoipa::path(post, path = "/v1/sensors/register", tag = "sensors", security(("device_key" = [])),
    request_body = RegisterDevice, responses(
    (status = 200, description = "Registered", body = RegisteredDevice),
    (status = 400, description = "Something is not as it should be", body = ProblemBody, content_type = "application/problem+json"),
    (status = 401, description = "No key, or not a good one", body = ProblemBody, content_type = "application/problem+json"),
    (status = 403, description = "The key is not for this device", body = ProblemBody, content_type = "application/problem+json"),
    (status = 413, description = "The body is too large", body = ProblemBody, content_type = "application/problem+json"),
    (status = 429, description = "Too many requests with this key", body = ProblemBody, content_type = "application/problem+json"),
    (status = 503, description = "The store cannot answer", body = ProblemBody, content_type = "application/problem+json")
))]
pub(in crate::routes) async fn register_device(
    device: Device,
    State(state): State<AppState>,
    JsonBody(body): JsonBody<RegisterDevice>,
) -> Result<Json<RegisteredDevice>, Problem> {
    let registration = body.parse()?;
    device.check_scope(super::SYSTEM, registration.hardware_id.as_str())?;
    let registered = state.sensors.register(registration).await?;
    Ok(Json(RegisteredDevice {
        status: "registered",
        confirmation_id: registered.confirmation_id.to_string(),
        hardware_id: registered.hardware_id.to_string(),
        registered_at: registered.registered_at.to_string(),
    }))
}
