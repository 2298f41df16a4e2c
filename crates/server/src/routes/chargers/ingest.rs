//! `POST /v1/chargers/events`

use std::borrow::Cow;

use axum::Json;
use axum::extract::State;
use homeport_systems::chargers::{
    ChargerIds, DATA_DEPTH_MAX, DeviceName, EVENTS_PER_REQUEST_MAX, EventData, EventDevice,
    EventOutcome, NewEvent, NotInState, Rejection, ScId, WirelessDeviceId,
};
use homeport_systems::time::{EpochMillis, TimeInFuture};
use homeport_systems::unknown_name::UnknownName;
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
use crate::request::{Body, Members, Object, RequestTimes, plain_json};
use crate::state::AppState;

pub(crate) const INVALID_EVENT: &str = "INVALID_EVENT";
pub(crate) const OUT_OF_SCOPE: &str = "OUT_OF_SCOPE";

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
    pub(super) results: Vec<EventResult>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ChargerEventResult)]
pub(crate) struct EventResult {
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
    /// Why an uplink is stored as `undecoded_uplink`
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(
        example = "decoder evse-v1: current_ma: needs bytes 2 to 3, and the payload has 2 bytes"
    )]
    undecoded: Option<String>,
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
pub(crate) struct NotInStateBody {
    #[schema(example = "current_ma")]
    attribute: String,
    /// `TOO_MANY_ATTRIBUTES`, `VALUE_TOO_LARGE`, `OPERATOR_ATTRIBUTE`, `RESERVED_NAME` or `STATE_REJECTED`
    code: &'static str,
    #[schema(example = "the state already has 128 reported attributes")]
    reason: String,
}

/// An event or an uplink that failed validation.
pub(crate) struct InvalidItem {
    pub(crate) code: &'static str,
    pub(crate) reason: String,
}

/// Store up to 100 events, each exactly once
///
/// Each event of a list has its own result. A single event that is invalid gets an error response.
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
    let Items { raw, is_list } = one_or_many(&body, "events")?;
    let times = RequestTimes::new(&state, None).or_mountain_time();
    let parsed = raw.iter().map(|raw| parse(raw, times)).collect();
    let mut parsed = permitted(&state, &caller, parsed).await?;
    // A request with nothing but an invalid event is an invalid request.
    if !is_list && let Some(Err(invalid)) = parsed.pop_if(|event| event.is_err()) {
        return Err(invalid.into());
    }
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

/// The items of a body.
pub(super) struct Items<'a> {
    pub(super) raw: Vec<&'a RawValue>,
    pub(super) is_list: bool,
}

/// Reads a body that is either one item or an object with a list of them.
pub(super) fn one_or_many<'a>(body: &'a [u8], list: &str) -> Result<Items<'a>, Problem> {
    let invalid_body = |error| Problem::invalid(format!("invalid body: {error}"));
    let body: &RawValue = serde_json::from_slice(body).map_err(invalid_body)?;
    let Members(members): Members<'_, &RawValue> =
        serde_json::from_str(body.get()).map_err(invalid_body)?;
    let given = members.iter().find(|(name, _)| name == list);
    let given = given.filter(|(_, raw)| raw.get() != "null");
    let raw: Vec<&RawValue> = match given {
        None => vec![body],
        Some((_, raw)) if members.len() == 1 => {
            serde_json::from_str(raw.get()).map_err(invalid_body)?
        }
        Some(_) => {
            let mut others = members.iter().map(|(name, _)| &**name);
            let reason = match others.find(|name| *name != list) {
                Some(other) => UnknownName::new("member", other, [list]).to_string(),
                None => format!("duplicate member `{list}`"),
            };
            return Err(Problem::invalid(format!("invalid body: {reason}")));
        }
    };
    if raw.is_empty() || raw.len() > EVENTS_PER_REQUEST_MAX {
        return Err(Problem::invalid(format!(
            "a request must have 1 to {EVENTS_PER_REQUEST_MAX} {list}; this one has {}",
            raw.len()
        ))
        .exceeding("events_per_request"));
    }
    let is_list = given.is_some();
    Ok(Items { raw, is_list })
}

fn parse(raw: &RawValue, times: RequestTimes) -> Result<NewEvent, InvalidItem> {
    let invalid = |reason: String| InvalidItem {
        code: INVALID_EVENT,
        reason,
    };
    let Object(body): Object<EventBody<'_>> =
        serde_json::from_str(raw.get()).map_err(|error| invalid(error.to_string()))?;
    let event = body.parse(times).map_err(invalid)?;
    let event = event.check().map_err(|error| invalid(error.to_string()))?;
    if let Some(occurred_at) = event.occurred_at {
        times
            .check_future(occurred_at)
            .map_err(|error| InvalidItem {
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
    parsed: Vec<Result<NewEvent, InvalidItem>>,
) -> Result<Vec<Result<NewEvent, InvalidItem>>, Problem> {
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
            Err(forbidden) => Err(InvalidItem {
                code: OUT_OF_SCOPE,
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
        if self
            .sequence
            .is_some_and(|sequence| i64::try_from(sequence).is_err())
        {
            return Err(format!("sequence must be at most {}", i64::MAX));
        }
        Ok(NewEvent {
            device,
            event_type: self.event_type.parse().map_err(text)?,
            occurred_at: match self.occurred_at {
                Some(raw) => time(times, raw)?,
                None => None,
            },
            sequence: self.sequence,
            data: EventData::new(data).map_err(text)?,
            uplink: None,
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

impl EventResult {
    /// The error code and the reason of a rejection.
    pub(crate) fn rejection(&self) -> Option<(&'static str, &str)> {
        let reason = self.reason.as_deref().unwrap_or_default();
        self.code.map(|code| (code, reason))
    }

    pub(super) fn with_undecoded(self, undecoded: Option<String>) -> Self {
        Self { undecoded, ..self }
    }
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

pub(super) fn result(outcome: Option<EventOutcome>) -> EventResult {
    let empty = EventResult {
        status: "rejected",
        device_id: None,
        timestamp_mt: None,
        timestamp_utc_ms: None,
        not_in_state: Vec::new(),
        undecoded: None,
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

pub(crate) fn rejected(invalid: InvalidItem) -> EventResult {
    metrics::charger_event("rejected");
    metrics::item_rejected(Some(invalid.code));
    EventResult {
        status: "rejected",
        device_id: None,
        timestamp_mt: None,
        timestamp_utc_ms: None,
        not_in_state: Vec::new(),
        undecoded: None,
        code: Some(invalid.code),
        reason: Some(invalid.reason),
    }
}
