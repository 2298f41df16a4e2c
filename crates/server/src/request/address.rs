//! Path parameters and queries, parsed into the systems' types.

use std::fmt::Display;
use std::str::FromStr;

use axum::extract::{FromRequestParts, Path, Query};
use axum::http::request::Parts;
use homeport_systems::time::EpochMillis;
use serde::de::DeserializeOwned;

use crate::problem::Problem;

/// The only path parameter of a route.
pub(crate) struct PathPart<T>(pub(crate) T);

impl<S: Send + Sync, T: FromStr<Err: Display>> FromRequestParts<S> for PathPart<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Path(text) = Path::<String>::from_request_parts(parts, state)
            .await
            .map_err(|_| Problem::invalid("invalid path"))?;
        text.parse()
            .map(Self)
            .map_err(|error: T::Err| Problem::invalid(error.to_string()))
    }
}

/// The query of a URL.
pub(crate) struct UrlQuery<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for UrlQuery<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        Query::from_request_parts(parts, state)
            .await
            .map(|Query(query)| Self(query))
            .map_err(|error| Problem::invalid(error.body_text()))
    }
}

/// Parses a time: milliseconds since 1970, or RFC 3339.
pub(crate) fn parse_time(text: &str) -> Option<EpochMillis> {
    if let Ok(millis) = text.parse() {
        return Some(EpochMillis(millis));
    }
    let timestamp = text.parse::<jiff::Timestamp>().ok()?;
    Some(EpochMillis(timestamp.as_millisecond()))
}

/// Parses the time of the parameter `name`, if it is given.
pub(crate) fn optional_time(
    name: &str,
    text: Option<&str>,
) -> Result<Option<EpochMillis>, Problem> {
    let Some(text) = text else { return Ok(None) };
    parse_time(text).map(Some).ok_or_else(|| {
        Problem::invalid(format!(
            "{name} must be milliseconds since 1970 or a time such as 2024-01-15T10:30:00Z"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_two_forms() {
        for (text, millis) in [
            ("1704067800000", 1_704_067_800_000),
            ("2024-01-01T00:10:00Z", 1_704_067_800_000),
            ("2024-01-01T01:10:00.5+01:00", 1_704_067_800_500),
        ] {
            let parsed = optional_time("from", Some(text));
            assert_eq!(parsed.ok(), Some(Some(EpochMillis(millis))), "{text}");
        }
        assert!(optional_time("from", Some("yesterday")).is_err());
    }
}
