//! The list of all routes. A route belongs to the folder of its resource.

pub(crate) mod alerts;
pub(crate) mod api_keys;
pub(crate) mod chargers;
mod console;
mod docs;
mod health;
mod mqtt_clients;
pub(crate) mod people;
pub(crate) mod push;
mod records;
pub(crate) mod rules;
mod security_headers;
pub(crate) mod sensors;
mod telemetry;
pub(crate) mod time;
pub(crate) mod topics;

use std::sync::Arc;
use std::time::Duration;

use axum::extract::DefaultBodyLimit;
use axum::http::{StatusCode, header};
use axum::{Extension, Router, middleware};
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;
use tower_http::cors::{AllowOrigin, Any, CorsLayer};
use tower_http::timeout::TimeoutLayer;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::auth::RouteSystem;
use crate::openapi::{base_document, complete_document};
use crate::request::{BODY_BYTES_MAX, KnownParameters, reject_unknown_parameters};
use crate::request_id;
use crate::state::AppState;

pub(crate) use records::answers_in_envelope;
pub use security_headers::with_hsts;

/// Timeout of every request.
const REQUEST_SECS_MAX: u64 = 30;

fn documented() -> OpenApiRouter<AppState> {
    OpenApiRouter::with_openapi(base_document())
        .merge(sensors::documented().layer(system(sensors::SYSTEM)))
        .merge(chargers::documented().layer(system(chargers::SYSTEM)))
        .merge(console::documented())
        .merge(people::documented())
        .merge(alerts::documented())
        .merge(push::documented().layer(system(push::SYSTEM)))
        .merge(records::documented().layer(system(records::SYSTEM)))
        .merge(telemetry::documented().layer(system(telemetry::SYSTEM)))
        .merge(rules::documented())
        .routes(routes!(api_keys::create_api_key, api_keys::list_api_keys))
        .routes(routes!(api_keys::revoke_api_key))
        .routes(routes!(mqtt_clients::list_mqtt_clients))
        .routes(routes!(
            mqtt_clients::get_mqtt_client,
            mqtt_clients::end_mqtt_client
        ))
        .routes(routes!(time::get_time))
        .routes(routes!(time::confirm_time))
        .routes(routes!(health::get_health))
        .routes(routes!(health::get_readiness))
        .routes(routes!(health::get_metrics))
}

/// A layer that states the system of routes.
fn system(name: &'static str) -> Extension<RouteSystem> {
    Extension(RouteSystem(name))
}

/// The OpenAPI document of all routes.
#[must_use]
pub fn openapi() -> OpenApi {
    complete_document(documented().into_openapi())
}

/// Whether CORS allows other sites to read responses at a path. The API needs a credential that the page itself
/// sends. Pages, metrics, health checks and the sign-in are for same-origin pages and other programs.
fn allows_cors(path: &str) -> bool {
    path.starts_with("/v1/") && !people::is_for_own_pages(path)
}

/// The router of the HTTP port.
pub fn router(state: AppState) -> Router {
    let (router, document) = documented().split_for_parts();
    let document = complete_document(document);
    let known_parameters = Arc::new(KnownParameters::of(&document));
    let cors = CorsLayer::new()
        .allow_origin(AllowOrigin::predicate(|_, request| {
            allows_cors(request.uri.path())
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
        .merge(topics::router().layer(system(telemetry::SYSTEM)))
        .merge(console::page())
        .layer(middleware::from_fn_with_state(
            known_parameters,
            reject_unknown_parameters,
        ))
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
