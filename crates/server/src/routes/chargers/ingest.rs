//! `POST /v1/chargers/events`

use std::borrow::Cow;

use axum::Json;
use axum::extract::State;
use homeport_systems::chargers::{
    DATA_DEPTH_MAX, DeviceName, EVENTS_PER_REQUEST_MAX, EventData, EventDevice, EventOutcome,
    NewEvent, Rejection, ScId, WirelessDeviceId,
};
use homeport_systems::time::EpochMillis;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;
use utoipa::{PartialSchema, ToSchema};

use crate::auth::Reader;
use crate::body::Body;
use crate::forms::chargers;
use crate::measure;
use crate::object::Object;
use crate::problem::{Problem, ProblemBody};
use crate::routes::json;
use crate::state::AppState;
use crate::url;

/// Events, as they are read first: each is looked at on its own, so that one that cannot be
/// understood does not stop the others.
#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow)]
    events: Vec<&'a RawValue>,
}

/// One event, or up to 100 of them.
#[derive(Debug)]
pub(in crate::routes) struct RequestBody;

impl PartialSchema for RequestBody {
    fn schema() -> RefOr<Schema> {
        chargers::events()
    }
}

impl ToSchema for RequestBody {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("NewChargerEvents")
    }
}

/// One event.
#[derive(Deserialize, ToSchema)]
#[schema(as = NewChargerEvent)]
pub(in crate::routes) struct EventBody<'a> {
    /// The UUID of the device; with it, a device becomes known on its first event
    #[serde(borrow)]
    #[schema(schema_with = chargers::uuid_or_null, required = false)]
    wireless_device_id: Option<Cow<'a, str>>,
    /// Its SC-ID; enough for a device that is known
    #[serde(borrow)]
    #[schema(schema_with = chargers::device_name_or_null, required = false)]
    device_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    #[schema(schema_with = chargers::event_type)]
    event_type: Cow<'a, str>,
    /// When it happened: milliseconds since 1970, or RFC 3339; when it arrives unless given
    #[serde(borrow)]
    #[schema(schema_with = chargers::time_or_null, required = false)]
    occurred_at: Option<&'a RawValue>,
    /// The uplink's number. An event with this or a time is stored once, however often it is sent
    sequence: Option<u64>,
    /// What the device reports
    #[serde(borrow)]
    #[schema(value_type = Option<Object>, example = json!({"j1772_state": "C", "current_ma": 16000}))]
    data: Option<&'a RawValue>,
}

/// What became of the events.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ChargerEventResults)]
pub(in crate::routes) struct IngestAnswer {
    /// One for each event, in order
    results: Vec<EventResult>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ChargerEventResult)]
pub(in crate::routes) struct EventResult {
    /// `stored`, `duplicate` or `rejected`
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    device_id: Option<String>,
    /// Where it stands in the timeline
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp_mt: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp_utc_ms: Option<i64>,
    /// Why it was rejected, for programs
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
    /// Why it was rejected, for people
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// An event that goes no further.
struct Refused {
    code: &'static str,
    reason: String,
}

/// Store events, one or up to 100, each once
#[utoipa::path(post, path = "/v1/chargers/events", tag = "chargers",
    security(("device_key" = []), ("admin_token" = [])),
    request_body = RequestBody, responses(
    (status = 200, description = "What became of each event", body = IngestAnswer),
    (status = 400, description = "The request cannot be read, or has no or more than 100 events", body = ProblemBody, content_type = "application/problem+json"),
    (status = 401, description = "Neither device nor operator", body = ProblemBody, content_type = "application/problem+json"),
    (status = 403, description = "The key is of another system", body = ProblemBody, content_type = "application/problem+json"),
    (status = 413, description = "The body is too large", body = ProblemBody, content_type = "application/problem+json"),
    (status = 429, description = "Too many requests with this key", body = ProblemBody, content_type = "application/problem+json"),
    (status = 503, description = "The store cannot answer; send it again", body = ProblemBody, content_type = "application/problem+json")
))]
pub(in crate::routes) async fn ingest_events(
    caller: Reader,
    State(state): State<AppState>,
    Body(body): Body,
) -> Result<Json<IngestAnswer>, Problem> {
    caller.check_system(super::SYSTEM)?;
    let unreadable = |error| Problem::invalid(format!("the body is not as expected: {error}"));
    let whole: &RawValue = serde_json::from_slice(&body).map_err(unreadable)?;
    let raw = match serde_json::from_str::<Object<Request<'_>>>(whole.get()) {
        Ok(Object(request)) => request.events,
        // A list that is wrong is no single event.
        Err(error) if has_events(whole) => return Err(unreadable(error)),
        Err(_) if whole.get().starts_with('{') => vec![whole],
        Err(error) => return Err(unreadable(error)),
    };
    if raw.is_empty() || raw.len() > EVENTS_PER_REQUEST_MAX {
        return Err(Problem::invalid(format!(
            "a request has 1 to {EVENTS_PER_REQUEST_MAX} events, this one has {}",
            raw.len()
        )));
    }
    let now = state.chargers.now_ms();
    let parsed: Vec<Result<NewEvent, Refused>> =
        raw.iter().map(|raw| parse(&caller, raw, now)).collect();
    let events: Vec<NewEvent> = parsed.iter().flatten().cloned().collect();
    let mut outcomes = if events.is_empty() {
        Vec::new()
    } else {
        state.chargers.ingest(events).await?
    }
    .into_iter();
    let results = parsed.into_iter().map(|parsed| match parsed {
        Ok(_) => result(outcomes.next()),
        Err(refused) => rejected(refused),
    });
    Ok(Json(IngestAnswer {
        results: results.collect(),
    }))
}

