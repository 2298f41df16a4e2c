//! Which page of a list a request asks for.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use homeport_systems::cursor::Cursor;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{ObjectBuilder, Type};

use super::address::UrlQuery;
use crate::problem::Problem;

/// Items of a page unless the client sets a limit.
const LIMIT_DEFAULT: usize = 100;

/// The parameters `limit` and `cursor` of a list whose pages have at most `LIMIT_MAX` items.
pub(crate) struct PageQuery<const LIMIT_MAX: usize> {
    pub(crate) limit: usize,
    pub(crate) cursor: Option<Cursor>,
}

#[derive(Deserialize)]
struct RawQuery {
    limit: Option<usize>,
    cursor: Option<String>,
}

impl<S: Send + Sync, const LIMIT_MAX: usize> FromRequestParts<S> for PageQuery<LIMIT_MAX> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let UrlQuery(query) = UrlQuery::<RawQuery>::from_request_parts(parts, state).await?;
        Ok(Self {
            limit: check_limit(query.limit, LIMIT_MAX)?,
            cursor: parse_cursor(query.cursor.as_deref())?,
        })
    }
}

impl<const LIMIT_MAX: usize> IntoParams for PageQuery<LIMIT_MAX> {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let limit = ObjectBuilder::new()
            .schema_type(Type::Integer)
            .minimum(Some(1))
            .maximum(Some(LIMIT_MAX))
            .default(Some(LIMIT_DEFAULT.into()));
        let cursor = ObjectBuilder::new().schema_type(Type::String);
        let parameter = |name, description, schema: ObjectBuilder| {
            ParameterBuilder::new()
                .name(name)
                .parameter_in(ParameterIn::Query)
                .description(Some(description))
                .schema(Some(schema))
                .build()
        };
        vec![
            parameter("limit", "Maximum number of items on a page", limit),
            parameter("cursor", "Cursor that the previous page returned", cursor),
        ]
    }
}

/// The limit that a client set, or the default.
pub(crate) fn check_limit(limit: Option<usize>, limit_max: usize) -> Result<usize, Problem> {
    let limit = limit.unwrap_or(LIMIT_DEFAULT);
    if (1..=limit_max).contains(&limit) {
        Ok(limit)
    } else {
        Err(Problem::invalid(format!("limit must be 1 to {limit_max}")))
    }
}

pub(crate) fn parse_cursor(text: Option<&str>) -> Result<Option<Cursor>, Problem> {
    Ok(text.map(Cursor::decode).transpose()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_have_bounds() {
        assert_eq!(check_limit(None, 1000).ok(), Some(LIMIT_DEFAULT));
        assert!(check_limit(Some(0), 1000).is_err());
        assert!(check_limit(Some(1001), 1000).is_err());
    }
}
