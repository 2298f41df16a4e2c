//! `/v1/sensors/devices/{hardware_id}/latest` and `/readings`

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use homeport_systems::sensors::{HardwareId, Order, PAGE_MAX, Reading, ReadingRange};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};

use crate::auth::Reader;
use crate::forms::{self, DevicePath};
use crate::problem::{Problem, ProblemBody};
use crate::state::AppState;
use crate::url::{self, PathPart, UrlQuery};

/// A stored reading.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Reading)]
pub(in crate::routes) struct ReadingBody {
    hardware_id: String,
    batch_id: String,
    boot_id: String,
    firmware_version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    friendly_name: Option<String>,
    timestamp_ms: i64,
    #[schema(value_type = BTreeMap<String, f64>)]
    sensors: BTreeMap<String, Box<RawValue>>,
    sensor_status: BTreeMap<String, &'static str>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::routes) struct ReadingList {
    readings: Vec<ReadingBody>,
    /// Absent on the last page
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::routes) struct RangeQuery {
    /// The oldest time wanted
    #[param(schema_with = forms::time, required = false)]
    from: Option<String>,
    /// The newest time wanted
    #[param(schema_with = forms::time, required = false)]
    to: Option<String>,
    /// `desc`, the newest first, unless `asc` is asked for
    #[param(inline)]
    order: Option<OrderParameter>,
    /// Items of a page
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<usize>,
    /// Where the page before ended
    cursor: Option<String>,
}

#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::routes) enum OrderParameter {
    Asc,
    Desc,
}

impl From<&Reading> for ReadingBody {
    fn from(reading: &Reading) -> Self {
        let sensors = reading.sensors.iter().filter_map(|(name, number)| {
            // A decimal in plain notation is a JSON number as it stands.
            let raw = RawValue::from_string(number.to_string()).ok()?;
            Some((name.to_string(), raw))
        });
        let states = reading.sensor_status.iter();
        Self {
            hardware_id: reading.hardware_id.to_string(),
            batch_id: reading.batch_id.to_string(),
            boot_id: reading.boot_id.to_string(),
            firmware_version: reading.firmware_version.to_string(),
            friendly_name: reading.friendly_name.as_ref().map(ToString::to_string),
            timestamp_ms: reading.timestamp.0,
            sensors: sensors.collect(),
            sensor_status: states
                .map(|(name, status)| (name.to_string(), status.as_str()))
                .collect(),
        }
    }
}

/// The newest reading of a device
#[utoipa::path(get, path = "/v1/sensors/devices/{hardware_id}/latest", tag = "sensors",
    security(("admin_token" = []), ("device_key" = [])),
    params(DevicePath), responses(
    (status = 200, description = "The reading", body = ReadingBody),
    (status = 400, description = "The id is none", body = ProblemBody, content_type = "application/problem+json"),
    (status = 401, description = "Neither operator nor device", body = ProblemBody, content_type = "application/problem+json"),
    (status = 403, description = "The key is for another system", body = ProblemBody, content_type = "application/problem+json"),
    (status = 404, description = "It has none", body = ProblemBody, content_type = "application/problem+json"),
    (status = 429, description = "Too many requests with this key", body = ProblemBody, content_type = "application/problem+json"),
    (status = 503, description = "The store cannot answer", body = ProblemBody, content_type = "application/problem+json")
))]
pub(in crate::routes) async fn get_latest_reading(
    caller: Reader,
    State(state): State<AppState>,
    PathPart(hardware_id): PathPart<HardwareId>,
) -> Result<Json<ReadingBody>, Problem> {
    caller.check_system(super::SYSTEM)?;
    let reading = state.sensors.latest_reading(&hardware_id).await?;
    Ok(Json(ReadingBody::from(&reading)))
}

/// Readings of a device in a range of time, both ends included
#[utoipa::path(get, path = "/v1/sensors/devices/{hardware_id}/readings", tag = "sensors",
    security(("admin_token" = []), ("device_key" = [])),
    params(DevicePath, RangeQuery), responses(
    (status = 200, description = "A page of readings", body = ReadingList),
    (status = 400, description = "The range, the limit or the cursor is not right", body = ProblemBody, content_type = "application/problem+json"),
    (status = 401, description = "Neither operator nor device", body = ProblemBody, content_type = "application/problem+json"),
    (status = 403, description = "The key is for another system", body = ProblemBody, content_type = "application/problem+json"),
    (status = 429, description = "Too many requests with this key", body = ProblemBody, content_type = "application/problem+json"),
    (status = 503, description = "The store cannot answer", body = ProblemBody, content_type = "application/problem+json")
))]
pub(in crate::routes) async fn list_readings(
    caller: Reader,
    State(state): State<AppState>,
    PathPart(hardware_id): PathPart<HardwareId>,
    UrlQuery(query): UrlQuery<RangeQuery>,
) -> Result<Json<ReadingList>, Problem> {
    caller.check_system(super::SYSTEM)?;
    let bound = |name, text: Option<&String>| text.map(|text| url::time(name, text)).transpose();
    let range = ReadingRange {
        from: bound("from", query.from.as_ref())?,
        to: bound("to", query.to.as_ref())?,
        order: match query.order {
            Some(OrderParameter::Asc) => Order::OldestFirst,
            Some(OrderParameter::Desc) | None => Order::NewestFirst,
        },
    };
    let limit = url::limit(query.limit, PAGE_MAX)?;
    let cursor = url::cursor(query.cursor.as_deref())?;
    let page = state
        .sensors
        .readings(&hardware_id, range, limit, cursor)
        .await?;
    Ok(Json(ReadingList {
        readings: page.readings.iter().map(ReadingBody::from).collect(),
        next_cursor: page.next.map(|cursor| cursor.encode()),
    }))
}
