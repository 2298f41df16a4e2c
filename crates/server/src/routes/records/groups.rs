//! `/v1/groups`

use axum::extract::{Path, State};
use homeport_systems::pages;
use homeport_systems::records::{
    Change, ExternalId, Group, GroupChange, Name, NewGroup, RecordIds, RecordsError, Retention,
};
use homeport_systems::sensors::InvalidField;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};

use super::{
    Answer, Created, Envelope, Page, RecordPath, SYSTEM, created, ok, parse_attributes,
    shown_attributes,
};
use crate::auth::needs::{Manage, Read};
use crate::auth::{Action, ApiKeysOrPeople, Authenticated, People, Subject};
use crate::openapi::schemas::records::{self as schemas, GroupPath};
use crate::request::JsonBody;
use crate::request::plain_json::PlainValue;
use crate::request::{UrlQuery, WholeNumber, json_object};
use crate::state::AppState;

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AddGroup {
    #[schema(schema_with = schemas::label)]
    name: String,
    /// Retention of the history in seconds; forever if absent
    #[schema(schema_with = schemas::retention, required = false)]
    retention_secs: Option<WholeNumber>,
    /// Id of the group in your application, such as a user id; no two groups have the same
    #[schema(schema_with = schemas::label_or_null, required = false)]
    external_id: Option<String>,
    /// Further attributes: an object of at most 50 members and 16 KiB
    #[schema(value_type = Option<Object>)]
    attributes: Option<Box<RawValue>>,
}

/// Fields to change; absent fields stay.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AlterGroup {
    #[schema(schema_with = schemas::label_or_null, required = false)]
    name: Option<String>,
    /// Null keeps the history forever
    #[serde(default, deserialize_with = "json_object::present")]
    #[schema(schema_with = schemas::retention, required = false)]
    retention_secs: Option<Option<WholeNumber>>,
    /// Null removes the external id
    #[serde(default, deserialize_with = "json_object::present")]
    #[schema(schema_with = schemas::label_or_null, required = false)]
    external_id: Option<Option<String>>,
    /// Attributes to set; null removes one
    #[schema(value_type = Option<Object>)]
    attributes: Option<Box<RawValue>>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Group)]
pub(super) struct GroupBody {
    #[schema(example = "5YXd4XZ0")]
    gid: String,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    retention_secs: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    external_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    attributes: Option<PlainValue>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct GroupList {
    groups: Vec<GroupBody>,
    /// Cursor of the next page; absent on the last page
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// A deleted group.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RemovedGroup {
    gid: String,
}

impl GroupBody {
    fn new(ids: &RecordIds, group: &Group) -> Self {
        Self {
            gid: ids.group(group.id),
            name: group.name.as_str().to_owned(),
            retention_secs: group.retention.map(Retention::secs),
            external_id: (group.external_id.as_ref()).map(|id| id.as_str().to_owned()),
            attributes: shown_attributes(&group.attributes),
        }
    }
}

fn retention(WholeNumber(secs): WholeNumber) -> Result<Retention, InvalidField> {
    Retention::try_from(secs)
}

/// Add a group
#[utoipa::path(post, path = "/v1/groups", tag = "records", security(("admin_token" = [])),
    request_body = AddGroup, responses(
    (status = 201, description = "The group", body = Envelope<GroupBody>)))]
pub(super) async fn add_group(
    caller: Authenticated<People<Manage>>,
    State(state): State<AppState>,
    JsonBody(body): JsonBody<AddGroup>,
) -> Created<GroupBody> {
    caller.check(Action::Manage, SYSTEM, Subject::All)?;
    let new = NewGroup {
        name: Name::try_from(body.name)?,
        retention: body.retention_secs.map(retention).transpose()?,
        external_id: body.external_id.map(ExternalId::try_from).transpose()?,
        attributes: parse_attributes(body.attributes)?,
    };
    let group = state.records.add_group(new).await?;
    let ids = state.records.ids().await?;
    Ok(created(GroupBody::new(&ids, &group)))
}

/// Which groups to list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct GroupQuery {
    /// Only the group with this external id
    #[param(schema_with = schemas::label, required = false)]
    external_id: Option<String>,
}

