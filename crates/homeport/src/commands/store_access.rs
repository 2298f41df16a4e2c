//! How a command reaches stored data: it opens the store, or asks the server that has it open.

use anyhow::{Context as _, bail};
use homeport_engine::{Engine, OpenError};

use crate::client::address;
use crate::client::pool::Trust;
use crate::client::server_client::ServerClient;
use crate::config::{Settings, StoreKind, Url};
use crate::storage::backend::{self, Backend};

pub(super) enum StoreAccess {
    Store(Backend),
    Server(Box<ServerClient>),
}

impl StoreAccess {
    /// Connects to the server at `url` if there is one, else opens the store.
    pub(super) async fn open(settings: &Settings, url: Option<&Url>) -> anyhow::Result<Self> {
        if let Some(url) = url {
            return Self::connect(url, settings, Trust::Roots);
        }
        match settings.store.kind {
            StoreKind::Dynamodb => Ok(Self::Store(Backend::open(settings).await?)),
            StoreKind::Embedded => Self::open_embedded(settings),
        }
    }

    /// Opens the data directory. If a server has it open, connects to that server.
    fn open_embedded(settings: &Settings) -> anyhow::Result<Self> {
        let data_dir = &settings.data.dir;
        backend::must_exist(data_dir)?;
        match Engine::open(data_dir, backend::brief_options(settings)?) {
            Ok(engine) => Ok(Self::Store(Backend::embedded(engine))),
            Err(OpenError::Locked(_)) => {
                let Some(url) = address::read(data_dir) else {
                    bail!(
                        "the data directory {} is in use by another process whose address is unknown; if it is a server, give its address with --url",
                        data_dir.display()
                    );
                };
                print_notice!(
                    "{} is in use by a server; connecting to {url}",
                    data_dir.display()
                );
                let trust = match url.has_tls() {
                    true => Trust::Certificate(address::certificate_file(data_dir)),
                    false => Trust::Roots,
                };
                Self::connect(&url, settings, trust)
            }
            Err(error) => Err(error).with_context(|| format!("opening {}", data_dir.display())),
        }
    }

    fn connect(url: &Url, settings: &Settings, trust: Trust) -> anyhow::Result<Self> {
        ServerClient::new(url, settings, trust).map(|server| Self::Server(Box::new(server)))
    }
}
