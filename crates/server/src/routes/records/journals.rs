//! `/v1/groups/{gid}/journals` and `/v1/groups/{gid}/devices/{did}/journals`

use axum::extract::{Path, State};
use homeport_systems::records::{
    DataType, DeviceId, Journal, JournalChange, Name, NewJournal, RecordIds,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::{
    Answer, Created, Envelope, Page, RecordPath, ResolvedPath, created, ok, parse_attributes,
    shown_attributes,
};
use crate::auth::needs::{Manage, Read};
use crate::auth::{Action, ApiKeysOrPeople, Authenticated, People};
use crate::openapi::schemas::records::{self as schemas, GroupDevicePath, GroupPath, JournalPath};
use crate::request::JsonBody;
use crate::request::plain_json::PlainValue;
use crate::state::AppState;

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AddJournal {
    #[schema(schema_with = schemas::label)]
    name: String,
    #[schema(schema_with = schemas::data_type)]
    data_type: String,
    /// Further attributes: an object of at most 50 members and 16 KiB
    #[schema(value_type = Option<Object>)]
    attributes: Option<Box<RawValue>>,
}

/// Fields to change; absent fields stay.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AlterJournal {
    #[schema(schema_with = schemas::label_or_null, required = false)]
    name: Option<String>,
    #[schema(schema_with = schemas::data_type, required = false)]
    data_type: Option<String>,
    /// Attributes to set; null removes one
    #[schema(value_type = Option<Object>)]
    attributes: Option<Box<RawValue>>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Journal)]
pub(super) struct JournalBody {
    gid: String,
    did: String,
    jid: String,
    name: String,
    data_type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    attributes: Option<PlainValue>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct JournalList {
    journals: Vec<JournalBody>,
    /// Cursor of the next page; absent on the last page
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// A deleted journal.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RemovedJournal {
    gid: String,
    did: String,
    jid: String,
}

impl JournalBody {
    fn new(ids: &RecordIds, journal: &Journal) -> Self {
        Self {
            gid: ids.group(journal.group),
            did: ids.device(journal.device),
            jid: ids.journal(journal.id),
            name: journal.name.as_str().to_owned(),
            data_type: journal.data_type.as_str().to_owned(),
            attributes: shown_attributes(&journal.attributes),
        }
    }
}

/// Add a journal to a device
#[utoipa::path(post, path = "/v1/groups/{gid}/devices/{did}/journals", tag = "records",
    security(("admin_token" = [])),
    params(GroupDevicePath),
    request_body = AddJournal, responses(
    (status = 201, description = "The journal", body = Envelope<JournalBody>)))]
pub(super) async fn add_journal(
    caller: Authenticated<People<Manage>>,
    State(state): State<AppState>,
    Path(path): Path<RecordPath>,
    JsonBody(body): JsonBody<AddJournal>,
) -> Created<JournalBody> {
    let resolved = path.resolve(&caller, Action::Manage, &state).await?;
    let device = resolved.device(&path)?;
    let new = NewJournal {
        name: Name::try_from(body.name)?,
        data_type: DataType::try_from(body.data_type)?,
        attributes: parse_attributes(body.attributes)?,
    };
    let journal = resolved
        .records
        .add_journal(resolved.group, device, new)
        .await?;
    Ok(created(JournalBody::new(&resolved.ids, &journal)))
}

/// List the journals of a group
#[utoipa::path(get, path = "/v1/groups/{gid}/journals", tag = "records",
    security(("admin_token" = []), ("device_key" = [])),
    params(GroupPath, Page), responses(
    (status = 200, description = "A page of journals", body = Envelope<JournalList>)))]
pub(super) async fn list_journals(
    caller: Authenticated<ApiKeysOrPeople<Read>>,
    State(state): State<AppState>,
    Path(path): Path<RecordPath>,
    page: Page,
) -> Answer<JournalList> {
    let resolved = path.resolve(&caller, Action::Read, &state).await?;
    read_journals(&resolved, None, page).await
}

