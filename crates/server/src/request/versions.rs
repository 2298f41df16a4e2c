//! Versions of stored documents: in `ETag`, `If-Match` and paths.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};

use crate::problem::Problem;

/// A version as the `ETag` of a response.
pub(crate) fn entity_tag(version: i64) -> [(HeaderName, HeaderValue); 1] {
    // Digits in quotes are always a valid header value.
    let tag = HeaderValue::try_from(format!("\"{version}\""))
        .unwrap_or(HeaderValue::from_static("\"0\""));
    [(header::ETAG, tag)]
}

/// The version in `If-Match`.
pub(crate) fn expected_version(headers: &HeaderMap) -> Result<Option<i64>, Problem> {
    let Some(value) = headers.get(header::IF_MATCH) else {
        return Ok(None);
    };
    let text = value.to_str().unwrap_or_default().trim();
    let version = text
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'))
        .filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))
        .and_then(|text| text.parse().ok());
    version
        .map(Some)
        .ok_or_else(|| Problem::invalid("If-Match must be an ETag such as \"3\""))
}

/// A version in a path.
pub(crate) fn parse_version(text: &str) -> Result<i64, Problem> {
    text.parse()
        .ok()
        .filter(|version| *version > 0)
        .ok_or_else(|| Problem::invalid("version must be a whole number of at least 1"))
}
