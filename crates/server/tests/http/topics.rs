//! Publishing over HTTP.

use homeport_store::{Scan, Store as _};
use homeport_systems::messages::schema;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::{ALLOWED_ORIGIN, Server};

#[tokio::test]
async fn topic_slashes_may_be_encoded() {
    let server = Server::start().await;
    for path in [
        "/v1/topics/van/v1/commands",
        "/v1/topics/van%2Fv1%2Fcommands?qos=1",
    ] {
        let answer = server.as_admin("POST", path, Value::from("go")).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(answer.body["topic"], "van/v1/commands");
    }
}

#[tokio::test]
async fn retained_message_is_stored_before_the_response() {
    let server = Server::start().await;
    let path = "/v1/topics/van/v1/status?retain=true&qos=1";
    let answer = server.as_admin("POST", path, Value::from("on")).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let page = server.engine.scan(Scan::new(schema::RETAINED)).await;
    let items = page.expect("a page").items;
    let topics: Vec<_> = items.iter().map(|item| item.get(schema::TOPIC)).collect();
    assert_eq!(topics, [Some(&"van/v1/status".into())]);
}

#[tokio::test]
async fn keys_publish_only_for_their_things() {
    let server = Server::start().await;
    let key = server.key_of("telemetry", ["v1"]).await;
    let other = server.key_of("sensors", []).await;
    for (key, topic, expected) in [
        (&key, "van/v1/telemetry", Ok(())),
        (&key, "van/v2/telemetry", Err((403, "OUT_OF_SCOPE"))),
        (&key, "$SYS/x", Err((403, "OUT_OF_SCOPE"))),
        (&other, "van/v1/telemetry", Err((403, "OUT_OF_SCOPE"))),
        (&key, "van/v1/+", Err((400, "INVALID_REQUEST"))),
        (&key, "van/v1/x?qos=2", Err((400, "INVALID_REQUEST"))),
        (&key, "van/v1/x?retain=maybe", Err((400, "INVALID_REQUEST"))),
    ] {
        let path = format!("/v1/topics/{topic}");
        let answer = server.as_device(key, "POST", &path, Value::from("x")).await;
        match expected {
            Ok(()) => assert_eq!(answer.status, 200, "{topic} {answer:?}"),
            Err(problem) => assert_eq!(answer.problem(), problem, "{topic}"),
        }
    }
}

#[tokio::test]
async fn oversized_payload_is_rejected() {
    let server = Server::start().await;
    let body = Value::from("x".repeat(300_000));
    let answer = server.as_admin("POST", "/v1/topics/van/v1/x", body).await;
    assert_eq!(answer.problem(), (413, "PAYLOAD_TOO_LARGE"));
}

#[tokio::test]
async fn mqtt_path_requires_a_websocket() {
    let server = Server::start().await;
    let answer = server.send("GET", "/mqtt", &[], None).await;
    assert_eq!(answer.problem(), (426, "WEBSOCKET_ONLY"));
}

#[tokio::test]
async fn cross_site_websockets_are_rejected() {
    let server = Server::start().await;
    let own_page = format!("http://{}", server.host());
    for (origin, expected) in [
        (None, 101),
        (Some(own_page.as_str()), 101),
        (Some(ALLOWED_ORIGIN), 101),
        (Some("https://evil.example"), 403),
        (Some("null"), 403),
    ] {
        let mut request = format!(
            "GET /mqtt HTTP/1.1\r\nhost: {}\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\
             sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
             sec-websocket-protocol: mqtt\r\n",
            server.host()
        );
        if let Some(origin) = origin {
            request.push_str(&format!("origin: {origin}\r\n"));
        }
        request.push_str("\r\n");
        let mut stream = TcpStream::connect(server.host()).await.expect("connects");
        stream.write_all(request.as_bytes()).await.expect("written");
        let mut status = [0; 12];
        stream.read_exact(&mut status).await.expect("an answer");
        let status = String::from_utf8_lossy(&status);
        assert_eq!(status, format!("HTTP/1.1 {expected}"), "{origin:?}");
    }
}