/// List groups, or look one up by its external id
#[utoipa::path(get, path = "/v1/groups", tag = "records", security(("admin_token" = [])),
    params(GroupQuery, Page), responses(
    (status = 200, description = "A page of groups", body = Envelope<GroupList>)))]
pub(super) async fn list_groups(
    caller: Authenticated<People<Read>>,
    State(state): State<AppState>,
    UrlQuery(query): UrlQuery<GroupQuery>,
    page: Page,
) -> Answer<GroupList> {
    let page = match query.external_id {
        Some(external_id) => {
            let found = state
                .records
                .group_by_external_id(&external_id.try_into()?)
                .await;
            pages::Page {
                items: match found {
                    Ok(group) => vec![group],
                    Err(RecordsError::GroupMissing) => Vec::new(),
                    Err(error) => return Err(error.into()),
                },
                next: None,
            }
        }
        None => state.records.list_groups(page.limit, page.cursor).await?,
    };
    let mut groups = Vec::with_capacity(page.items.len());
    // The codec of ids is created with the first group.
    if !page.items.is_empty() {
        let ids = state.records.ids().await?;
        let shown = page.items.iter().map(|group| GroupBody::new(&ids, group));
        // Pages of people with limited roles may have fewer groups.
        groups.extend(shown.filter(|group| {
            let subject = Subject::One(&group.gid);
            caller.check(Action::Read, SYSTEM, subject).is_ok()
        }));
    }
    Ok(ok(GroupList {
        groups,
        next_cursor: page.next.map(|cursor| cursor.encode()),
    }))
}

/// Get a group
#[utoipa::path(get, path = "/v1/groups/{gid}", tag = "records",
    security(("admin_token" = []), ("device_key" = [])),
    params(GroupPath), responses(
    (status = 200, description = "The group", body = Envelope<GroupBody>)))]
pub(super) async fn get_group(
    caller: Authenticated<ApiKeysOrPeople<Read>>,
    State(state): State<AppState>,
    Path(path): Path<RecordPath>,
) -> Answer<GroupBody> {
    let resolved = path.resolve(&caller, Action::Read, &state).await?;
    let group = resolved.records.group(resolved.group).await?;
    Ok(ok(GroupBody::new(&resolved.ids, &group)))
}

/// Change a group; absent fields stay
#[utoipa::path(patch, path = "/v1/groups/{gid}", tag = "records", security(("admin_token" = [])),
    params(GroupPath),
    request_body = AlterGroup, responses(
    (status = 200, description = "The group", body = Envelope<GroupBody>)))]
pub(super) async fn alter_group(
    caller: Authenticated<People<Manage>>,
    State(state): State<AppState>,
    Path(path): Path<RecordPath>,
    JsonBody(body): JsonBody<AlterGroup>,
) -> Answer<GroupBody> {
    let resolved = path.resolve(&caller, Action::Manage, &state).await?;
    let change = GroupChange {
        name: body.name.map(Name::try_from).transpose()?,
        retention: Change::parse(body.retention_secs, retention)?,
        external_id: Change::parse(body.external_id, ExternalId::try_from)?,
        attributes: parse_attributes(body.attributes)?,
    };
    let group = resolved.records.alter_group(resolved.group, change).await?;
    Ok(ok(GroupBody::new(&resolved.ids, &group)))
}

/// Delete a group with its devices, journals and records
///
/// They disappear at once; the server frees their storage later.
#[utoipa::path(delete, path = "/v1/groups/{gid}", tag = "records", security(("admin_token" = [])),
    params(GroupPath), responses(
    (status = 200, description = "Deleted", body = Envelope<RemovedGroup>)))]
pub(super) async fn remove_group(
    caller: Authenticated<People<Manage>>,
    State(state): State<AppState>,
    Path(path): Path<RecordPath>,
) -> Answer<RemovedGroup> {
    let resolved = path.resolve(&caller, Action::Manage, &state).await?;
    resolved.records.remove_group(resolved.group).await?;
    Ok(ok(RemovedGroup { gid: path.gid }))
}
