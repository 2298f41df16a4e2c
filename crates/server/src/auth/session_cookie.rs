//! The session cookie of the console, and the checks against cross-site requests: another site can make a
//! browser send the cookie, but it cannot set our header or our origin.

use std::sync::Arc;

use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode, header};

use homeport_listen::is_same_origin;
use homeport_systems::people::{Access, CredentialKind, People};

use super::{header_text, is_tls};
use crate::problem::Problem;

pub(crate) const NAME: &str = "homeport_session";
/// Required in every request of a session that changes something. A page of another site needs a CORS
/// preflight to send it, and the preflight fails.
pub(crate) const HEADER: &str = "x-homeport-console";

/// The person whose session the request has.
///
/// # Errors
/// When it has one, changes something, and may come from another site, or the store fails.
pub(crate) async fn verify(parts: &Parts, people: &People) -> Result<Option<Arc<Access>>, Problem> {
    let Some(token) = session_token(&parts.headers) else {
        return Ok(None);
    };
    let Some(access) = people.verify(token, CredentialKind::Session).await? else {
        return Ok(None);
    };
    check_origin(parts)?;
    Ok(Some(access))
}

/// The session token that a request sends, valid or not.
pub(crate) fn session_token(headers: &HeaderMap) -> Option<&str> {
    let cookies = headers.get_all(header::COOKIE).iter();
    cookies
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .find_map(|pair| pair.trim().strip_prefix(NAME)?.strip_prefix('='))
}

/// Rejects requests that change something unless the console's page sent them.
pub(crate) fn check_origin(parts: &Parts) -> Result<(), Problem> {
    let is_safe = matches!(parts.method, Method::GET | Method::HEAD | Method::OPTIONS);
    if is_safe || header_text(&parts.headers, HEADER) == Some("1") && is_from_our_page(parts) {
        return Ok(());
    }
    Err(Problem::new(
        StatusCode::FORBIDDEN,
        "CROSS_SITE",
        "a console session can change something only from the console's page, which sends X-Homeport-Console: 1",
    ))
}

/// Whether the browser says that a page of this server sent the request.
pub(crate) fn is_from_our_page(parts: &Parts) -> bool {
    let headers = &parts.headers;
    // Browsers send this header over HTTPS and to localhost only. It is the most reliable one.
    if let Some(site) = header_text(headers, "sec-fetch-site") {
        return site == "same-origin";
    }
    is_same_origin(headers, &parts.uri, is_tls(&parts.extensions))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::{HeaderValue, Request};

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pairs = pairs.iter();
        pairs
            .map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value)))
            .collect()
    }

    #[test]
    fn session_is_found_among_other_cookies() {
        for (cookie, expected) in [
            ("homeport_session=abc", Some("abc")),
            ("theme=dark; homeport_session=abc; x=y", Some("abc")),
            ("homeport_sessions=abc", None),
            ("xhomeport_session=abc", None),
            ("", None),
        ] {
            assert_eq!(
                session_token(&headers(&[("cookie", cookie)])),
                expected,
                "{cookie}"
            );
        }
    }

    #[test]
    fn only_our_own_page_is_from_our_page() {
        for (pairs, expected) in [
            (&[("sec-fetch-site", "same-origin")][..], true),
            (&[("sec-fetch-site", "same-site")], false),
            (&[("sec-fetch-site", "cross-site")], false),
            // `Sec-Fetch-Site` takes precedence over `Origin` and `Host`.
            (
                &[
                    ("sec-fetch-site", "cross-site"),
                    ("origin", "http://a:1"),
                    ("host", "a:1"),
                ],
                false,
            ),
            (
                &[
                    ("origin", "http://hub.local:8080"),
                    ("host", "hub.local:8080"),
                ],
                true,
            ),
            (
                &[("origin", "http://hub.local"), ("host", "hub.local:8080")],
                false,
            ),
            (
                &[
                    ("origin", "http://evil.example"),
                    ("host", "hub.local:8080"),
                ],
                false,
            ),
            (&[("origin", "null"), ("host", "hub.local:8080")], false),
            (&[("host", "hub.local:8080")], false),
        ] {
            let (mut parts, ()) = Request::new(()).into_parts();
            parts.headers = headers(pairs);
            assert_eq!(is_from_our_page(&parts), expected, "{pairs:?}");
        }
    }
}
