//! `POST /v1/chargers/uplinks`

use std::borrow::Cow;

use axum::Json;
use axum::extract::State;
use homeport_systems::chargers::{ChargerIds, Uplink, UplinkOutcome};
use homeport_systems::time::{EpochMillis, FutureLimit, TimeInFuture};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;
use utoipa::{PartialSchema, ToSchema};

use super::ingest::{
    EventResult, IngestAnswer, InvalidItem, Items, OUT_OF_SCOPE, one_or_many, rejected, result,
};
use crate::auth::needs::Write;
use crate::auth::{Action, ApiKeysOrPeople, Authenticated, Caller, Subject};
use crate::metrics;
use crate::openapi::schemas::uplinks as schemas;
use crate::problem::Problem;
use crate::request::Body;
use crate::state::AppState;

/// Schema of one uplink, or up to 100 of them.
#[derive(Debug)]
pub(in crate::routes) struct RequestBody;

impl PartialSchema for RequestBody {
    fn schema() -> RefOr<Schema> {
        schemas::uplinks()
    }
}

impl ToSchema for RequestBody {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("ChargerUplinks")
    }
}

/// Store up to 100 uplinks of AWS IoT Wireless as events, each exactly once
///
/// Payload decoders turn payloads into events. An uplink that cannot be decoded is stored with the type
/// `undecoded_uplink`. An invalid uplink fails a request of its own, and is rejected in `results` of a list.
#[utoipa::path(post, path = "/v1/chargers/uplinks", tag = "chargers",
    security(("device_key" = []), ("admin_token" = [])),
    request_body = RequestBody, responses(
    (status = 200, description = "The result for each uplink", body = IngestAnswer),
))]
pub(in crate::routes) async fn ingest_uplinks(
    caller: Authenticated<ApiKeysOrPeople<Write>>,
    State(state): State<AppState>,
    Body(body): Body,
) -> Result<Json<IngestAnswer>, Problem> {
    caller.check(Action::Write, super::SYSTEM, Subject::None)?;
    let Items { raw, is_list } = one_or_many(&body, "uplinks")?;
    let times = (state.future_limit, state.chargers.now_ms());
    let checked = raw.iter().map(|raw| {
        check_uplink(raw.get().as_bytes(), times).and_then(|uplink| permitted(uplink, &caller))
    });
    let checked: Vec<Result<Uplink, InvalidItem>> = checked.collect();
    let valid: Vec<Uplink> = checked.iter().flatten().cloned().collect();
    let mut outcomes = match valid.is_empty() {
        true => Vec::new(),
        false => state.chargers.ingest_uplinks(valid).await?,
    }
    .into_iter();
    let mut results = Vec::with_capacity(checked.len());
    for checked in checked {
        results.push(match checked {
            Err(invalid) if !is_list => {
                metrics::charger_event("rejected");
                return Err(invalid.into());
            }
            Err(invalid) => rejected(invalid),
            Ok(_) => outcomes.next().map_or_else(|| result(None), uplink_result),
        });
    }
    Ok(Json(IngestAnswer { results }))
}

/// Parses an uplink, and checks its time against the limit and the server's clock.
pub(crate) fn check_uplink(
    json: &[u8],
    (future_limit, now): (FutureLimit, EpochMillis),
) -> Result<Uplink, InvalidItem> {
    let uplink = Uplink::parse(json).map_err(|error| InvalidItem {
        code: "INVALID_UPLINK",
        reason: error.to_string(),
    })?;
    let in_future = uplink.received_at.map(|at| future_limit.check(at, now));
    in_future.transpose().map_err(|error| InvalidItem {
        code: TimeInFuture::CODE,
        reason: error.to_string(),
    })?;
    Ok(uplink)
}

fn permitted(uplink: Uplink, caller: &Caller) -> Result<Uplink, InvalidItem> {
    let charger = ChargerIds::from(uplink.wireless);
    match caller.check(Action::Write, super::SYSTEM, Subject::Charger(&charger)) {
        Ok(()) => Ok(uplink),
        Err(forbidden) => Err(InvalidItem {
            code: OUT_OF_SCOPE,
            reason: forbidden.to_string(),
        }),
    }
}

/// The result for an uplink; counts it.
pub(crate) fn uplink_result(outcome: UplinkOutcome) -> EventResult {
    if outcome.undecoded.is_some() {
        metrics::undecoded_uplink();
    }
    result(Some(outcome.outcome)).with_undecoded(outcome.undecoded)
}
