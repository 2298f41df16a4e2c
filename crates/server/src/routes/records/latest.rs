//! `…/latest`: the latest record of each journal.

use axum::extract::{Path, State};
use homeport_systems::records::DeviceId;

use super::journal_records::RecordList;
use super::{Answer, Envelope, Page, RecordPath, ResolvedPath, ok};
use crate::auth::needs::Read;
use crate::auth::{Action, ApiKeysOrPeople, Authenticated};
use crate::openapi::schemas::records::{GroupDevicePath, GroupPath};
use crate::state::AppState;

/// List the latest record of every journal in a group
#[utoipa::path(get, path = "/v1/groups/{gid}/latest", tag = "records",
    security(("admin_token" = []), ("device_key" = [])),
    params(GroupPath, Page), responses(
    (status = 200, description = "A page of records", body = Envelope<RecordList>)))]
pub(super) async fn list_latest(
    caller: Authenticated<ApiKeysOrPeople<Read>>,
    State(state): State<AppState>,
    Path(path): Path<RecordPath>,
    page: Page,
) -> Answer<RecordList> {
    let resolved = path.resolve(&caller, Action::Read, &state).await?;
    read_latest(&resolved, None, page).await
}

/// List the latest record of every journal of a device
#[utoipa::path(get, path = "/v1/groups/{gid}/devices/{did}/latest", tag = "records",
    security(("admin_token" = []), ("device_key" = [])),
    params(GroupDevicePath, Page), responses(
    (status = 200, description = "A page of records", body = Envelope<RecordList>)))]
pub(super) async fn list_device_latest(
    caller: Authenticated<ApiKeysOrPeople<Read>>,
    State(state): State<AppState>,
    Path(path): Path<RecordPath>,
    page: Page,
) -> Answer<RecordList> {
    let resolved = path.resolve(&caller, Action::Read, &state).await?;
    let device = resolved.device(&path)?;
    read_latest(&resolved, Some(device), page).await
}

async fn read_latest(
    resolved: &ResolvedPath,
    device: Option<DeviceId>,
    page: Page,
) -> Answer<RecordList> {
    let page = resolved
        .records
        .latest(resolved.group, device, page.limit, page.cursor)
        .await?;
    Ok(ok(RecordList::new(&resolved.ids, &page)?))
}
