//! One client's connections over HTTP and DynamoDB's protocol.

use std::net::SocketAddr;

use serde_json::Value;

use crate::exchange::{Exchange, Outcome};
use crate::server::ADMIN_TOKEN;
use crate::target::{Addresses, Target};

pub(crate) struct Clients {
    target: Target,
    connected_to: Option<Addresses>,
    http: Option<Exchange>,
    dynamodb: Option<Exchange>,
}

/// The result of a request, as its sender knows it.
#[derive(Debug)]
pub(crate) enum Reply {
    Done(Value),
    /// Rejected, and nothing was written.
    Refused(u16, Value),
    /// No response, or an internal error: it may have been carried out.
    Unknown(String),
}

/// The credential of an HTTP request.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Caller<'a> {
    Operator,
    Device(&'a str),
}

impl Reply {
    /// The response, or the reason why it is missing.
    pub(crate) fn done(self) -> Result<Value, String> {
        match self {
            Self::Done(answer) => Ok(answer),
            Self::Refused(status, body) => Err(format!("{status}: {body}")),
            Self::Unknown(why) => Err(why),
        }
    }

    /// Whether the response is this DynamoDB error.
    pub(crate) fn is_refused_with(&self, error: &str) -> bool {
        let Self::Refused(_, body) = self else {
            return false;
        };
        let kind = body["__type"].as_str().unwrap_or_default();
        kind.ends_with(error)
    }
}

impl Clients {
    pub(crate) fn new(target: Target) -> Self {
        Self {
            target,
            connected_to: None,
            http: None,
            dynamodb: None,
        }
    }

    pub(crate) fn target(&self) -> &Target {
        &self.target
    }

    /// Sends an HTTP request with a JSON body.
    pub(crate) async fn http(
        &mut self,
        caller: Caller<'_>,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Reply {
        let credential = match caller {
            Caller::Operator => format!("Authorization: Bearer {ADMIN_TOKEN}"),
            Caller::Device(key) => format!("X-API-Key: {key}"),
        };
        let body = body.map(Value::to_string).unwrap_or_default();
        let Some(address) = self.connect() else {
            return not_running();
        };
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\n{credential}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            address.http,
            body.len()
        );
        send(&mut self.http, address.http, request.as_bytes()).await
    }

    /// Sends an operation of DynamoDB's protocol.
    pub(crate) async fn dynamodb(&mut self, operation: &str, body: &Value) -> Reply {
        let body = body.to_string();
        let Some(address) = self.connect() else {
            return not_running();
        };
        // DynamoDB Streams has its own target prefix.
        let service = match operation {
            "DescribeStream" | "GetShardIterator" | "GetRecords" => "DynamoDBStreams_20120810",
            _ => "DynamoDB_20120810",
        };
        let request = format!(
            "POST / HTTP/1.1\r\nHost: {}\r\nX-Amz-Target: {service}.{operation}\r\n\
             Content-Type: application/x-amz-json-1.0\r\nContent-Length: {}\r\n\r\n{body}",
            address.dynamodb,
            body.len()
        );
        send(&mut self.dynamodb, address.dynamodb, request.as_bytes()).await
    }

    /// The server's addresses. Drops connections to an earlier process.
    fn connect(&mut self) -> Option<Addresses> {
        let now = self.target.now();
        if now != self.connected_to {
            (self.http, self.dynamodb) = (None, None);
            self.connected_to = now;
        }
        now
    }
}

async fn send(exchange: &mut Option<Exchange>, address: SocketAddr, request: &[u8]) -> Reply {
    let exchange = exchange.get_or_insert_with(|| Exchange::new(address));
    match exchange.send(request).await {
        Outcome::Answer(answer) => {
            let text = || String::from_utf8_lossy(&answer.body).into_owned();
            let body = match serde_json::from_slice(&answer.body) {
                Ok(body) => body,
                Err(_) if answer.body.is_empty() => Value::Null,
                Err(_) => Value::String(text()),
            };
            match answer.status {
                200..300 => Reply::Done(body),
                // A request that timed out may still be carried out.
                408 | 500.. => Reply::Unknown(format!("{}: {}", answer.status, text())),
                status => Reply::Refused(status, body),
            }
        }
        Outcome::Closed(how) => Reply::Unknown(how),
        Outcome::Silence => Reply::Unknown("no answer in time".to_owned()),
    }
}

fn not_running() -> Reply {
    Reply::Refused(0, Value::String("the server does not run".to_owned()))
}
