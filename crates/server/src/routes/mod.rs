//! All routes, in one list.

mod alerts;
pub(crate) mod api_keys;
mod chargers;
mod console;
mod docs;
mod health;
mod json;
mod push;
mod records;
pub(crate) mod rules;
mod security_headers;
mod sensors;
mod telemetry;
pub(crate) mod time;
mod topics;

use std::time::Duration;

use axum::extract::DefaultBodyLimit;
use axum::http::{StatusCode, header};
use axum::{Router, middleware};
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;
use tower_http::cors::{AllowOrigin, Any, CorsLayer};
use tower_http::timeout::TimeoutLayer;
use utoipa::openapi::content::ContentBuilder;
use utoipa::openapi::security::{
    ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme,
};
use utoipa::openapi::{OpenApi, Ref, ResponseBuilder};
use utoipa::{OpenApi as _, ToSchema as _};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::auth::cookie;
use crate::body::BODY_BYTES_MAX;
use crate::problem::{ErrorEnvelope, ProblemBody};
use crate::request_id;
use crate::state::AppState;

pub(crate) use records::answers_in_envelope;

/// No request takes longer.
const REQUEST_SECS_MAX: u64 = 30;
/// Name of the security scheme of devices in the OpenAPI document.
pub(crate) const DEVICE_KEY: &str = "device_key";
/// Name of the security scheme of operators.
pub(crate) const ADMIN_TOKEN: &str = "admin_token";
/// Name of the security scheme of app users.
pub(crate) const USER_TOKEN: &str = "user_token";
/// None of our schemes has any.
const NO_SCOPES: [&str; 0] = [];
/// Name of the security scheme of operators at the console.
const CONSOLE_SESSION: &str = "console_session";

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Homeport",
        description = "A device-data backend. Errors are RFC 9457 problems with a stable `code`; the \
            record store answers in an envelope of its own.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0")
    ),
    // Its route is wider than the document can say.
    paths(topics::publish_message),
    components(schemas(ProblemBody, ErrorEnvelope, sensors::data::ReadingBody<'static>, chargers::ingest::EventBody<'static>, alerts::ThresholdBody, alerts::AbsenceBody, alerts::RateBody)),
    modifiers(&Security)
)]
struct Document;

struct Security;

impl utoipa::Modify for Security {
    fn modify(&self, openapi: &mut utoipa::openapi::OpenApi) {
        let components = openapi.components.get_or_insert_default();
        let key = SecurityScheme::ApiKey(ApiKey::Header(ApiKeyValue::new("X-API-Key")));
        components.add_security_scheme(DEVICE_KEY, key);
        let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
        components.add_security_scheme(ADMIN_TOKEN, SecurityScheme::Http(bearer));
        let jwt = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .bearer_format("JWT")
            .build();
        components.add_security_scheme(USER_TOKEN, SecurityScheme::Http(jwt));
        let cookie = ApiKeyValue::with_description(
            cookie::NAME,
            "As good as the admin token; what changes something must also carry X-Homeport-Console: 1",
        );
        let cookie = SecurityScheme::ApiKey(ApiKey::Cookie(cookie));
        components.add_security_scheme(CONSOLE_SESSION, cookie);
    }
}

fn documented() -> OpenApiRouter<AppState> {
    OpenApiRouter::with_openapi(Document::openapi())
        .routes(routes!(sensors::register::register_device))
        .routes(routes!(sensors::data::ingest_readings))
        .routes(routes!(sensors::devices::list_devices))
        .routes(routes!(
            sensors::devices::get_device,
            sensors::devices::patch_device
        ))
        .routes(routes!(sensors::readings::get_latest_reading))
        .routes(routes!(sensors::readings::list_readings))
        .routes(routes!(chargers::fleet::list_chargers))
        .routes(routes!(
            chargers::ingest::ingest_events,
            chargers::events::list_fleet_events
        ))
        .routes(routes!(chargers::fleet::get_charger))
        .routes(routes!(chargers::events::list_events))
        .routes(routes!(
            chargers::state::get_state,
            chargers::state::patch_state
        ))
        .routes(routes!(chargers::daily::list_daily))
        .routes(routes!(chargers::daily::rebuild_daily))
        .merge(console::documented())
        .merge(alerts::documented())
        .merge(push::documented())
        .merge(records::documented())
        .merge(telemetry::documented())
        .merge(rules::documented())
        .routes(routes!(api_keys::create_api_key, api_keys::list_api_keys))
        .routes(routes!(api_keys::revoke_api_key))
        .routes(routes!(time::get_time))
        .routes(routes!(time::confirm_time))
        .routes(routes!(health::get_health))
        .routes(routes!(health::get_readiness))
        .routes(routes!(health::get_metrics))
}

