//! The record store: groups, devices, journals, records, and the id dispenser. It alone answers in
//! its document's envelope.

mod devices;
mod groups;
mod history;
mod ids;
mod journals;
mod latest;

use std::sync::Arc;

use axum::Json;
use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts;
use homeport_systems::records::{DeviceId, GroupId, JournalId, RecordIds};
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::{IntoParams, IntoResponses, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::auth::{Admin, Device, has_key};
use crate::problem::{ErrorEnvelope, Problem};
use crate::state::AppState;

/// The system's name in API keys.
const SYSTEM: &str = "records";
/// What its addresses begin with.
const ADDRESSES: [&str; 2] = ["/v1/groups", "/v1/ids"];

/// Whether what is asked for at an address is answered in the record store's envelope.
pub(crate) fn answers_in_envelope(path: &str) -> bool {
    ADDRESSES.iter().any(|address| {
        path.strip_prefix(address)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

/// The routes of the system.
pub(super) fn documented() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(groups::add_group, groups::list_groups))
        .routes(routes!(
            groups::get_group,
            groups::alter_group,
            groups::remove_group
        ))
        .routes(routes!(devices::add_device, devices::list_devices))
        .routes(routes!(
            devices::get_device,
            devices::alter_device,
            devices::remove_device
        ))
        .routes(routes!(journals::list_journals))
        .routes(routes!(
            journals::add_journal,
            journals::list_device_journals
        ))
        .routes(routes!(
            journals::get_journal,
            journals::alter_journal,
            journals::remove_journal
        ))
        .routes(routes!(history::add_record, history::list_journal_records))
        .routes(routes!(history::list_device_records))
        .routes(routes!(latest::list_latest))
        .routes(routes!(latest::list_device_latest))
        .routes(routes!(ids::init_tag))
        .routes(routes!(ids::dispense_id))
        .routes(routes!(ids::decode_id))
}

/// An answer of success.
#[derive(Debug, Serialize, ToSchema)]
struct Envelope<T> {
    #[schema(example = "OK")]
    status: &'static str,
    response: T,
}

type Answer<T> = Result<Json<Envelope<T>>, Problem>;
type Added<T> = Result<(StatusCode, Json<Envelope<T>>), Problem>;

fn ok<T>(response: T) -> Json<Envelope<T>> {
    Json(Envelope {
        status: "OK",
        response,
    })
}

/// Every way in which a request can fail.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "it is there for the OpenAPI document alone")]
enum Failure {
    /// Something sent is not right: FORMAT_INVALID or INVALID_CURSOR
    #[response(status = 400)]
    Invalid(ErrorEnvelope),
    /// Neither operator nor device
    #[response(status = 401)]
    Unknown(ErrorEnvelope),
    /// The key is for another system or group
    #[response(status = 403)]
    Forbidden(ErrorEnvelope),
    /// There is no such thing: ERROR_NOTFOUND
    #[response(status = 404)]
    Missing(ErrorEnvelope),
    /// It is there already, or nothing is free: DUPLICATE_RESOURCE, TIMESTAMP_OCCUPIED
    #[response(status = 409)]
    Conflict(ErrorEnvelope),
    /// Too many requests with this key
    #[response(status = 429)]
    Limited(ErrorEnvelope),
    /// The store cannot answer
    #[response(status = 503)]
    Unavailable(ErrorEnvelope),
}

/// An operator, or a device with a key of this system.
enum Caller {
    Operator,
    Device(Device),
}

impl FromRequestParts<AppState> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Problem> {
        if has_key(parts) {
            let device = Device::from_request_parts(parts, state).await?;
            Ok(Self::Device(device))
        } else {
            Admin::from_request_parts(parts, state).await?;
            Ok(Self::Operator)
        }
    }
}

impl Caller {
    /// Refuses a device whose key is for another system, or for other groups alone.
    fn check(&self, gid: &str) -> Result<(), Problem> {
        match self {
            Self::Operator => Ok(()),
            Self::Device(device) if device.0.allows(SYSTEM, gid) => Ok(()),
            Self::Device(_) => Err(Problem::new(
                StatusCode::FORBIDDEN,
                "OUT_OF_SCOPE",
                "the key is for another system or group",
            )),
        }
    }

    /// Refuses a device whose key is for another system.
    fn check_system(&self) -> Result<(), Problem> {
        match self {
            Self::Device(device) if device.0.system != SYSTEM => self.check(""),
            _ => Ok(()),
        }
    }
}

/// The ids in an address; which of them are there depends on the route.
#[derive(Debug, Deserialize)]
struct Address {
    gid: String,
    #[serde(default)]
    did: String,
    #[serde(default)]
    jid: String,
}

/// Those ids as numbers, and how to show them again.
struct Place {
    ids: Arc<RecordIds>,
    group: GroupId,
}

impl Address {
    async fn resolve(&self, state: &AppState) -> Result<Place, Problem> {
        let ids = state.records.ids().await?;
        let group = ids.parse_group(&self.gid)?;
        Ok(Place { ids, group })
    }

    /// For those who are no operators as well.
    async fn resolve_for(&self, caller: &Caller, state: &AppState) -> Result<Place, Problem> {
        caller.check(&self.gid)?;
        self.resolve(state).await
    }
}

impl Place {
    fn device(&self, address: &Address) -> Result<DeviceId, Problem> {
        Ok(self.ids.parse_device(&address.did)?)
    }

    fn journal(&self, address: &Address) -> Result<JournalId, Problem> {
        Ok(self.ids.parse_journal(&address.jid)?)
    }
}

/// Which page of a list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct PageQuery {
    /// Items of a page
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<usize>,
    /// Where the page before ended
    cursor: Option<String>,
}

/// Tells a field that is null from one that is absent.
fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use super::answers_in_envelope;

    #[test]
    fn only_the_record_stores_addresses_answer_in_the_envelope() {
        for path in [
            "/v1/groups",
            "/v1/groups/",
            "/v1/groups/x/devices",
            "/v1/ids/init",
        ] {
            assert!(answers_in_envelope(path), "{path}");
        }
        for path in [
            "/v1/groupsies",
            "/v1/sensors/devices",
            "/",
            "/v1/idsx",
            "/x/v1/groups",
        ] {
            assert!(!answers_in_envelope(path), "{path}");
        }
    }
}
