//! `/v1/devices/{system}/{id}/series` and `…/timeline`: a device over time, as a chart and in words.

use axum::Json;
use axum::extract::State;
use homeport_systems::fleet::{
    Entry, EntryType, POINTS_DEFAULT, POINTS_MAX, Point, SeriesRange, TIMELINE_MAX, TimelineOrder,
    TimelineRange,
};
use homeport_systems::time::EpochMillis;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::devices::{AnyDevicePath, DevicePart, shown};
use crate::auth::Admin;
use crate::forms;
use crate::problem::{Problem, ProblemBody};
use crate::state::AppState;
use crate::url::{self, UrlQuery};

/// What a chart shows unless asked otherwise.
const RANGE_MS_DEFAULT: i64 = 24 * 60 * 60 * 1000;
/// Names that may be asked for.
const NAMES_MAX: usize = 64;

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct SeriesQuery {
    /// Where the chart begins: milliseconds since 1970, or RFC 3339; a day before its end unless given
    #[param(schema_with = forms::time, required = false)]
    from: Option<String>,
    /// Where it ends, not included; now unless given
    #[param(schema_with = forms::time, required = false)]
    to: Option<String>,
    /// Points of each series, at most
    #[param(minimum = 1, maximum = 4000, default = 600)]
    points: Option<usize>,
    /// The series wanted, with commas between them; all unless given
    names: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DeviceSeries)]
#[serde(rename_all = "camelCase")]
pub(super) struct SeriesBody {
    /// RFC 3339
    from: String,
    /// RFC 3339
    to: String,
    /// The stretch of time that a point stands for
    bucket_ms: i64,
    /// In the order of names
    series: Vec<OneSeriesBody>,
    /// Whether there are more than 64 names: those that appeared last are missing then
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Series)]
pub(super) struct OneSeriesBody {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<String>,
    /// Each is when the stretch begins (milliseconds since 1970), its least and greatest value, their
    /// mean, and how many there were; stretches without a value are left out
    #[schema(value_type = Vec<Vec<f64>>)]
    points: Vec<PointBody>,
}

/// A point as an array: a year has many of them.
#[derive(Debug, Serialize)]
struct PointBody(i64, f64, f64, f64, u64);

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct TimelineQuery {
    /// The oldest time wanted: milliseconds since 1970, or RFC 3339
    #[param(schema_with = forms::time, required = false)]
    from: Option<String>,
    /// The newest time wanted
    #[param(schema_with = forms::time, required = false)]
    to: Option<String>,
    /// `telemetry`, `state`, `ota`, `scheduler`, `alert`, `notification` and `command`, with commas
    /// between them; all unless given
    #[param(
        pattern = "^(telemetry|state|ota|scheduler|alert|notification|command)(,(telemetry|state|ota|scheduler|alert|notification|command))*$"
    )]
    types: Option<String>,
    /// `desc`, the newest first, unless `asc` is asked for
    #[param(inline)]
    order: Option<OrderWord>,
    /// Entries of a page
    #[param(minimum = 1, maximum = 500, default = 100)]
    limit: Option<usize>,
    /// Where the page before ended
    cursor: Option<String>,
}

#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum OrderWord {
    Asc,
    Desc,
}

#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = TimelineEntryType)]
pub(super) enum EntryWord {
    Telemetry,
    State,
    Ota,
    Scheduler,
    Alert,
    Notification,
    Command,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TimelineEntry)]
pub(super) struct EntryBody {
    /// Unique, and the same whenever it is shown
    id: String,
    /// RFC 3339
    at: String,
    r#type: EntryWord,
    /// In few words
    title: String,
    /// The table that its item is in
    table: String,
    /// In DynamoDB's JSON
    #[schema(value_type = Object)]
    item: homeport_item::Item,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Timeline)]
pub(super) struct TimelineBody {
    entries: Vec<EntryBody>,
    /// Absent on the last page. A page may have fewer entries than asked for, or none, and not be the
    /// last: then more was looked at than fitted
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<String>,
}

impl From<Point> for PointBody {
    fn from(point: Point) -> Self {
        Self(point.at.0, point.min, point.max, point.mean, point.count)
    }
}

impl From<EntryType> for EntryWord {
    fn from(kind: EntryType) -> Self {
        match kind {
            EntryType::Telemetry => Self::Telemetry,
            EntryType::State => Self::State,
            EntryType::Ota => Self::Ota,
            EntryType::Scheduler => Self::Scheduler,
            EntryType::Alert => Self::Alert,
            EntryType::Notification => Self::Notification,
            EntryType::Command => Self::Command,
        }
    }
}

impl From<Entry> for EntryBody {
    fn from(entry: Entry) -> Self {
        Self {
            id: entry.id,
            at: shown(entry.at),
            r#type: entry.kind.into(),
            title: entry.title,
            table: entry.table,
            item: entry.item,
        }
    }
}

