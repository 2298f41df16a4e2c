//! `POST /v1/chargers/events`

use std::borrow::Cow;

use axum::Json;
use axum::extract::State;
use homeport_systems::chargers::{
    ChargerIds, DATA_DEPTH_MAX, DeviceName, EVENTS_PER_REQUEST_MAX, EventData, EventDevice,
    EventOutcome, NewEvent, NotInState, Rejection, ScId, WirelessDeviceId,
};
use homeport_systems::time::{EpochMillis, TimeInFuture};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;
use utoipa::{PartialSchema, ToSchema};

use crate::auth::needs::Write;
use crate::auth::{Action, ApiKeysOrPeople, Authenticated, Caller, Subject};
use crate::metrics;
use crate::openapi::schemas::chargers as schemas;
use crate::problem::Problem;
use crate::request::{Body, Object, RequestTimes, plain_json};
use crate::state::AppState;

/// A request whose events are parsed one by one, so that an invalid one does not affect the others.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request<'a> {
    #[serde(borrow)]
    events: Vec<&'a RawValue>,
}

/// Schema of one event, or up to 100 of them.
#[derive(Debug)]
pub(in crate::routes) struct RequestBody;

impl PartialSchema for RequestBody {
    fn schema() -> RefOr<Schema> {
        schemas::events()
    }
}

impl ToSchema for RequestBody {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("NewChargerEvents")
    }
}

/// An event.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewChargerEvent)]
pub(crate) struct EventBody<'a> {
    /// UUID of the device; the first event with it registers the device
    #[serde(borrow)]
    #[schema(schema_with = schemas::uuid_or_null, required = false)]
    wireless_device_id: Option<Cow<'a, str>>,
    /// SC-ID; sufficient for a registered device
    #[serde(borrow)]
    #[schema(schema_with = schemas::device_name_or_null, required = false)]
    device_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    #[schema(schema_with = schemas::event_type)]
    event_type: Cow<'a, str>,
    /// Time of the event; time of arrival if absent
    #[serde(borrow)]
    #[schema(schema_with = schemas::time_or_null, required = false)]
    occurred_at: Option<&'a RawValue>,
    /// Number of the uplink. An event with a number or a time is stored once, even if it is sent again
    sequence: Option<u64>,
    /// Reported data
    #[serde(borrow)]
    #[schema(value_type = Option<Object>, example = json!({"j1772_state": "C", "current_ma": 16000}))]
    data: Option<&'a RawValue>,
}

/// Results of an ingest.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ChargerEventResults)]
pub(in crate::routes) struct IngestAnswer {
    /// One result for each event, in order
    results: Vec<EventResult>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ChargerEventResult)]
