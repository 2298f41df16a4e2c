//! Signatures.

use homeport_wire::{Config, Credential};
use serde_json::json;

use crate::server::Server;

#[tokio::test]
async fn credentials_require_signed_requests() {
    let server = Server::start_with(Config {
        credentials: vec![Credential::new("id", "secret")],
        ..Config::default()
    })
    .await;
    assert_eq!(
        server.refused("ListTables", json!({})).await,
        (
            "MissingAuthenticationTokenException".to_owned(),
            "Request is missing Authentication Token".to_owned()
        )
    );
    let request = server
        .request("ListTables")
        .header("x-amz-date", "20150830T123600Z")
        .header(
            "authorization",
            "AWS4-HMAC-SHA256 Credential=id/20150830/us-east-1/dynamodb/aws4_request, SignedHeaders=host;x-amz-date, Signature=00",
        )
        .body("{}".into());
    let response = server.send(request.expect("a request")).await;
    assert_eq!(response.status(), 400);
}

#[tokio::test]
async fn any_signature_is_accepted_without_credentials() {
    let server = Server::start().await;
    let request = server
        .request("ListTables")
        .header("authorization", "whatever")
        .body("{}".into());
    let response = server.send(request.expect("a request")).await;
    assert_eq!(response.status(), 200);
}
