//! Properties of every request.

use std::io::{Read as _, Write as _};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use homeport_wire::Config;
use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::server::Server;
use crate::signing::{ADMIN, credentials, sha256};

#[tokio::test]
async fn get_of_root_reports_health() {
    let server = Server::start().await;
    let request = Request::get(format!("http://{}/", server.address)).body(Full::default());
    let response = server.send(request.expect("a request")).await;
    assert_eq!(response.status(), 200);
    let body = response.into_body().collect().await.expect("a body");
    assert_eq!(body.to_bytes(), format!("healthy: {} ", server.address));
}

#[tokio::test]
async fn endpoint_is_the_host_the_client_used() {
    let server = Server::start().await;
    let port = server.address.rsplit_once(':').expect("a port").1;
    let ours = server.address.clone();
    let named = format!("localhost:{port}");
    for (given, is_host) in [
        (named.as_str(), true),
        ("127.0.0.1", true),
        ("user@127.0.0.1", false),
        ("127.0.0.1\" x=\"", false),
    ] {
        let head = format!(
            "POST / HTTP/1.1\r\nHost: {given}\r\nConnection: close\r\nContent-Type: application/x-amz-json-1.0\r\nX-Amz-Target: DynamoDB_20120810.DescribeEndpoints\r\nContent-Length: 2\r\n\r\n{{}}"
        );
        let mut stream = TcpStream::connect(&ours).await.expect("connects");
        stream.write_all(head.as_bytes()).await.expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("an answer");
        if is_host {
            let endpoint = format!(r#""Address":"{given}""#);
            assert!(answer.contains(&endpoint), "{given}: {answer}");
        } else {
            let refused = answer.starts_with("HTTP/1.1 403") && !answer.contains(given);
            assert!(refused, "{given}: {answer}");
        }
    }
    let answer = server.ok("DescribeEndpoints", json!({})).await;
    let endpoints = json!([{"Address": ours, "CachePeriodInMinutes": 1440}]);
    assert_eq!(answer["Endpoints"], endpoints);
}

#[tokio::test]
async fn only_the_root_path_is_served() {
    let server = Server::start().await;
    for path in ["/abc", "/index.htm", "/health", "//", "/abc?x=/"] {
        let address = format!("http://{}{path}", server.address);
        let get = Request::get(&address).body(Full::default());
        let post = server.request("ListTables").uri(&address).body("{}".into());
        for request in [get, post] {
            let response = server.send(request.expect("a request")).await;
            assert_eq!(response.status(), 404, "{path}");
            let body = response.into_body().collect().await.expect("a body");
            assert_eq!(body.to_bytes(), "<UnknownOperationException/>\n", "{path}");
        }
    }
    let address = format!("http://{}/?x=1", server.address);
    let get = Request::get(address).body(Full::default());
    let response = server.send(get.expect("a request")).await;
    assert_eq!(response.status(), 200);
}

#[tokio::test]
async fn compressed_requests_are_accepted() {
    let server = Server::start().await;
    server.create_plain_table("texts").await;
    for (coding, encode) in [
        ("gzip", gzip as fn(&[u8]) -> Vec<u8>),
        ("GZIP", gzip),
        ("deflate", zlib),
        ("identity", <[u8]>::to_vec),
    ] {
        let item = json!({"pk": {"S": coding}, "text": {"S": "abc".repeat(20_000)}});
        let body = json!({"TableName": "texts", "Item": item}).to_string();
        let status = server
            .send_coded("PutItem", coding, encode(body.as_bytes()))
            .await;
        assert_eq!(status, 200, "{coding}");
        let key = json!({"TableName": "texts", "Key": {"pk": {"S": coding}}});
        assert_eq!(server.ok("GetItem", key).await["Item"], item);
    }
}

#[tokio::test]
async fn undecodable_requests_are_rejected() {
    let server = Server::start().await;
    let whole = gzip(b"{}");
    for (coding, body, expected) in [
        ("garbage", b"{}".to_vec(), 400),
        ("gzip, gzip", gzip(&whole), 400),
        ("gzip", b"{}".to_vec(), 400),
        ("gzip", whole[..whole.len() - 1].to_vec(), 400),
        ("gzip", Vec::new(), 400),
        ("deflate", b"{}".to_vec(), 400),
        ("deflate", Vec::new(), 400),
        // 16 KB that decode to 16 MB and one byte.
        ("gzip", gzip(&vec![b' '; 16 * 1024 * 1024 + 1]), 413),
        ("deflate", zlib(&vec![b' '; 16 * 1024 * 1024 + 1]), 413),
    ] {
        let status = server.send_coded("ListTables", coding, body).await;
        assert_eq!(status, expected, "{coding}");
    }
}

#[tokio::test]
async fn signature_covers_the_compressed_body() {
    let server = Server::start_with(Config {
        credentials: credentials(r#"{"Version":"2012-10-17","Statement":[]}"#),
        ..Config::default()
    })
    .await;
    let plain = b"{}".to_vec();
    for (coding, sent) in [("gzip", gzip(&plain)), ("deflate", zlib(&plain))] {
        for (signed, hashed, expected) in [
            (&sent, &sent, 200_u16),
            (&plain, &plain, 400),
            (&plain, &sent, 400),
            (&sent, &plain, 400),
        ] {
            let request = server
                .request_signed_by(&ADMIN, "ListTables", signed)
                .header("x-amz-content-sha256", sha256(hashed))
                .header("content-encoding", coding)
                .body(Bytes::from(sent.clone()).into());
            let response = server.send(request.expect("a request")).await;
            assert_eq!(
                response.status(),
                expected,
                "{coding} {signed:?} {hashed:?}"
            );
        }
    }
}

fn gzip(data: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(data).expect("in memory");
    encoder.finish().expect("in memory")
}

fn zlib(data: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(data).expect("in memory");
    encoder.finish().expect("in memory")
}

impl Server {
    /// Sends a body with a content encoding, and returns the status of the response.
    async fn send_coded(&self, operation: &str, coding: &str, body: Vec<u8>) -> u16 {
        let request = self
            .request(operation)
            .header("content-encoding", coding)
            .body(Bytes::from(body).into());
        let response = self.send(request.expect("a request")).await;
        response.status().as_u16()
    }
}

#[tokio::test]
async fn responses_have_id_and_checksum() {
    let server = Server::start().await;
    let request = server.request("ListTables").body("{}".into());
    let response = server.send(request.expect("a request")).await;
    let headers = response.headers().clone();
    assert_eq!(headers["content-type"], "application/x-amz-json-1.0");
    assert_eq!(headers["x-amzn-requestid"].len(), 52);
    let body = response.into_body().collect().await.expect("a body");
    let body = body.to_bytes();
    assert_eq!(body, r#"{"TableNames":[]}"#);
    let checksum = crc32fast::hash(&body).to_string();
    assert_eq!(headers["x-amz-crc32"].to_str().expect("text"), checksum);
}

#[tokio::test]
async fn long_responses_are_compressed_if_accepted() {
    let server = Server::start().await;
    server.create_plain_table("texts").await;
    let item = json!({"pk": {"S": "a"}, "text": {"S": "abc".repeat(2000)}});
    server
        .ok("PutItem", json!({"TableName": "texts", "Item": item}))
        .await;
    let body = json!({"TableName": "texts", "Key": {"pk": {"S": "a"}}}).to_string();
    let request = server
        .request("GetItem")
        .header("accept-encoding", "gzip")
        .body(body.into());
    let response = server.send(request.expect("a request")).await;
    let headers = response.headers().clone();
    assert_eq!(headers["content-encoding"], "gzip");
    let bytes = response.into_body().collect().await.expect("a body");
    let bytes = bytes.to_bytes();
    let checksum = crc32fast::hash(&bytes).to_string();
    assert_eq!(headers["x-amz-crc32"].to_str().expect("text"), checksum);
    let mut text = String::new();
    let mut decoder = flate2::read::GzDecoder::new(&bytes[..]);
    decoder.read_to_string(&mut text).expect("gzip");
    let answer: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(answer["Item"], item);
}

#[tokio::test]
async fn http_2_works_with_prior_knowledge() {
    let server = Server::start().await;
    let client: Client<_, Full<Bytes>> = Client::builder(TokioExecutor::new())
        .http2_only(true)
        .build_http();
    let request = server.request("ListTables").body("{}".into());
    let response = client.request(request.expect("a request")).await;
    assert_eq!(response.expect("an answer").status(), 200);
}

#[tokio::test]
async fn malformed_requests_are_rejected() {
    let server = Server::start().await;
    let (kind, _) = server.refused("FlushAllTables", json!({})).await;
    assert_eq!(kind, "UnknownOperationException");
    let (kind, text) = server.refused("ListTables", json!({"Limit": "x"})).await;
    assert_eq!(kind, "SerializationException");
    assert_eq!(text, "STRING_VALUE cannot be converted to Integer");
    let request = server.request("ListTables").body("no JSON".into());
    let response = server.send(request.expect("a request")).await;
    assert_eq!(response.status(), 400);
    let request = Request::put(format!("http://{}/", server.address)).body(Full::default());
    let response = server.send(request.expect("a request")).await;
    assert_eq!(response.status(), 404);
}

#[tokio::test]
async fn body_over_the_limit_is_rejected() {
    let server = Server::start().await;
    let body = vec![b' '; 16 * 1024 * 1024 + 1];
    let request = server.request("ListTables").body(Bytes::from(body).into());
    let response = server.send(request.expect("a request")).await;
    assert_eq!(response.status(), 413);
}

#[tokio::test]
async fn response_before_body_closes_connection() {
    let server = Server::start().await;
    let over_the_limit = 16 * 1024 * 1024 + 1;
    for (method, announced, status, closes) in [
        ("POST", over_the_limit, "413", true),
        ("PUT", over_the_limit, "404", true),
        ("PUT", 0, "404", false),
    ] {
        let mut stream = TcpStream::connect(&server.address).await.expect("connects");
        let head = format!(
            "{method} / HTTP/1.1\r\nHost: localhost\r\nContent-Length: {announced}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.expect("sent");
        let mut answer = Vec::new();
        while !answer.windows(4).any(|four| four == b"\r\n\r\n") {
            assert_ne!(stream.read_buf(&mut answer).await.expect("an answer"), 0);
        }
        let answer = String::from_utf8(answer).expect("text");
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status}")),
            "{answer}"
        );
        let says_so = answer.contains("\r\nconnection: close\r\n");
        assert_eq!(says_so, closes, "{method} {announced}: {answer}");
    }
}
