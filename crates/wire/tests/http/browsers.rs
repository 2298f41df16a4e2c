//! Requests of web pages: which hosts and origins are allowed.

use bytes::Bytes;
use homeport_wire::{Config, Credential};
use http_body_util::{BodyExt as _, Full};
use hyper::header::{HOST, HeaderValue, ORIGIN};
use hyper::{Method, Request, Response};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::server::Server;

async fn send(
    server: &Server,
    headers: &[(&'static str, &'static str)],
) -> (u16, Response<Full<Bytes>>) {
    let mut request: Request<Full<Bytes>> = server
        .request("ListTables")
        .body("{}".into())
        .expect("a request");
    for (name, value) in headers {
        request
            .headers_mut()
            .insert(*name, HeaderValue::from_static(value));
    }
    let (head, body) = server.send(request).await.into_parts();
    let body = body.collect().await.expect("a body").to_bytes();
    (
        head.status.as_u16(),
        Response::from_parts(head, body.into()),
    )
}

async fn body(answer: Response<Full<Bytes>>) -> Value {
    let body = answer.into_body().collect().await.expect("a body");
    serde_json::from_slice(&body.to_bytes()).expect("JSON")
}

#[tokio::test]
async fn rebound_host_names_are_rejected() {
    let server = Server::start().await;
    for host in ["evil.example", "evil.example:8000", "192.0.2.1:8000"] {
        let (status, answer) = send(&server, &[("host", host)]).await;
        assert_eq!(status, 403, "{host}");
        let body = body(answer).await;
        let kind = body["__type"].as_str().expect("a type");
        assert!(kind.ends_with("#AccessDeniedException"), "{body}");
        let message = body["Message"].as_str().expect("a message");
        assert!(message.contains("network.allowed_origins"), "{message}");
    }
    for host in ["localhost:8000", "127.0.0.1", "[::1]:8000"] {
        assert_eq!(send(&server, &[("host", host)]).await.0, 200, "{host}");
    }
}

#[tokio::test]
async fn every_named_host_must_be_local() {
    let server = Server::start().await;
    let port = &server.address;
    for (head, expected) in [
        ("GET / HTTP/1.1\r\nhost: LOCALHOST.:8000\r\n", 200),
        ("GET / HTTP/1.1\r\nhost: [::ffff:127.0.0.1]:8000\r\n", 200),
        ("GET http://localhost/ HTTP/1.1\r\nhost: localhost\r\n", 200),
        (
            "GET http://evil.example/ HTTP/1.1\r\nhost: localhost\r\n",
            403,
        ),
        (
            "GET http://localhost/ HTTP/1.1\r\nhost: evil.example\r\n",
            403,
        ),
        (
            "GET http://localhost@evil.example/ HTTP/1.1\r\nhost: localhost\r\n",
            403,
        ),
        (
            "GET / HTTP/1.1\r\nhost: localhost\r\nhost: evil.example\r\n",
            403,
        ),
        (
            "GET / HTTP/1.1\r\nhost: evil.example\r\nhost: localhost\r\n",
            403,
        ),
        (
            "GET / HTTP/1.1\r\nhost: localhost:8000@evil.example\r\n",
            403,
        ),
        ("GET / HTTP/1.1\r\nhost: [::1]evil.example\r\n", 403),
        ("GET / HTTP/1.1\r\nhost: 0.0.0.0:8000\r\n", 403),
        ("GET / HTTP/1.1\r\nhost:\r\n", 403),
        ("GET / HTTP/1.1\r\n", 403),
        ("GET / HTTP/1.0\r\n", 403),
    ] {
        let mut stream = TcpStream::connect(port).await.expect("connects");
        let request = format!("{head}connection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.expect("written");
        let mut answer = String::new();
        let read = stream.read_to_string(&mut answer).await;
        read.expect("an answer");
        let status = answer.split(' ').nth(1);
        assert_eq!(status, Some(expected.to_string().as_str()), "{head}");
    }
}

#[tokio::test]
async fn listed_hosts_are_allowed() {
    let server = Server::start_with(Config {
        allowed_origins: "db.example.com".parse().expect("a list"),
        ..Config::default()
    })
    .await;
    assert_eq!(
        send(&server, &[("host", "db.example.com:8000")]).await.0,
        200
    );
    assert_eq!(send(&server, &[("host", "evil.example")]).await.0, 403);
}

#[tokio::test]
async fn web_pages_of_other_sites_are_rejected() {
    let server = Server::start().await;
    for origin in ["https://evil.example", "http://localhost:3000", "null"] {
        let (status, answer) = send(&server, &[("origin", origin)]).await;
        assert_eq!(status, 403, "{origin}");
        assert!(!answer.headers().contains_key("access-control-allow-origin"));
    }
}

#[tokio::test]
async fn allowed_pages_may_read_responses() {
    const PAGE: &str = "https://app.example.com";
    let server = Server::start_with(Config {
        allowed_origins: PAGE.parse().expect("a list"),
        ..Config::default()
    })
    .await;
    let (status, answer) = send(&server, &[("origin", PAGE)]).await;
    assert_eq!(status, 200);
    assert_eq!(answer.headers()["access-control-allow-origin"], PAGE);
    assert_eq!(answer.headers()["vary"], "origin");
    // Programs without an `Origin` get no CORS headers.
    let (_, answer) = send(&server, &[]).await;
    assert!(!answer.headers().contains_key("access-control-allow-origin"));
    for (origin, expected) in [(PAGE, 200), ("https://evil.example", 403)] {
        let mut preflight = Request::new(Full::default());
        *preflight.method_mut() = Method::OPTIONS;
        *preflight.uri_mut() = format!("http://{}/", server.address)
            .parse()
            .expect("an address");
        let headers = preflight.headers_mut();
        headers.insert(ORIGIN, HeaderValue::from_static(origin));
        headers.insert(
            "access-control-request-method",
            HeaderValue::from_static("POST"),
        );
        let asked = HeaderValue::from_static("content-type,x-amz-target");
        headers.insert("access-control-request-headers", asked.clone());
        let answer = server.send(preflight).await;
        assert_eq!(answer.status(), expected, "{origin}");
        let allowed = answer.headers().get("access-control-allow-headers");
        assert_eq!(allowed, (expected == 200).then_some(&asked), "{origin}");
    }
}

#[tokio::test]
async fn signed_requests_may_name_any_host() {
    let server = Server::start_with(Config {
        credentials: vec![Credential::new("id", "secret")],
        ..Config::default()
    })
    .await;
    let (status, answer) = send(&server, &[(HOST.as_str(), "db.example.com")]).await;
    // Rejected because of the missing signature, not because of the host.
    assert_eq!(status, 400);
    let kind = body(answer).await["__type"].to_string();
    assert!(kind.contains("MissingAuthenticationToken"), "{kind}");
    let (status, _) = send(&server, &[("origin", "https://evil.example")]).await;
    assert_eq!(status, 403);
}
