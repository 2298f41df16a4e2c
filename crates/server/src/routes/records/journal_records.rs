//! `…/records`: adds and deletes records, and lists them by time.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use homeport_systems::pages;
use homeport_systems::records::{
    AddedRecord, JournalId, NewRecord, Order, RECORDS_PER_REQUEST_MAX, Record, RecordId, RecordIds,
    RecordRange, RecordTime, RecordType, RecordValue, RecordsError, Unit,
};
use homeport_systems::time::EpochMillis;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::{Answer, Envelope, Page, RecordPath, ResolvedPath, ok};
use crate::auth::needs::{Manage, Read, Write};
use crate::auth::{Action, ApiKeysOrPeople, Authenticated, People};
use crate::metrics;
use crate::openapi::enums::{AddedRecordStatus, RecordResult};
use crate::openapi::schemas::records::{
    self as schemas, GroupDevicePath, JournalPath, JournalRecordPath,
};
use crate::problem::Problem;
use crate::request::{JsonBody, Object, RequestTimes, TimeRange, WholeNumber};
use crate::state::AppState;

const IDEMPOTENCY_KEY: &str = "idempotency-key";

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
    /// Idempotency key: a repeat with the same id within 30 days is not stored again
    #[schema(schema_with = schemas::label_or_null, required = false)]
    record_id: Option<String>,
}

/// Records of a device.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AddRecords {
    /// 1 to 100 records
    #[schema(value_type = Vec<AddDeviceRecord>, min_items = 1, max_items = 100)]
    records: Vec<Box<RawValue>>,
}

/// A record and its journal.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AddDeviceRecord {
    #[schema(schema_with = schemas::encoded_id)]
    jid: String,
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
    /// Idempotency key: a repeat with the same id within 30 days is not stored again
    #[schema(schema_with = schemas::label_or_null, required = false)]
    record_id: Option<String>,
}

/// The results of a request, in the order of its records.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct AddedRecords {
    results: Vec<AddedRecordBody>,
}

/// The result of adding one record.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AddedRecord)]
struct AddedRecordBody {
    status: AddedRecordStatus,
    /// Time of the record in its journal; absent if it was rejected
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp: Option<i64>,
    /// Error code for programs; stable
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
    /// Error message for people
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// A deleted record.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RemovedRecord {
    gid: String,
    did: String,
    jid: String,
    timestamp: i64,
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
    pub(super) fn new(ids: &RecordIds, page: &pages::Page<Record>) -> Result<Self, Problem> {
        let records = page.items.iter();
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
            id: self.record_id.map(RecordId::try_from).transpose()?,
        })
    }
}

impl AddDeviceRecord {
    fn parse(self, ids: &RecordIds) -> Result<(JournalId, NewRecord), Problem> {
        let journal = ids.parse_journal(&self.jid)?;
        let record = AddRecord {
            value: self.value,
            unit: self.unit,
            kind: self.kind,
            timestamp: self.timestamp,
            record_id: self.record_id,
        };
        Ok((journal, record.parse()?))
    }
}

impl AddedRecordBody {
    fn new(result: Result<AddedRecord, Problem>) -> Self {
        let (status, record) = match result {
            Ok(AddedRecord::New(record)) => (RecordResult::Stored, record),
            Ok(AddedRecord::Before(record)) => (RecordResult::Duplicate, record),
            Err(problem) => {
                let (code, reason) = problem.into_record_error();
                return Self {
                    status: RecordResult::Rejected.into(),
                    timestamp: None,
                    code: Some(code),
                    reason: Some(reason),
                };
            }
        };
        Self {
            status: status.into(),
            timestamp: Some(record.timestamp.millis()),
            code: None,
            reason: None,
        }
    }
}

/// The record id of a request: a member of the body or a header.
fn record_id(headers: &HeaderMap, member: Option<RecordId>) -> Result<Option<RecordId>, Problem> {
    let Some(value) = headers.get(IDEMPOTENCY_KEY) else {
        return Ok(member);
    };
    let header = RecordId::try_from(String::from_utf8_lossy(value.as_bytes()).into_owned())?;
    match member {
        Some(member) if member != header => Err(Problem::invalid(
            "record_id and the header Idempotency-Key differ; send one of them",
        )),
        _ => Ok(Some(header)),
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

fn check_future(times: RequestTimes, record: &NewRecord) -> Result<(), Problem> {
    match record.timestamp {
        Some(timestamp) => Ok(times.check_future(EpochMillis(timestamp.millis()))?),
        None => Ok(()),
    }
}

/// Add a record to a journal
///
/// A late record does not change the latest one. If the millisecond already has a record, the new one is stored
/// at the next free millisecond. The value must be of the journal's data type.
#[utoipa::path(post, path = "/v1/groups/{gid}/devices/{did}/journals/{jid}/records", tag = "records",
    security(("device_key" = []), ("admin_token" = [])),
    params(JournalPath, ("Idempotency-Key" = Option<String>, Header, min_length = 1, max_length = 128, pattern = "^[!-~]+$", description = "The same as `record_id` in the body")),
    request_body = AddRecord, responses(
    (status = 200, description = "The record was stored before with this record id", body = Envelope<RecordBody>),
    (status = 201, description = "The record", body = Envelope<RecordBody>)))]
