//! Security headers of every page and script, and of every response over TLS.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::Response;
use axum::{Router, middleware};

/// Pages load only our own files, cannot be framed, and submit forms only to this server.
const CONTENT_SECURITY_POLICY: &str = "default-src 'self'; script-src 'self'; style-src 'self'; \
    img-src 'self' data:; font-src 'self'; connect-src 'self'; object-src 'none'; base-uri 'none'; \
    form-action 'self'; frame-ancestors 'none'";

pub(super) fn add(headers: &mut HeaderMap) {
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

/// Makes browsers use TLS for every URL of this host for some time (HSTS).
pub fn with_hsts(router: Router, max_age_secs: u64) -> Router {
    let value = HeaderValue::try_from(format!("max-age={max_age_secs}"))
        .expect("digits are allowed in headers");
    router.layer(middleware::map_response(move |mut response: Response| {
        let value = value.clone();
        async move {
            let headers = response.headers_mut();
            headers.insert(header::STRICT_TRANSPORT_SECURITY, value);
            response
        }
    }))
}
