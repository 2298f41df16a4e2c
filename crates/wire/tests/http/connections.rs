//! Limits on connections and slow clients.

use std::time::Duration;

use homeport_listen::{ConnectionLimits, Connections, TrustedProxies};
use homeport_wire::{Config, Credential};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::server::Server;

/// Nothing here takes this long unless it is broken.
const PATIENCE: Duration = Duration::from_secs(30);
const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n";

async fn open(server: &Server, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(&server.address).await.expect("connects");
    stream.write_all(bytes).await.expect("written");
    stream
}

/// Everything that a connection receives until the server closes it.
async fn rest(mut stream: TcpStream) -> String {
    let mut bytes = Vec::new();
    let reading = stream.read_to_end(&mut bytes);
    // A reset also ends the connection.
    let _ = tokio::time::timeout(PATIENCE, reading)
        .await
        .expect("closed in time");
    String::from_utf8_lossy(&bytes).into_owned()
}

#[tokio::test]
async fn incomplete_headers_time_out() {
    let server = Server::start_with(Config {
        header_timeout: Duration::from_millis(100),
        ..Config::default()
    })
    .await;
    for begun in ["", "POST / HTTP/1.1\r\nhost: localhost\r\n"] {
        let stream = open(&server, begun.as_bytes()).await;
        assert_eq!(rest(stream).await, "", "{begun:?}");
    }
}

#[tokio::test]
async fn connections_beyond_the_total_get_503() {
    let limits = ConnectionLimits {
        total_max: 1,
        ..ConnectionLimits::default()
    };
    let server = Server::start_with(Config {
        connections: Connections::new(limits, TrustedProxies::default()),
        ..Config::default()
    })
    .await;
    let mut first = open(&server, REQUEST).await;
    let mut answer = [0; 15];
    first.read_exact(&mut answer).await.expect("an answer");
    assert_eq!(&answer, b"HTTP/1.1 200 OK");
    let refused = rest(open(&server, REQUEST).await).await;
    assert!(refused.starts_with("HTTP/1.1 503 "), "{refused}");
    assert!(refused.contains("\r\nretry-after: 5\r\n"), "{refused}");
}

#[tokio::test]
async fn slow_bodies_time_out() {
    let server = Server::start_with(Config {
        body_timeout: Duration::from_millis(100),
        ..Config::default()
    })
    .await;
    let begun = b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n{";
    let answer = rest(open(&server, begun).await).await;
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
}

#[tokio::test]
async fn large_unauthenticated_body_is_not_read() {
    let server = Server::start_with(Config {
        credentials: vec![Credential::new("ADMIN", "admin secret")],
        ..Config::default()
    })
    .await;
    for length in ["content-length: 16777216", "transfer-encoding: chunked"] {
        let head = format!("POST / HTTP/1.1\r\nhost: localhost\r\n{length}\r\n\r\n");
        let answer = rest(open(&server, head.as_bytes()).await).await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
        assert!(
            answer.contains("MissingAuthenticationTokenException"),
            "{answer}"
        );
    }
}
