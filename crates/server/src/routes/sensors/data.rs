//! `POST /v1/sensors/data`

use std::borrow::Cow;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use homeport_item::Number;
use homeport_systems::sensors::{
    IngestOutcome, Named, READINGS_PER_REQUEST_MAX, Reading, Rejection, SensorName, SensorStatus,
};
use homeport_systems::time::EpochMillis;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::auth::Device;
use crate::body::Body;
use crate::forms;
use crate::measure;
use crate::members::Members;
use crate::object::Object;
use crate::problem::{Problem, ProblemBody};
use crate::state::AppState;

/// Readings, as they are read first: each is looked at on its own, so that one that cannot be
/// understood does not stop the others.
#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow)]
    readings: Vec<&'a RawValue>,
}

/// Readings that are independent of each other.
#[derive(ToSchema)]
#[schema(as = Readings)]
#[allow(dead_code, reason = "describes the body in the OpenAPI document")]
pub(in crate::routes) struct ReadingsBody {
    #[schema(schema_with = forms::readings)]
    readings: Vec<ReadingBody<'static>>,
}

/// One averaging window of one device.
#[derive(Deserialize, ToSchema)]
#[schema(as = NewReading)]
pub(in crate::routes) struct ReadingBody<'a> {
    #[serde(borrow)]
    #[schema(schema_with = forms::batch_id)]
    batch_id: Cow<'a, str>,
    #[serde(borrow)]
    #[schema(schema_with = forms::hardware_id)]
    hardware_id: Cow<'a, str>,
    #[serde(borrow)]
    #[schema(schema_with = forms::uuid_v4)]
    boot_id: Cow<'a, str>,
    #[serde(borrow)]
    #[schema(schema_with = forms::firmware_version)]
    firmware_version: Cow<'a, str>,
    #[schema(example = 1_704_067_800_000_i64)]
    timestamp_ms: i64,
    /// Values by name
    #[serde(borrow)]
    #[schema(value_type = BTreeMap<String, f64>, example = json!({"bme280_temp_c": 22.5}))]
    sensors: Members<'a, &'a RawValue>,
    /// `ok` or `error` by sensor
    #[serde(borrow, default)]
    #[schema(value_type = BTreeMap<String, String>, example = json!({"bme280": "ok"}))]
    sensor_status: Members<'a, Status<'a>>,
}

/// A sensor's state as it is sent, borrowed where it has no escapes.
#[derive(Deserialize)]
#[serde(transparent)]
struct Status<'a>(#[serde(borrow)] Cow<'a, str>);

/// What became of the readings. A device may drop what is in either list of ids.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::routes) struct IngestAnswer<'a> {
    /// Accepted now
    acknowledged_batch_ids: Vec<&'a str>,
    /// Stored before
    duplicate_batch_ids: Vec<&'a str>,
    /// One for each reading, in order
    results: &'a [ReadingResult<'a>],
}

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::routes) struct ReadingResult<'a> {
    /// Null when the reading's own could not be read
    batch_id: Option<Cow<'a, str>>,
    status: ReadingStatus,
    /// Why it was rejected, for programs
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
    /// Why it was rejected, for people
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

/// A reading that goes no further.
struct Refused<'a> {
    batch_id: Option<Cow<'a, str>>,
    code: &'static str,
    reason: String,
}

/// Store readings, each exactly once
#[utoipa::path(post, path = "/v1/sensors/data", tag = "sensors", security(("device_key" = [])),
    request_body = ReadingsBody, responses(
    (status = 200, description = "What became of each reading", body = IngestAnswer<'static>),
    (status = 400, description = "The request cannot be read, or has no or more than 100 readings", body = ProblemBody, content_type = "application/problem+json"),
    (status = 401, description = "No key, or not a good one", body = ProblemBody, content_type = "application/problem+json"),
    (status = 413, description = "The body is too large", body = ProblemBody, content_type = "application/problem+json"),
    (status = 429, description = "Too many requests with this key", body = ProblemBody, content_type = "application/problem+json"),
    (status = 503, description = "The store cannot answer; send it again", body = ProblemBody, content_type = "application/problem+json")
))]
pub(in crate::routes) async fn ingest_readings(
    device: Device,
    State(state): State<AppState>,
    Body(body): Body,
) -> Result<Response, Problem> {
    let Object(request): Object<Request<'_>> = serde_json::from_slice(&body)
        .map_err(|error| Problem::invalid(format!("the body is not as expected: {error}")))?;
    if request.readings.is_empty() || request.readings.len() > READINGS_PER_REQUEST_MAX {
        return Err(Problem::invalid(format!(
            "a request has 1 to {READINGS_PER_REQUEST_MAX} readings, this one has {}",
            request.readings.len()
        )));
    }
    let mut readings = Vec::with_capacity(request.readings.len());
    let parsed: Vec<Result<Cow<'_, str>, Refused<'_>>> = request
        .readings
        .iter()
        .map(|raw| {
            let (batch_id, reading) = parse(&device, raw)?;
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
            Err(refused) => rejected(refused),
        })
        .collect();
    Ok(Json(answer(&results)).into_response())
}

/// A reading, and its id as it stands in the body.
fn parse<'a>(device: &Device, raw: &'a RawValue) -> Result<(Cow<'a, str>, Reading), Refused<'a>> {
    #[derive(Deserialize)]
    struct Identity<'a> {
        #[serde(borrow)]
        batch_id: Option<Cow<'a, str>>,
    }
    let refuse = |code, reason: String| Refused {
        batch_id: serde_json::from_str::<Identity<'_>>(raw.get())
            .ok()
            .and_then(|identity| identity.batch_id),
        code,
        reason,
    };
    let Object(body): Object<ReadingBody<'_>> = serde_json::from_str(raw.get())
        .map_err(|error| refuse("INVALID_READING", error.to_string()))?;
    let batch_id = body.batch_id.clone();
    let reading = body
        .parse()
        .map_err(|reason| refuse("INVALID_READING", reason))?;
    if !device.0.allows(super::SYSTEM, reading.hardware_id.as_str()) {
        let reason = format!("the key may not write for {}", reading.hardware_id);
        return Err(refuse("OUT_OF_SCOPE", reason));
    }
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
            // Exactly as it was sent: 22.50 is 22.5, and no digit is lost to binary fractions.
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
            };
            (
                ReadingStatus::Rejected,
                Some(code),
                Some(rejection.to_string()),
            )
        }
        // There is an outcome for every reading; without one it is not known to be stored.
        None => (ReadingStatus::Rejected, Some("UNKNOWN"), None),
    };
    if let Some(outcome) = &outcome {
        measure::reading(outcome);
    }
    ReadingResult {
        batch_id: Some(batch_id),
        status,
        code,
        reason,
    }
}

fn rejected(refused: Refused<'_>) -> ReadingResult<'_> {
    measure::reading_rejected();
    ReadingResult {
        batch_id: refused.batch_id,
        status: ReadingStatus::Rejected,
        code: Some(refused.code),
        reason: Some(refused.reason),
    }
}

/// The lists of ids that go with the results: no id is in both, and none twice.
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
