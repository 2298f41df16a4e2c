//! Error responses. A route lists only the errors that are specific to it, and none of them with a body.

use std::collections::BTreeSet;

use axum::http::StatusCode;
use utoipa::ToSchema as _;
use utoipa::openapi::content::ContentBuilder;
use utoipa::openapi::path::Operation;
use utoipa::openapi::{Ref, RefOr, Response};

use super::{ADMIN_TOKEN, DEVICE_KEY, USER_TOKEN, accepts};
use crate::problem::{ErrorEnvelope, ProblemBody};
use crate::routes::answers_in_envelope;

/// Adds the errors that any operation of its kind can return, and the body of all errors.
pub(super) fn add_errors(operation: &mut Operation, path: &str) {
    let in_envelope = answers_in_envelope(path);
    let for_keys = accepts(operation, DEVICE_KEY);
    let for_operators = accepts(operation, ADMIN_TOKEN);
    let for_users = accepts(operation, USER_TOKEN);
    let is_restricted = for_keys || for_operators || for_users;
    let has_body = operation.request_body.is_some();
    let has_input = has_body
        || operation
            .parameters
            .as_ref()
            .is_some_and(|all| !all.is_empty());

    let mut add = |applies: bool, status: StatusCode, description: &str| {
        if applies {
            let responses = &mut operation.responses.responses;
            responses
                .entry(status.as_str().to_owned())
                .or_insert_with(|| Response::new(description).into());
        }
    };
    add(has_input, StatusCode::BAD_REQUEST, "Invalid request");
    add(
        is_restricted,
        StatusCode::UNAUTHORIZED,
        &missing_credentials(for_keys, for_operators, for_users),
    );
    add(
        for_keys || for_users,
        StatusCode::FORBIDDEN,
        "The credentials do not permit this",
    );
    add(
        for_operators,
        StatusCode::FORBIDDEN,
        "The role does not permit this, or a console session was used from outside of the console's page",
    );
    add(
        in_envelope,
        StatusCode::FORBIDDEN,
        "The credentials do not permit this",
    );
    add(
        in_envelope,
        StatusCode::NOT_FOUND,
        "Not found: `ERROR_NOTFOUND`",
    );
    add(
        in_envelope,
        StatusCode::CONFLICT,
        "Exists already, or no free id or timestamp is left: `DUPLICATE_RESOURCE`, `IDS_EXHAUSTED` or \
         `TIMESTAMP_OCCUPIED`",
    );
    add(
        for_keys,
        StatusCode::TOO_MANY_REQUESTS,
        "Too many requests with this API key, or too many wrong admin tokens",
    );
    add(
        for_operators,
        StatusCode::TOO_MANY_REQUESTS,
        "Too many wrong admin tokens from this address or in total",
    );
    add(true, StatusCode::REQUEST_TIMEOUT, "Request timeout");
    add(has_body, StatusCode::PAYLOAD_TOO_LARGE, "Body too large");
    add(true, StatusCode::INTERNAL_SERVER_ERROR, "Internal error");
    add(
        is_restricted,
        StatusCode::SERVICE_UNAVAILABLE,
        "The store is unavailable; retry later",
    );
    add_error_bodies(operation, in_envelope);
}

fn missing_credentials(for_keys: bool, for_operators: bool, for_users: bool) -> String {
    let accepted = [
        (for_keys, "API key"),
        (for_users, "user token"),
        (for_operators, "personal access token or admin token"),
    ];
    let names: BTreeSet<&str> = accepted
        .into_iter()
        .filter_map(|(is_accepted, name)| is_accepted.then_some(name))
        .collect();
    let names: Vec<&str> = names.into_iter().collect();
    format!("Missing or invalid {}", names.join(" or "))
}

/// Errors without a body get the one that all errors have.
fn add_error_bodies(operation: &mut Operation, in_envelope: bool) {
    let (media_type, schema) = if in_envelope {
        ("application/json", ErrorEnvelope::name())
    } else {
        ("application/problem+json", ProblemBody::name())
    };
    for (status, response) in &mut operation.responses.responses {
        let is_error = status.starts_with(['4', '5']);
        if let RefOr::T(response) = response
            && is_error
            && response.content.is_empty()
        {
            let schema = Ref::from_schema_name(schema.clone());
            let content = ContentBuilder::new().schema(Some(schema)).build();
            response
                .content
                .insert(media_type.to_owned(), content.into());
        }
    }
}