/// List the journals of a device
#[utoipa::path(get, path = "/v1/groups/{gid}/devices/{did}/journals", tag = "records",
    security(("admin_token" = []), ("device_key" = [])),
    params(GroupDevicePath, Page), responses(
    (status = 200, description = "A page of journals", body = Envelope<JournalList>)))]
pub(super) async fn list_device_journals(
    caller: Authenticated<ApiKeysOrPeople<Read>>,
    State(state): State<AppState>,
    Path(path): Path<RecordPath>,
    page: Page,
) -> Answer<JournalList> {
    let resolved = path.resolve(&caller, Action::Read, &state).await?;
    let device = resolved.device(&path)?;
    read_journals(&resolved, Some(device), page).await
}

async fn read_journals(
    resolved: &ResolvedPath,
    device: Option<DeviceId>,
    page: Page,
) -> Answer<JournalList> {
    let page = resolved
        .records
        .list_journals(resolved.group, device, page.limit, page.cursor)
        .await?;
    let journals = page.items.iter();
    Ok(ok(JournalList {
        journals: journals
            .map(|journal| JournalBody::new(&resolved.ids, journal))
            .collect(),
        next_cursor: page.next.map(|cursor| cursor.encode()),
    }))
}

/// Get a journal
#[utoipa::path(get, path = "/v1/groups/{gid}/devices/{did}/journals/{jid}", tag = "records",
    security(("admin_token" = []), ("device_key" = [])),
    params(JournalPath), responses(
    (status = 200, description = "The journal", body = Envelope<JournalBody>)))]
pub(super) async fn get_journal(
    caller: Authenticated<ApiKeysOrPeople<Read>>,
    State(state): State<AppState>,
    Path(path): Path<RecordPath>,
) -> Answer<JournalBody> {
    let resolved = path.resolve(&caller, Action::Read, &state).await?;
    let (device, id) = (resolved.device(&path)?, resolved.journal(&path)?);
    let journal = resolved.records.journal(resolved.group, device, id).await?;
    Ok(ok(JournalBody::new(&resolved.ids, &journal)))
}

/// Change a journal; absent fields stay
#[utoipa::path(patch, path = "/v1/groups/{gid}/devices/{did}/journals/{jid}", tag = "records",
    security(("admin_token" = [])),
    params(JournalPath),
    request_body = AlterJournal, responses(
    (status = 200, description = "The journal", body = Envelope<JournalBody>)))]
pub(super) async fn alter_journal(
    caller: Authenticated<People<Manage>>,
    State(state): State<AppState>,
    Path(path): Path<RecordPath>,
    JsonBody(body): JsonBody<AlterJournal>,
) -> Answer<JournalBody> {
    let resolved = path.resolve(&caller, Action::Manage, &state).await?;
    let (device, id) = (resolved.device(&path)?, resolved.journal(&path)?);
    let change = JournalChange {
        name: body.name.map(Name::try_from).transpose()?,
        data_type: body.data_type.map(DataType::try_from).transpose()?,
        attributes: parse_attributes(body.attributes)?,
    };
    let journal = resolved
        .records
        .alter_journal(resolved.group, device, id, change)
        .await?;
    Ok(ok(JournalBody::new(&resolved.ids, &journal)))
}

/// Delete a journal with its records
///
/// They disappear at once; the server frees their storage later.
#[utoipa::path(delete, path = "/v1/groups/{gid}/devices/{did}/journals/{jid}", tag = "records",
    security(("admin_token" = [])),
    params(JournalPath), responses(
    (status = 200, description = "Deleted", body = Envelope<RemovedJournal>)))]
pub(super) async fn remove_journal(
    caller: Authenticated<People<Manage>>,
    State(state): State<AppState>,
    Path(path): Path<RecordPath>,
) -> Answer<RemovedJournal> {
    let resolved = path.resolve(&caller, Action::Manage, &state).await?;
    let (device, id) = (resolved.device(&path)?, resolved.journal(&path)?);
    resolved
        .records
        .remove_journal(resolved.group, device, id)
        .await?;
    Ok(ok(RemovedJournal {
        gid: path.gid,
        did: path.did,
        jid: path.jid,
    }))
}
