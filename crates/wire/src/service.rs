//! The path of a request from its head to the response.

use std::sync::Arc;

use homeport_engine::Engine;
use hyper::body::{Body as _, Incoming};
use hyper::header::{CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue};
use hyper::http::uri::Authority;
use hyper::{Method, Request};
use tokio::sync::{Mutex, MutexGuard};

use crate::answer::{self, HttpAnswer};
use crate::body::{BodyError, BodyRoom, RequestBody};
use crate::config::Config;
use crate::content_coding::ContentCoding;
use crate::failure::Failure;
use crate::operations::{self, Operation};
use crate::request_id::{self, RequestIds};
use crate::signature;

const TARGET: HeaderName = HeaderName::from_static("x-amz-target");
/// The host of a request without a valid one.
const UNKNOWN_HOST: &str = "localhost";
/// Longer pages are read on a thread that may block.
const INLINE_ITEMS_MAX: usize = 128;
const NOT_FOUND_BODY: &[u8] = b"<UnknownOperationException/>\n";

/// DynamoDB's protocol on an engine. Clones share their state.
#[derive(Debug, Clone)]
pub struct Service {
    inner: Arc<Inner>,
    /// The host in the request, for operations that return it.
    host: Option<Arc<str>>,
}

#[derive(Debug)]
struct Inner {
    engine: Engine,
    config: Config,
    ids: RequestIds,
    bodies: BodyRoom,
    table_changes: Mutex<()>,
}

/// The service of an engine.
#[must_use]
pub fn service(engine: Engine, config: Config) -> Service {
    Service {
        inner: Arc::new(Inner {
            engine,
            config,
            ids: RequestIds::new(),
            bodies: BodyRoom::new(),
            table_changes: Mutex::new(()),
        }),
        host: None,
    }
}

impl Service {
    pub(crate) fn engine(&self) -> &Engine {
        &self.inner.engine
    }

    pub(crate) fn config(&self) -> &Config {
        &self.inner.config
    }

    pub(crate) fn next_request_id(&self) -> [u8; request_id::LEN] {
        self.inner.ids.next()
    }

    /// Runs work that may wait for the disk on a thread that may block.
    pub(crate) async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let service = self.clone();
        tokio::task::spawn_blocking(move || work(&service))
            .await
            .map_err(|error| Failure::internal(&error))?
    }

    /// Reads a page: a short one at once, a longer one on a thread that may block.
    pub(crate) async fn run_page<T: Send + 'static>(
        &self,
        limit: Option<usize>,
        read: impl FnOnce(&Self) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        match limit {
            Some(limit) if limit <= INLINE_ITEMS_MAX => read(self),
            _ => self.run_blocking(read).await,
        }
    }

    /// Serializes operations that read the description of a table and then change the table accordingly.
    pub(crate) async fn begin_table_change(&self) -> MutexGuard<'_, ()> {
        self.inner.table_changes.lock().await
    }

    /// The host that the client sent the request to.
    pub(crate) fn host(&self) -> &str {
        self.host.as_deref().unwrap_or(UNKNOWN_HOST)
    }

    /// The same service for a request to this host.
    fn reached_at(&self, host: &str) -> Self {
        Self {
            host: Some(Arc::from(host)),
            ..self.clone()
        }
    }

    /// The response to a request.
    pub(crate) async fn handle(&self, request: Request<Incoming>) -> HttpAnswer {
        let id = self.inner.ids.next();
        let (head, body) = request.into_parts();
        let plain =
            |status, body: &[u8]| answer::answer(status, answer::PLAIN, &id, body.to_vec(), false);
        let is_root = head.uri.path() == "/";
        if head.method == Method::GET && is_root {
            // The space at the end is DynamoDB's.
            let text = format!("healthy: {} ", host(&head));
            return plain(200, text.as_bytes());
        }
        if head.method != Method::POST || !is_root {
            let answer = plain(404, NOT_FOUND_BODY);
            return if body.is_end_stream() {
                answer
            } else {
                answer::closing(answer, head.version)
            };
        }
        let timeout = self.config().body_timeout;
        let coding = ContentCoding::of(&head.headers);
        // Otherwise clients without credentials could reserve all memory for bodies and send nothing.
        if BodyRoom::is_counted(&body, coding.is_compressed())
            && let Err(failure) = signature::check_head(self.config(), &head)
        {
            let (status, body) = (failure.status(), failure.body());
            let answer = answer::answer(status, answer::AMZ_JSON, &id, body, false);
            return answer::closing(answer, head.version);
        }
        let read = self
            .inner
            .bodies
            .read(body, coding.is_compressed(), timeout);
        let body = match read.await {
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
        let gzip = answer::accepts_gzip(&head.headers);
        match self.run(&head, &body).await {
            Ok(json) => answer::answer(200, content_type, &id, json, gzip),
            Err(failure) => {
                answer::answer(failure.status(), content_type, &id, failure.body(), gzip)
            }
        }
    }

    async fn run(
        &self,
        head: &hyper::http::request::Parts,
        body: &RequestBody,
    ) -> Result<Vec<u8>, Failure> {
        let in_address = signature::target(head);
        let in_header = || head.headers.get(TARGET)?.to_str().ok();
        let operation = in_address
            .as_deref()
            .or_else(in_header)
            .and_then(Operation::from_target)
            .ok_or_else(Failure::unknown_operation)?;
        let caller = signature::verify(self.config(), head, &body.bytes)?;
        let coding = ContentCoding::of(&head.headers);
        let body = &coding.decode(body).await?;
        if body.is_empty() {
            return Err(Failure::serialization(None));
        }
        let service = match operation {
            Operation::DescribeEndpoints => &self.reached_at(host(head)),
            _ => self,
        };
        operations::run(service, operation, caller, body).await
    }
}

/// The host and port of a request, from its URI or its Host header.
fn host(head: &hyper::http::request::Parts) -> &str {
    let in_header = || head.headers.get(HOST)?.to_str().ok();
    let given = head.uri.authority().map(Authority::as_str);
    let given = given.or_else(in_header).unwrap_or_default();
    let is_host = given
        .parse::<Authority>()
        .is_ok_and(|parsed| !parsed.as_str().contains('@'));
    if is_host { given } else { UNKNOWN_HOST }
}

/// The content type of the response; `None` if DynamoDB does not accept that of the request.
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
