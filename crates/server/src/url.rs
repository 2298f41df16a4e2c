//! What comes in through addresses: ids, times, limits, cursors.

use std::str::FromStr;

use axum::extract::{FromRequestParts, Path, Query};
use axum::http::request::Parts;
use homeport_systems::cursor::Cursor;
use homeport_systems::time::EpochMillis;
use serde::de::DeserializeOwned;

use crate::problem::Problem;

/// Items of a page when the client does not say.
pub(crate) const LIMIT_DEFAULT: usize = 100;

/// One part of the path, as a type of the systems.
pub(crate) struct PathPart<T>(pub(crate) T);

impl<S: Send + Sync, T: FromStr<Err: std::fmt::Display>> FromRequestParts<S> for PathPart<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Path(text) = Path::<String>::from_request_parts(parts, state)
            .await
            .map_err(|_| Problem::invalid("the address cannot be understood"))?;
        text.parse()
            .map(Self)
            .map_err(|error: T::Err| Problem::invalid(error.to_string()))
    }
}

/// The query of an address, with errors in our own form.
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

/// Reads a time: milliseconds since the epoch, or RFC 3339.
pub(crate) fn parse_time(text: &str) -> Option<EpochMillis> {
    if let Ok(millis) = text.parse() {
        return Some(EpochMillis(millis));
    }
    let timestamp = text.parse::<jiff::Timestamp>().ok()?;
    Some(EpochMillis(timestamp.as_millisecond()))
}

/// Reads a time of an address.
pub(crate) fn time(name: &str, text: &str) -> Result<EpochMillis, Problem> {
    parse_time(text).ok_or_else(|| {
        Problem::invalid(format!(
            "{name} must be milliseconds since 1970 or a time as 2024-01-15T10:30:00Z"
        ))
    })
}

pub(crate) fn limit(limit: Option<usize>, max: usize) -> Result<usize, Problem> {
    let limit = limit.unwrap_or(LIMIT_DEFAULT);
    if (1..=max).contains(&limit) {
        Ok(limit)
    } else {
        Err(Problem::invalid(format!("limit must be 1 to {max}")))
    }
}

pub(crate) fn cursor(text: Option<&str>) -> Result<Option<Cursor>, Problem> {
    Ok(text.map(Cursor::decode).transpose()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_taken_in_both_forms() {
        for (text, millis) in [
            ("1704067800000", 1_704_067_800_000),
            ("2024-01-01T00:10:00Z", 1_704_067_800_000),
            ("2024-01-01T01:10:00.5+01:00", 1_704_067_800_500),
        ] {
            assert_eq!(time("from", text).ok(), Some(EpochMillis(millis)), "{text}");
        }
        assert!(time("from", "yesterday").is_err());
    }

    #[test]
    fn limits_have_bounds() {
        assert_eq!(limit(None, 1000).ok(), Some(LIMIT_DEFAULT));
        assert!(limit(Some(0), 1000).is_err());
        assert!(limit(Some(1001), 1000).is_err());
    }
}
