//! The stand-in's answers, right ones and wrong ones.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::Json;
use axum::body::{Body, Bytes};
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse as _, Response};
use hyper::body::Frame;
use serde_json::{Value, json};

use super::Then;
use super::rules::{self, Refusal};

pub(super) fn data(data: &Value) -> Response {
    Json(json!({ "data": data })).into_response()
}

pub(super) fn refusal(refusal: &Refusal) -> Response {
    (refusal.status, Json(rules::body(refusal))).into_response()
}

/// A ticket or a receipt with an error.
pub(super) fn error(code: &str, about: &str) -> Value {
    let message = match code {
        "DeviceNotRegistered" => format!("{about} is not a registered recipient"),
        _ => format!("{about}: {code}"),
    };
    json!({"status": "error", "message": message, "details": {"error": code}})
}

/// How a request ends that goes wrong.
pub(super) async fn wrong(then: Then) -> Response {
    match then {
        Then::Status(status, retry_after_secs) => {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
            let body =
                json!({"errors": [{"code": "INJECTED", "message": "as the stand-in was told"}]});
            let mut response = (status, Json(body)).into_response();
            if let Some(secs) = retry_after_secs {
                response
                    .headers_mut()
                    .insert(header::RETRY_AFTER, secs.into());
            }
            response
        }
        Then::Nonsense => Html("<html>a page of someone in between</html>").into_response(),
        Then::BreakOff => Response::new(Body::new(TornOff)),
        Then::Silence => never(std::future::pending::<Infallible>().await),
    }
}

fn never(never: Infallible) -> Response {
    match never {}
}

/// A body that fails at once, which ends its connection.
struct TornOff;

impl hyper::body::Body for TornOff {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        Poll::Ready(Some(Err(io::Error::other("the stand-in breaks off"))))
    }
}
