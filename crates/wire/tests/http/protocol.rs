//! What holds for every request.

use std::io::Read as _;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::server::Server;

#[tokio::test]
async fn a_get_tells_that_the_service_is_healthy() {
    let server = Server::start().await;
    let request = Request::get(format!("http://{}/", server.address)).body(Full::default());
    let response = server.send(request.expect("a request")).await;
    assert_eq!(response.status(), 200);
    let body = response.into_body().collect().await.expect("a body");
    assert_eq!(
        body.to_bytes(),
        "healthy: dynamodb.us-east-1.amazonaws.com "
    );
}

#[tokio::test]
async fn answers_carry_an_id_and_a_checksum() {
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
async fn long_answers_are_compressed_where_that_is_taken() {
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
async fn http_2_is_understood_without_asking() {
    let server = Server::start().await;
    let client: Client<_, Full<Bytes>> = Client::builder(TokioExecutor::new())
        .http2_only(true)
        .build_http();
    let request = server.request("ListTables").body("{}".into());
    let response = client.request(request.expect("a request")).await;
    assert_eq!(response.expect("an answer").status(), 200);
}

#[tokio::test]
async fn what_is_no_request_is_refused() {
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
async fn a_body_over_the_limit_is_refused() {
    let server = Server::start().await;
    let body = vec![b' '; 16 * 1024 * 1024 + 1];
    let request = server.request("ListTables").body(Bytes::from(body).into());
    let response = server.send(request.expect("a request")).await;
    assert_eq!(response.status(), 413);
}

#[tokio::test]
async fn an_answer_without_the_body_read_says_that_the_connection_ends() {
    let server = Server::start().await;
    let over_the_limit = 16 * 1024 * 1024 + 1;
    for (method, announced, status, closes) in [
        ("POST", over_the_limit, "413", true),
        ("PUT", over_the_limit, "404", true),
        ("PUT", 0, "404", false),
    ] {
        let mut stream = TcpStream::connect(&server.address).await.expect("connects");
        let head = format!("{method} / HTTP/1.1\r\nHost: h\r\nContent-Length: {announced}\r\n\r\n");
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
