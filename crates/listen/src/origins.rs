//! Checks of `Host` and `Origin`.
//!
//! A web page can send requests to any address that its browser reaches, but it cannot forge its `Origin`. A page whose own host
//! name resolves to this machine (DNS rebinding) cannot hide that name: it is in `Host`.

use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use hyper::Uri;
use hyper::header::{HOST, HeaderMap, HeaderValue, ORIGIN};

/// Allowed host names and origins of web pages besides our own, separated by commas.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AllowedOrigins {
    /// In lower case, without a port.
    hosts: Vec<String>,
    /// In lower case, as browsers send them.
    origins: Vec<String>,
}

/// The text is neither a host nor an origin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is neither a host like db.example.com or [2001:db8::1] nor an origin like https://app.example.com"
)]
pub struct InvalidOrigin(String);

/// The hosts that requests may name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hosts {
    /// Any host, for ports where every request is authenticated.
    Any,
    /// Loopback addresses, `localhost` and listed hosts.
    LocalOrListed,
}

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OriginRefused {
    #[error(
        "the Host header is not localhost or a loopback address; add the host to network.allowed_origins, or require credentials on this port"
    )]
    Host,
    #[error("web pages of this origin are not allowed; add the origin to network.allowed_origins")]
    Origin,
}

impl FromStr for AllowedOrigins {
    type Err = InvalidOrigin;

    fn from_str(text: &str) -> Result<Self, InvalidOrigin> {
        let mut allowed = Self::default();
        let entries = text.split(',').map(str::trim);
        for entry in entries.filter(|entry| !entry.is_empty()) {
            let invalid = || InvalidOrigin(entry.to_owned());
            let entry = entry.to_ascii_lowercase();
            match entry.split_once("://") {
                Some((scheme, authority)) if !scheme.is_empty() => {
                    host_name(authority).ok_or_else(invalid)?;
                    allowed.origins.push(entry);
                }
                Some(_) => return Err(invalid()),
                None => {
                    let name = host_name(&entry).ok_or_else(invalid)?;
                    allowed.hosts.push(name.to_owned());
                }
            }
        }
        Ok(allowed)
    }
}

impl AllowedOrigins {
    /// Checks a request. `is_tls` states whether it came over TLS. Returns the origin of the web page that sent it, if there is one.
    ///
    /// # Errors
    /// If the request must be rejected.
    pub fn check<'a>(
        &self,
        headers: &'a HeaderMap,
        uri: &Uri,
        hosts: Hosts,
        is_tls: bool,
    ) -> Result<Option<&'a HeaderValue>, OriginRefused> {
        if hosts == Hosts::LocalOrListed {
            let mut named = named_hosts(headers, uri).peekable();
            if named.peek().is_none() || !named.all(|host| self.is_host_allowed(host)) {
                return Err(OriginRefused::Host);
            }
        }
        let mut sent = headers.get_all(ORIGIN).iter();
        let Some(origin) = sent.next() else {
            return Ok(None);
        };
        let text = origin.to_str().unwrap_or_default();
        let is_listed = self
            .origins
            .iter()
            .any(|listed| listed.eq_ignore_ascii_case(text));
        if sent.next().is_some() || !(is_listed || is_same_origin(headers, uri, is_tls)) {
            return Err(OriginRefused::Origin);
        }
        Ok(Some(origin))
    }

    fn is_host_allowed(&self, host: &str) -> bool {
        let Some(name) = host_name(host) else {
            return false;
        };
        let mut listed = self.hosts.iter();
        is_loopback(name) || listed.any(|listed| listed.eq_ignore_ascii_case(name))
    }
}

/// Whether the web page that sent a request was loaded from the host that the request names. A request over TLS must come from a
/// page that was loaded over TLS too: whoever controls the network can forge a page of `http://` with the same host. Without TLS,
/// a proxy may have added it, so that both schemes are possible.
#[must_use]
pub fn is_same_origin(headers: &HeaderMap, uri: &Uri, is_tls: bool) -> bool {
    let origin = headers.get(ORIGIN).and_then(|origin| origin.to_str().ok());
    let origin = origin.and_then(|origin| origin.split_once("://"));
    match (origin, named_hosts(headers, uri).next()) {
        (Some((scheme, origin)), Some(host)) => {
            (!is_tls || scheme.eq_ignore_ascii_case("https")) && origin.eq_ignore_ascii_case(host)
        }
        _ => false,
    }
}

/// The hosts that a request names: in `Host`, and in its target with HTTP/2 or in absolute form.
pub(crate) fn named_hosts<'a>(
    headers: &'a HeaderMap,
    uri: &'a Uri,
) -> impl Iterator<Item = &'a str> {
    let in_headers = headers.get_all(HOST).iter();
    in_headers
        // A value that is not text becomes the empty host, which is never allowed.
        .map(|host| host.to_str().unwrap_or_default())
        .chain(uri.authority().map(|authority| authority.as_str()))
}

