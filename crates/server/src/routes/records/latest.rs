//! `…/latest`: the latest record of each journal.

use axum::extract::{Path, State};
use homeport_systems::records::{DeviceId, PAGE_MAX};

use super::history::RecordList;
use super::{Address, Answer, Caller, Envelope, Failure, PageQuery, Place, ok};
use crate::forms::records::{GroupDevicePath, GroupPath};
use crate::state::AppState;
use crate::url::{self, UrlQuery};

/// The latest records of all devices in a group, one for each journal
#[utoipa::path(get, path = "/v1/groups/{gid}/latest", tag = "records",
    security(("admin_token" = []), ("device_key" = [])),
    params(GroupPath, PageQuery), responses(
    (status = 200, description = "A page of records", body = Envelope<RecordList>), Failure))]
pub(super) async fn list_latest(
    caller: Caller,
    State(state): State<AppState>,
    Path(address): Path<Address>,
    UrlQuery(query): UrlQuery<PageQuery>,
) -> Answer<RecordList> {
    let place = address.resolve_for(&caller, &state).await?;
    read_latest(&state, &place, None, &query).await
}

/// The latest records of a device, one for each journal
#[utoipa::path(get, path = "/v1/groups/{gid}/devices/{did}/latest", tag = "records",
    security(("admin_token" = []), ("device_key" = [])),
    params(GroupDevicePath, PageQuery), responses(
    (status = 200, description = "A page of records", body = Envelope<RecordList>), Failure))]
pub(super) async fn list_device_latest(
    caller: Caller,
    State(state): State<AppState>,
    Path(address): Path<Address>,
    UrlQuery(query): UrlQuery<PageQuery>,
) -> Answer<RecordList> {
    let place = address.resolve_for(&caller, &state).await?;
    let device = place.device(&address)?;
    read_latest(&state, &place, Some(device), &query).await
}

async fn read_latest(
    state: &AppState,
    place: &Place,
    device: Option<DeviceId>,
    query: &PageQuery,
) -> Answer<RecordList> {
    let limit = url::limit(query.limit, PAGE_MAX)?;
    let cursor = url::cursor(query.cursor.as_deref())?;
    let page = state
        .records
        .latest(place.group, device, limit, cursor)
        .await?;
    Ok(ok(RecordList::new(&place.ids, &page)?))
}
