//! Opens the store that the settings choose.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use homeport_engine::{Durability, Engine, Options};
use homeport_remote::{Remote, TableOptions};
use homeport_store::{ChangeFeed, Clock, Store, SystemClock};

use crate::config::{DurabilitySetting, Settings, StoreKind, StoreSettings};
use crate::storage::descriptors::DescriptorLimit;
use crate::storage::master_key;

const MEBIBYTE: u64 = 1024 * 1024;

/// An open store.
pub(crate) struct Backend {
    pub(crate) store: Arc<dyn Store>,
    /// The change feed, if the store has one.
    pub(crate) feed: Option<Arc<dyn ChangeFeed>>,
    /// The engine, if the store is embedded.
    pub(crate) engine: Option<Engine>,
    /// The client, if the store is Amazon DynamoDB.
    pub(crate) remote: Option<Arc<Remote>>,
}

impl Backend {
    /// Opens the chosen store for serving.
    pub(crate) async fn open(settings: &Settings) -> anyhow::Result<Self> {
        match settings.store.kind {
            StoreKind::Embedded => {
                let path = settings.data.dir.clone();
                let options = engine_options(settings).await?;
                let open = move || Engine::open(path, options);
                Ok(Self::embedded(tokio::task::spawn_blocking(open).await??))
            }
            StoreKind::Dynamodb => {
                let remote = open_remote(&settings.store).await?;
                let backend = Self {
                    store: Arc::clone(&remote) as _,
                    feed: Some(Arc::clone(&remote) as _),
                    engine: None,
                    remote: Some(remote),
                };
                // Secrets are kept on this machine even if the store is remote.
                prepare_secrets_directory(&settings.data.dir)?;
                Ok(backend)
            }
        }
    }

    pub(crate) fn embedded(engine: Engine) -> Self {
        Self {
            store: Arc::new(engine.clone()),
            feed: Some(Arc::new(engine.clone())),
            engine: Some(engine),
            remote: None,
        }
    }

    /// The clock that decides when old data is deleted.
    pub(crate) fn removal_clock(&self) -> Arc<dyn Clock> {
        match &self.engine {
            Some(engine) => engine.removal_clock(),
            None => Arc::new(SystemClock),
        }
    }

    /// Closes the store.
    pub(crate) async fn close(self) -> anyhow::Result<()> {
        tokio::task::spawn_blocking(move || drop(self))
            .await
            .context("closing the store")
    }
}

/// Engine options of commands, which work on a directory for a short time.
pub(crate) fn brief_options(settings: &Settings) -> anyhow::Result<Options> {
    Ok(Options {
        background_sweep: false,
        master_key: master_key::read(&settings.encryption)?,
        open_files_max: DescriptorLimit::raise().store_files(),
        ..Options::default()
    })
}

/// Creates a data directory for secrets, or makes an existing one private.
fn prepare_secrets_directory(data_dir: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(data_dir)
        .and_then(|()| homeport_engine::tighten_directory(data_dir))
        .with_context(|| format!("preparing the data directory {}", data_dir.display()))?;
    Ok(())
}

/// Rejects a missing data directory: only `serve` and `restore` create one.
pub(crate) fn must_exist(data_dir: &Path) -> anyhow::Result<()> {
    if !data_dir.is_dir() {
        bail!(
            "there is no data directory at {}; name it with --data-dir, or create it with `homeport serve`",
            data_dir.display()
        );
    }
    Ok(())
}

async fn engine_options(settings: &Settings) -> anyhow::Result<Options> {
    // Off the runtime: a command that fetches the key may take long.
    let encryption = settings.encryption.clone();
    let master_key = tokio::task::spawn_blocking(move || master_key::read(&encryption)).await??;
    let settings = &settings.store;
    Ok(Options {
        master_key,
        durability: match settings.durability {
            DurabilitySetting::Sync => Durability::Sync,
            DurabilitySetting::Relaxed => Durability::Relaxed,
        },
        cache_bytes: settings.cache_mib.get() * MEBIBYTE,
        open_files_max: DescriptorLimit::raise().store_files(),
        disk_reserve_bytes: settings.disk_reserve_mib.get() * MEBIBYTE,
        ..Options::default()
    })
}

/// Connects to Amazon DynamoDB. Nothing else does.
pub(crate) async fn open_remote(settings: &StoreSettings) -> anyhow::Result<Arc<Remote>> {
    let settings = homeport_remote::Settings {
        endpoint_url: settings.endpoint_url.as_ref().map(ToString::to_string),
        region: settings.region.clone(),
        // AWS's own settings provide the credential: environment, profile or instance role.
        access_key: None,
        tables: TableOptions {
            point_in_time_recovery: settings.point_in_time_recovery,
            kms_key_id: settings.kms_key_id.clone(),
            stream: None,
            tags: settings.tags.0.iter().cloned().collect(),
            deletion_protection: settings.deletion_protection,
        },
    };
    let remote = Remote::connect(settings, Arc::new(SystemClock))
        .await
        .context("connecting to Amazon DynamoDB")?;
    Ok(Arc::new(remote))
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn existing_secrets_directory_becomes_private() {
        let room = tempfile::tempdir().expect("a directory");
        let data_dir = room.path().join("data");
        let token = data_dir.join("admin-token");
        std::fs::create_dir(&data_dir).expect("made");
        std::fs::write(&token, "secret").expect("written");
        for (path, mode) in [(&data_dir, 0o755), (&token, 0o644)] {
            let open = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(path, open).expect("set");
        }
        prepare_secrets_directory(&data_dir).expect("prepared");
        for (path, expected) in [(&data_dir, 0o700), (&token, 0o600)] {
            let found = std::fs::metadata(path).expect("there");
            assert_eq!(found.permissions().mode() & 0o777, expected);
        }
    }

    #[test]
    fn shared_secrets_directory_is_refused_unchanged() {
        let room = tempfile::tempdir().expect("a directory");
        let shared = std::fs::Permissions::from_mode(0o1777);
        std::fs::set_permissions(room.path(), shared).expect("set");
        let refused = prepare_secrets_directory(room.path()).expect_err("refused");
        assert!(format!("{refused:#}").contains("sticky bit"), "{refused:#}");
        let found = std::fs::metadata(room.path()).expect("there");
        assert_eq!(found.permissions().mode() & 0o7777, 0o1777);
    }
}
