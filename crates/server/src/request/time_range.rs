//! The parameters `from`, `to` and `order` of lists that are sorted by time.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use homeport_systems::cursor::Cursor;
use homeport_systems::time::{EpochMillis, Order};
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa::openapi::path::{Parameter, ParameterIn};

use super::address::UrlQuery;
use super::page::parse_cursor;
use super::times::RequestTimes;
use crate::openapi::enums::OrderParameter;
use crate::openapi::schemas;
use crate::problem::Problem;
use crate::state::AppState;

/// A range of time, both ends included, and the order of its items.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimeRange<const MOUNTAIN_TIME: bool = false> {
    pub(crate) from: Option<EpochMillis>,
    pub(crate) to: Option<EpochMillis>,
    order: Order,
    times: RequestTimes,
}

/// A range whose ends may be wall clocks of America/Denver.
pub(crate) type MountainTimeRange = TimeRange<true>;

/// The parameters as they are sent.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct RawQuery {
    /// Oldest time, included
    #[param(schema_with = schemas::time, required = false)]
    from: Option<String>,
    /// Newest time, included
    #[param(schema_with = schemas::time, required = false)]
    to: Option<String>,
    /// `desc` (default) lists the newest item first, `asc` the oldest
    #[param(inline)]
    order: Option<OrderParameter>,
    #[param(ignore)]
    cursor: Option<String>,
}

impl<const MOUNTAIN_TIME: bool> TimeRange<MOUNTAIN_TIME> {
    /// A system's own value for the order.
    pub(crate) fn order<T>(&self, oldest_first: T, newest_first: T) -> T {
        match self.order {
            Order::OldestFirst => oldest_first,
            Order::NewestFirst => newest_first,
        }
    }

    /// The cursor of the next page of the same range.
    pub(crate) fn keep_now(&self, next: Option<Cursor>) -> Option<Cursor> {
        self.times.keep_now(next)
    }

    /// The same cursor as text.
    pub(crate) fn next_cursor(&self, next: Option<Cursor>) -> Option<String> {
        self.times.next_cursor(next)
    }
}

impl<const MOUNTAIN_TIME: bool> FromRequestParts<AppState> for TimeRange<MOUNTAIN_TIME> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Problem> {
        let UrlQuery(query) = UrlQuery::<RawQuery>::from_request_parts(parts, state).await?;
        let cursor = parse_cursor(query.cursor.as_deref())?;
        let mut times = RequestTimes::new(state, cursor.as_ref());
        if MOUNTAIN_TIME {
            times = times.or_mountain_time();
        }
        let (from, to) = times.bounds(query.from.as_deref(), query.to.as_deref())?;
        Ok(Self {
            from,
            to,
            order: query.order.map_or(Order::NewestFirst, |order| order.0),
            times,
        })
    }
}

impl<const MOUNTAIN_TIME: bool> IntoParams for TimeRange<MOUNTAIN_TIME> {
    fn into_params(parameter_in: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let mut parameters = RawQuery::into_params(parameter_in);
        for parameter in &mut parameters {
            if MOUNTAIN_TIME && parameter.name != "order" {
                parameter.schema = Some(schemas::chargers::time_or_wall_clock());
            }
        }
        parameters
    }
}
