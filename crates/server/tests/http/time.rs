//! The store's time over HTTP.

use serde_json::json;

use crate::support::{ADMIN, Server};

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

#[tokio::test]
async fn operator_confirms_the_time() {
    let server = Server::start().await;
    let token = format!("Bearer {ADMIN}");
    let admin = [("authorization", token.as_str())];
    let time = server.send("GET", "/v1/time", &admin, None).await;
    assert_eq!(time.status, 200);
    assert_eq!(time.body["is_confirmed"], json!(true));
    assert_eq!(time.body["now"], json!("2027-01-15T08:00:00.000Z"));
    server.clock.advance_ms(30 * DAY_MS);
    let time = server.send("GET", "/v1/time", &admin, None).await;
    assert_eq!(time.body["is_confirmed"], json!(false));
    assert_eq!(time.body["now"], json!("2027-02-14T08:00:00.000Z"));
    assert_eq!(time.body["commit_time"], json!("2027-01-15T08:00:00.000Z"));
    let confirmed = server.send("POST", "/v1/time/confirm", &admin, None).await;
    assert_eq!(confirmed.status, 200);
    assert_eq!(confirmed.body["is_confirmed"], json!(true));
    assert_eq!(
        confirmed.body["commit_time"],
        json!("2027-02-14T08:00:00.000Z")
    );
}

#[tokio::test]
async fn only_operators_confirm_the_time() {
    let server = Server::start().await;
    for (method, path) in [("GET", "/v1/time"), ("POST", "/v1/time/confirm")] {
        assert_eq!(server.send(method, path, &[], None).await.status, 401);
    }
}
