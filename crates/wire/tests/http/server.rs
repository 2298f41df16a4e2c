//! A server for one test with a client.

use std::sync::Arc;

use bytes::Bytes;
use homeport_engine::{Clock, Engine, Options};
use homeport_wire::{Config, service};
use http_body_util::{BodyExt as _, Full};
use hyper::{Request, Response};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

pub(crate) struct Server {
    pub(crate) address: String,
    pub(crate) clock: Arc<dyn Clock>,
    client: Client<HttpConnector, Full<Bytes>>,
    // The server stops when this is dropped.
    _stop: oneshot::Sender<()>,
    _directory: TempDir,
}

impl Server {
    pub(crate) async fn start() -> Self {
        Self::start_with(Config::default()).await
    }

    pub(crate) async fn start_with(config: Config) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let options = Options {
            clock: Arc::clone(&config.clock),
            ..Options::default()
        };
        let clock = Arc::clone(&config.clock);
        let engine = Engine::open(directory.path(), options).expect("an engine");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("its address").to_string();
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = service(engine, config).serve(listener, async {
            let _ = stopped.await;
        });
        tokio::spawn(serving);
        Self {
            address,
            clock,
            client: Client::builder(TokioExecutor::new()).build_http(),
            _stop: stop,
            _directory: directory,
        }
    }

    /// Calls an operation, and returns the status and the body.
    pub(crate) async fn call(&self, operation: &str, body: Value) -> (u16, Value) {
        let request = self.request(operation).body(body.to_string().into());
        let response = self.send(request.expect("a request")).await;
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.expect("a body");
        let body = body.to_bytes();
        if body.is_empty() {
            return (status, Value::Null);
        }
        (status, serde_json::from_slice(&body).expect("JSON"))
    }

    /// Calls an operation that must succeed.
    #[track_caller]
    pub(crate) fn ok(&self, operation: &str, body: Value) -> impl Future<Output = Value> + use<'_> {
        let place = std::panic::Location::caller();
        let operation = operation.to_owned();
        async move {
            let (status, answer) = self.call(&operation, body).await;
            assert_eq!(status, 200, "{operation} at {place}: {answer}");
            answer
        }
    }

    /// Calls an operation that must fail, and returns the name and the text of the error.
    #[track_caller]
    pub(crate) fn refused(
        &self,
        operation: &str,
        body: Value,
    ) -> impl Future<Output = (String, String)> + use<'_> {
        let place = std::panic::Location::caller();
        let operation = operation.to_owned();
        async move {
            let (status, answer) = self.call(&operation, body).await;
            assert_eq!(status, 400, "{operation} at {place}: {answer}");
            let kind = answer["__type"].as_str().expect("a type");
            let (_, kind) = kind.split_once('#').expect("a namespace");
            let text = answer["message"].as_str().or(answer["Message"].as_str());
            (kind.to_owned(), text.unwrap_or_default().to_owned())
        }
    }

    /// The header that names an operation.
    pub(crate) fn target(operation: &str) -> String {
        let service = match operation {
            "DescribeStream" | "GetRecords" | "GetShardIterator" | "ListStreams" => {
                "DynamoDBStreams_20120810"
            }
            _ => "DynamoDB_20120810",
        };
        format!("{service}.{operation}")
    }

    pub(crate) fn request(&self, operation: &str) -> hyper::http::request::Builder {
        Request::post(format!("http://{}/", self.address))
            .header("x-amz-target", Self::target(operation))
            .header("content-type", "application/x-amz-json-1.0")
    }

    pub(crate) async fn send(
        &self,
        request: Request<Full<Bytes>>,
    ) -> Response<hyper::body::Incoming> {
        self.client.request(request).await.expect("an answer")
    }

    /// Creates a table with the keys `pk` and `sk`, a local index on `l` and a global one on `g`.
    pub(crate) async fn create_indexed_table(&self, name: &str) {
        let attribute =
            |name: &str, kind: &str| json!({"AttributeName": name, "AttributeType": kind});
        let key = |name: &str, kind: &str| json!({"AttributeName": name, "KeyType": kind});
        self.ok(
            "CreateTable",
            json!({
                "TableName": name,
                "BillingMode": "PAY_PER_REQUEST",
                "AttributeDefinitions": [
                    attribute("pk", "S"), attribute("sk", "N"), attribute("l", "S"), attribute("g", "S"),
                ],
                "KeySchema": [key("pk", "HASH"), key("sk", "RANGE")],
                "LocalSecondaryIndexes": [{
                    "IndexName": "local",
                    "KeySchema": [key("pk", "HASH"), key("l", "RANGE")],
                    "Projection": {"ProjectionType": "KEYS_ONLY"},
                }],
                "GlobalSecondaryIndexes": [{
                    "IndexName": "global",
                    "KeySchema": [key("g", "HASH")],
                    "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["v"]},
                }],
            }),
        )
        .await;
    }

    /// Creates a table whose only key is the string `pk`.
    pub(crate) async fn create_plain_table(&self, name: &str) {
        self.ok(
            "CreateTable",
            json!({
                "TableName": name,
                "BillingMode": "PAY_PER_REQUEST",
                "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
                "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
            }),
        )
        .await;
    }
}
