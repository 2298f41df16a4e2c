//! `POST /v1/sensors/data`

use std::borrow::Cow;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use homeport_item::Number;
use homeport_systems::sensors::{
    IngestOutcome, Named, READINGS_PER_REQUEST_MAX, Reading, Rejection, SensorName, SensorStatus,
};
use homeport_systems::time::{EpochMillis, TimeInFuture};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;
use utoipa::{PartialSchema, ToSchema};

use crate::auth::{Action, ApiKeys, Authenticated, Caller, Subject};
use crate::metrics;
use crate::openapi::schemas;
use crate::problem::Problem;
use crate::request::{Body, Members, Object, RequestTimes, parse_object};
use crate::state::AppState;

/// A request whose readings are parsed one by one, so that an invalid one does not affect the others.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request<'a> {
    #[serde(borrow)]
    readings: Vec<&'a RawValue>,
}

/// Schema of the readings of a request.
#[derive(Debug)]
pub(in crate::routes) struct ReadingsBody;

impl PartialSchema for ReadingsBody {
    fn schema() -> RefOr<Schema> {
        schemas::readings()
    }
}

impl ToSchema for ReadingsBody {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("Readings")
    }
}

/// A reading: one averaging window of one device.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewReading)]
pub(crate) struct ReadingBody<'a> {
    #[serde(borrow)]
    #[schema(schema_with = schemas::batch_id)]
    batch_id: Cow<'a, str>,
    #[serde(borrow)]
    #[schema(schema_with = schemas::hardware_id)]
    hardware_id: Cow<'a, str>,
    #[serde(borrow)]
    #[schema(schema_with = schemas::uuid_v4)]
    boot_id: Cow<'a, str>,
    #[serde(borrow)]
    #[schema(schema_with = schemas::firmware_version)]
    firmware_version: Cow<'a, str>,
    #[schema(example = 1_704_067_800_000_i64)]
    timestamp_ms: i64,
    /// Values by sensor value name
    #[serde(borrow)]
    #[schema(value_type = BTreeMap<String, f64>, example = json!({"bme280_temp_c": 22.5}))]
    sensors: Members<'a, &'a RawValue>,
    /// `ok` or `error`, by sensor
    #[serde(borrow)]
    #[schema(value_type = BTreeMap<String, String>, example = json!({"bme280": "ok"}))]
    sensor_status: Members<'a, Status<'a>>,
    /// Ignored: the stored name is that of the registration
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    #[allow(dead_code, reason = "devices may send it")]
    friendly_name: IgnoredAny,
}

/// A sensor's status, borrowed if it has no escapes.
#[derive(Deserialize)]
#[serde(transparent)]
struct Status<'a>(#[serde(borrow)] Cow<'a, str>);

/// Results of an ingest. A device can discard readings whose ids are in either list.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::routes) struct IngestAnswer<'a> {
    /// Ids of readings that were accepted
    acknowledged_batch_ids: Vec<&'a str>,
    /// Ids of readings that were stored earlier
    duplicate_batch_ids: Vec<&'a str>,
    /// One result for each reading, in order
    results: &'a [ReadingResult<'a>],
}

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::routes) struct ReadingResult<'a> {
    /// Null if the reading has no valid id
    batch_id: Option<Cow<'a, str>>,
    status: ReadingStatus,
    /// Error code of a rejected reading
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
    /// Error message of a rejected reading
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::routes) enum ReadingStatus {
    Stored,
    Duplicate,
    Expired,
    Rejected,
}

/// A reading that failed validation.
struct Invalid<'a> {
    batch_id: Option<Cow<'a, str>>,
    code: &'static str,
    reason: String,
}

/// Store readings, each exactly once
#[utoipa::path(post, path = "/v1/sensors/data", tag = "sensors", security(("device_key" = [])),
    request_body = ReadingsBody, responses(
    (status = 200, description = "The result for each reading", body = IngestAnswer<'static>),
))]
pub(in crate::routes) async fn ingest_readings(
    caller: Authenticated<ApiKeys>,
    State(state): State<AppState>,
    Body(body): Body,
) -> Result<Response, Problem> {
    let request: Request<'_> = parse_object(&body)?;
    if request.readings.is_empty() || request.readings.len() > READINGS_PER_REQUEST_MAX {
        return Err(Problem::invalid(format!(
            "a request must have 1 to {READINGS_PER_REQUEST_MAX} readings; this one has {}",
            request.readings.len()
        ))
        .exceeding("readings_per_request"));
    }
    let times = RequestTimes::new(&state, None);
    let mut readings = Vec::with_capacity(request.readings.len());
    let parsed: Vec<Result<Cow<'_, str>, Invalid<'_>>> = request
        .readings
        .iter()
        .map(|raw| {
            let (batch_id, reading) = parse(&caller, raw, times)?;
            readings.push(reading);
            Ok(batch_id)
        })
        .collect();
    let mut outcomes = if readings.is_empty() {
        Vec::new()
    } else {
        state.sensors.ingest(readings).await?
    }
    .into_iter();
    let results: Vec<ReadingResult<'_>> = parsed
        .into_iter()
        .map(|parsed| match parsed {
            Ok(batch_id) => result(batch_id, outcomes.next()),
            Err(invalid) => rejected(invalid),
        })
        .collect();
    Ok(Json(answer(&results)).into_response())
}

