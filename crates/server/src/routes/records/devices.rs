//! `/v1/groups/{gid}/devices`

use axum::extract::{Path, State};
use homeport_systems::records::{
    Change, Device, DeviceChange, Model, Name, NewDevice, POLICY_DEPTH_MAX, PolicyDocument,
    RecordIds,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::{
    Answer, Created, Envelope, Page, RecordPath, created, ok, parse_attributes, shown_attributes,
};
use crate::auth::needs::{Manage, Read};
use crate::auth::{Action, ApiKeysOrPeople, Authenticated, People};
use crate::openapi::schemas::records::{self as schemas, GroupDevicePath, GroupPath};
use crate::problem::Problem;
use crate::request::JsonBody;
use crate::request::json_object;
use crate::request::plain_json::{self, PlainValue};
use crate::state::AppState;

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AddGroupDevice {
    #[schema(schema_with = schemas::label)]
    name: String,
    #[schema(schema_with = schemas::label_or_null, required = false)]
    model: Option<String>,
    /// Access policy: which API keys may read and write the device
    #[schema(schema_with = schemas::policy, required = false)]
    acl_policy: Option<Box<RawValue>>,
    /// Further attributes: an object of at most 50 members and 16 KiB
    #[schema(value_type = Option<Object>)]
    attributes: Option<Box<RawValue>>,
}

/// Fields to change; absent fields stay, and null removes optional ones.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AlterGroupDevice {
    #[schema(schema_with = schemas::label_or_null, required = false)]
    name: Option<String>,
    #[serde(default, deserialize_with = "json_object::present")]
    #[schema(schema_with = schemas::label_or_null, required = false)]
    model: Option<Option<String>>,
    #[serde(default, deserialize_with = "json_object::present")]
    #[schema(schema_with = schemas::policy, required = false)]
    acl_policy: Option<Option<Box<RawValue>>>,
    /// Attributes to set; null removes one
    #[schema(value_type = Option<Object>)]
    attributes: Option<Box<RawValue>>,
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
    acl_policy: Option<PlainValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    attributes: Option<PlainValue>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct GroupDeviceList {
    devices: Vec<GroupDeviceBody>,
    /// Cursor of the next page; absent on the last page
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// A deleted device.
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
                .map(|policy| PlainValue::members(policy.members().clone())),
            attributes: shown_attributes(&device.attributes),
        }
    }
}

/// Parses a policy; numbers keep every digit.
fn parse_policy(raw: Box<RawValue>) -> Result<PolicyDocument, Problem> {
    let members = plain_json::parse_members(&raw, POLICY_DEPTH_MAX)
        .map_err(|reason| Problem::invalid(format!("acl_policy: {reason}")))?;
    Ok(PolicyDocument::new(members)?)
}

/// Add a device to a group
#[utoipa::path(post, path = "/v1/groups/{gid}/devices", tag = "records",
    security(("admin_token" = [])), params(GroupPath),
    request_body = AddGroupDevice, responses(
    (status = 201, description = "The device", body = Envelope<GroupDeviceBody>)))]
pub(super) async fn add_device(
    caller: Authenticated<People<Manage>>,
    State(state): State<AppState>,
    Path(path): Path<RecordPath>,
    JsonBody(body): JsonBody<AddGroupDevice>,
) -> Created<GroupDeviceBody> {
    let resolved = path.resolve(&caller, Action::Manage, &state).await?;
    let new = NewDevice {
        name: Name::try_from(body.name)?,
        model: body.model.map(Model::try_from).transpose()?,
        acl_policy: body.acl_policy.map(parse_policy).transpose()?,
        attributes: parse_attributes(body.attributes)?,
    };
    let device = resolved.records.add_device(resolved.group, new).await?;
    Ok(created(GroupDeviceBody::new(&resolved.ids, &device)))
}

/// List the devices of a group
#[utoipa::path(get, path = "/v1/groups/{gid}/devices", tag = "records",
    security(("admin_token" = []), ("device_key" = [])),
    params(GroupPath, Page), responses(
    (status = 200, description = "A page of devices", body = Envelope<GroupDeviceList>)))]
pub(super) async fn list_group_devices(
    caller: Authenticated<ApiKeysOrPeople<Read>>,
    State(state): State<AppState>,
    Path(path): Path<RecordPath>,
    page: Page,
) -> Answer<GroupDeviceList> {
    let resolved = path.resolve(&caller, Action::Read, &state).await?;
    let page = resolved
        .records
        .list_devices(resolved.group, page.limit, page.cursor)
        .await?;
    let devices = page.items.iter();
    Ok(ok(GroupDeviceList {
        devices: devices
            .map(|device| GroupDeviceBody::new(&resolved.ids, device))
            .collect(),
        next_cursor: page.next.map(|cursor| cursor.encode()),
    }))
}

/// Get a device of a group
#[utoipa::path(get, path = "/v1/groups/{gid}/devices/{did}", tag = "records",
    security(("admin_token" = []), ("device_key" = [])),
    params(GroupDevicePath), responses(
    (status = 200, description = "The device", body = Envelope<GroupDeviceBody>)))]
pub(super) async fn get_group_device(
    caller: Authenticated<ApiKeysOrPeople<Read>>,
    State(state): State<AppState>,
    Path(path): Path<RecordPath>,
) -> Answer<GroupDeviceBody> {
    let resolved = path.resolve(&caller, Action::Read, &state).await?;
    let id = resolved.device(&path)?;
    let device = resolved.records.device(resolved.group, id).await?;
    Ok(ok(GroupDeviceBody::new(&resolved.ids, &device)))
}

/// Change a device; absent fields stay
#[utoipa::path(patch, path = "/v1/groups/{gid}/devices/{did}", tag = "records",
    security(("admin_token" = [])),
    params(GroupDevicePath),
    request_body = AlterGroupDevice, responses(
    (status = 200, description = "The device", body = Envelope<GroupDeviceBody>)))]
pub(super) async fn alter_device(
    caller: Authenticated<People<Manage>>,
    State(state): State<AppState>,
    Path(path): Path<RecordPath>,
    JsonBody(body): JsonBody<AlterGroupDevice>,
) -> Answer<GroupDeviceBody> {
    let resolved = path.resolve(&caller, Action::Manage, &state).await?;
    let id = resolved.device(&path)?;
    let change = DeviceChange {
        name: body.name.map(Name::try_from).transpose()?,
        model: Change::parse(body.model, Model::try_from)?,
        acl_policy: Change::parse(body.acl_policy, parse_policy)?,
        attributes: parse_attributes(body.attributes)?,
    };
    let device = resolved
        .records
        .alter_device(resolved.group, id, change)
        .await?;
    Ok(ok(GroupDeviceBody::new(&resolved.ids, &device)))
}

/// Delete a device with its journals and records
///
/// They disappear at once; the server frees their storage later.
#[utoipa::path(delete, path = "/v1/groups/{gid}/devices/{did}", tag = "records",
    security(("admin_token" = [])),
    params(GroupDevicePath), responses(
    (status = 200, description = "Deleted", body = Envelope<RemovedDevice>)))]
pub(super) async fn remove_device(
    caller: Authenticated<People<Manage>>,
    State(state): State<AppState>,
    Path(path): Path<RecordPath>,
) -> Answer<RemovedDevice> {
    let resolved = path.resolve(&caller, Action::Manage, &state).await?;
    let id = resolved.device(&path)?;
    resolved.records.remove_device(resolved.group, id).await?;
    Ok(ok(RemovedDevice {
        gid: path.gid,
        did: path.did,
    }))
}
