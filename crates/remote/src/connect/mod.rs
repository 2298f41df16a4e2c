//! The store: a client, a clock, and a cache of table schemas.

pub(crate) mod backoff;
pub(crate) mod settings;

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, Region};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::{Credentials, ProvideCredentials};
use aws_smithy_http_client::Builder;
use aws_smithy_http_client::tls::{Provider, rustls_provider::CryptoMode};
use homeport_item::schema::TableSchema;
use homeport_store::{Clock, StoreError};

use crate::connect::settings::{Settings, TableOptions};
use crate::convert::failure::chain;
use crate::feed::Feed;

/// Maximum number of attempts of the SDK per request.
const ATTEMPTS_MAX: u32 = 5;
/// Timeout for opening a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Timeout of one attempt. The largest transaction completes well within it.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(5);
/// Timeout of a request with all its attempts and delays. The server limits a whole request to 30
/// seconds; this is shorter, so the caller gets the reason.
const OPERATION_TIMEOUT: Duration = Duration::from_secs(20);
/// Timeouts for the move of tables: nobody waits for the responses, and its batches may use a slow
/// line.
const MOVE_ATTEMPT_TIMEOUT: Duration = Duration::from_secs(30);
const MOVE_OPERATION_TIMEOUT: Duration = Duration::from_secs(90);

/// A store with its tables in Amazon DynamoDB.
#[derive(Debug)]
pub struct Remote {
    pub(crate) client: Client,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) options: TableOptions,
    /// The change feed of the tables.
    pub(crate) feed: Feed,
    /// The endpoint, if it is not Amazon's, and the region.
    endpoint: String,
    /// Cached table schemas, which reads need for the time-to-live attribute.
    schemas: RwLock<HashMap<String, Arc<TableSchema>>>,
}

/// Why connecting failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    #[error("no region is configured; set the region or AWS_REGION")]
    NoRegion,
    #[error("invalid endpoint {0:?}; use an http:// or https:// URL")]
    Endpoint(String),
    #[error("no AWS credentials found: {0}")]
    Credentials(String),
}

/// The client configuration for the move of tables.
pub(crate) fn for_move() -> aws_sdk_dynamodb::config::Builder {
    let timeouts = TimeoutConfig::builder()
        .operation_attempt_timeout(MOVE_ATTEMPT_TIMEOUT)
        .operation_timeout(MOVE_OPERATION_TIMEOUT);
    aws_sdk_dynamodb::Config::builder().timeout_config(timeouts.build())
}

impl Remote {
    /// Prepares a client: resolves the region and the credentials. Sends nothing to DynamoDB.
    ///
    /// # Errors
    /// When a setting is missing or invalid, or there are no credentials.
    pub async fn connect(settings: Settings, clock: Arc<dyn Clock>) -> Result<Self, ConnectError> {
        let Settings {
            endpoint_url,
            region,
            access_key,
            tables,
        } = settings;
        let tls = Provider::Rustls(CryptoMode::Ring);
        let mut loader = aws_config::defaults(BehaviorVersion::v2026_01_12())
            .http_client(Builder::new().tls_provider(tls).build_https())
            .retry_config(RetryConfig::adaptive().with_max_attempts(ATTEMPTS_MAX))
            .timeout_config(
                TimeoutConfig::builder()
                    .connect_timeout(CONNECT_TIMEOUT)
                    .operation_attempt_timeout(ATTEMPT_TIMEOUT)
                    .operation_timeout(OPERATION_TIMEOUT)
                    .build(),
            );
        if let Some(url) = endpoint_url {
            if !url.starts_with("http://") && !url.starts_with("https://") {
                return Err(ConnectError::Endpoint(url));
            }
            loader = loader.endpoint_url(url);
        }
        if let Some(region) = region {
            loader = loader.region(Region::new(region));
        }
        if let Some(key) = access_key {
            let credentials = Credentials::new(key.id, key.secret, None, None, "homeport");
            loader = loader.credentials_provider(credentials);
        }
        let config = loader.load().await;
        let region = config.region().ok_or(ConnectError::NoRegion)?;
        let endpoint = match config.endpoint_url() {
            Some(url) => format!("{url} ({region})"),
            None => format!("Amazon DynamoDB ({region})"),
        };
        // Resolved once here, so that missing credentials fail at startup instead of on each
        // request.
        match config.credentials_provider() {
            None => return Err(ConnectError::Credentials("none are set".to_owned())),
            Some(provider) => {
                let found = provider.provide_credentials().await;
                found.map_err(|error| ConnectError::Credentials(chain(&error)))?;
            }
        }
        Ok(Self {
            client: Client::new(&config),
            feed: Feed::new(&config),
            clock,
            options: tables,
            endpoint,
            schemas: RwLock::default(),
        })
    }

    /// A description for people: the endpoint, if it is not Amazon's, and the region.
    #[must_use]
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// The schema of a table, fetched from DynamoDB on first use.
    pub(crate) async fn table(&self, name: &str) -> Result<Arc<TableSchema>, StoreError> {
        if let Some(schema) = self.cached_schema(name) {
            return Ok(schema);
        }
        let schema = self
            .schema(name)
            .await?
            .ok_or_else(|| StoreError::TableNotFound(name.to_owned()))?;
        Ok(self.remember(schema))
    }

    pub(crate) fn remember(&self, schema: TableSchema) -> Arc<TableSchema> {
        let schema = Arc::new(schema);
        let mut schemas = self.schemas.write().unwrap_or_else(PoisonError::into_inner);
        schemas.insert(schema.name.clone(), Arc::clone(&schema));
        schema
    }

    /// Removes a missing table from the cache, because another one may get its name later.
    pub(crate) fn forget(&self, name: &str) {
        let mut schemas = self.schemas.write().unwrap_or_else(PoisonError::into_inner);
        schemas.remove(name);
    }

    fn cached_schema(&self, name: &str) -> Option<Arc<TableSchema>> {
        let schemas = self.schemas.read().unwrap_or_else(PoisonError::into_inner);
        schemas.get(name).map(Arc::clone)
    }
}
