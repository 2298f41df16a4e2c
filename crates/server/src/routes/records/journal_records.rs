//! `…/records`: adds records, and lists them by time.

use axum::extract::{Path, State};
use homeport_systems::records::{
    JournalId, NewRecord, Order, Record, RecordIds, RecordPage, RecordRange, RecordTime,
    RecordType, RecordValue, Unit,
};
use homeport_systems::time::EpochMillis;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::{Answer, Created, Envelope, Page, RecordPath, ResolvedPath, created, ok};
use crate::auth::{Action, ApiKeysOrOperators, Authenticated};
use crate::metrics;
use crate::openapi::schemas::records::{self as schemas, GroupDevicePath, JournalPath};
use crate::problem::Problem;
use crate::request::{JsonBody, RequestTimes, TimeRange, WholeNumber};
use crate::state::AppState;

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AddRecord {
    /// A number of at most 38 digits, a string or a boolean
    #[schema(schema_with = schemas::value)]
    value: Box<RawValue>,
    /// Unit of the value; empty if it has none
    #[schema(schema_with = schemas::unit)]
    unit: String,
    #[serde(rename = "type")]
    #[schema(schema_with = schemas::label)]
    kind: String,
    /// Milliseconds since 1970; time of arrival if absent
    #[schema(value_type = Option<i64>, minimum = 0, maximum = 9_999_999_999_999_i64)]
    timestamp: Option<WholeNumber>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Record)]
pub(super) struct RecordBody {
    gid: String,
    did: String,
    jid: String,
    #[schema(value_type = serde_json::Value, example = 21.5)]
    value: Box<RawValue>,
    unit: String,
    #[serde(rename = "type")]
    kind: String,
    /// Time of the record in its journal; later than sent if that millisecond already had a record
    timestamp: i64,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RecordList {
    records: Vec<RecordBody>,
    /// Cursor of the next page; absent on the last page
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

impl RecordBody {
    pub(super) fn new(ids: &RecordIds, record: &Record) -> Result<Self, Problem> {
        let json = match &record.value {
            // The text of a decimal is a JSON number.
            RecordValue::Number(number) => number.to_string(),
            RecordValue::Text(text) => serde_json::Value::from(text.as_str()).to_string(),
            RecordValue::Bool(flag) => flag.to_string(),
        };
        let value = RawValue::from_string(json).map_err(|error| Problem::internal(&error))?;
        Ok(Self {
            gid: ids.group(record.group),
            did: ids.device(record.device),
            jid: ids.journal(record.journal),
            value,
            unit: record.unit.as_str().to_owned(),
            kind: record.kind.as_str().to_owned(),
            timestamp: record.timestamp.millis(),
        })
    }
}

impl RecordList {
    pub(super) fn new(ids: &RecordIds, page: &RecordPage) -> Result<Self, Problem> {
        let records = page.records.iter();
        Ok(Self {
            records: records
                .map(|record| RecordBody::new(ids, record))
                .collect::<Result<_, _>>()?,
            next_cursor: page.next.as_ref().map(|cursor| cursor.encode()),
        })
    }
}

impl AddRecord {
    fn parse(self) -> Result<NewRecord, Problem> {
        Ok(NewRecord {
            value: parse_value(self.value.get())?,
            unit: Unit::try_from(self.unit)?,
            kind: RecordType::try_from(self.kind)?,
            timestamp: self
                .timestamp
                .map(|WholeNumber(millis)| RecordTime::try_from(millis))
                .transpose()?,
        })
    }
}

/// Parses a value; numbers keep every digit.
fn parse_value(json: &str) -> Result<RecordValue, Problem> {
    let invalid =
        || Problem::invalid("value must be a number of at most 38 digits, a string or a boolean");
    match json.as_bytes().first() {
        Some(b'"') => {
            let text = serde_json::from_str(json).map_err(|_| invalid())?;
            Ok(RecordValue::text(text)?)
        }
        Some(b't') => Ok(RecordValue::Bool(true)),
        Some(b'f') => Ok(RecordValue::Bool(false)),
        _ => json.parse().map(RecordValue::Number).map_err(|_| invalid()),
    }
}

/// Add a record to a journal
///
/// A late record does not change the latest one. If the millisecond already has a record, the new one is stored
/// at the next free millisecond.
#[utoipa::path(post, path = "/v1/groups/{gid}/devices/{did}/journals/{jid}/records", tag = "records",
    security(("device_key" = []), ("admin_token" = [])),
    params(JournalPath),
    request_body = AddRecord, responses(
    (status = 201, description = "The record", body = Envelope<RecordBody>)))]