fn has_events(whole: &RawValue) -> bool {
    #[derive(Deserialize)]
    struct Members<'a> {
        #[serde(borrow)]
        events: Option<&'a RawValue>,
    }
    serde_json::from_str::<Members<'_>>(whole.get()).is_ok_and(|members| members.events.is_some())
}

fn parse(caller: &Reader, raw: &RawValue, now: EpochMillis) -> Result<NewEvent, Refused> {
    let invalid = |reason: String| Refused {
        code: "INVALID_EVENT",
        reason,
    };
    let body: EventBody<'_> =
        serde_json::from_str(raw.get()).map_err(|error| invalid(error.to_string()))?;
    let event = body.parse().map_err(invalid)?;
    let event = event
        .check(now)
        .map_err(|error| invalid(error.to_string()))?;
    let device_id = match &event.device {
        EventDevice::Wireless(wireless) => ScId::of(*wireless),
        EventDevice::ScId(sc_id) => sc_id.clone(),
    };
    if !may_write(caller, &device_id) {
        return Err(Refused {
            code: "OUT_OF_SCOPE",
            reason: format!("the key may not write for {device_id}"),
        });
    }
    Ok(event)
}

/// A key's scopes name devices by either id; operators may write for all.
fn may_write(caller: &Reader, device_id: &ScId) -> bool {
    let Some(key) = &caller.0 else { return true };
    let names = |scope: &String| {
        let name = scope.parse::<DeviceName>();
        name.is_ok_and(|name| name.sc_id() == *device_id)
    };
    key.scopes.is_empty() || key.scopes.iter().any(names)
}

impl EventBody<'_> {
    fn parse(self) -> Result<NewEvent, String> {
        let text = |error: homeport_systems::chargers::InvalidField| error.to_string();
        let wireless: Option<WirelessDeviceId> = self
            .wireless_device_id
            .map(|id| id.parse())
            .transpose()
            .map_err(text)?;
        let named: Option<DeviceName> = self
            .device_id
            .map(|id| id.parse())
            .transpose()
            .map_err(text)?;
        let device = match (wireless, named) {
            (Some(wireless), Some(named)) if named.sc_id() != ScId::of(wireless) => {
                return Err(format!(
                    "device_id is {}, but {wireless} has the SC-ID {}",
                    named.sc_id(),
                    ScId::of(wireless)
                ));
            }
            (Some(wireless), _) | (None, Some(DeviceName::Wireless(wireless))) => {
                EventDevice::Wireless(wireless)
            }
            (None, Some(DeviceName::ScId(sc_id))) => EventDevice::ScId(sc_id),
            (None, None) => return Err("wireless_device_id or device_id is missing".to_owned()),
        };
        let data = match self.data.filter(|raw| raw.get() != "null") {
            Some(raw) => {
                json::object(raw, DATA_DEPTH_MAX).map_err(|reason| format!("data: {reason}"))?
            }
            None => Default::default(),
        };
        Ok(NewEvent {
            device,
            event_type: self.event_type.parse().map_err(text)?,
            occurred_at: self.occurred_at.map(time).transpose()?.flatten(),
            sequence: self.sequence,
            data: EventData::new(data).map_err(text)?,
        })
    }
}

/// A time as a JSON number or string.
fn time(raw: &RawValue) -> Result<Option<EpochMillis>, String> {
    if raw.get() == "null" {
        return Ok(None);
    }
    let text: Cow<'_, str> = match serde_json::from_str::<Cow<'_, str>>(raw.get()) {
        Ok(text) => text,
        Err(_) => Cow::Borrowed(raw.get()),
    };
    url::parse_time(&text).map(Some).ok_or_else(|| {
        "occurred_at must be milliseconds since 1970 or a time as 2024-01-15T10:30:00Z".to_owned()
    })
}

fn result(outcome: Option<EventOutcome>) -> EventResult {
    let empty = EventResult {
        status: "rejected",
        device_id: None,
        timestamp_mt: None,
        timestamp_utc_ms: None,
        code: None,
        reason: None,
    };
    let result = match outcome {
        Some(EventOutcome::Stored {
            device_id,
            timestamp_mt,
            timestamp_utc,
        }) => EventResult {
            status: "stored",
            device_id: Some(device_id.to_string()),
            timestamp_mt: Some(timestamp_mt.to_string()),
            timestamp_utc_ms: Some(timestamp_utc.0),
            ..empty
        },
        Some(EventOutcome::Duplicate { device_id }) => EventResult {
            status: "duplicate",
            device_id: Some(device_id.to_string()),
            ..empty
        },
        Some(EventOutcome::Rejected(rejection)) => EventResult {
            code: Some(match rejection {
                Rejection::UnknownDevice(_) => "UNKNOWN_DEVICE",
                Rejection::ScIdCollision { .. } => "SC_ID_COLLISION",
                Rejection::TooManyAtOnce => "TOO_MANY_AT_ONCE",
                Rejection::Unstorable(_) => "UNSTORABLE",
            }),
            reason: Some(rejection.to_string()),
            ..empty
        },
        // There is an outcome for every event; without one it is not known to be stored.
        None => EventResult {
            code: Some("UNKNOWN"),
            ..empty
        },
    };
    measure::charger_event(result.status);
    result
}

fn rejected(refused: Refused) -> EventResult {
    measure::charger_event("rejected");
    EventResult {
        status: "rejected",
        device_id: None,
        timestamp_mt: None,
        timestamp_utc_ms: None,
        code: Some(refused.code),
        reason: Some(refused.reason),
    }
}
