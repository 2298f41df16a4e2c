//! The embedded store as source or target of a move: through the server that has it open, or else opened by this process
//! and served to itself. Both speak DynamoDB's protocol.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use anyhow::{Context as _, bail};
use homeport_engine::{Engine, OpenError};
use homeport_remote::{AccessKey, Remote, TableOptions};
use homeport_store::SystemClock;
use homeport_wire::{Config, Credential};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::app::serve;
use crate::client::address;
use crate::client::tunnel::Tunnel;
use crate::config::{Secret, Settings};
use crate::storage::backend;

const SECRET_BYTES: usize = 32;
/// Credential for a server without credentials, which accepts any.
const ANY: &str = "homeport";

/// The role of the embedded store in a move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Source,
    /// The source of a finishing move. No process may have it open, which proves that nothing writes to it.
    SourceAtRest,
    Target,
}

/// Access to the embedded store.
pub(super) struct Embedded {
    url: String,
    region: String,
    key: AccessKey,
    /// The port that this process serves, if it opened the store.
    served: Option<Served>,
    /// The way to a server with TLS.
    _tunnel: Option<Tunnel>,
}

struct Served {
    engine: Engine,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Embedded {
    pub(super) async fn reach(settings: &Settings, role: Role) -> anyhow::Result<Self> {
        let data_dir = &settings.data.dir;
        if role != Role::Target {
            backend::must_exist(data_dir)?;
        }
        let path = data_dir.clone();
        let known = settings.clone();
        let options = tokio::task::spawn_blocking(move || backend::brief_options(&known)).await??;
        let open = move || Engine::open(path, options);
        match tokio::task::spawn_blocking(open).await? {
            Ok(engine) => Self::serve(engine, settings).await,
            Err(OpenError::Locked(_)) if role == Role::SourceAtRest => bail!(
                "{} is in use by another process; stop the server, so that nothing writes during --finish",
                data_dir.display()
            ),
            Err(OpenError::Locked(_)) => Self::of_server(settings).await,
            Err(error) => Err(error).with_context(|| format!("opening {}", data_dir.display())),
        }
    }

    /// Access through the server that has the directory open.
    async fn of_server(settings: &Settings) -> anyhow::Result<Self> {
        let data_dir = &settings.data.dir;
        let Some(url) = address::read_dynamodb(data_dir) else {
            bail!(
                "{} is in use by a process that does not serve DynamoDB's protocol; if it is a server, set dynamodb.listen to an address",
                data_dir.display()
            );
        };
        print_line!(
            "{} is in use by a server; connecting to {url}",
            data_dir.display()
        );
        let dynamodb = &settings.dynamodb;
        let id = dynamodb.access_key_id.as_deref().unwrap_or(ANY);
        let secret = dynamodb.secret_access_key.as_ref();
        let secret = secret.map_or(ANY, Secret::reveal);
        // The AWS SDK can only check a certificate for the name in the URL.
        let tunnel = match url.has_tls() {
            true => {
                let certificate = address::certificate_file(data_dir);
                Some(Tunnel::open(&url.to_string().parse()?, certificate).await?)
            }
            false => None,
        };
        Ok(Self {
            url: match &tunnel {
                Some(tunnel) => format!("http://{}", tunnel.address),
                None => url.to_string(),
            },
            region: dynamodb.region.clone(),
            key: AccessKey::new(id, secret),
            served: None,
            _tunnel: tunnel,
        })
    }

    /// Serves the store to this process only: the secret is random.
    async fn serve(engine: Engine, settings: &Settings) -> anyhow::Result<Self> {
        // A killed server may have left its address, on which another program may listen now.
        address::forget_dynamodb(&settings.data.dir)?;
        let mut secret = [0; SECRET_BYTES];
        getrandom::fill(&mut secret).context("randomness")?;
        let secret = hex::encode(secret);
        let config = Config {
            region: settings.dynamodb.region.clone(),
            credentials: vec![Credential::new(ANY, secret.as_str())],
            ..Config::default()
        };
        let listener = serve::bind(
            SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            "dynamodb-listen",
        )
        .await?;
        let url = format!("http://{}", listener.local_addr()?);
        let (stop, stopped) = oneshot::channel::<()>();
        let service = homeport_wire::service(engine.clone(), config);
        let task = tokio::spawn(service.serve(listener, async {
            // An error means that the sender is gone, which also means to stop.
            let _ = stopped.await;
        }));
        Ok(Self {
            url,
            region: settings.dynamodb.region.clone(),
            key: AccessKey::new(ANY, secret),
            served: Some(Served { engine, stop, task }),
            _tunnel: None,
        })
    }

    pub(super) async fn connect(&self) -> anyhow::Result<Arc<Remote>> {
        let settings = homeport_remote::Settings {
            endpoint_url: Some(self.url.clone()),
            region: Some(self.region.clone()),
            access_key: Some(self.key.clone()),
            tables: TableOptions::default(),
        };
        let remote = Remote::connect(settings, Arc::new(SystemClock)).await;
        Ok(Arc::new(
            remote.context("connecting to the embedded store")?,
        ))
    }

    /// Closes the store if this process opened it.
    pub(super) async fn close(self) -> anyhow::Result<()> {
        let Some(Served { engine, stop, task }) = self.served else {
            return Ok(());
        };
        let _ = stop.send(());
        task.await
            .context("waiting for DynamoDB connections to close")?;
        tokio::task::spawn_blocking(move || drop(engine))
            .await
            .context("closing the store")
    }
}
