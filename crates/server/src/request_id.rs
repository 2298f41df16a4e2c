//! The outermost layer: gives every request an id, writes it into problems, and logs what happened.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use axum::extract::{MatchedPath, Request};
use axum::http::header::ALLOW;
use axum::http::{HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use tracing::Instrument as _;

use crate::auth::client;
use crate::measure;
use crate::problem::Problem;
use crate::routes::answers_in_envelope;

const HEADER: HeaderName = HeaderName::from_static("x-request-id");
const LEN_MAX: usize = 64;
/// When to come back after a request took too long: it may have been carried out, and can be sent again.
const TIMEOUT_RETRY_AFTER_SECS: u64 = 1;

pub(crate) async fn layer(request: Request, next: Next) -> Response {
    let started = Instant::now();
    let id = id_of(&request);
    let method = request.method().clone();
    let route = request
        .extensions()
        .get::<MatchedPath>()
        .map_or("unmatched", |path| path.as_str())
        .to_owned();
    let client = client(request.extensions());
    let in_envelope = answers_in_envelope(request.uri().path());
    let span = tracing::info_span!("request", request_id = %id, %method, %route);
    let mut response = next.run(request).instrument(span).await;
    let problem = match response.extensions_mut().remove::<Problem>() {
        Some(problem) => Some(problem),
        // A layer below refused without a word: say it in the same form as everything else.
        None => is_bare_error(&response).then(|| bare_problem(response.status())),
    };
    if let Some(problem) = problem {
        let allow = response.headers_mut().remove(ALLOW);
        response = if in_envelope {
            problem.into_envelope()
        } else {
            problem.into_sent(&id)
        };
        // A 405 has to say which methods would do.
        if let Some(allow) = allow {
            response.headers_mut().insert(ALLOW, allow);
        }
    }
    if let Ok(value) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(HEADER, value);
    }
    let took = started.elapsed();
    measure::request(&method, &route, response.status(), took);
    log(&id, client, &method, &route, response.status(), took);
    response
}

/// One line for a finished request: at `info` when it was refused or failed, else at `debug`, since
/// devices make thousands of good ones a second. The path is left out: the route says as much and
/// has nothing of the client's in it.
fn log(id: &str, client: IpAddr, method: &Method, route: &str, status: StatusCode, took: Duration) {
    let method = measure::known_method(method);
    let status = status.as_u16();
    let duration_ms = took.as_secs_f64() * 1000.0;
    if status >= 400 {
        tracing::info!(
            request_id = id,
            %client,
            method,
            route,
            status,
            duration_ms,
            "finished"
        );
    } else {
        tracing::debug!(
            request_id = id,
            %client,
            method,
            route,
            status,
            duration_ms,
            "finished"
        );
    }
}

/// The client's own id, when it is one that can go into a log, else a new one.
fn id_of(request: &Request) -> String {
    let sent = request
        .headers()
        .get(HEADER)
        .and_then(|value| value.to_str().ok());
    match sent {
        Some(id)
            if (1..=LEN_MAX).contains(&id.len())
                && id
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)) =>
        {
            id.to_owned()
        }
        _ => uuid::Uuid::new_v4().to_string(),
    }
}

fn is_bare_error(response: &Response) -> bool {
    let is_error = response.status().is_client_error() || response.status().is_server_error();
    let is_problem = response
        .headers()
        .get(axum::http::header::CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"application/problem+json"));
    is_error && !is_problem
}

fn bare_problem(status: StatusCode) -> Problem {
    let (code, detail) = match status {
        StatusCode::NOT_FOUND => ("NOT_FOUND", "there is nothing at this address"),
        StatusCode::METHOD_NOT_ALLOWED => (
            "METHOD_NOT_ALLOWED",
            "this address does not take that method",
        ),
        StatusCode::PAYLOAD_TOO_LARGE => ("BODY_TOO_LARGE", "the body is larger than 1 MiB"),
        StatusCode::REQUEST_TIMEOUT => ("TIMEOUT", "the request took too long"),
        _ if status.is_client_error() => ("INVALID_REQUEST", "the request cannot be understood"),
        _ => (
            "INTERNAL",
            "something went wrong on the server; its log has this request's id",
        ),
    };
    let problem = Problem::new(status, code, detail);
    if status == StatusCode::REQUEST_TIMEOUT {
        return problem.retry_after(TIMEOUT_RETRY_AFTER_SECS);
    }
    problem
}
