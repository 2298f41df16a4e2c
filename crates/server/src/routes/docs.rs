//! The OpenAPI document at `/openapi.json`, and a page that shows it at `/docs`.

use axum::Router;
use axum::http::header;
use axum::response::Html;
use axum::routing::get;

use crate::state::AppState;

const PAGE: &str = include_str!("docs.html");

pub(super) fn router(document: utoipa::openapi::OpenApi) -> Router<AppState> {
    let json = document.to_json().unwrap_or_else(|_| "{}".to_owned());
    Router::new()
        .route(
            "/openapi.json",
            get(|| async move { ([(header::CONTENT_TYPE, "application/json")], json) }),
        )
        .route("/docs", get(|| async { Html(PAGE) }))
}
