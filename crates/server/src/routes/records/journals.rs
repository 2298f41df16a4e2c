//! `/v1/groups/{gid}/journals` and `/v1/groups/{gid}/devices/{did}/journals`

use axum::extract::{Path, State};
use axum::http::StatusCode;
use homeport_systems::records::{
    DataType, DeviceId, Journal, JournalChange, Name, NewJournal, PAGE_MAX, RecordIds,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Added, Address, Answer, Caller, Envelope, Failure, PageQuery, Place, ok};
use crate::auth::Admin;
use crate::body::JsonBody;
use crate::forms::records::{self as forms, GroupDevicePath, GroupPath, JournalPath};
use crate::state::AppState;
use crate::url::{self, UrlQuery};

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AddJournal {
    #[schema(schema_with = forms::words)]
    name: String,
    #[schema(schema_with = forms::words)]
    data_type: String,
}

/// What to change; the rest stays.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AlterJournal {
    #[schema(schema_with = forms::words_or_null, required = false)]
    name: Option<String>,
    #[schema(schema_with = forms::words_or_null, required = false)]
    data_type: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Journal)]
pub(super) struct JournalBody {
    gid: String,
    did: String,
    jid: String,
    name: String,
    data_type: String,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct JournalList {
    journals: Vec<JournalBody>,
    /// Absent on the last page
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// A journal that is gone.
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
        }
    }
}

/// Add a journal to a device
#[utoipa::path(post, path = "/v1/groups/{gid}/devices/{did}/journals", tag = "records",
    security(("admin_token" = [])),
    params(GroupDevicePath),
    request_body = AddJournal, responses(
    (status = 201, description = "The journal", body = Envelope<JournalBody>), Failure))]
pub(super) async fn add_journal(
    _: Admin,
    State(state): State<AppState>,
    Path(address): Path<Address>,
    JsonBody(body): JsonBody<AddJournal>,
) -> Added<JournalBody> {
    let place = address.resolve(&state).await?;
    let device = place.device(&address)?;
    let new = NewJournal {
        name: Name::try_from(body.name)?,
        data_type: DataType::try_from(body.data_type)?,
    };
    let journal = state.records.add_journal(place.group, device, new).await?;
    let added = JournalBody::new(&place.ids, &journal);
    Ok((StatusCode::CREATED, ok(added)))
}

/// List all journals in a group
#[utoipa::path(get, path = "/v1/groups/{gid}/journals", tag = "records",
    security(("admin_token" = []), ("device_key" = [])),
    params(GroupPath, PageQuery), responses(
    (status = 200, description = "A page of journals", body = Envelope<JournalList>), Failure))]
pub(super) async fn list_journals(
    caller: Caller,
    State(state): State<AppState>,
    Path(address): Path<Address>,
    UrlQuery(query): UrlQuery<PageQuery>,
) -> Answer<JournalList> {
    let place = address.resolve_for(&caller, &state).await?;
    read_journals(&state, &place, None, &query).await
}

/// List the journals of a device
#[utoipa::path(get, path = "/v1/groups/{gid}/devices/{did}/journals", tag = "records",
    security(("admin_token" = []), ("device_key" = [])),
    params(GroupDevicePath, PageQuery), responses(
    (status = 200, description = "A page of journals", body = Envelope<JournalList>), Failure))]
pub(super) async fn list_device_journals(
    caller: Caller,
    State(state): State<AppState>,
    Path(address): Path<Address>,
    UrlQuery(query): UrlQuery<PageQuery>,
) -> Answer<JournalList> {
    let place = address.resolve_for(&caller, &state).await?;
    let device = place.device(&address)?;
    read_journals(&state, &place, Some(device), &query).await
}

async fn read_journals(
    state: &AppState,
    place: &Place,
    device: Option<DeviceId>,
    query: &PageQuery,
) -> Answer<JournalList> {
    let limit = url::limit(query.limit, PAGE_MAX)?;
    let cursor = url::cursor(query.cursor.as_deref())?;
    let page = state
        .records
        .list_journals(place.group, device, limit, cursor)
        .await?;
    let journals = page.journals.iter();
    Ok(ok(JournalList {
        journals: journals
            .map(|journal| JournalBody::new(&place.ids, journal))
            .collect(),
        next_cursor: page.next.map(|cursor| cursor.encode()),
    }))
}

/// One journal
#[utoipa::path(get, path = "/v1/groups/{gid}/devices/{did}/journals/{jid}", tag = "records",
    security(("admin_token" = []), ("device_key" = [])),
    params(JournalPath), responses(
    (status = 200, description = "The journal", body = Envelope<JournalBody>), Failure))]
pub(super) async fn get_journal(
    caller: Caller,
    State(state): State<AppState>,
    Path(address): Path<Address>,
) -> Answer<JournalBody> {
    let place = address.resolve_for(&caller, &state).await?;
    let (device, id) = (place.device(&address)?, place.journal(&address)?);
    let journal = state.records.journal(place.group, device, id).await?;
    Ok(ok(JournalBody::new(&place.ids, &journal)))
}

/// Change a journal; what is not mentioned stays
#[utoipa::path(patch, path = "/v1/groups/{gid}/devices/{did}/journals/{jid}", tag = "records",
    security(("admin_token" = [])),
    params(JournalPath),
    request_body = AlterJournal, responses(
    (status = 200, description = "The journal", body = Envelope<JournalBody>), Failure))]
pub(super) async fn alter_journal(
    _: Admin,
    State(state): State<AppState>,
    Path(address): Path<Address>,
    JsonBody(body): JsonBody<AlterJournal>,
) -> Answer<JournalBody> {
    let place = address.resolve(&state).await?;
    let (device, id) = (place.device(&address)?, place.journal(&address)?);
    let change = JournalChange {
        name: body.name.map(Name::try_from).transpose()?,
        data_type: body.data_type.map(DataType::try_from).transpose()?,
    };
    let journal = state
        .records
        .alter_journal(place.group, device, id, change)
        .await?;
    Ok(ok(JournalBody::new(&place.ids, &journal)))
}

/// Remove a journal with its records, at once for everyone who looks
#[utoipa::path(delete, path = "/v1/groups/{gid}/devices/{did}/journals/{jid}", tag = "records",
    security(("admin_token" = [])),
    params(JournalPath), responses(
    (status = 200, description = "It is gone", body = Envelope<RemovedJournal>), Failure))]
pub(super) async fn remove_journal(
    _: Admin,
    State(state): State<AppState>,
    Path(address): Path<Address>,
) -> Answer<RemovedJournal> {
    let place = address.resolve(&state).await?;
    let (device, id) = (place.device(&address)?, place.journal(&address)?);
    state
        .records
        .remove_journal(place.group, device, id)
        .await?;
    Ok(ok(RemovedJournal {
        gid: address.gid,
        did: address.did,
        jid: address.jid,
    }))
}
