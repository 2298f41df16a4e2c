//! Redirects clients that speak plain HTTP to the port with TLS.

use std::convert::Infallible;
use std::future::Future;

use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode, Uri};
use tokio::net::TcpListener;

use crate::origins::{host_name, named_hosts};
use crate::{Limits, serve};

/// The port that URLs with `https://` leave out.
const HTTPS_PORT: u16 = 443;

/// Answers every request on `listener` with a redirect (308) to the same path at `https_port`, until `stop` completes.
pub async fn serve_redirects(
    listener: TcpListener,
    limits: Limits,
    https_port: u16,
    stop: impl Future<Output = ()>,
) {
    let redirect = service_fn(move |request: Request<Incoming>| async move {
        let target = target(request.headers(), request.uri(), https_port);
        Ok::<_, Infallible>(response(target))
    });
    serve(listener, None, limits, redirect, stop).await;
}

/// Where a request is redirected to. `None` if it names no host, or more than one.
fn target(headers: &HeaderMap, uri: &Uri, https_port: u16) -> Option<HeaderValue> {
    let mut hosts = named_hosts(headers, uri).map(|host| Some((host, host_name(host)?)));
    let (host, name) = hosts.next()??;
    if hosts.any(|other| other.is_none_or(|(_, other)| other != name)) {
        return None;
    }
    let name = match host.starts_with('[') {
        true => format!("[{name}]"),
        false => name.to_owned(),
    };
    let port = match https_port {
        HTTPS_PORT => String::new(),
        port => format!(":{port}"),
    };
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    HeaderValue::try_from(format!("https://{name}{port}{path}")).ok()
}

fn response(target: Option<HeaderValue>) -> Response<String> {
    let (status, text) = match target {
        Some(_) => (
            StatusCode::PERMANENT_REDIRECT,
            "this server speaks TLS: use https://\n",
        ),
        None => (StatusCode::BAD_REQUEST, "the Host header is invalid\n"),
    };
    let mut response = Response::new(text.to_owned());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    if let Some(target) = target {
        headers.insert(LOCATION, target);
    }
    response
}

#[cfg(test)]
mod tests {
    use hyper::header::HOST;

    use super::*;

    #[test]
    fn redirects_keep_host_path_and_query() {
        for (host, path, port, expected) in [
            ("hub.local", "/a?b=c", 443, Some("https://hub.local/a?b=c")),
            ("hub.local:80", "/", 8443, Some("https://hub.local:8443/")),
            ("[::1]:80", "/", 443, Some("https://[::1]/")),
            (
                "hub.local",
                "http://hub.local/a",
                443,
                Some("https://hub.local/a"),
            ),
            ("hub.local", "http://evil.example/", 443, None),
            ("me@hub.local", "/", 443, None),
            ("hub.local/x", "/", 443, None),
            ("", "/", 443, None),
        ] {
            let headers = HeaderMap::from_iter([(HOST, HeaderValue::from_static(host))]);
            let found = target(&headers, &path.parse().expect("a URI"), port);
            let found = found.as_ref().and_then(|found| found.to_str().ok());
            assert_eq!(found, expected, "{host} {path}");
        }
    }
}
