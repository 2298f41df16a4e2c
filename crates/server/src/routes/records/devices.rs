//! `/v1/groups/{gid}/devices`

use axum::extract::{Path, State};
use axum::http::StatusCode;
use homeport_systems::records::{
    Change, Device, DeviceChange, Model, Name, NewDevice, PAGE_MAX, POLICY_DEPTH_MAX,
    PolicyDocument, RecordIds,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::{Added, Address, Answer, Caller, Envelope, Failure, PageQuery, ok};
use crate::auth::Admin;
use crate::body::JsonBody;
use crate::forms::records::{self as forms, GroupDevicePath, GroupPath};
use crate::problem::Problem;
use crate::routes::json::{self, PlainMap};
use crate::state::AppState;
use crate::url::{self, UrlQuery};

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AddGroupDevice {
    #[schema(schema_with = forms::words)]
    name: String,
    #[schema(schema_with = forms::words_or_null, required = false)]
    model: Option<String>,
    /// Who may do what with it: a JSON object that is kept as it is
    #[schema(schema_with = forms::policy, required = false)]
    acl_policy: Option<Box<RawValue>>,
}

/// What to change; the rest stays, and null removes what may be absent.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AlterGroupDevice {
    #[schema(schema_with = forms::words_or_null, required = false)]
    name: Option<String>,
    #[serde(default, deserialize_with = "super::present")]
    #[schema(schema_with = forms::words_or_null, required = false)]
    model: Option<Option<String>>,
    #[serde(default, deserialize_with = "super::present")]
    #[schema(schema_with = forms::policy, required = false)]
    acl_policy: Option<Option<Box<RawValue>>>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = GroupDevice)]
pub(super) struct GroupDeviceBody {
    gid: String,
    did: String,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    acl_policy: Option<PlainMap>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct GroupDeviceList {
    devices: Vec<GroupDeviceBody>,
    /// Absent on the last page
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// A device that is gone.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RemovedDevice {
    gid: String,
    did: String,
}

impl GroupDeviceBody {
    fn new(ids: &RecordIds, device: &Device) -> Self {
        Self {
            gid: ids.group(device.group),
            did: ids.device(device.id),
            name: device.name.as_str().to_owned(),
            model: device.model.as_ref().map(|model| model.as_str().to_owned()),
            acl_policy: (device.acl_policy.as_ref())
                .map(|policy| PlainMap(policy.members().clone())),
        }
    }
}

/// Numbers are kept exactly as they were sent.
fn parse_policy(raw: Box<RawValue>) -> Result<PolicyDocument, Problem> {
    let members = json::object(&raw, POLICY_DEPTH_MAX)
        .map_err(|reason| Problem::invalid(format!("acl_policy: {reason}")))?;
    Ok(PolicyDocument::new(members)?)
}

/// Add a device to a group
#[utoipa::path(post, path = "/v1/groups/{gid}/devices", tag = "records",
    security(("admin_token" = [])), params(GroupPath),
    request_body = AddGroupDevice, responses(
    (status = 201, description = "The device", body = Envelope<GroupDeviceBody>), Failure))]
pub(super) async fn add_device(
    _: Admin,
    State(state): State<AppState>,
    Path(address): Path<Address>,
    JsonBody(body): JsonBody<AddGroupDevice>,
) -> Added<GroupDeviceBody> {
    let place = address.resolve(&state).await?;
    let new = NewDevice {
        name: Name::try_from(body.name)?,
        model: body.model.map(Model::try_from).transpose()?,
        acl_policy: body.acl_policy.map(parse_policy).transpose()?,
    };
    let device = state.records.add_device(place.group, new).await?;
    let added = GroupDeviceBody::new(&place.ids, &device);
    Ok((StatusCode::CREATED, ok(added)))
}

/// List all devices in a group
#[utoipa::path(get, path = "/v1/groups/{gid}/devices", tag = "records",
    security(("admin_token" = []), ("device_key" = [])),
    params(GroupPath, PageQuery), responses(
    (status = 200, description = "A page of devices", body = Envelope<GroupDeviceList>), Failure))]
pub(super) async fn list_devices(
    caller: Caller,
    State(state): State<AppState>,
    Path(address): Path<Address>,
    UrlQuery(query): UrlQuery<PageQuery>,
) -> Answer<GroupDeviceList> {
    let place = address.resolve_for(&caller, &state).await?;
    let limit = url::limit(query.limit, PAGE_MAX)?;
    let cursor = url::cursor(query.cursor.as_deref())?;
    let page = state
        .records
        .list_devices(place.group, limit, cursor)
        .await?;
    let devices = page.devices.iter();
    Ok(ok(GroupDeviceList {
        devices: devices
            .map(|device| GroupDeviceBody::new(&place.ids, device))
            .collect(),
        next_cursor: page.next.map(|cursor| cursor.encode()),
    }))
}

/// One device
#[utoipa::path(get, path = "/v1/groups/{gid}/devices/{did}", tag = "records",
    security(("admin_token" = []), ("device_key" = [])),
    params(GroupDevicePath), responses(
    (status = 200, description = "The device", body = Envelope<GroupDeviceBody>), Failure))]
pub(super) async fn get_device(
    caller: Caller,
    State(state): State<AppState>,
    Path(address): Path<Address>,
) -> Answer<GroupDeviceBody> {
    let place = address.resolve_for(&caller, &state).await?;
    let id = place.device(&address)?;
    let device = state.records.device(place.group, id).await?;
    Ok(ok(GroupDeviceBody::new(&place.ids, &device)))
}

/// Change a device; what is not mentioned stays
#[utoipa::path(patch, path = "/v1/groups/{gid}/devices/{did}", tag = "records",
    security(("admin_token" = [])),
    params(GroupDevicePath),
    request_body = AlterGroupDevice, responses(
    (status = 200, description = "The device", body = Envelope<GroupDeviceBody>), Failure))]
pub(super) async fn alter_device(
    _: Admin,
    State(state): State<AppState>,
    Path(address): Path<Address>,
    JsonBody(body): JsonBody<AlterGroupDevice>,
) -> Answer<GroupDeviceBody> {
    let place = address.resolve(&state).await?;
    let id = place.device(&address)?;
    let change = DeviceChange {
        name: body.name.map(Name::try_from).transpose()?,
        model: Change::parse(body.model, Model::try_from)?,
        acl_policy: Change::parse(body.acl_policy, parse_policy)?,
    };
    let device = state.records.alter_device(place.group, id, change).await?;
    Ok(ok(GroupDeviceBody::new(&place.ids, &device)))
}

/// Remove a device with its journals and records, at once for everyone who looks
#[utoipa::path(delete, path = "/v1/groups/{gid}/devices/{did}", tag = "records",
    security(("admin_token" = [])),
    params(GroupDevicePath), responses(
    (status = 200, description = "It is gone", body = Envelope<RemovedDevice>), Failure))]
pub(super) async fn remove_device(
    _: Admin,
    State(state): State<AppState>,
    Path(address): Path<Address>,
) -> Answer<RemovedDevice> {
    let place = address.resolve(&state).await?;
    let id = place.device(&address)?;
    state.records.remove_device(place.group, id).await?;
    Ok(ok(RemovedDevice {
        gid: address.gid,
        did: address.did,
    }))
}