/// The OpenAPI document of all routes.
#[must_use]
pub fn openapi() -> OpenApi {
    with_common_answers(documented().into_openapi())
}

/// Adds the answers that any operation can have, so that no route has to list them.
fn with_common_answers(mut document: OpenApi) -> OpenApi {
    let problem = |description: &str| {
        let schema = Ref::from_schema_name(ProblemBody::name());
        let content = ContentBuilder::new().schema(Some(schema)).build();
        ResponseBuilder::new()
            .description(description)
            .content("application/problem+json", content)
            .build()
    };
    for path in document.paths.paths.values_mut() {
        let operations = [
            &mut path.get,
            &mut path.put,
            &mut path.post,
            &mut path.patch,
            &mut path.delete,
        ];
        for operation in operations.into_iter().flatten() {
            // Wherever the admin token is good, a session of the console is.
            let alternatives = operation.security.get_or_insert_default();
            let is_for_operators =
                alternatives.contains(&SecurityRequirement::new(ADMIN_TOKEN, NO_SCOPES));
            if is_for_operators {
                alternatives.push(SecurityRequirement::new(CONSOLE_SESSION, NO_SCOPES));
            }
            let mut add = |status: StatusCode, description: &str| {
                let answers = &mut operation.responses.responses;
                answers
                    .entry(status.as_str().to_owned())
                    .or_insert_with(|| problem(description).into());
            };
            add(StatusCode::REQUEST_TIMEOUT, "It took too long");
            if is_for_operators {
                add(
                    StatusCode::TOO_MANY_REQUESTS,
                    "Too many wrong admin tokens from this address or in total",
                );
            }
            add(
                StatusCode::INTERNAL_SERVER_ERROR,
                "Something went wrong on the server",
            );
            if operation.request_body.is_some() {
                let answers = &mut operation.responses.responses;
                answers
                    .entry(StatusCode::PAYLOAD_TOO_LARGE.as_str().to_owned())
                    .or_insert_with(|| problem("The body is too large").into());
            }
        }
    }
    document
}

/// Whether pages of other sites may read the answers at a path: those of the API, which need a
/// credential that the page itself sends. Pages, metrics and health are for our own pages and for programs
/// that are not browsers, and people sign in on the console's own page.
fn is_open_to_other_sites(path: &str) -> bool {
    path.starts_with("/v1/") && path != "/v1/session"
}

/// The whole HTTP interface.
pub fn router(state: AppState) -> Router {
    let (router, document) = documented().split_for_parts();
    let document = with_common_answers(document);
    let cors = CorsLayer::new()
        .allow_origin(AllowOrigin::predicate(|_, request| {
            is_open_to_other_sites(request.uri.path())
        }))
        .allow_methods(Any)
        .allow_headers([
            header::AUTHORIZATION,
            header::CONTENT_TYPE,
            header::IF_MATCH,
        ])
        .expose_headers([header::ETAG]);
    router
        .merge(docs::router(document))
        .merge(topics::router())
        .merge(console::page())
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .layer(TimeoutLayer::with_status_code(
            StatusCode::REQUEST_TIMEOUT,
            Duration::from_secs(REQUEST_SECS_MAX),
        ))
        .layer(CatchPanicLayer::new())
        .layer(middleware::from_fn(request_id::layer))
        .layer(cors)
        .layer(CompressionLayer::new())
        .with_state(state)
}