/// A reading, and its id as the body has it.
fn parse<'a>(
    caller: &Caller,
    raw: &'a RawValue,
    times: RequestTimes,
) -> Result<(Cow<'a, str>, Reading), Invalid<'a>> {
    #[derive(Deserialize)]
    struct Identity<'a> {
        #[serde(borrow)]
        batch_id: Option<Cow<'a, str>>,
    }
    let invalid = |code, reason: String| Invalid {
        batch_id: serde_json::from_str::<Identity<'_>>(raw.get())
            .ok()
            .and_then(|identity| identity.batch_id),
        code,
        reason,
    };
    let Object(body): Object<ReadingBody<'_>> = serde_json::from_str(raw.get())
        .map_err(|error| invalid("INVALID_READING", error.to_string()))?;
    let batch_id = body.batch_id.clone();
    let reading = body
        .parse()
        .map_err(|reason| invalid("INVALID_READING", reason))?;
    times
        .check_future(reading.timestamp)
        .map_err(|error| invalid(TimeInFuture::CODE, error.to_string()))?;
    let subject = Subject::One(reading.hardware_id.as_str());
    caller
        .check(Action::Write, super::SYSTEM, subject)
        .map_err(|forbidden| invalid("OUT_OF_SCOPE", forbidden.to_string()))?;
    Ok((batch_id, reading))
}

impl ReadingBody<'_> {
    fn parse(self) -> Result<Reading, String> {
        fn field<'a, T: TryFrom<Cow<'a, str>, Error: std::fmt::Display>>(
            text: Cow<'a, str>,
        ) -> Result<T, String> {
            T::try_from(text).map_err(|error| error.to_string())
        }
        let sensors = self.sensors.0.into_iter().map(|(name, value)| {
            // Decimal numbers keep every digit.
            let number: Number = value
                .get()
                .parse()
                .map_err(|_| format!("{name} must be a number of at most 38 digits"))?;
            Ok((field::<SensorName>(name)?, number))
        });
        let sensors: Named<Number> = sensors.collect::<Result<_, String>>()?;
        let states = self
            .sensor_status
            .0
            .into_iter()
            .map(|(name, Status(status))| {
                let status = SensorStatus::parse(&status).map_err(|error| error.to_string())?;
                Ok((field::<SensorName>(name)?, status))
            });
        let sensor_status: Named<SensorStatus> = states.collect::<Result<_, String>>()?;
        let reading = Reading {
            hardware_id: field(self.hardware_id)?,
            batch_id: field(self.batch_id)?,
            boot_id: self
                .boot_id
                .parse()
                .map_err(|error| format!("boot_id: {error}"))?,
            firmware_version: field(self.firmware_version)?,
            timestamp: EpochMillis(self.timestamp_ms),
            sensors,
            sensor_status,
            friendly_name: None,
        };
        reading.check().map_err(|error| error.to_string())
    }
}

fn result(batch_id: Cow<'_, str>, outcome: Option<IngestOutcome>) -> ReadingResult<'_> {
    let (status, code, reason) = match outcome {
        Some(IngestOutcome::Stored) => (ReadingStatus::Stored, None, None),
        Some(IngestOutcome::Duplicate) => (ReadingStatus::Duplicate, None, None),
        Some(IngestOutcome::Expired) => (ReadingStatus::Expired, None, None),
        Some(IngestOutcome::Rejected(ref rejection)) => {
            let code = match rejection {
                Rejection::BatchIdConflict => "BATCH_ID_CONFLICT",
                Rejection::DeviceBeingDecommissioned => "DEVICE_BEING_DECOMMISSIONED",
            };
            (
                ReadingStatus::Rejected,
                Some(code),
                Some(rejection.to_string()),
            )
        }
        // Every reading has an outcome. Without one, the reading may not be stored.
        None => (ReadingStatus::Rejected, Some("UNKNOWN"), None),
    };
    if let Some(outcome) = &outcome {
        metrics::reading(outcome);
    }
    ReadingResult {
        batch_id: Some(batch_id),
        status,
        code,
        reason,
    }
}

fn rejected(invalid: Invalid<'_>) -> ReadingResult<'_> {
    metrics::reading_rejected();
    metrics::item_rejected(Some(invalid.code));
    ReadingResult {
        batch_id: invalid.batch_id,
        status: ReadingStatus::Rejected,
        code: Some(invalid.code),
        reason: Some(invalid.reason),
    }
}

/// The response with its lists of ids: no id is in both lists, and none twice in one.
fn answer<'a>(results: &'a [ReadingResult<'a>]) -> IngestAnswer<'a> {
    let mut acknowledged: Vec<&str> = Vec::new();
    let mut duplicate: Vec<&str> = Vec::new();
    for result in results {
        let Some(batch_id) = result.batch_id.as_deref() else {
            continue;
        };
        let list = match result.status {
            ReadingStatus::Stored | ReadingStatus::Expired => &mut acknowledged,
            ReadingStatus::Duplicate if !acknowledged.contains(&batch_id) => &mut duplicate,
            _ => continue,
        };
        if !list.contains(&batch_id) {
            list.push(batch_id);
        }
    }
    IngestAnswer {
        acknowledged_batch_ids: acknowledged,
        duplicate_batch_ids: duplicate,
        results,
    }
}