pub(super) async fn add_record(
    caller: Authenticated<ApiKeysOrPeople<Write>>,
    State(state): State<AppState>,
    Path(path): Path<RecordPath>,
    headers: HeaderMap,
    JsonBody(body): JsonBody<AddRecord>,
) -> Result<(StatusCode, Json<Envelope<RecordBody>>), Problem> {
    let resolved = path.resolve(&caller, Action::Write, &state).await?;
    let (device, journal) = (resolved.device(&path)?, resolved.journal(&path)?);
    let mut new = body.parse()?;
    new.id = record_id(&headers, new.id)?;
    check_future(RequestTimes::new(&state, None), &new)?;
    let added = resolved
        .records
        .add_record(resolved.group, device, journal, new)
        .await?;
    let (status, record) = match added {
        AddedRecord::New(record) => {
            metrics::record();
            (StatusCode::CREATED, record)
        }
        AddedRecord::Before(record) => (StatusCode::OK, record),
    };
    Ok((status, ok(RecordBody::new(&resolved.ids, &record)?)))
}

/// Add records to journals of a device
///
/// Each record has its own result: `stored`, `duplicate` or `rejected`. A device may drop all of them. If the request
/// fails, the device sends it again; records with a `record_id` are stored once.
#[utoipa::path(post, path = "/v1/groups/{gid}/devices/{did}/records", tag = "records",
    security(("device_key" = []), ("admin_token" = [])),
    params(GroupDevicePath),
    request_body = AddRecords, responses(
    (status = 200, description = "The result for each record", body = Envelope<AddedRecords>)))]
pub(super) async fn add_records(
    caller: Authenticated<ApiKeysOrPeople<Write>>,
    State(state): State<AppState>,
    Path(path): Path<RecordPath>,
    JsonBody(body): JsonBody<AddRecords>,
) -> Answer<AddedRecords> {
    let resolved = path.resolve(&caller, Action::Write, &state).await?;
    let device = resolved.device(&path)?;
    if !(1..=RECORDS_PER_REQUEST_MAX).contains(&body.records.len()) {
        return Err(Problem::invalid(format!(
            "a request must have 1 to {RECORDS_PER_REQUEST_MAX} records; this one has {}",
            body.records.len()
        )));
    }
    let times = RequestTimes::new(&state, None);
    let mut new = Vec::with_capacity(body.records.len());
    let parsed: Vec<Result<(), Problem>> = body
        .records
        .iter()
        .map(|raw| {
            let Object(record): Object<AddDeviceRecord> = serde_json::from_str(raw.get())
                .map_err(|error| Problem::invalid(error.to_string()))?;
            let (journal, record) = record.parse(&resolved.ids)?;
            check_future(times, &record)?;
            new.push((journal, record));
            Ok(())
        })
        .collect();
    let added = resolved.records.add_records(resolved.group, device, new);
    let mut added = added.await?.into_iter();
    let results = parsed.into_iter().map(|parsed| {
        let result = parsed.and_then(|()| match added.next() {
            Some(result) => result.map_err(Problem::from),
            None => Err(RecordsError::JournalMissing.into()),
        });
        if matches!(result, Ok(AddedRecord::New(_))) {
            metrics::record();
        }
        AddedRecordBody::new(result)
    });
    Ok(ok(AddedRecords {
        results: results.collect(),
    }))
}

/// Delete a record
///
/// If it is the latest record of its journal, the record before it becomes the latest.
#[utoipa::path(delete, path = "/v1/groups/{gid}/devices/{did}/journals/{jid}/records/{timestamp}", tag = "records",
    security(("admin_token" = [])),
    params(JournalRecordPath), responses(
    (status = 200, description = "Deleted", body = Envelope<RemovedRecord>)))]
pub(super) async fn delete_record(
    caller: Authenticated<People<Manage>>,
    State(state): State<AppState>,
    Path(path): Path<RecordPath>,
) -> Answer<RemovedRecord> {
    let resolved = path.resolve(&caller, Action::Manage, &state).await?;
    let (device, journal) = (resolved.device(&path)?, resolved.journal(&path)?);
    let timestamp: Option<RecordTime> = path
        .timestamp
        .parse::<i64>()
        .ok()
        .and_then(|millis| millis.try_into().ok());
    let timestamp = timestamp.ok_or_else(|| {
        Problem::invalid("the timestamp of a record is milliseconds since 1970, at most 13 digits")
    })?;
    resolved
        .records
        .delete_record(resolved.group, device, journal, timestamp)
        .await?;
    Ok(ok(RemovedRecord {
        gid: path.gid,
        did: path.did,
        jid: path.jid,
        timestamp: timestamp.millis(),
    }))
}

/// List the records of a journal by time
#[utoipa::path(get, path = "/v1/groups/{gid}/devices/{did}/journals/{jid}/records", tag = "records",
    security(("admin_token" = []), ("device_key" = [])),
    params(JournalPath, TimeRange, Page), responses(
    (status = 200, description = "A page of records", body = Envelope<RecordList>)))]
pub(super) async fn list_journal_records(
    caller: Authenticated<ApiKeysOrPeople<Read>>,
    State(state): State<AppState>,
    Path(path): Path<RecordPath>,
    range: TimeRange,
    page: Page,
) -> Answer<RecordList> {
    let resolved = path.resolve(&caller, Action::Read, &state).await?;
    let journal = resolved.journal(&path)?;
    read_records(&resolved, &path, Some(journal), range, page).await
}

/// List the records of a device by time, one journal after another
#[utoipa::path(get, path = "/v1/groups/{gid}/devices/{did}/records", tag = "records",
    security(("admin_token" = []), ("device_key" = [])),
    params(GroupDevicePath, TimeRange, Page), responses(
    (status = 200, description = "A page of records", body = Envelope<RecordList>)))]
pub(super) async fn list_device_records(
    caller: Authenticated<ApiKeysOrPeople<Read>>,
    State(state): State<AppState>,
    Path(path): Path<RecordPath>,
    range: TimeRange,
    page: Page,
) -> Answer<RecordList> {
    let resolved = path.resolve(&caller, Action::Read, &state).await?;
    read_records(&resolved, &path, None, range, page).await
}

async fn read_records(
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
    let mut page = resolved
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
