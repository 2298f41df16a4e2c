//! Requests from web pages (CORS): rejects those of other sites, and lets allowed pages read the responses.

use hyper::body::Incoming;
use hyper::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, HeaderValue, ORIGIN, VARY,
};
use hyper::{Method, Request};

use crate::answer::{self, HttpAnswer};
use crate::failure::Failure;
use crate::service::Service;
use homeport_listen::{Connection, Hosts};

const METHODS: HeaderValue = HeaderValue::from_static("GET, POST");
const EXPOSED: HeaderValue = HeaderValue::from_static("x-amzn-RequestId, x-amz-crc32");
/// How long browsers may cache the response to a preflight request, as in DynamoDB.
const PREFLIGHT_MAX_AGE_SECS: HeaderValue = HeaderValue::from_static("172800");

impl Service {
    /// The response to a request from the network. Requests from web pages that are not allowed are rejected.
    pub(crate) async fn handle_from_network(&self, request: Request<Incoming>) -> HttpAnswer {
        let config = self.config();
        // A signature covers the host. Without credentials, only the host distinguishes a program on this machine from a web
        // page whose host name resolves to this machine (DNS rebinding).
        let hosts = match config.credentials.is_empty() {
            true => Hosts::LocalOrListed,
            false => Hosts::Any,
        };
        let connection = request.extensions().get::<Connection>();
        let is_tls = connection.is_some_and(Connection::is_tls);
        let origin =
            match config
                .allowed_origins
                .check(request.headers(), request.uri(), hosts, is_tls)
            {
                Ok(origin) => origin.cloned(),
                Err(reason) => {
                    let failure = Failure::origin_refused(reason);
                    let id = self.next_request_id();
                    let body = failure.body();
                    let answer =
                        answer::answer(failure.status(), answer::AMZ_JSON, &id, body, false);
                    return answer::closing(answer, request.version());
                }
            };
        let Some(origin) = origin else {
            return self.handle(request).await;
        };
        let mut answer = match is_preflight(&request) {
            true => self.answer_preflight(&request),
            false => self.handle(request).await,
        };
        let headers = answer.headers_mut();
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
        headers.insert(VARY, HeaderValue::from(ORIGIN));
        answer
    }

    fn answer_preflight(&self, request: &Request<Incoming>) -> HttpAnswer {
        let id = self.next_request_id();
        let mut answer = answer::answer(200, answer::PLAIN, &id, Vec::new(), false);
        let headers = answer.headers_mut();
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
        headers.insert(ACCESS_CONTROL_MAX_AGE, PREFLIGHT_MAX_AGE_SECS);
        if let Some(requested) = request.headers().get(ACCESS_CONTROL_REQUEST_HEADERS) {
            headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, requested.clone());
        }
        answer
    }
}

fn is_preflight(request: &Request<Incoming>) -> bool {
    request.method() == Method::OPTIONS
        && request
            .headers()
            .contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}