pub(in crate::routes) struct EventResult {
    /// `stored`, `duplicate` or `rejected`
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    device_id: Option<String>,
    /// Key of the event, and of the stored event for a duplicate: wall-clock time in America/Denver
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp_mt: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp_utc_ms: Option<i64>,
    /// Members of `data` that are stored with the event, but not in the state of the charger
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_in_state: Vec<NotInStateBody>,
    /// Error code of a rejected event
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
    /// Error message of a rejected event
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// A member of an event's data that is not in the state of the charger.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ChargerAttributeNotInState)]
pub(in crate::routes) struct NotInStateBody {
    #[schema(example = "current_ma")]
    attribute: String,
    /// `TOO_MANY_ATTRIBUTES`, `VALUE_TOO_LARGE`, `OPERATOR_ATTRIBUTE`, `RESERVED_NAME` or `STATE_REJECTED`
    code: &'static str,
    #[schema(example = "the state already has 128 reported attributes")]
    reason: String,
}

/// An event that failed validation.
struct Invalid {
    code: &'static str,
    reason: String,
}

/// Store up to 100 events, each exactly once
#[utoipa::path(post, path = "/v1/chargers/events", tag = "chargers",
    security(("device_key" = []), ("admin_token" = [])),
    request_body = RequestBody, responses(
    (status = 200, description = "The result for each event", body = IngestAnswer),
))]
pub(in crate::routes) async fn ingest_events(
    caller: Authenticated<ApiKeysOrPeople<Write>>,
    State(state): State<AppState>,
    Body(body): Body,
) -> Result<Json<IngestAnswer>, Problem> {
    caller.check(Action::Write, super::SYSTEM, Subject::None)?;
    let invalid_body = |error| Problem::invalid(format!("invalid body: {error}"));
    let body: &RawValue = serde_json::from_slice(&body).map_err(invalid_body)?;
    let raw = match serde_json::from_str::<Object<Request<'_>>>(body.get()) {
        Ok(Object(request)) => request.events,
        // An invalid list is not a single event.
        Err(error) if has_events(body) => return Err(invalid_body(error)),
        Err(_) if body.get().starts_with('{') => vec![body],
        Err(error) => return Err(invalid_body(error)),
    };
    if raw.is_empty() || raw.len() > EVENTS_PER_REQUEST_MAX {
        return Err(Problem::invalid(format!(
            "a request must have 1 to {EVENTS_PER_REQUEST_MAX} events; this one has {}",
            raw.len()
        ))
        .exceeding("events_per_request"));
    }
    let times = RequestTimes::new(&state, None).or_mountain_time();
    let parsed = raw.iter().map(|raw| parse(raw, times)).collect();
    let parsed = permitted(&state, &caller, parsed).await?;
    let events: Vec<NewEvent> = parsed.iter().flatten().cloned().collect();
    let mut outcomes = if events.is_empty() {
        Vec::new()
    } else {
        state.chargers.ingest(events).await?
    }
    .into_iter();
    let results = parsed.into_iter().map(|parsed| match parsed {
        Ok(_) => result(outcomes.next()),
        Err(invalid) => rejected(invalid),
    });
    Ok(Json(IngestAnswer {
        results: results.collect(),
    }))
}

fn has_events(body: &RawValue) -> bool {
    #[derive(Deserialize)]
    struct Members<'a> {
        #[serde(borrow)]
        events: Option<&'a RawValue>,
    }
    serde_json::from_str::<Members<'_>>(body.get()).is_ok_and(|members| members.events.is_some())
}

fn parse(raw: &RawValue, times: RequestTimes) -> Result<NewEvent, Invalid> {
    let invalid = |reason: String| Invalid {
        code: "INVALID_EVENT",
        reason,
    };
    let Object(body): Object<EventBody<'_>> =
        serde_json::from_str(raw.get()).map_err(|error| invalid(error.to_string()))?;
    let event = body.parse(times).map_err(invalid)?;
    let event = event.check().map_err(|error| invalid(error.to_string()))?;
    if let Some(occurred_at) = event.occurred_at {
        times.check_future(occurred_at).map_err(|error| Invalid {
            code: TimeInFuture::CODE,
            reason: error.to_string(),
        })?;
    }
    Ok(event)
}

/// Rejects the events of devices that are not in the scopes of the caller.
async fn permitted(
    state: &AppState,
    caller: &Caller,
    parsed: Vec<Result<NewEvent, Invalid>>,
) -> Result<Vec<Result<NewEvent, Invalid>>, Problem> {
    let named = parsed
        .iter()
        .flatten()
        .filter_map(|event| match &event.device {
            EventDevice::ScId(device_id) => Some(device_id.clone()),
            EventDevice::Wireless(_) => None,
        });
    let owners = state.chargers.owners(named).await?;
    let check = |event: NewEvent| {
        let charger = match &event.device {
            EventDevice::Wireless(wireless) => ChargerIds::from(*wireless),
            EventDevice::ScId(device_id) => ChargerIds {
                device_id: device_id.clone(),
                wireless: owners.get(device_id).copied(),
            },
        };
        match caller.check(Action::Write, super::SYSTEM, Subject::Charger(&charger)) {
            Ok(()) => Ok(event),
            Err(forbidden) => Err(Invalid {
                code: "OUT_OF_SCOPE",
                reason: forbidden.to_string(),
            }),
        }
    };
    Ok(parsed
        .into_iter()
        .map(|parsed| parsed.and_then(check))
        .collect())
}

