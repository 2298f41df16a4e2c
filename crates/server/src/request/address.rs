//! Path parameters and queries, parsed into the systems' types.

use std::fmt::Display;
use std::str::FromStr;

use axum::extract::{FromRequestParts, Path, Query};
use axum::http::request::Parts;
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
