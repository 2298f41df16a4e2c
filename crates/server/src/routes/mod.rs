//! All routes, in one list.

mod api_keys;
mod docs;
mod health;
mod sensors;

use std::time::Duration;

use axum::extract::DefaultBodyLimit;
use axum::http::{StatusCode, header};
use axum::{Router, middleware};
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;
use tower_http::cors::{Any, CorsLayer};
use tower_http::timeout::TimeoutLayer;
use utoipa::OpenApi;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::body::BODY_BYTES_MAX;
use crate::problem::ProblemBody;
use crate::request_id;
use crate::state::AppState;

/// No request takes longer.
const REQUEST_SECS_MAX: u64 = 30;
/// Name of the security scheme of devices in the OpenAPI document.
pub(crate) const DEVICE_KEY: &str = "device_key";
/// Name of the security scheme of operators.
pub(crate) const ADMIN_TOKEN: &str = "admin_token";

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Homeport",
        description = "A device-data backend. Errors are RFC 9457 problems with a stable `code`.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0")
    ),
    components(schemas(ProblemBody)),
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
        .routes(routes!(api_keys::create_api_key, api_keys::list_api_keys))
        .routes(routes!(api_keys::revoke_api_key))
        .routes(routes!(health::get_health))
        .routes(routes!(health::get_readiness))
        .routes(routes!(health::get_metrics))
}

/// The OpenAPI document of all routes.
#[must_use]
pub fn openapi() -> utoipa::openapi::OpenApi {
    documented().into_openapi()
}

/// The whole HTTP interface.
pub fn router(state: AppState) -> Router {
    let (router, document) = documented().split_for_parts();
    let cors = CorsLayer::new()
        .allow_origin(Any)
        .allow_methods(Any)
        .allow_headers([header::AUTHORIZATION, header::CONTENT_TYPE]);
    router
        .merge(docs::router(document))
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
