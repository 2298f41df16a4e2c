//! Expo's client against a stand-in of its service over real HTTP, which refuses what Expo refuses.

use std::collections::VecDeque;
use std::io::Read as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use homeport_server::Expo;
use homeport_systems::push::{
    Envelope, Message, NewMessage, PushService as _, Receipt, ServiceError, Ticket,
};
use serde_json::{Value, json};

#[derive(Default)]
struct Service {
    /// Said instead of what would be right, once each.
    instead: VecDeque<Instead>,
    received: Vec<Value>,
}

enum Instead {
    Status(StatusCode, Option<&'static str>, Value),
    Text(&'static str),
    Silence,
}

type Shared = Arc<Mutex<Service>>;

fn errors(status: StatusCode, code: &str) -> Response {
    let body = json!({"errors": [{"code": code, "message": "as the test says"}]});
    (status, axum::Json(body)).into_response()
}

/// Reads a body as Expo does: JSON in gzip, from someone it knows.
fn unpack(headers: &HeaderMap, body: &[u8]) -> Result<Value, Box<Response>> {
    let is = |name: &str, value: &str| headers.get(name).is_some_and(|sent| sent == value);
    if !is("authorization", "Bearer access-token") {
        return Err(Box::new(errors(StatusCode::UNAUTHORIZED, "UNAUTHORIZED")));
    }
    let mut text = String::new();
    let is_packed = is("content-encoding", "gzip")
        && is("content-type", "application/json")
        && flate2::read::GzDecoder::new(body)
            .read_to_string(&mut text)
            .is_ok();
    let json = serde_json::from_str(&text).ok().filter(|_| is_packed);
    json.ok_or_else(|| Box::new(errors(StatusCode::BAD_REQUEST, "VALIDATION_ERROR")))
}

async fn instead(shared: &Shared) -> Option<Response> {
    let instead = shared.lock().expect("no panic").instead.pop_front()?;
    Some(match instead {
        Instead::Status(status, retry_after, body) => {
            let mut response = (status, axum::Json(body)).into_response();
            if let Some(secs) = retry_after {
                let value = secs.parse().expect("a header");
                response.headers_mut().insert("retry-after", value);
            }
            response
        }
        Instead::Text(text) => text.into_response(),
        Instead::Silence => std::future::pending().await,
    })
}

async fn send(State(shared): State<Shared>, headers: HeaderMap, body: Bytes) -> Response {
    let messages = match unpack(&headers, &body) {
        Ok(messages) => messages,
        Err(refused) => return *refused,
    };
    shared
        .lock()
        .expect("no panic")
        .received
        .push(messages.clone());
    if let Some(response) = instead(&shared).await {
        return response;
    }
    let Some(messages) = messages.as_array() else {
        return errors(StatusCode::BAD_REQUEST, "VALIDATION_ERROR");
    };
    if messages.len() > 100 {
        return errors(StatusCode::BAD_REQUEST, "PUSH_TOO_MANY_NOTIFICATIONS");
    }
    let tickets = messages.iter().enumerate().map(|(index, message)| {
        let token = message["to"].as_str().unwrap_or_default();
        if token == "ExpoPushToken[gone]" {
            return json!({"status": "error", "message": "not registered",
                          "details": {"error": "DeviceNotRegistered"}});
        }
        json!({"status": "ok", "id": format!("ticket-{index}")})
    });
    axum::Json(json!({"data": tickets.collect::<Vec<_>>()})).into_response()
}

async fn receipts(State(shared): State<Shared>, headers: HeaderMap, body: Bytes) -> Response {
    let asked = match unpack(&headers, &body) {
        Ok(asked) => asked,
        Err(refused) => return *refused,
    };
    if let Some(response) = instead(&shared).await {
        return response;
    }
    let ids = asked["ids"].as_array().cloned().unwrap_or_default();
    if ids.is_empty() || ids.len() > 1000 {
        return errors(StatusCode::BAD_REQUEST, "PUSH_TOO_MANY_RECEIPTS");
    }
    let data = json!({
        "good": {"status": "ok"},
        "bad": {"status": "error", "message": "m", "details": {"error": "MessageTooBig"}},
    });
    axum::Json(json!({"data": data})).into_response()
}

async fn start() -> (Expo, Shared) {
    let shared = Shared::default();
    let router = Router::new()
        .route("/--/api/v2/push/send", post(send))
        .route("/--/api/v2/push/getReceipts", post(receipts))
        .with_state(Arc::clone(&shared));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move { axum::serve(listener, router).await });
    let expo = Expo::new(format!("http://{address}"), Some("access-token".to_owned()))
        .with_timeout(Duration::from_secs(1));
    (expo, shared)
}

fn envelope(token: &str) -> Envelope {
    let message = Message::new(NewMessage {
        title: "Done".to_owned(),
        body: "Ready".to_owned(),
        ..NewMessage::default()
    });
    Envelope {
        to: format!("ExpoPushToken[{token}]").parse().expect("a token"),
        message: message.expect("a message"),
    }
}

#[tokio::test]
async fn messages_go_out_as_expo_wants_them_and_tickets_come_back_in_order() {
    let (expo, shared) = start().await;
    let tickets = expo
        .send(&[envelope("a"), envelope("gone"), envelope("b")])
        .await;
    let ok = |id: &str| Ticket::Ok { id: id.to_owned() };
    let gone = Ticket::Error {
        code: "DeviceNotRegistered".to_owned(),
        message: "not registered".to_owned(),
    };
    assert_eq!(tickets, Ok(vec![ok("ticket-0"), gone, ok("ticket-2")]));
    let received = &shared.lock().expect("no panic").received;
    assert_eq!(
        received[0][0],
        json!({"to": "ExpoPushToken[a]", "title": "Done", "body": "Ready"})
    );
}

#[tokio::test]
async fn receipts_come_back_by_their_tickets() {
    let (expo, _) = start().await;
    let tickets = ["good", "bad", "unknown"].map(str::to_owned);
    let receipts = expo.receipts(&tickets).await.expect("receipts");
    assert_eq!(receipts["good"], Receipt::Ok);
    let too_big = |receipt: &Receipt| matches!(receipt, Receipt::Error { code, .. } if code == "MessageTooBig");
    assert!(too_big(&receipts["bad"]));
    assert!(!receipts.contains_key("unknown"));
}

#[tokio::test]
async fn each_failure_says_whether_it_can_be_tried_again() {
    let (expo, shared) = start().await;
    let body = json!({"errors": [{"code": "C", "message": "m"}]});
    let status = |status, after| Instead::Status(status, after, body.clone());
    let busy = |secs: Option<u64>, reason: &str| ServiceError::Busy {
        retry_after: secs.map(Duration::from_secs),
        reason: reason.to_owned(),
    };
    for (instead, expected) in [
        (
            status(StatusCode::TOO_MANY_REQUESTS, Some("7")),
            busy(Some(7), "429 C: m"),
        ),
        (
            status(StatusCode::INTERNAL_SERVER_ERROR, None),
            busy(None, "500 C: m"),
        ),
        (
            status(StatusCode::UNAUTHORIZED, None),
            busy(None, "401 C: m"),
        ),
        (
            status(StatusCode::GATEWAY_TIMEOUT, None),
            ServiceError::Unanswered("504 C: m".to_owned()),
        ),
        (
            status(StatusCode::BAD_REQUEST, None),
            ServiceError::Refused("400 C: m".to_owned()),
        ),
        (
            Instead::Text("<html>"),
            ServiceError::Unanswered("the answer cannot be understood".to_owned()),
        ),
        (
            Instead::Silence,
            ServiceError::Unanswered("no answer within 1s".to_owned()),
        ),
    ] {
        shared.lock().expect("no panic").instead.push_back(instead);
        assert_eq!(expo.send(&[envelope("a")]).await, Err(expected));
    }
    let too_many: Vec<_> = (0..101)
        .map(|number| envelope(&number.to_string()))
        .collect();
    let refused = expo.send(&too_many).await;
    assert!(
        matches!(refused, Err(ServiceError::Refused(_))),
        "{refused:?}"
    );
}

#[tokio::test]
async fn a_service_that_is_not_there_took_nothing() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    let expo = Expo::new(format!("http://{address}"), None);
    let failed = expo.send(&[envelope("a")]).await;
    assert!(
        matches!(failed, Err(ServiceError::Busy { .. })),
        "{failed:?}"
    );
}
