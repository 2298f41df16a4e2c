//! `/v1/sensors/devices/{hardware_id}/latest` and `/readings`

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use homeport_systems::sensors::{BatchId, HardwareId, Order, Reading, ReadingRange};
use homeport_systems::time::EpochMillis;
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::{Page, SYSTEM};
use crate::auth::needs::{Manage, Read};
use crate::auth::{Action, ApiKeysOrPeople, Authenticated, People, Subject};
use crate::openapi::schemas::{DevicePath, ReadingPath};
use crate::problem::Problem;
use crate::request::{PathPart, TimeRange};
use crate::state::AppState;

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
    /// Cursor of the next page; absent on the last page
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

impl From<&Reading> for ReadingBody {
    fn from(reading: &Reading) -> Self {
        let sensors = reading.sensors.iter().filter_map(|(name, number)| {
            // The text of a decimal is a JSON number.
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

/// Get the newest reading of a device
#[utoipa::path(get, path = "/v1/sensors/devices/{hardware_id}/latest", tag = "sensors",
    security(("admin_token" = []), ("device_key" = [])),
    params(DevicePath), responses(
    (status = 200, description = "The reading", body = ReadingBody),
    (status = 404, description = "The device has no reading"),
))]
pub(in crate::routes) async fn get_latest_reading(
    caller: Authenticated<ApiKeysOrPeople<Read>>,
    State(state): State<AppState>,
    PathPart(hardware_id): PathPart<HardwareId>,
) -> Result<Json<ReadingBody>, Problem> {
    caller.check(Action::Read, SYSTEM, Subject::One(hardware_id.as_str()))?;
    let reading = state.sensors.latest_reading(&hardware_id).await?;
    Ok(Json(ReadingBody::from(&reading)))
}

/// List the readings of a device by time
#[utoipa::path(get, path = "/v1/sensors/devices/{hardware_id}/readings", tag = "sensors",
    security(("admin_token" = []), ("device_key" = [])),
    params(DevicePath, TimeRange, Page), responses(
    (status = 200, description = "A page of readings", body = ReadingList),
))]
pub(in crate::routes) async fn list_readings(
    caller: Authenticated<ApiKeysOrPeople<Read>>,
    State(state): State<AppState>,
    PathPart(hardware_id): PathPart<HardwareId>,
    range: TimeRange,
    page: Page,
) -> Result<Json<ReadingList>, Problem> {
    caller.check(Action::Read, SYSTEM, Subject::One(hardware_id.as_str()))?;
    let bounds = ReadingRange {
        from: range.from,
        to: range.to,
        order: range.order(Order::OldestFirst, Order::NewestFirst),
    };
    let page = state
        .sensors
        .readings(&hardware_id, bounds, page.limit, page.cursor)
        .await?;
    Ok(Json(ReadingList {
        readings: page.items.iter().map(ReadingBody::from).collect(),
        next_cursor: range.next_cursor(page.next),
    }))
}

/// Delete a reading. The device that sends it again gets `duplicate`
#[utoipa::path(delete, path = "/v1/sensors/devices/{hardware_id}/readings/{timestamp_ms}/{batch_id}",
    tag = "sensors", security(("admin_token" = [])), params(ReadingPath), responses(
    (status = 204, description = "The reading is deleted"),
    (status = 404, description = "Reading not found"),
))]
pub(in crate::routes) async fn delete_reading(
    caller: Authenticated<People<Manage>>,
    State(state): State<AppState>,
    Path((hardware_id, timestamp_ms, batch_id)): Path<(String, String, String)>,
) -> Result<StatusCode, Problem> {
    let timestamp = timestamp_ms
        .parse()
        .map(EpochMillis)
        .map_err(|_| Problem::invalid("timestamp_ms must be milliseconds since 1970"))?;
    let (hardware_id, batch_id) = (
        HardwareId::try_from(hardware_id)?,
        BatchId::try_from(batch_id)?,
    );
    caller.check(Action::Manage, SYSTEM, Subject::One(hardware_id.as_str()))?;
    let deleted = state
        .sensors
        .delete_reading(&hardware_id, timestamp, &batch_id);
    deleted.await?;
    Ok(StatusCode::NO_CONTENT)
}
