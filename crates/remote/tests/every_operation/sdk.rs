//! A server of our protocol on an engine, its clients, and a list of the called operations.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::interceptors::BeforeTransmitInterceptorContextRef;
use aws_sdk_dynamodb::config::{
    BehaviorVersion, ConfigBag, Credentials, Intercept, Region, RuntimeComponents,
};
use aws_sdk_dynamodb::error::BoxError;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, AttributeValue, BillingMode, KeySchemaElement, KeyType,
    ScalarAttributeType, TableDescription, TableStatus,
};
use aws_smithy_http_client::Builder;
use aws_smithy_http_client::tls::{Provider, rustls_provider::CryptoMode};
use homeport_engine::{Engine, Options};
use homeport_wire::{Config, Credential};
use tokio::net::TcpListener;

/// The bucket for exports.
pub(crate) const BUCKET: &str = "exports";
/// Timeout of background work on the server.
const WAIT_MAX: Duration = Duration::from_secs(60);
const LOOK_PAUSE: Duration = Duration::from_millis(5);

pub(crate) struct Sdk {
    pub(crate) tables: Client,
    pub(crate) streams: aws_sdk_dynamodbstreams::Client,
    called: CalledOperations,
    /// Lives as long as the server.
    _directory: tempfile::TempDir,
}

/// The operations that were called.
#[derive(Debug, Clone, Default)]
struct CalledOperations(Arc<Mutex<BTreeSet<String>>>);

impl Intercept for CalledOperations {
    fn name(&self) -> &'static str {
        "called"
    }

    fn read_before_transmit(
        &self,
        context: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let target = context.request().headers().get("x-amz-target");
        let (_, name) = target
            .and_then(|target| target.split_once('.'))
            .ok_or("no target")?;
        self.0.lock().expect("names").insert(name.to_owned());
        Ok(())
    }
}

impl Sdk {
    pub(crate) async fn start() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let buckets = directory.path().join("buckets");
        std::fs::create_dir_all(buckets.join(BUCKET)).expect("a bucket");
        let data = directory.path().join("data");
        let engine = Engine::open(data, Options::default()).expect("opens");
        let config = Config {
            credentials: vec![Credential::new("AKIASDK", "secret")],
            buckets: Some(buckets),
            ..Config::default()
        };
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let service = homeport_wire::service(engine, config);
        tokio::spawn(service.serve(listener, std::future::pending()));
        let called = CalledOperations::default();
        let tls = Provider::Rustls(CryptoMode::Ring);
        let http = Builder::new().tls_provider(tls).build_https();
        let credentials = Credentials::new("AKIASDK", "secret", None, None, "test");
        let region = Region::new("us-east-1");
        let tables = aws_sdk_dynamodb::Config::builder()
            .behavior_version(BehaviorVersion::v2026_01_12())
            .endpoint_url(&url)
            .region(region.clone())
            .credentials_provider(credentials.clone())
            .http_client(http.clone())
            .interceptor(called.clone())
            .build();
        let streams = aws_sdk_dynamodbstreams::Config::builder()
            .behavior_version(BehaviorVersion::v2026_01_12())
            .endpoint_url(&url)
            .region(region)
            .credentials_provider(credentials)
            .http_client(http)
            .interceptor(called.clone())
            .build();
        Self {
            tables: Client::from_conf(tables),
            streams: aws_sdk_dynamodbstreams::Client::from_conf(streams),
            called,
            _directory: directory,
        }
    }

    pub(crate) fn called(&self) -> BTreeSet<String> {
        self.called.0.lock().expect("names").clone()
    }

    /// Creates a table with the partition key `id`; returns its description.
    pub(crate) async fn create(&self, table: &str) -> TableDescription {
        let created = self
            .tables
            .create_table()
            .table_name(table)
            .attribute_definitions(definition("id", ScalarAttributeType::S))
            .key_schema(element("id", KeyType::Hash))
            .billing_mode(BillingMode::PayPerRequest)
            .send()
            .await
            .expect("a table");
        created.table_description.expect("a description")
    }

    pub(crate) async fn put(&self, table: &str, id: &str) {
        let request = self.tables.put_item().table_name(table);
        request.item("id", text(id)).send().await.expect("a put");
    }

    pub(crate) async fn count(&self, table: &str) -> i32 {
        let scanned = self.tables.scan().table_name(table).send().await;
        scanned.expect("a page").count
    }

    pub(crate) async fn is_active(&self, table: &str) {
        within(async || {
            let described = self.tables.describe_table().table_name(table).send().await;
            let described = described.expect("an answer").table.expect("a table");
            (described.table_status == Some(TableStatus::Active)).then_some(())
        })
        .await;
    }
}

/// Polls `look` until it returns something.
pub(crate) async fn within<T>(look: impl AsyncFn() -> Option<T>) -> T {
    let wait = async {
        loop {
            if let Some(found) = look().await {
                return found;
            }
            tokio::time::sleep(LOOK_PAUSE).await;
        }
    };
    let waited = tokio::time::timeout(WAIT_MAX, wait).await;
    waited.expect("waited in vain")
}

pub(crate) fn text(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

pub(crate) fn number(text: &str) -> AttributeValue {
    AttributeValue::N(text.to_owned())
}

pub(crate) fn definition(name: &str, kind: ScalarAttributeType) -> AttributeDefinition {
    AttributeDefinition::builder()
        .attribute_name(name)
        .attribute_type(kind)
        .build()
        .expect("complete")
}

pub(crate) fn element(name: &str, kind: KeyType) -> KeySchemaElement {
    KeySchemaElement::builder()
        .attribute_name(name)
        .key_type(kind)
        .build()
        .expect("complete")
}
