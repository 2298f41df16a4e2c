//! The store itself: a client, a clock, and what is known of the tables.

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

use crate::failure::chain;
use crate::feed::Feed;
use crate::settings::{Settings, TableOptions};

/// How often the SDK sends one request at most.
const ATTEMPTS_MAX: u32 = 5;
/// How long a connection may take to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// How long one attempt may take. The largest transaction is answered well within it.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a request may take with all its attempts and the pauses between them. The server gives a
/// whole request 30 seconds: the store is given up before that, so that who asked hears why.
const OPERATION_TIMEOUT: Duration = Duration::from_secs(20);
/// The same for the move of tables: nobody waits for its answers, and its batches may have a slow line to
/// go over.
const MOVE_ATTEMPT_TIMEOUT: Duration = Duration::from_secs(30);
const MOVE_OPERATION_TIMEOUT: Duration = Duration::from_secs(90);

/// A store whose tables are in Amazon DynamoDB.
#[derive(Debug)]
pub struct Remote {
    pub(crate) client: Client,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) options: TableOptions,
    /// What happened to the items of tables.
    pub(crate) feed: Feed,
    /// The endpoint if it is not Amazon's own, and the region.
    place: String,
    /// What has been learnt of tables: reads need to know the attribute with the time to live.
    known: RwLock<HashMap<String, Arc<TableSchema>>>,
}

/// Why no connection can be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    #[error("no region is set: set one, or AWS_REGION")]
    NoRegion,
    #[error("the endpoint {0:?} is no http:// or https:// address")]
    Endpoint(String),
    #[error("no credentials were found: {0}")]
    Credentials(String),
}

/// What requests of the move of tables have instead.
pub(crate) fn for_move() -> aws_sdk_dynamodb::config::Builder {
    let timeouts = TimeoutConfig::builder()
        .operation_attempt_timeout(MOVE_ATTEMPT_TIMEOUT)
        .operation_timeout(MOVE_OPERATION_TIMEOUT);
    aws_sdk_dynamodb::Config::builder().timeout_config(timeouts.build())
}

impl Remote {
    /// Makes ready to talk to DynamoDB: finds the region and the credentials. Nothing is sent to
    /// DynamoDB yet.
    ///
    /// # Errors
    /// When a setting is missing or wrong, or no credentials can be found.
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
        let place = match config.endpoint_url() {
            Some(url) => format!("{url} ({region})"),
            None => format!("Amazon DynamoDB ({region})"),
        };
        // Asked for once here, so that a missing key is told at the start and not by each request.
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
            place,
            known: RwLock::default(),
        })
    }

    /// Where this is, for people: the endpoint if it is not Amazon's own, and the region.
    #[must_use]
    pub fn place(&self) -> &str {
        &self.place
    }

    /// What is known of a table; DynamoDB is asked the first time.
    pub(crate) async fn table(&self, name: &str) -> Result<Arc<TableSchema>, StoreError> {
        if let Some(schema) = self.remembered(name) {
            return Ok(schema);
        }
        let schema = self
            .schema(name)
            .await?
            .ok_or_else(|| StoreError::TableMissing(name.to_owned()))?;
        Ok(self.remember(schema))
    }

    pub(crate) fn remember(&self, schema: TableSchema) -> Arc<TableSchema> {
        let schema = Arc::new(schema);
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.insert(schema.name.clone(), Arc::clone(&schema));
        schema
    }

    /// Forgets a table that turned out to be gone: there may be another by its name later.
    pub(crate) fn forget(&self, name: &str) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.remove(name);
    }

    fn remembered(&self, name: &str) -> Option<Arc<TableSchema>> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.get(name).map(Arc::clone)
    }
}
