//! The record store: groups, devices, journals, records, and sequential ids. Its responses have the envelope
//! of its frozen API document.

mod devices;
mod groups;
mod ids;
mod journal_records;
mod journals;
mod latest;

use std::sync::Arc;

use axum::Json;
use axum::http::StatusCode;
use homeport_systems::records::{
    ATTRIBUTE_DEPTH_MAX, Attributes, DeviceId, GroupId, JournalId, PAGE_MAX, RecordIds, Records,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::auth::{Action, Caller, Subject};
use crate::problem::Problem;
use crate::request::PageQuery;
use crate::request::plain_json::{self, PlainValue};
use crate::state::AppState;

/// Name of the system in API keys.
pub(super) const SYSTEM: &str = "records";
/// Prefixes of its paths.
const PREFIXES: [&str; 2] = ["/v1/groups", "/v1/ids"];

/// Whether responses at a path have the record store's envelope.
pub(crate) fn answers_in_envelope(path: &str) -> bool {
    PREFIXES.iter().any(|prefix| {
        path.strip_prefix(prefix)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

pub(super) fn documented() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(groups::add_group, groups::list_groups))
        .routes(routes!(
            groups::get_group,
            groups::alter_group,
            groups::remove_group
        ))
        .routes(routes!(devices::add_device, devices::list_group_devices))
        .routes(routes!(
            devices::get_group_device,
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
        .routes(routes!(
            journal_records::add_record,
            journal_records::list_journal_records
        ))
        .routes(routes!(journal_records::delete_record))
        .routes(routes!(
            journal_records::add_records,
            journal_records::list_device_records
        ))
        .routes(routes!(latest::list_latest))
        .routes(routes!(latest::list_device_latest))
        .routes(routes!(ids::init_tag))
        .routes(routes!(ids::dispense_id))
        .routes(routes!(ids::decode_id))
}

/// A successful response.
#[derive(Debug, Serialize, ToSchema)]
struct Envelope<T> {
    #[schema(example = "OK")]
    status: &'static str,
    response: T,
}

type Answer<T> = Result<Json<Envelope<T>>, Problem>;
type Created<T> = Result<(StatusCode, Json<Envelope<T>>), Problem>;
type Page = PageQuery<PAGE_MAX>;

fn ok<T>(response: T) -> Json<Envelope<T>> {
    Json(Envelope {
        status: "OK",
        response,
    })
}

fn created<T>(response: T) -> (StatusCode, Json<Envelope<T>>) {
    (StatusCode::CREATED, ok(response))
}

/// The encoded ids of a path, and the time of a record; the route determines which are present.
#[derive(Debug, Deserialize)]
struct RecordPath {
    gid: String,
    #[serde(default)]
    did: String,
    #[serde(default)]
    jid: String,
    #[serde(default)]
    timestamp: String,
}

/// The group of a path, the codec for the other ids, and the record store with the caller's permissions.
struct ResolvedPath {
    ids: Arc<RecordIds>,
    group: GroupId,
    records: Records,
}

/// Parses further attributes; numbers keep every digit.
fn parse_attributes(raw: Option<Box<RawValue>>) -> Result<Attributes, Problem> {
    let Some(raw) = raw else {
        return Ok(Attributes::default());
    };
    let members = plain_json::parse_members(&raw, ATTRIBUTE_DEPTH_MAX)
        .map_err(|reason| Problem::invalid(format!("attributes: {reason}")))?;
    Ok(Attributes::new(members)?)
}

/// Further attributes in a response; absent if there are none.
fn shown_attributes(attributes: &Attributes) -> Option<PlainValue> {
    (!attributes.is_empty()).then(|| PlainValue::members(attributes.members().clone()))
}

impl RecordPath {
    /// Checks that the caller may access the group, and decodes its id.
    async fn resolve(
        &self,
        caller: &Caller,
        action: Action,
        state: &AppState,
    ) -> Result<ResolvedPath, Problem> {
        caller.check(action, SYSTEM, Subject::One(&self.gid))?;
        let ids = state.records.ids().await?;
        let group = ids.parse_group(&self.gid)?;
        let records = match caller {
            Caller::ApiKey(key) => state.records.for_key(key.key_id.to_string()),
            Caller::Person(_) | Caller::User(_) => state.records.clone(),
        };
        Ok(ResolvedPath {
            ids,
            group,
            records,
        })
    }
}

impl ResolvedPath {
    fn device(&self, path: &RecordPath) -> Result<DeviceId, Problem> {
        Ok(self.ids.parse_device(&path.did)?)
    }

    fn journal(&self, path: &RecordPath) -> Result<JournalId, Problem> {
        Ok(self.ids.parse_journal(&path.jid)?)
    }
}

#[cfg(test)]
mod tests {
    use super::answers_in_envelope;

    #[test]
    fn only_record_store_paths_use_the_envelope() {
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
