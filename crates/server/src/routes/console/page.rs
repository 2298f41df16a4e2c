//! `/`: the page of the console and its assets, which are embedded in the binary.

use axum::Router;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;

use crate::routes::security_headers;
use crate::state::AppState;

/// A file of the console.
struct Asset {
    /// Path in `console/dist`.
    path: &'static str,
    etag: &'static str,
    bytes: &'static [u8],
}

include!(concat!(env!("OUT_DIR"), "/assets.rs"));

/// The page.
const INDEX: &str = "index.html";
/// Files in this folder have a digest in their names, so their content never changes.
const HASHED: &str = "assets/";

pub(super) fn router() -> Router<AppState> {
    let mut router = Router::new();
    for asset in ASSETS {
        let serve = move |headers: HeaderMap| async move { respond(asset, &headers) };
        if asset.path == INDEX {
            router = router.route("/", get(serve));
        }
        router = router.route(&format!("/{}", asset.path), get(serve));
    }
    router
}

fn respond(asset: &'static Asset, request: &HeaderMap) -> Response {
    let cached = request.get(header::IF_NONE_MATCH);
    let is_unchanged = cached.is_some_and(|tags| has_tag(tags, asset.etag));
    let mut response = match is_unchanged {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => asset.bytes.into_response(),
    };
    let headers = response.headers_mut();
    let caching = match asset.path.starts_with(HASHED) {
        true => "public, max-age=31536000, immutable",
        false => "no-cache",
    };
    for (name, value) in [
        (header::CONTENT_TYPE, media_type(asset.path)),
        (header::CACHE_CONTROL, caching),
        (header::ETAG, asset.etag),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    security_headers::add(headers);
    response
}

/// Whether a list of ETags has this one. A compressing proxy may have made it weak.
fn has_tag(list: &HeaderValue, tag: &str) -> bool {
    let list = list.to_str().unwrap_or_default();
    let mut tags = list.split(',').map(str::trim);
    tags.any(|listed| listed.strip_prefix("W/").unwrap_or(listed) == tag)
}

fn media_type(path: &str) -> &'static str {
    match path.rsplit_once('.').map_or("", |(_, ending)| ending) {
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "json" | "webmanifest" => "application/json",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weak_and_strong_tags_match() {
        let list = HeaderValue::from_static("\"a\", W/\"b\"");
        assert!(has_tag(&list, "\"a\""));
        assert!(has_tag(&list, "\"b\""));
        assert!(!has_tag(&list, "\"c\""));
    }
}
