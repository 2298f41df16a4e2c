//! `/v1/groups`

use axum::extract::{Path, State};
use axum::http::StatusCode;
use homeport_systems::records::{
    Change, Group, GroupChange, Name, NewGroup, PAGE_MAX, RecordIds, Retention,
};
use homeport_systems::sensors::InvalidField;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Added, Address, Answer, Caller, Envelope, Failure, PageQuery, ok};
use crate::auth::Admin;
use crate::body::JsonBody;
use crate::forms::records::{self as forms, GroupPath};
use crate::state::AppState;
use crate::url::{self, UrlQuery};
use crate::whole::WholeNumber;

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AddGroup {
    #[schema(schema_with = forms::words)]
    name: String,
    /// How long history is kept; for ever unless given
    #[schema(schema_with = forms::retention, required = false)]
    retention_secs: Option<WholeNumber>,
}

/// What to change; the rest stays.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AlterGroup {
    #[schema(schema_with = forms::words_or_null, required = false)]
    name: Option<String>,
    /// Null keeps history for ever
    #[serde(default, deserialize_with = "super::present")]
    #[schema(schema_with = forms::retention, required = false)]
    retention_secs: Option<Option<WholeNumber>>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Group)]
pub(super) struct GroupBody {
    #[schema(example = "5YXd4XZ0")]
    gid: String,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    retention_secs: Option<i64>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct GroupList {
    groups: Vec<GroupBody>,
    /// Absent on the last page
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// A group that is gone.
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
        }
    }
}

fn retention(WholeNumber(secs): WholeNumber) -> Result<Retention, InvalidField> {
    Retention::try_from(secs)
}

/// Add a group
#[utoipa::path(post, path = "/v1/groups", tag = "records", security(("admin_token" = [])),
    request_body = AddGroup, responses(
    (status = 201, description = "The group", body = Envelope<GroupBody>), Failure))]
pub(super) async fn add_group(
    _: Admin,
    State(state): State<AppState>,
    JsonBody(body): JsonBody<AddGroup>,
) -> Added<GroupBody> {
    let new = NewGroup {
        name: Name::try_from(body.name)?,
        retention: body.retention_secs.map(retention).transpose()?,
    };
    let group = state.records.add_group(new).await?;
    let ids = state.records.ids().await?;
    Ok((StatusCode::CREATED, ok(GroupBody::new(&ids, &group))))
}

/// List groups
#[utoipa::path(get, path = "/v1/groups", tag = "records", security(("admin_token" = [])),
    params(PageQuery), responses(
    (status = 200, description = "A page of groups", body = Envelope<GroupList>), Failure))]
pub(super) async fn list_groups(
    _: Admin,
    State(state): State<AppState>,
    UrlQuery(query): UrlQuery<PageQuery>,
) -> Answer<GroupList> {
    let limit = url::limit(query.limit, PAGE_MAX)?;
    let cursor = url::cursor(query.cursor.as_deref())?;
    let page = state.records.list_groups(limit, cursor).await?;
    let mut groups = Vec::with_capacity(page.groups.len());
    // Before the first group there are no ids to show either.
    if !page.groups.is_empty() {
        let ids = state.records.ids().await?;
        groups.extend(page.groups.iter().map(|group| GroupBody::new(&ids, group)));
    }
    Ok(ok(GroupList {
        groups,
        next_cursor: page.next.map(|cursor| cursor.encode()),
    }))
}

/// One group
#[utoipa::path(get, path = "/v1/groups/{gid}", tag = "records",
    security(("admin_token" = []), ("device_key" = [])),
    params(GroupPath), responses(
    (status = 200, description = "The group", body = Envelope<GroupBody>), Failure))]
pub(super) async fn get_group(
    caller: Caller,
    State(state): State<AppState>,
    Path(address): Path<Address>,
) -> Answer<GroupBody> {
    let place = address.resolve_for(&caller, &state).await?;
    let group = state.records.group(place.group).await?;
    Ok(ok(GroupBody::new(&place.ids, &group)))
}

/// Change a group; what is not mentioned stays
#[utoipa::path(patch, path = "/v1/groups/{gid}", tag = "records", security(("admin_token" = [])),
    params(GroupPath),
    request_body = AlterGroup, responses(
    (status = 200, description = "The group", body = Envelope<GroupBody>), Failure))]
pub(super) async fn alter_group(
    _: Admin,
    State(state): State<AppState>,
    Path(address): Path<Address>,
    JsonBody(body): JsonBody<AlterGroup>,
) -> Answer<GroupBody> {
    let place = address.resolve(&state).await?;
    let change = GroupChange {
        name: body.name.map(Name::try_from).transpose()?,
        retention: Change::parse(body.retention_secs, retention)?,
    };
    let group = state.records.alter_group(place.group, change).await?;
    Ok(ok(GroupBody::new(&place.ids, &group)))
}

/// Remove a group with everything in it, at once for everyone who looks
#[utoipa::path(delete, path = "/v1/groups/{gid}", tag = "records", security(("admin_token" = [])),
    params(GroupPath), responses(
    (status = 200, description = "It is gone", body = Envelope<RemovedGroup>), Failure))]
pub(super) async fn remove_group(
    _: Admin,
    State(state): State<AppState>,
    Path(address): Path<Address>,
) -> Answer<RemovedGroup> {
    let place = address.resolve(&state).await?;
    state.records.remove_group(place.group).await?;
    Ok(ok(RemovedGroup { gid: address.gid }))
}