pub(super) async fn add_record(
    caller: Authenticated<ApiKeysOrOperators>,
    State(state): State<AppState>,
    Path(path): Path<RecordPath>,
    JsonBody(body): JsonBody<AddRecord>,
) -> Created<RecordBody> {
    let resolved = path.resolve(&caller, Action::Write, &state).await?;
    let (device, journal) = (resolved.device(&path)?, resolved.journal(&path)?);
    let new = body.parse()?;
    if let Some(timestamp) = new.timestamp {
        RequestTimes::new(&state, None).check_future(EpochMillis(timestamp.millis()))?;
    }
    let record = state
        .records
        .add_record(resolved.group, device, journal, new)
        .await?;
    metrics::record();
    Ok(created(RecordBody::new(&resolved.ids, &record)?))
}

/// List the records of a journal by time
#[utoipa::path(get, path = "/v1/groups/{gid}/devices/{did}/journals/{jid}/records", tag = "records",
    security(("admin_token" = []), ("device_key" = [])),
    params(JournalPath, TimeRange, Page), responses(
    (status = 200, description = "A page of records", body = Envelope<RecordList>)))]
pub(super) async fn list_journal_records(
    caller: Authenticated<ApiKeysOrOperators>,
    State(state): State<AppState>,
    Path(path): Path<RecordPath>,
    range: TimeRange,
    page: Page,
) -> Answer<RecordList> {
    let resolved = path.resolve(&caller, Action::Read, &state).await?;
    let journal = resolved.journal(&path)?;
    read_records(&state, &resolved, &path, Some(journal), range, page).await
}

/// List the records of a device by time, one journal after another
#[utoipa::path(get, path = "/v1/groups/{gid}/devices/{did}/records", tag = "records",
    security(("admin_token" = []), ("device_key" = [])),
    params(GroupDevicePath, TimeRange, Page), responses(
    (status = 200, description = "A page of records", body = Envelope<RecordList>)))]
pub(super) async fn list_device_records(
    caller: Authenticated<ApiKeysOrOperators>,
    State(state): State<AppState>,
    Path(path): Path<RecordPath>,
    range: TimeRange,
    page: Page,
) -> Answer<RecordList> {
    let resolved = path.resolve(&caller, Action::Read, &state).await?;
    read_records(&state, &resolved, &path, None, range, page).await
}

async fn read_records(
    state: &AppState,
    resolved: &ResolvedPath,
    path: &RecordPath,
    journal: Option<JournalId>,
    range: TimeRange,
    page: Page,
) -> Answer<RecordList> {
    let device = resolved.device(path)?;
    let bounds = RecordRange {
        from: range.from.map_or(RecordTime::FIRST, RecordTime::nearest),
        to: range.to.map_or(RecordTime::LAST, RecordTime::nearest),
        order: range.order(Order::OldestFirst, Order::NewestFirst),
    };
    let mut page = state
        .records
        .records(
            resolved.group,
            device,
            journal,
            bounds,
            page.limit,
            page.cursor,
        )
        .await?;
    page.next = range.keep_now(page.next);
    Ok(ok(RecordList::new(&resolved.ids, &page)?))
}