/// A list of types as addresses have it.
pub(super) fn types(text: Option<&str>) -> Result<Vec<EntryType>, Problem> {
    let words = text.into_iter().flat_map(|text| text.split(','));
    Ok(words
        .map(|word| word.trim().parse())
        .collect::<Result<_, _>>()?)
}

fn bound(name: &str, text: Option<&String>) -> Result<Option<EpochMillis>, Problem> {
    text.map(|text| url::time(name, text)).transpose()
}

/// The numbers of a device over time, as many points as a chart can show
///
/// Each point has the least and the greatest value of its stretch, so that no spike is lost.
#[utoipa::path(get, path = "/v1/devices/{system}/{id}/series", tag = "console", security(("admin_token" = [])),
    params(AnyDevicePath, SeriesQuery), responses(
    (status = 200, description = "Every series that has a value", body = SeriesBody),
    (status = 400, description = "The device, the range or the number of points is not right", body = ProblemBody, content_type = "application/problem+json"),
    (status = 401, description = "No operator", body = ProblemBody, content_type = "application/problem+json"),
    (status = 404, description = "There is no such device", body = ProblemBody, content_type = "application/problem+json"),
    (status = 503, description = "The store cannot answer", body = ProblemBody, content_type = "application/problem+json")
))]
pub(super) async fn get_device_series(
    _: Admin,
    State(state): State<AppState>,
    DevicePart(path): DevicePart,
    UrlQuery(query): UrlQuery<SeriesQuery>,
) -> Result<Json<SeriesBody>, Problem> {
    let to = match bound("to", query.to.as_ref())? {
        Some(to) => to,
        None => state.chargers.now_ms(),
    };
    let from = bound("from", query.from.as_ref())?;
    let from = from.unwrap_or(EpochMillis(to.0.saturating_sub(RANGE_MS_DEFAULT)));
    let points = query.points.unwrap_or(POINTS_DEFAULT);
    if !(1..=POINTS_MAX).contains(&points) {
        return Err(Problem::invalid(format!(
            "points must be 1 to {POINTS_MAX}"
        )));
    }
    let names = query.names.as_deref().unwrap_or_default();
    let names = names
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty());
    let range = SeriesRange {
        from,
        to,
        points,
        names: names.map(str::to_owned).collect(),
    };
    if range.names.len() > NAMES_MAX {
        return Err(Problem::invalid(format!("names has at most {NAMES_MAX}")));
    }
    let device = path.resolve(&state).await?;
    let set = state.console.fleet.series(&device, &range).await?;
    let series = set.series.into_iter().map(|series| OneSeriesBody {
        name: series.name,
        unit: series.unit,
        points: series.points.into_iter().map(Into::into).collect(),
    });
    Ok(Json(SeriesBody {
        from: shown(from),
        to: shown(to),
        bucket_ms: set.bucket_ms,
        series: series.collect(),
        truncated: set.is_cut,
    }))
}

/// Everything that happened to a device, in one order, both ends of the range included
#[utoipa::path(get, path = "/v1/devices/{system}/{id}/timeline", tag = "console", security(("admin_token" = [])),
    params(AnyDevicePath, TimelineQuery), responses(
    (status = 200, description = "A page of entries", body = TimelineBody),
    (status = 400, description = "The device, the range, the types, the limit or the cursor is not right", body = ProblemBody, content_type = "application/problem+json"),
    (status = 401, description = "No operator", body = ProblemBody, content_type = "application/problem+json"),
    (status = 404, description = "There is no such device", body = ProblemBody, content_type = "application/problem+json"),
    (status = 503, description = "The store cannot answer", body = ProblemBody, content_type = "application/problem+json")
))]
pub(super) async fn get_device_timeline(
    _: Admin,
    State(state): State<AppState>,
    DevicePart(path): DevicePart,
    UrlQuery(query): UrlQuery<TimelineQuery>,
) -> Result<Json<TimelineBody>, Problem> {
    let range = TimelineRange {
        from: bound("from", query.from.as_ref())?,
        to: bound("to", query.to.as_ref())?,
        types: types(query.types.as_deref())?.into_iter().collect(),
        order: match query.order {
            Some(OrderWord::Asc) => TimelineOrder::OldestFirst,
            Some(OrderWord::Desc) | None => TimelineOrder::NewestFirst,
        },
    };
    let limit = url::limit(query.limit, TIMELINE_MAX)?;
    let cursor = url::cursor(query.cursor.as_deref())?;
    let device = path.resolve(&state).await?;
    let page = state
        .console
        .fleet
        .timeline(&device, &range, limit, cursor)
        .await?;
    Ok(Json(TimelineBody {
        entries: page.entries.into_iter().map(Into::into).collect(),
        cursor: page.next.map(|cursor| cursor.encode()),
    }))
}
