//! The outermost layer: gives every request an id, writes error responses with it, and logs the request.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use axum::extract::{MatchedPath, Request};
use axum::http::header::ALLOW;
use axum::http::{HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use tracing::Instrument as _;

use crate::auth::client_address;
use crate::metrics;
use crate::problem::{INTERNAL_DETAIL, Problem};
use crate::routes::answers_in_envelope;

const HEADER: HeaderName = HeaderName::from_static("x-request-id");
const LEN_MAX: usize = 64;
/// Wait before a retry after a timeout.
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
    let client = client_address(request.extensions());
    let in_envelope = answers_in_envelope(request.uri().path());
    let span = tracing::info_span!("request", request_id = %id, %method, %route);
    let mut response = next.run(request).instrument(span).await;
    let problem = match response.extensions_mut().remove::<Problem>() {
        Some(problem) => Some(problem),
        // A layer below returned an error without a body.
        None => is_bare_error(&response).then(|| bare_problem(response.status())),
    };
    if let Some(problem) = problem {
        if let Some(limit) = problem.limit() {
            metrics::limit_exceeded(limit);
        }
        let allow = response.headers_mut().remove(ALLOW);
        response = if in_envelope {
            problem.into_envelope_response()
        } else {
            problem.into_problem_response(&id)
        };
        // A 405 must list the allowed methods.
        if let Some(allow) = allow {
            response.headers_mut().insert(ALLOW, allow);
        }
    }
    if let Ok(value) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(HEADER, value);
    }
    let duration = started.elapsed();
    metrics::request(&method, &route, response.status(), duration);
    log(&id, client, &method, &route, response.status(), duration);
    response
}

/// Logs a finished request: errors at `info`, successes at `debug`, because devices send thousands of requests
/// per second. The line has the route and not the path, which can contain data of the client.
fn log(
    id: &str,
    client: IpAddr,
    method: &Method,
    route: &str,
    status: StatusCode,
    duration: Duration,
) {
    macro_rules! finished {
        ($level:expr) => {
            tracing::event!(
                $level,
                request_id = id,
                %client,
                method = metrics::known_method(method),
                route,
                status = status.as_u16(),
                duration_ms = duration.as_secs_f64() * 1000.0,
                "finished"
            )
        };
    }
    if status.is_client_error() || status.is_server_error() {
        finished!(tracing::Level::INFO);
    } else {
        finished!(tracing::Level::DEBUG);
    }
}

/// The id that the client sent, if it is safe to log; otherwise a new one.
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
        StatusCode::NOT_FOUND => ("NOT_FOUND", "no route matches this path"),
        StatusCode::METHOD_NOT_ALLOWED => (
            "METHOD_NOT_ALLOWED",
            "this path does not support that method",
        ),
        StatusCode::PAYLOAD_TOO_LARGE => ("BODY_TOO_LARGE", "the body is larger than 1 MiB"),
        StatusCode::REQUEST_TIMEOUT => ("TIMEOUT", "the request took too long"),
        _ if status.is_client_error() => ("INVALID_REQUEST", "invalid request"),
        _ => ("INTERNAL", INTERNAL_DETAIL),
    };
    let problem = Problem::new(status, code, detail);
    if status == StatusCode::REQUEST_TIMEOUT {
        return problem.retry_after(TIMEOUT_RETRY_AFTER_SECS);
    }
    problem
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::routing::get;
    use axum::{Router, middleware};
    use metrics_exporter_prometheus::PrometheusBuilder;
    use tower::Service as _;

    use super::*;

    #[test]
    fn exceeded_limits_are_counted() {
        let recorder = PrometheusBuilder::new().build_recorder();
        let limited =
            || async { Problem::new(StatusCode::TOO_MANY_REQUESTS, "RATE_LIMITED", "wait") };
        let large = || async { Problem::invalid("101 readings").exceeding("readings_per_request") };
        let mut router = Router::new()
            .route("/limited", get(limited))
            .route("/large", get(large))
            .layer(middleware::from_fn(layer));
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let runtime = runtime.expect("a runtime");
        ::metrics::with_local_recorder(&recorder, || {
            for path in ["/limited", "/limited", "/large", "/missing"] {
                let request = Request::get(path).body(Body::empty()).expect("a request");
                runtime.block_on(router.call(request)).expect("an answer");
            }
        });
        let metrics = recorder.handle().render();
        for expected in [
            "homeport_limit_exceeded_total{limit=\"request_rate\"} 2",
            "homeport_limit_exceeded_total{limit=\"readings_per_request\"} 1",
        ] {
            assert!(metrics.contains(expected), "{metrics}");
        }
    }
}
