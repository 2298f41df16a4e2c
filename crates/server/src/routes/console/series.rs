//! `/v1/devices/{system}/{id}/series`: the numbers of a device over time, for charts.

use axum::Json;
use axum::extract::State;
use homeport_systems::fleet::{POINTS_DEFAULT, POINTS_MAX, Point, SeriesRange};
use homeport_systems::time::EpochMillis;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::devices::{AnyDevicePath, DevicePathParts, format_time};
use crate::auth::needs::Read;
use crate::auth::{Action, Authenticated, People};
use crate::openapi::schemas;
use crate::problem::Problem;
use crate::request::{RequestTimes, UrlQuery, check_order};
use crate::state::AppState;

/// Default range of a chart.
const RANGE_MS_DEFAULT: i64 = 24 * 60 * 60 * 1000;
/// Maximum number of names in a request.
const NAMES_MAX: usize = 64;

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct SeriesQuery {
    /// Start of the chart; default one day before its end
    #[param(schema_with = schemas::time, required = false)]
    from: Option<String>,
    /// End of the chart, not included; default now
    #[param(schema_with = schemas::time, required = false)]
    to: Option<String>,
    /// Maximum number of points of each series
    #[param(minimum = 1, maximum = 4000, default = 600)]
    points: Option<usize>,
    /// Comma-separated names of series; all if absent
    names: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DeviceSeries)]
pub(super) struct SeriesBody {
    /// RFC 3339
    from: String,
    /// RFC 3339
    to: String,
    /// Length of the interval of one point, in milliseconds
    bucket_ms: i64,
    /// Sorted by name
    series: Vec<OneSeriesBody>,
    /// Whether series are missing because there are more than 64 names
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Series)]
pub(super) struct OneSeriesBody {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<String>,
    /// Each point is the start of its interval (milliseconds since 1970), the minimum, maximum and mean value, and the
    /// number of values; intervals without values are omitted
    #[schema(value_type = Vec<Vec<f64>>)]
    points: Vec<PointBody>,
}

/// A point as an array, because a chart has many of them.
#[derive(Debug, Serialize)]
struct PointBody(i64, f64, f64, f64, u64);

impl From<Point> for PointBody {
    fn from(point: Point) -> Self {
        Self(point.at.0, point.min, point.max, point.mean, point.count)
    }
}

/// Get the numeric values of a device over time, downsampled for a chart
///
/// Each point has the minimum and maximum of its interval, so that no spike is lost.
#[utoipa::path(get, path = "/v1/devices/{system}/{id}/series", tag = "console", security(("admin_token" = [])),
    params(AnyDevicePath, SeriesQuery), responses(
    (status = 200, description = "All series with values", body = SeriesBody),
    (status = 404, description = "Device not found"),
))]
pub(super) async fn get_device_series(
    caller: Authenticated<People<Read>>,
    State(state): State<AppState>,
    DevicePathParts(device): DevicePathParts,
    UrlQuery(query): UrlQuery<SeriesQuery>,
) -> Result<Json<SeriesBody>, Problem> {
    caller.check_device(Action::Read, &device)?;
    let times = RequestTimes::new(&state, None);
    let (from, to) = times.bounds(query.from.as_deref(), query.to.as_deref())?;
    let to = to.unwrap_or(times.now());
    let from = from.unwrap_or(EpochMillis(to.0.saturating_sub(RANGE_MS_DEFAULT)));
    check_order(from, to)?;
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
        return Err(Problem::invalid(format!(
            "names must have at most {NAMES_MAX} entries"
        )));
    }
    let set = state.console.fleet.series(&device, &range).await?;
    let series = set.series.into_iter().map(|series| OneSeriesBody {
        name: series.name,
        unit: series.unit,
        points: series.points.into_iter().map(Into::into).collect(),
    });
    Ok(Json(SeriesBody {
        from: format_time(from),
        to: format_time(to),
        bucket_ms: set.bucket_ms,
        series: series.collect(),
        truncated: set.is_cut,
    }))
}