impl EventBody<'_> {
    fn parse(self, times: RequestTimes) -> Result<NewEvent, String> {
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
            (Some(wireless), Some(named)) if !ChargerIds::from(wireless).include(&named) => {
                return Err(format!(
                    "device_id is {named}, but {wireless} has the SC-ID {}",
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
            Some(raw) => plain_json::parse_members(raw, DATA_DEPTH_MAX)
                .map_err(|reason| format!("data: {reason}"))?,
            None => Default::default(),
        };
        Ok(NewEvent {
            device,
            event_type: self.event_type.parse().map_err(text)?,
            occurred_at: match self.occurred_at {
                Some(raw) => time(times, raw)?,
                None => None,
            },
            sequence: self.sequence,
            data: EventData::new(data).map_err(text)?,
        })
    }
}

/// Parses a time that is a JSON number or string.
fn time(times: RequestTimes, raw: &RawValue) -> Result<Option<EpochMillis>, String> {
    if raw.get() == "null" {
        return Ok(None);
    }
    let text: Cow<'_, str> = match serde_json::from_str::<Cow<'_, str>>(raw.get()) {
        Ok(text) => text,
        Err(_) => Cow::Borrowed(raw.get()),
    };
    let time = times.parse("occurred_at", &text);
    time.map(Some).map_err(Problem::into_detail)
}

impl From<NotInState> for NotInStateBody {
    fn from(not_in_state: NotInState) -> Self {
        Self {
            attribute: not_in_state.attribute,
            code: not_in_state.reason.code(),
            reason: not_in_state.reason.to_string(),
        }
    }
}

fn result(outcome: Option<EventOutcome>) -> EventResult {
    let empty = EventResult {
        status: "rejected",
        device_id: None,
        timestamp_mt: None,
        timestamp_utc_ms: None,
        not_in_state: Vec::new(),
        code: None,
        reason: None,
    };
    let result = match outcome {
        Some(EventOutcome::Stored {
            device_id,
            timestamp_mt,
            timestamp_utc,
            not_in_state,
        }) => EventResult {
            status: "stored",
            device_id: Some(device_id.to_string()),
            timestamp_mt: Some(timestamp_mt.to_string()),
            timestamp_utc_ms: Some(timestamp_utc.0),
            not_in_state: not_in_state.into_iter().map(NotInStateBody::from).collect(),
            ..empty
        },
        Some(EventOutcome::Duplicate {
            device_id,
            timestamp_mt,
        }) => EventResult {
            status: "duplicate",
            device_id: Some(device_id.to_string()),
            timestamp_mt: Some(timestamp_mt.to_string()),
            ..empty
        },
        Some(EventOutcome::Rejected(rejection)) => EventResult {
            code: Some(match rejection {
                Rejection::UnknownDevice(_) => "UNKNOWN_DEVICE",
                Rejection::ScIdCollision { .. } => "SC_ID_COLLISION",
                Rejection::BeingDecommissioned(_) => "DEVICE_BEING_DECOMMISSIONED",
                Rejection::TooManyAtOnce => "TOO_MANY_AT_ONCE",
                Rejection::Unstorable(_) => "UNSTORABLE",
            }),
            reason: Some(rejection.to_string()),
            ..empty
        },
        // Every event has an outcome. Without one, the event may not be stored.
        None => EventResult {
            code: Some("UNKNOWN"),
            ..empty
        },
    };
    metrics::charger_event(result.status);
    metrics::item_rejected(result.code);
    result
}

fn rejected(invalid: Invalid) -> EventResult {
    metrics::charger_event("rejected");
    metrics::item_rejected(Some(invalid.code));
    EventResult {
        status: "rejected",
        device_id: None,
        timestamp_mt: None,
        timestamp_utc_ms: None,
        not_in_state: Vec::new(),
        code: Some(invalid.code),
        reason: Some(invalid.reason),
    }
}
