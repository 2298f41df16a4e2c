//! The parameters `from`, `to` and `order` of lists that are sorted by time.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use homeport_systems::time::{EpochMillis, Order};
use serde::Deserialize;
use utoipa::IntoParams;

use super::address::{UrlQuery, optional_time};
use crate::openapi::enums::OrderParameter;
use crate::openapi::schemas;
use crate::problem::Problem;

/// A range of time, both ends included, and the order of its items.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimeRange {
    pub(crate) from: Option<EpochMillis>,
    pub(crate) to: Option<EpochMillis>,
    order: Order,
}

/// The parameters as they are sent.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct RawQuery {
    /// Oldest time: milliseconds since 1970 or RFC 3339, included
    #[param(schema_with = schemas::time, required = false)]
    from: Option<String>,
    /// Newest time, included
    #[param(schema_with = schemas::time, required = false)]
    to: Option<String>,
    /// `desc` (default) lists the newest item first, `asc` the oldest
    #[param(inline)]
    order: Option<OrderParameter>,
}

impl TimeRange {
    /// A system's own value for the order.
    pub(crate) fn order<T>(&self, oldest_first: T, newest_first: T) -> T {
        match self.order {
            Order::OldestFirst => oldest_first,
            Order::NewestFirst => newest_first,
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for TimeRange {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let UrlQuery(query) = UrlQuery::<RawQuery>::from_request_parts(parts, state).await?;
        Ok(Self {
            from: optional_time("from", query.from.as_deref())?,
            to: optional_time("to", query.to.as_deref())?,
            order: query.order.map_or(Order::NewestFirst, |order| order.0),
        })
    }
}

impl IntoParams for TimeRange {
    fn into_params(
        parameter_in: impl Fn() -> Option<utoipa::openapi::path::ParameterIn>,
    ) -> Vec<utoipa::openapi::path::Parameter> {
        RawQuery::into_params(parameter_in)
    }
}
