//! `…/records`: adding records, and reading them in a range of time.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use homeport_systems::records::{
    JournalId, NewRecord, Order, PAGE_MAX, Record, RecordIds, RecordPage, RecordRange, RecordTime,
    RecordType, RecordValue, Unit,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};

use super::{Added, Address, Answer, Caller, Envelope, Failure, Place, ok};
use crate::body::JsonBody;
use crate::forms::records::{self as forms, GroupDevicePath, JournalPath};
use crate::measure;
use crate::problem::Problem;
use crate::state::AppState;
use crate::url::{self, UrlQuery};
use crate::whole::WholeNumber;

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AddRecord {
    /// A number of at most 38 digits, a text, or true or false
    #[schema(schema_with = forms::value)]
    value: Box<RawValue>,
    /// Empty for what has no unit
    #[schema(schema_with = forms::unit)]
    unit: String,
    #[serde(rename = "type")]
    #[schema(schema_with = forms::words)]
    kind: String,
    /// Milliseconds since 1970; the time of arrival unless given
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
    /// Where it stands in its journal: later than sent when that millisecond had a record already
    timestamp: i64,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RecordList {
    records: Vec<RecordBody>,
    /// Absent on the last page
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct RangeQuery {
    /// The oldest time wanted: milliseconds since 1970, or RFC 3339
    #[param(schema_with = crate::forms::time, required = false)]
    from: Option<String>,
    /// The newest time wanted
    #[param(schema_with = crate::forms::time, required = false)]
    to: Option<String>,
    /// `desc`, the newest first, unless `asc` is asked for
    #[param(inline)]
    order: Option<OrderParameter>,
    /// Items of a page
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<usize>,
    /// Where the page before ended
    cursor: Option<String>,
}

#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = RecordOrder)]
pub(super) enum OrderParameter {
    Asc,
    Desc,
}

impl RecordBody {
    pub(super) fn new(ids: &RecordIds, record: &Record) -> Result<Self, Problem> {
        let json = match &record.value {
            // A decimal in plain notation is a JSON number as it stands.
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

/// Numbers are taken exactly as they were sent: no digit is lost to binary fractions.
fn parse_value(json: &str) -> Result<RecordValue, Problem> {
    let wrong = || {
        Problem::invalid("value must be a number of at most 38 digits, a text, or true or false")
    };
    match json.as_bytes().first() {
        Some(b'"') => {
            let text = serde_json::from_str(json).map_err(|_| wrong())?;
            Ok(RecordValue::text(text)?)
        }
        Some(b't') => Ok(RecordValue::Bool(true)),
        Some(b'f') => Ok(RecordValue::Bool(false)),
        _ => json.parse().map(RecordValue::Number).map_err(|_| wrong()),
    }
}

/// Add a record to a journal
///
/// A late record does not change the latest one. Where a millisecond has a record already, the new
/// one is stored at the next that is free.
#[utoipa::path(post, path = "/v1/groups/{gid}/devices/{did}/journals/{jid}/records", tag = "records",
    security(("device_key" = []), ("admin_token" = [])),
    params(JournalPath),
    request_body = AddRecord, responses(
    (status = 201, description = "The record", body = Envelope<RecordBody>), Failure))]
pub(super) async fn add_record(
    caller: Caller,
    State(state): State<AppState>,
    Path(address): Path<Address>,
    JsonBody(body): JsonBody<AddRecord>,
) -> Added<RecordBody> {
    let place = address.resolve_for(&caller, &state).await?;
    let (device, journal) = (place.device(&address)?, place.journal(&address)?);
    let record = state
        .records
        .add_record(place.group, device, journal, body.parse()?)
        .await?;
    measure::record();
    let added = RecordBody::new(&place.ids, &record)?;
    Ok((StatusCode::CREATED, ok(added)))
}

/// Records of a journal in a range of time, both ends included
#[utoipa::path(get, path = "/v1/groups/{gid}/devices/{did}/journals/{jid}/records", tag = "records",
    security(("admin_token" = []), ("device_key" = [])),
    params(JournalPath, RangeQuery), responses(
    (status = 200, description = "A page of records", body = Envelope<RecordList>), Failure))]
pub(super) async fn list_journal_records(
    caller: Caller,
    State(state): State<AppState>,
    Path(address): Path<Address>,
    UrlQuery(query): UrlQuery<RangeQuery>,
) -> Answer<RecordList> {
    let place = address.resolve_for(&caller, &state).await?;
    let journal = place.journal(&address)?;
    read_records(&state, &place, &address, Some(journal), query).await
}

/// Records of a device in a range of time, both ends included: journal by journal
#[utoipa::path(get, path = "/v1/groups/{gid}/devices/{did}/records", tag = "records",
    security(("admin_token" = []), ("device_key" = [])),
    params(GroupDevicePath, RangeQuery), responses(
    (status = 200, description = "A page of records", body = Envelope<RecordList>), Failure))]
pub(super) async fn list_device_records(
    caller: Caller,
    State(state): State<AppState>,
    Path(address): Path<Address>,
    UrlQuery(query): UrlQuery<RangeQuery>,
) -> Answer<RecordList> {
    let place = address.resolve_for(&caller, &state).await?;
    read_records(&state, &place, &address, None, query).await
}

async fn read_records(
    state: &AppState,
    place: &Place,
    address: &Address,
    journal: Option<JournalId>,
    query: RangeQuery,
) -> Answer<RecordList> {
    let device = place.device(address)?;
    let bound = |name, text: Option<&String>, otherwise| match text {
        Some(text) => url::time(name, text).map(RecordTime::nearest),
        None => Ok(otherwise),
    };
    let range = RecordRange {
        from: bound("from", query.from.as_ref(), RecordTime::FIRST)?,
        to: bound("to", query.to.as_ref(), RecordTime::LAST)?,
        order: match query.order {
            Some(OrderParameter::Asc) => Order::OldestFirst,
            Some(OrderParameter::Desc) | None => Order::NewestFirst,
        },
    };
    let limit = url::limit(query.limit, PAGE_MAX)?;
    let cursor = url::cursor(query.cursor.as_deref())?;
    let page = state
        .records
        .records(place.group, device, journal, range, limit, cursor)
        .await?;
    Ok(ok(RecordList::new(&place.ids, &page)?))
}
