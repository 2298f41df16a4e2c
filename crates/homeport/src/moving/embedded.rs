//! The embedded store as a place to move from or to. A server that has it open is asked on its port; where
//! none has, this process opens it, and speaks the same protocol to itself.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use anyhow::{Context as _, bail};
use homeport_engine::{Engine, OpenError};
use homeport_remote::{AccessKey, Remote, TableOptions};
use homeport_store::SystemClock;
use homeport_wire::{Config, Credential};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::config::{Secret, Settings};
use crate::{address, backend, serve};

const SECRET_BYTES: usize = 32;
/// A server without credentials takes any; a request cannot be made without.
const ANY: &str = "homeport";

/// What the embedded store is to a move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Source,
    /// The source, which nobody may have open: that is the proof that nothing writes to it.
    SourceAtRest,
    Target,
}

/// The embedded store, where it can be reached.
pub(super) struct Embedded {
    url: String,
    region: String,
    key: AccessKey,
    /// What this process serves itself, if it does.
    served: Option<Served>,
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
                "{} is still open in another process: stop the server first, so that nothing writes any more",
                data_dir.display()
            ),
            Err(OpenError::Locked(_)) => Self::of_server(settings),
            Err(error) => Err(error).with_context(|| format!("opening {}", data_dir.display())),
        }
    }

    /// The server that has the directory open.
    fn of_server(settings: &Settings) -> anyhow::Result<Self> {
        let data_dir = &settings.data.dir;
        let Some(url) = address::read_dynamodb(data_dir) else {
            bail!(
                "{} is in use by another process, which does not serve DynamoDB's protocol; a server does unless dynamodb.listen is off",
                data_dir.display()
            );
        };
        say!("{} is being served: asking {url}", data_dir.display());
        let dynamodb = &settings.dynamodb;
        let id = dynamodb.access_key_id.as_deref().unwrap_or(ANY);
        let secret = dynamodb.secret_access_key.as_ref();
        let secret = secret.map_or(ANY, Secret::reveal);
        Ok(Self {
            url: url.to_string(),
            region: dynamodb.region.clone(),
            key: AccessKey::new(id, secret),
            served: None,
        })
    }

    /// Serves the store to this process alone: nobody else knows the secret.
    async fn serve(engine: Engine, settings: &Settings) -> anyhow::Result<Self> {
        // A server that was killed left its address, where somebody else may listen now.
        address::forget_dynamodb(&settings.data.dir)?;
        let mut secret = [0; SECRET_BYTES];
        getrandom::fill(&mut secret).context("randomness")?;
        let secret = hex::encode(secret);
        let config = Config {
            region: settings.dynamodb.region.clone(),
            credentials: vec![Credential::new(ANY, secret.as_str())],
            ..Config::default()
        };
        let listener = serve::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await?;
        let url = format!("http://{}", listener.local_addr()?);
        let (stop, stopped) = oneshot::channel::<()>();
        let service = homeport_wire::service(engine.clone(), config);
        let task = tokio::spawn(service.serve(listener, async {
            // An error means that the sender is gone, which is a reason to stop as well.
            let _ = stopped.await;
        }));
        Ok(Self {
            url,
            region: settings.dynamodb.region.clone(),
            key: AccessKey::new(ANY, secret),
            served: Some(Served { engine, stop, task }),
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
        Ok(Arc::new(remote.context("reaching the embedded store")?))
    }

    /// Closes what this process has open.
    pub(super) async fn close(self) -> anyhow::Result<()> {
        let Some(Served { engine, stop, task }) = self.served else {
            return Ok(());
        };
        let _ = stop.send(());
        task.await.context("ending DynamoDB's connections")?;
        tokio::task::spawn_blocking(move || drop(engine))
            .await
            .context("closing the store")
    }
}