/// The name in `name`, `name:port`, `[IPv6]` or `[IPv6]:port`, without the dot that may end a name. `None` for
/// anything else, such as a user name before the host.
pub(crate) fn host_name(host: &str) -> Option<&str> {
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => {
            let (address, rest) = rest.split_once(']')?;
            address.parse::<Ipv6Addr>().ok()?;
            match rest {
                "" => (address, ""),
                rest => (address, rest.strip_prefix(':')?),
            }
        }
        None => {
            let (name, port) = host.split_once(':').unwrap_or((host, ""));
            let name = name.strip_suffix('.').unwrap_or(name);
            let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
            (name.bytes().all(is_name).then_some(name)?, port)
        }
    };
    let is_valid = !name.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    is_valid.then_some(name)
}

fn is_loopback(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    lower == "localhost"
        || lower.ends_with(".localhost")
        || name
            .parse::<IpAddr>()
            .is_ok_and(|address| address.to_canonical().is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(host: &'static str, origin: Option<&'static str>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, HeaderValue::from_static(host));
        if let Some(origin) = origin {
            headers.insert(ORIGIN, HeaderValue::from_static(origin));
        }
        headers
    }

    #[test]
    fn only_local_and_listed_hosts_are_allowed() {
        let allowed: AllowedOrigins = "db.example.com.:80, [2001:db8::1], https://app.example.com"
            .parse()
            .expect("a list");
        let uri = Uri::from_static("/");
        for (host, expected) in [
            ("localhost:8000", true),
            ("LOCALHOST", true),
            ("db.localhost:8000", true),
            ("127.0.0.1:8000", true),
            ("127.9.9.9", true),
            ("[::1]:8000", true),
            ("[::1]", true),
            ("[::ffff:127.0.0.1]:8000", true),
            ("localhost.:8000", true),
            ("DB.example.com.:8000", true),
            ("db.example.com:8000", true),
            ("[2001:db8::1]:8000", true),
            ("app.example.com", false),
            ("evil.example:8000", false),
            ("localhost.evil.example", false),
            ("notlocalhost", false),
            ("192.0.2.1:8000", false),
            ("0.0.0.0:8000", false),
            ("[::]:8000", false),
            ("[2001:db8::2]", false),
            ("2001", false),
            ("localhost:8000@evil.example", false),
            ("localhost@evil.example", false),
            ("localhost:evil.example", false),
            ("[::1].evil.example", false),
            ("[::1]evil.example", false),
            ("[::1", false),
            ("localhost..", false),
            (":8000", false),
            (".", false),
            ("", false),
        ] {
            let headers = headers(host, None);
            let outcome = allowed.check(&headers, &uri, Hosts::LocalOrListed, false);
            assert_eq!(outcome.is_ok(), expected, "{host}");
            assert!(
                allowed.check(&headers, &uri, Hosts::Any, false).is_ok(),
                "{host}"
            );
        }
        let none = HeaderMap::new();
        let outcome = allowed.check(&none, &uri, Hosts::LocalOrListed, false);
        assert_eq!(outcome, Err(OriginRefused::Host));
        let mut two = headers("localhost", None);
        two.append(HOST, HeaderValue::from_static("evil.example"));
        assert!(
            allowed
                .check(&two, &uri, Hosts::LocalOrListed, false)
                .is_err()
        );
        let local = headers("localhost", None);
        for (target, expected) in [
            ("http://localhost:8000/", true),
            ("http://evil.example/", false),
            ("http://localhost@evil.example/", false),
        ] {
            let outcome = allowed.check(
                &local,
                &target.parse().expect("a URI"),
                Hosts::LocalOrListed,
                false,
            );
            assert_eq!(outcome.is_ok(), expected, "{target}");
        }
    }

    #[test]
    fn only_own_and_listed_pages_are_allowed() {
        let allowed: AllowedOrigins = "https://App.example.com,http://localhost:3000"
            .parse()
            .expect("a list");
        let uri = Uri::from_static("/");
        for (origin, expected) in [
            ("https://app.example.com", true),
            ("http://localhost:3000", true),
            ("http://localhost:8000", true),
            ("http://app.example.com", false),
            ("https://app.example.com:444", false),
            ("http://localhost:3001", false),
            ("https://evil.example", false),
            ("null", false),
        ] {
            let headers = headers("localhost:8000", Some(origin));
            let outcome = allowed.check(&headers, &uri, Hosts::Any, false);
            assert_eq!(outcome.is_ok(), expected, "{origin}");
        }
    }

    #[test]
    fn page_without_tls_is_another_origin() {
        let uri = Uri::from_static("/");
        for (origin, is_tls, expected) in [
            ("https://hub.local:8080", true, true),
            ("http://hub.local:8080", true, false),
            ("https://hub.local", true, false),
            // Behind a proxy that terminates TLS, and without one.
            ("https://hub.local:8080", false, true),
            ("http://hub.local:8080", false, true),
        ] {
            let headers = headers("hub.local:8080", Some(origin));
            let outcome = is_same_origin(&headers, &uri, is_tls);
            assert_eq!(outcome, expected, "{origin} {is_tls}");
        }
    }

    #[test]
    fn lists_hold_hosts_and_origins_only() {
        for invalid in [
            "https://",
            "https://a/b",
            "a b",
            "://a",
            "http://a?b",
            "*",
            "https://me@a",
            "2001:db8::1",
            "a:b",
        ] {
            assert!(invalid.parse::<AllowedOrigins>().is_err(), "{invalid}");
        }
        assert_eq!("".parse(), Ok(AllowedOrigins::default()));
    }
}
