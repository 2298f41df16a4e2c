//! The OpenAPI document at `/openapi.json`, and a page that shows it at `/docs`. Style and script are separate
//! files, because the content security policy forbids inline code.

use axum::Router;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;

use super::security_headers;
use crate::state::AppState;

/// Path, media type and content of the page's files.
const FILES: [(&str, &str, &str); 3] = [
    (
        "/docs",
        "text/html; charset=utf-8",
        include_str!("page.html"),
    ),
    (
        "/docs/page.css",
        "text/css; charset=utf-8",
        include_str!("page.css"),
    ),
    (
        "/docs/page.js",
        "text/javascript; charset=utf-8",
        include_str!("page.js"),
    ),
];

pub(super) fn router(document: utoipa::openapi::OpenApi) -> Router<AppState> {
    let json = document.to_json().unwrap_or_else(|_| "{}".to_owned());
    let mut router = Router::new().route(
        "/openapi.json",
        get(|| async move { ([(header::CONTENT_TYPE, "application/json")], json) }),
    );
    for (path, media_type, text) in FILES {
        router = router.route(path, get(move || async move { file(media_type, text) }));
    }
    router
}

fn file(media_type: &'static str, text: &'static str) -> Response {
    let mut response = text.into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    security_headers::add(headers);
    response
}
