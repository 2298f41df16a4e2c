//! `homeport keys`: API keys made, listed and revoked, in the store itself or through a server that
//! has it open. Both answer with the same bodies.

mod remote;
mod table;

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use homeport_engine::{Engine, OpenError};
use homeport_server::{ApiKeyBody, ApiKeyList, CreateApiKey, CreatedApiKey, RevokedApiKey};
use homeport_store::SystemClock;
use homeport_systems::api_keys::{ApiKeys, KeyId, PAGE_MAX, Pepper};
use homeport_systems::cursor::Cursor;

use crate::arguments::{KeysCommand, KeysPlace};
use crate::backend::{self, Backend};
use crate::config::{Settings, StoreKind};
use crate::{address, begin, print, secrets};

use remote::ServerKeys;

/// Pages that a list reads; there are a thousand keys on one.
const PAGES_MAX: usize = 1000;

/// The way to the keys.
enum Keys {
    Store { keys: ApiKeys, backend: Backend },
    Server(ServerKeys),
}

/// What keys are opened for.
#[derive(Clone, Copy)]
enum Use {
    Make,
    Look,
}

pub(crate) async fn run(command: KeysCommand) -> anyhow::Result<ExitCode> {
    match command {
        KeysCommand::Create(asked) => {
            let new = CreateApiKey {
                description: asked.description,
                system: asked.system,
                scopes: asked.scopes.into_iter().collect(),
            };
            let keys = Keys::open(&asked.place, Use::Make).await?;
            let created = keys.create(new).await;
            keys.close().await?;
            print(&show_created(&created?, asked.json)?)
        }
        KeysCommand::List(asked) => {
            let keys = Keys::open(&asked.place, Use::Look).await?;
            let listed = keys.list().await;
            keys.close().await?;
            print(&show_list(listed?, asked.json)?)
        }
        KeysCommand::Revoke(asked) => {
            let keys = Keys::open(&asked.place, Use::Look).await?;
            let revoked = keys.revoke(asked.key_id).await;
            keys.close().await?;
            print(&show_revoked(&revoked?))
        }
    }
}

impl Keys {
    /// Goes to the server that was named, else opens the store; a data directory that is being
    /// served is reached through its server.
    async fn open(place: &KeysPlace, wanted: Use) -> anyhow::Result<Self> {
        let settings = begin(&place.flags)?;
        if let Some(url) = &place.url {
            return ServerKeys::new(url, &settings).map(Self::Server);
        }
        if settings.store.kind == StoreKind::Dynamodb {
            let backend = Backend::open(&settings).await?;
            return Self::in_store(backend, &settings, wanted).await;
        }
        let data_dir = &settings.data.dir;
        backend::must_exist(data_dir)?;
        match Engine::open(data_dir, backend::brief_options(&settings)?) {
            Ok(engine) => Self::in_store(Backend::embedded(engine), &settings, wanted).await,
            Err(OpenError::Locked(_)) => {
                let Some(url) = address::read(data_dir) else {
                    bail!(
                        "the data directory {} is in use by another process, which did not say where it listens: name the server with --url",
                        data_dir.display()
                    );
                };
                note!("{} is being served: asking {url}", data_dir.display());
                ServerKeys::new(&url, &settings).map(Self::Server)
            }
            Err(error) => Err(error).with_context(|| format!("opening {}", data_dir.display())),
        }
    }

    async fn in_store(backend: Backend, settings: &Settings, wanted: Use) -> anyhow::Result<Self> {
        let tables = homeport_systems::api_keys::schema::tables();
        backend.store.ensure_tables(&tables).await?;
        let keys = |pepper| {
            let store = Arc::clone(&backend.store);
            ApiKeys::new(store, Arc::new(SystemClock), Pepper::new(pepper))
        };
        let keys = match (secrets::known_pepper(settings)?, wanted) {
            (Some(pepper), _) => keys(pepper.text),
            // What hashes no key needs no pepper.
            (None, Use::Look) => keys(String::new()),
            (None, Use::Make) => {
                let found = keys(String::new()).list(1, None).await?;
                if !found.keys.is_empty() {
                    bail!(secrets::PEPPER_ELSEWHERE);
                }
                keys(secrets::pepper(settings)?.text)
            }
        };
        Ok(Self::Store { keys, backend })
    }

    async fn create(&self, new: CreateApiKey) -> anyhow::Result<CreatedApiKey> {
        match self {
            Self::Store { keys, .. } => Ok(keys.create(new.into()).await?.into()),
            Self::Server(server) => server.create(&new).await,
        }
    }

    async fn list(&self) -> anyhow::Result<Vec<ApiKeyBody>> {
        let mut keys = Vec::new();
        let mut cursor = None;
        for _ in 0..PAGES_MAX {
            let page = self.page(cursor.as_deref()).await?;
            keys.extend(page.keys);
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Ok(keys);
            }
        }
        bail!("there are more than {} keys", PAGES_MAX * PAGE_MAX)
    }

    async fn page(&self, cursor: Option<&str>) -> anyhow::Result<ApiKeyList> {
        match self {
            Self::Store { keys, .. } => {
                let cursor = cursor.map(Cursor::decode).transpose()?;
                Ok(ApiKeyList::from(&keys.list(PAGE_MAX, cursor).await?))
            }
            Self::Server(server) => server.page(PAGE_MAX, cursor).await,
        }
    }

    async fn revoke(&self, key_id: KeyId) -> anyhow::Result<RevokedApiKey> {
        match self {
            Self::Store { keys, .. } => Ok(RevokedApiKey::from(&keys.revoke(key_id).await?)),
            Self::Server(server) => server.revoke(key_id).await,
        }
    }

    async fn close(self) -> anyhow::Result<()> {
        match self {
            Self::Store { keys, backend } => {
                drop(keys);
                backend.close().await
            }
            Self::Server(_) => Ok(()),
        }
    }
}

fn show_created(created: &CreatedApiKey, json: bool) -> anyhow::Result<String> {
    if json {
        return Ok(format!("{}\n", serde_json::to_string_pretty(created)?));
    }
    Ok(format!(
        "key id: {}\nAPI key (shown this once): {}\n",
        created.key.key_id, created.api_key
    ))
}

fn show_list(keys: Vec<ApiKeyBody>, json: bool) -> anyhow::Result<String> {
    if json {
        let list = ApiKeyList {
            keys,
            next_cursor: None,
        };
        return Ok(format!("{}\n", serde_json::to_string_pretty(&list)?));
    }
    Ok(table::render(&keys))
}

fn show_revoked(revoked: &RevokedApiKey) -> String {
    let key_id = &revoked.key.key_id;
    if revoked.was_active {
        format!("{key_id} was active and is revoked now\n")
    } else {
        format!("{key_id} had been revoked before\n")
    }
}
