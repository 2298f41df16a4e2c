//! Fresh stores for tests: the embedded engine, and through the AWS SDK our own protocol over an engine and two other
//! implementations of DynamoDB. No product code depends on this crate; tests of any crate may.

mod dynoxide;
mod wire;

use std::sync::Arc;

use homeport_engine::{Engine, Options};
use homeport_remote::{AccessKey, Remote, Settings, TableOptions};
use homeport_store::contract::Fixture;
use homeport_store::{ChangeFeed, Clock, Store};

/// Environment variable with the URL of moto.
const MOTO_VARIABLE: &str = "HOMEPORT_MOTO";
/// Environment variable with the path of dynoxide.
const DYNOXIDE_VARIABLE: &str = "HOMEPORT_DYNOXIDE";

/// The kind of store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The embedded engine, used directly.
    Engine,
    /// The engine behind our own protocol, in this process.
    Wire,
    /// dynoxide, in its own process that ends with the test.
    Dynoxide,
    /// moto, in the one process that `cargo xtask test` starts. Each store has its own region, and therefore its own tables.
    Moto,
}

/// A store with everything that must live as long as it does.
pub struct Backend {
    store: Arc<dyn Store>,
    feed: Arc<dyn ChangeFeed>,
    endpoint: Option<Endpoint>,
    /// Dropped last, after its users.
    held: Held,
}

/// The address of a remote store.
#[derive(Debug, Clone)]
pub struct Endpoint {
    pub url: String,
    pub region: String,
}

/// What must live as long as a store.
#[allow(dead_code)]
enum Held {
    Nothing,
    Directory(tempfile::TempDir),
    Wire(wire::Wire),
    Dynoxide(dynoxide::Dynoxide),
}

impl Backend {
    /// Starts an empty store with this clock.
    ///
    /// # Panics
    /// If it cannot be started, usually because `cargo xtask test` has not prepared it.
    pub async fn start(kind: Kind, clock: Arc<dyn Clock>) -> Self {
        if kind == Kind::Engine {
            let directory = tempfile::tempdir().expect("a directory");
            return Self::on_engine(clock, directory);
        }
        let (endpoint, held) = start_endpoint(kind, &clock).await;
        Self::at(endpoint, clock, held).await
    }

    /// Reopens the store's data, as another process would find it.
    ///
    /// # Panics
    /// If it cannot be reopened.
    pub async fn reopen(self, clock: Arc<dyn Clock>) -> Self {
        let Self {
            store,
            feed,
            endpoint,
            held,
        } = self;
        drop((store, feed));
        match (endpoint, held) {
            (Some(endpoint), held) => Self::at(endpoint, clock, held).await,
            (None, Held::Directory(directory)) => Self::on_engine(clock, directory),
            (None, _) => unreachable!("an engine has a directory"),
        }
    }

    fn on_engine(clock: Arc<dyn Clock>, directory: tempfile::TempDir) -> Self {
        let engine = open_engine(directory.path(), clock);
        Self {
            store: Arc::new(engine.clone()),
            feed: Arc::new(engine),
            endpoint: None,
            held: Held::Directory(directory),
        }
    }

    async fn at(endpoint: Endpoint, clock: Arc<dyn Clock>, held: Held) -> Self {
        let remote = Arc::new(endpoint.connect(clock, TableOptions::default()).await);
        Self {
            store: Arc::clone(&remote) as _,
            feed: remote,
            endpoint: Some(endpoint),
            held,
        }
    }

    /// The change feed of the store.
    #[must_use]
    pub fn feed(&self) -> Arc<dyn ChangeFeed> {
        Arc::clone(&self.feed)
    }

    #[must_use]
    pub fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store)
    }

    /// The address of the store.
    ///
    /// # Panics
    /// For the embedded engine, which has no address.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        self.endpoint.as_ref().expect("a store behind an endpoint")
    }
}

impl std::fmt::Debug for Backend {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Backend")
            .field("endpoint", &self.endpoint)
            .finish_non_exhaustive()
    }
}

impl Fixture for Backend {
    fn store(&self) -> Arc<dyn Store> {
        Self::store(self)
    }
}

impl Endpoint {
    /// The settings for connecting to it.
    #[must_use]
    pub fn settings(&self, tables: TableOptions) -> Settings {
        Settings {
            endpoint_url: Some(self.url.clone()),
            region: Some(self.region.clone()),
            access_key: Some(AccessKey::new("test", "test")),
            tables,
        }
    }

    /// Another connection to it.
    ///
    /// # Panics
    /// If connecting fails.
    pub async fn connect(&self, clock: Arc<dyn Clock>, tables: TableOptions) -> Remote {
        let connected = Remote::connect(self.settings(tables), clock).await;
        connected.expect("the settings are complete")
    }
}

async fn start_endpoint(kind: Kind, clock: &Arc<dyn Clock>) -> (Endpoint, Held) {
    let region = "us-east-1".to_owned();
    match kind {
        Kind::Moto => {
            let url = variable(MOTO_VARIABLE);
            let region = format!("test-{}", uuid::Uuid::new_v4().simple());
            (Endpoint { url, region }, Held::Nothing)
        }
        Kind::Dynoxide => {
            let dynoxide = dynoxide::Dynoxide::start(variable(DYNOXIDE_VARIABLE).as_ref()).await;
            let url = dynoxide.url.clone();
            (Endpoint { url, region }, Held::Dynoxide(dynoxide))
        }
        Kind::Wire | Kind::Engine => {
            let wire = wire::Wire::start(Arc::clone(clock)).await;
            let url = wire.url.clone();
            (Endpoint { url, region }, Held::Wire(wire))
        }
    }
}

/// An engine without a background sweep.
fn open_engine(directory: &std::path::Path, clock: Arc<dyn Clock>) -> Engine {
    let options = Options {
        clock,
        background_sweep: false,
        ..Options::default()
    };
    Engine::open(directory, options).expect("opens")
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| {
        panic!("{name} is not set: run the tests with `cargo xtask test`, which installs and starts what they need")
    })
}
