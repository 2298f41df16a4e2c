//! `homeport keys`: creates, lists and revokes API keys, in the store or through the server that has it open. Both return
//! the same bodies.

mod remote;
mod table;

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::bail;
use homeport_server::{ApiKeyBody, ApiKeyList, CreateApiKey, CreatedApiKey, RevokedApiKey};
use homeport_store::SystemClock;
use homeport_systems::api_keys::{ApiKeys, KeyId, PAGE_MAX, Pepper};
use homeport_systems::cursor::Cursor;

use crate::arguments::{KeysAccess, KeysCommand};
use crate::commands::store_access::StoreAccess;
use crate::config::Settings;
use crate::storage::backend::Backend;
use crate::storage::secrets;
use crate::{begin, print};

use remote::ServerKeys;

/// Limit of pages that a list reads.
const PAGES_MAX: usize = 1000;

/// Access to API keys.
enum Keys {
    Store { keys: ApiKeys, backend: Backend },
    Server(ServerKeys),
}

/// Why keys are opened.
#[derive(Clone, Copy)]
enum Purpose {
    Create,
    ListOrRevoke,
}

pub(crate) async fn run(command: KeysCommand) -> anyhow::Result<ExitCode> {
    match command {
        KeysCommand::Create(arguments) => {
            let new = CreateApiKey {
                description: arguments.description,
                system: arguments.system,
                scopes: arguments.scopes.into_iter().collect(),
                all: arguments.all,
                permissions: arguments.permissions.into_iter().collect(),
            };
            let keys = Keys::open(&arguments.access, Purpose::Create).await?;
            let created = keys.create(new).await;
            keys.close().await?;
            print(&show_created(&created?, arguments.json)?)
        }
        KeysCommand::List(arguments) => {
            let keys = Keys::open(&arguments.access, Purpose::ListOrRevoke).await?;
            let listed = keys.list().await;
            keys.close().await?;
            print(&show_list(listed?, arguments.json)?)
        }
        KeysCommand::Revoke(arguments) => {
            let keys = Keys::open(&arguments.access, Purpose::ListOrRevoke).await?;
            let revoked = keys.revoke(arguments.key_id).await;
            keys.close().await?;
            print(&show_revoked(&revoked?))
        }
    }
}

impl Keys {
    async fn open(access: &KeysAccess, purpose: Purpose) -> anyhow::Result<Self> {
        let settings = begin(&access.flags)?;
        match StoreAccess::open(&settings, access.url.as_ref()).await? {
            StoreAccess::Store(backend) => Self::in_store(backend, &settings, purpose).await,
            StoreAccess::Server(server) => Ok(Self::Server(ServerKeys(*server))),
        }
    }

    async fn in_store(
        backend: Backend,
        settings: &Settings,
        purpose: Purpose,
    ) -> anyhow::Result<Self> {
        let tables = homeport_systems::api_keys::schema::tables();
        backend.store.ensure_tables(&tables).await?;
        let keys = |pepper| {
            let store = Arc::clone(&backend.store);
            ApiKeys::new(store, Arc::new(SystemClock), Pepper::new(pepper))
        };
        let keys = match purpose {
            Purpose::Create => keys(secrets::pepper(settings, &backend.store).await?.text),
            // Only creating a key needs the pepper.
            Purpose::ListOrRevoke => keys(String::new()),
        };
        Ok(Self::Store { keys, backend })
    }

    async fn create(&self, new: CreateApiKey) -> anyhow::Result<CreatedApiKey> {
        match self {
            Self::Store { keys, .. } => Ok(keys.create(new.try_into()?).await?.into()),
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
        bail!(
            "there are more than {} API keys; list them page by page at GET /v1/api-keys",
            PAGES_MAX * PAGE_MAX
        )
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
        format!("{key_id} is now revoked\n")
    } else {
        format!("{key_id} was already revoked\n")
    }
}
