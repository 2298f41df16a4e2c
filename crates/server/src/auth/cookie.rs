//! The cookie of a console's session, and what makes it safe to take: another site can have a browser
//! send a cookie, but neither read an answer, nor set a header of its own, nor name itself as us.

use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};

use homeport_wire::listen::is_same_origin;

use super::text;
use crate::console::Sessions;
use crate::problem::Problem;

pub(crate) const NAME: &str = "homeport_session";
/// Must be there with whatever a session changes: a page of another site cannot send it without
/// asking first, and is refused then.
pub(crate) const HEADER: &str = "x-homeport-console";

/// Whether the request comes from an open session.
///
/// # Errors
/// When it does, and changes something, and may come from another site.
pub(crate) fn is_operator(parts: &Parts, sessions: &Sessions) -> Result<bool, Problem> {
    let Some(sent) = sent(&parts.headers) else {
        return Ok(false);
    };
    if sessions.expires_at(sent).is_none() {
        return Ok(false);
    }
    check_origin(parts)?;
    Ok(true)
}

/// The session that a request names, open or not.
pub(crate) fn sent(headers: &HeaderMap) -> Option<&str> {
    let cookies = headers.get_all(header::COOKIE).iter();
    cookies
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .find_map(|pair| pair.trim().strip_prefix(NAME)?.strip_prefix('='))
}

/// Refuses what changes something unless our own page sent it.
pub(crate) fn check_origin(parts: &Parts) -> Result<(), Problem> {
    let is_safe = matches!(parts.method, Method::GET | Method::HEAD | Method::OPTIONS);
    if is_safe || text(&parts.headers, HEADER) == Some("1") && is_ours(&parts.headers, &parts.uri) {
        return Ok(());
    }
    Err(Problem::new(
        StatusCode::FORBIDDEN,
        "CROSS_SITE",
        "a session changes something only from the console's own page, which sends X-Homeport-Console: 1",
    ))
}

/// Whether the page that sent the request is one of ours, as browsers tell.
pub(crate) fn is_ours(headers: &HeaderMap, uri: &Uri) -> bool {
    // Only sent to https and to this machine; where it is, nothing says it better.
    if let Some(site) = text(headers, "sec-fetch-site") {
        return site == "same-origin";
    }
    is_same_origin(headers, uri)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pairs = pairs.iter();
        pairs
            .map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value)))
            .collect()
    }

    #[test]
    fn the_session_is_found_among_other_cookies() {
        for (cookie, expected) in [
            ("homeport_session=abc", Some("abc")),
            ("theme=dark; homeport_session=abc; x=y", Some("abc")),
            ("homeport_sessions=abc", None),
            ("xhomeport_session=abc", None),
            ("", None),
        ] {
            assert_eq!(sent(&headers(&[("cookie", cookie)])), expected, "{cookie}");
        }
    }

    #[test]
    fn only_our_own_page_is_ours() {
        let uri = Uri::from_static("/v1/rules");
        for (pairs, expected) in [
            (&[("sec-fetch-site", "same-origin")][..], true),
            (&[("sec-fetch-site", "same-site")], false),
            (&[("sec-fetch-site", "cross-site")], false),
            // What the browser says about the site goes before what can be made to look alike.
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
            assert_eq!(is_ours(&headers(pairs), &uri), expected, "{pairs:?}");
        }
    }
}
