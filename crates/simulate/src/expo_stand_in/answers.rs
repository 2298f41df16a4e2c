//! The stand-in's responses, normal and faulty.

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

use super::FaultKind;
use super::rules::{self, Refusal};

pub(super) fn data(data: &Value) -> Response {
    Json(json!({ "data": data })).into_response()
}

pub(super) fn refusal(refusal: &Refusal) -> Response {
    (refusal.status, Json(rules::body(refusal))).into_response()
}

/// A ticket or receipt with an error.
pub(super) fn error(code: &str, about: &str) -> Value {
    let message = match code {
        "DeviceNotRegistered" => format!("{about} is not a registered recipient"),
        _ => format!("{about}: {code}"),
    };
    json!({"status": "error", "message": message, "details": {"error": code}})
}

/// The response of a request that fails on purpose.
pub(super) async fn fault(kind: FaultKind) -> Response {
    match kind {
        FaultKind::Status(status, retry_after_secs) => {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
            let body = json!({"errors": [{"code": "INJECTED", "message": "injected fault"}]});
            let mut response = (status, Json(body)).into_response();
            if let Some(secs) = retry_after_secs {
                response
                    .headers_mut()
                    .insert(header::RETRY_AFTER, secs.into());
            }
            response
        }
        FaultKind::InvalidBody => Html("<html>a proxy's error page</html>").into_response(),
        FaultKind::Disconnect => Response::new(Body::new(BrokenBody)),
        FaultKind::NoResponse => never(std::future::pending::<Infallible>().await),
    }
}

fn never(never: Infallible) -> Response {
    match never {}
}

/// A body that fails at once, which closes the connection.
struct BrokenBody;

impl hyper::body::Body for BrokenBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        Poll::Ready(Some(Err(io::Error::other("injected disconnect"))))
    }
}
