//! The OpenAPI document: what the routes do not say themselves is added here, once for all of them.

pub(crate) mod enums;
mod responses;
pub(crate) mod schemas;

use utoipa::OpenApi as _;
use utoipa::openapi::path::{Operation, ParameterIn, PathItem};
use utoipa::openapi::security::{
    ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme,
};
use utoipa::openapi::{OpenApi, RefOr, Required};

use crate::auth::session_cookie;
use crate::problem::{ErrorEnvelope, ProblemBody};
use crate::routes::{alerts, chargers, sensors, topics};

/// Security scheme of API keys.
const DEVICE_KEY: &str = "device_key";
/// Security scheme of bearer tokens: personal access tokens and the admin token.
const ADMIN_TOKEN: &str = "admin_token";
/// Security scheme of app users.
const USER_TOKEN: &str = "user_token";
/// Security scheme of people in the console.
const CONSOLE_SESSION: &str = "console_session";

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Homeport",
        description = "A backend for device data. Errors are RFC 9457 problems with a stable `code`; the \
            record store answers in its own envelope.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0")
    ),
    servers((url = "/", description = "This server")),
    // The router accepts slashes in the topic, which OpenAPI cannot describe.
    paths(topics::publish_message),
    components(schemas(
        ProblemBody,
        ErrorEnvelope,
        sensors::ReadingBody<'static>,
        chargers::EventBody<'static>,
        schemas::uplinks::UplinkSchema,
        alerts::ThresholdBody,
        alerts::AbsenceBody,
        alerts::RateBody,
        alerts::EqualityBody,
        alerts::ChangeBody,
        alerts::FaultBody
    )),
    modifiers(&SecuritySchemes)
)]
struct Document;

struct SecuritySchemes;

impl utoipa::Modify for SecuritySchemes {
    fn modify(&self, openapi: &mut OpenApi) {
        let key = ApiKeyValue::with_description("X-API-Key", "An API key of one system");
        let bearer = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some(
                "A personal access token (`hpt_…`), or the admin token",
            ))
            .build();
        let jwt = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .bearer_format("JWT")
            .description(Some("The JWT of an app user"))
            .build();
        let cookie = ApiKeyValue::with_description(
            session_cookie::NAME,
            "Session of a person or of the admin token; requests that change something must also send X-Homeport-Console: 1",
        );
        let components = openapi.components.get_or_insert_default();
        for (name, scheme) in [
            (DEVICE_KEY, SecurityScheme::ApiKey(ApiKey::Header(key))),
            (ADMIN_TOKEN, SecurityScheme::Http(bearer)),
            (USER_TOKEN, SecurityScheme::Http(jwt)),
            (
                CONSOLE_SESSION,
                SecurityScheme::ApiKey(ApiKey::Cookie(cookie)),
            ),
        ] {
            components.add_security_scheme(name, scheme);
        }
    }
}

/// The document without routes.
pub(crate) fn base_document() -> OpenApi {
    Document::openapi()
}

/// Adds to every operation what follows from its path and its credentials.
pub(crate) fn complete_document(mut document: OpenApi) -> OpenApi {
    for (path, item) in &mut document.paths.paths {
        for operation in operations(item) {
            require_path_parameters(operation);
            allow_console_session(operation);
            responses::add_errors(operation, path);
        }
    }
    document
}

/// The operations of a path.
fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    [
        &mut item.get,
        &mut item.put,
        &mut item.post,
        &mut item.patch,
        &mut item.delete,
    ]
    .into_iter()
    .filter_map(Option::as_mut)
}

/// Parameters with a hand-written schema count as optional for the derive macro; in a path none is.
fn require_path_parameters(operation: &mut Operation) {
    for parameter in operation.parameters.iter_mut().flatten() {
        if let RefOr::T(parameter) = parameter
            && parameter.parameter_in == ParameterIn::Path
        {
            parameter.required = Required::True;
        }
    }
}

/// A console session is accepted wherever the admin token is.
fn allow_console_session(operation: &mut Operation) {
    if accepts(operation, ADMIN_TOKEN) {
        let alternatives = operation.security.get_or_insert_default();
        alternatives.push(requirement(CONSOLE_SESSION));
    }
}

fn accepts(operation: &Operation, scheme: &str) -> bool {
    let mut alternatives = operation.security.iter().flatten();
    alternatives.any(|alternative| *alternative == requirement(scheme))
}

fn requirement(scheme: &str) -> SecurityRequirement {
    const NO_SCOPES: [&str; 0] = [];
    SecurityRequirement::new(scheme, NO_SCOPES)
}
