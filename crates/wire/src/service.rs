//! One request: from its head to its answer.

use std::sync::Arc;

use bytes::Bytes;
use homeport_engine::Engine;
use hyper::body::{Body as _, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request};

use crate::access;
use crate::answer::{self, HttpAnswer};
use crate::body::{BodyError, BodyRoom};
use crate::config::Config;
use crate::failure::Failure;
use crate::operations::{self, Operation};
use crate::request_id::RequestIds;
use crate::signature;

const TARGET: HeaderName = HeaderName::from_static("x-amz-target");
const NOT_FOUND_BODY: &[u8] = b"<UnknownOperationException/>\n";

/// DynamoDB's protocol over an engine. Clones share everything.
#[derive(Debug, Clone)]
pub struct Service {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    engine: Engine,
    config: Config,
    ids: RequestIds,
    bodies: BodyRoom,
}

/// Makes the service for an engine.
#[must_use]
pub fn service(engine: Engine, config: Config) -> Service {
    Service {
        inner: Arc::new(Inner {
            engine,
            config,
            ids: RequestIds::new(),
            bodies: BodyRoom::new(),
        }),
    }
}

impl Service {
    pub(crate) fn engine(&self) -> &Engine {
        &self.inner.engine
    }

    pub(crate) fn config(&self) -> &Config {
        &self.inner.config
    }

    /// Answers a request.
    pub(crate) async fn handle(&self, request: Request<Incoming>) -> HttpAnswer {
        let id = self.inner.ids.next();
        let (head, body) = request.into_parts();
        let plain =
            |status, body: &[u8]| answer::answer(status, answer::PLAIN, &id, body.to_vec(), false);
        if head.method == Method::GET {
            let text = format!("healthy: dynamodb.{}.amazonaws.com ", self.config().region);
            return plain(200, text.as_bytes());
        }
        if head.method != Method::POST {
            let answer = plain(404, NOT_FOUND_BODY);
            return if body.is_end_stream() {
                answer
            } else {
                answer::closing(answer, head.version)
            };
        }
        let timeout = self.config().body_timeout;
        let body = match self.inner.bodies.read(body, timeout).await {
            Ok(body) => body,
            Err(error) => {
                let status = match error {
                    BodyError::TooLarge => 413,
                    BodyError::TooSlow => 408,
                    BodyError::Broken => 400,
                };
                return answer::closing(plain(status, b""), head.version);
            }
        };
        let Some(content_type) = content_type(&head.headers, body.bytes.is_empty()) else {
            return plain(404, NOT_FOUND_BODY);
        };
        let gzip = answer::takes_gzip(&head.headers);
        match self.run(&head, &body.bytes).await {
            Ok(json) => answer::answer(200, content_type, &id, json, gzip),
            Err(failure) => {
                answer::answer(failure.status(), content_type, &id, failure.body(), gzip)
            }
        }
    }

    async fn run(
        &self,
        head: &hyper::http::request::Parts,
        body: &Bytes,
    ) -> Result<Vec<u8>, Failure> {
        let in_address = signature::target(head);
        let in_header = || head.headers.get(TARGET)?.to_str().ok();
        let (operation, name) = in_address
            .as_deref()
            .or_else(in_header)
            .and_then(Operation::from_target)
            .ok_or_else(Failure::unknown_operation)?;
        let who = signature::verify(self.config(), head, body)?;
        if body.is_empty() {
            return Err(Failure::serialization(None));
        }
        let call = access::Call {
            operation: name,
            who,
            body,
        };
        let answer = match access::authorize(self.engine(), self.config(), who, name, body) {
            Ok(()) => operations::run(self, operation, body).await,
            Err(denied) => Err(denied),
        };
        access::record(&call, answer.as_ref().map(|_| ()));
        answer
    }
}

/// The type that the answer has; none when the request's own is not one that DynamoDB takes.
fn content_type(headers: &HeaderMap, no_body: bool) -> Option<HeaderValue> {
    let given = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.split(';').next())
        .map(str::trim);
    match given {
        Some("application/x-amz-json-1.0") => Some(answer::AMZ_JSON),
        Some("application/json") => Some(answer::JSON),
        _ if no_body => Some(answer::JSON),
        _ => None,
    }
}
