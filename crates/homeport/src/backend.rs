//! Opening the store that the settings choose.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use homeport_engine::{Durability, Engine, Options};
use homeport_remote::{Remote, TableOptions};
use homeport_store::{ChangeFeed, Clock, Store, SystemClock};

use crate::config::{DurabilityWord, Settings, StoreKind, StoreSettings};
use crate::descriptors::DescriptorLimit;
use crate::master_key;

const MEBIBYTE: u64 = 1024 * 1024;

/// A store that is open.
pub(crate) struct Backend {
    pub(crate) store: Arc<dyn Store>,
    /// What happened to its items, where that can be followed.
    pub(crate) feed: Option<Arc<dyn ChangeFeed>>,
    /// The embedded engine, when that is the store.
    pub(crate) engine: Option<Engine>,
    /// Amazon DynamoDB, when that is the store.
    pub(crate) remote: Option<Arc<Remote>>,
}

impl Backend {
    /// Opens the chosen store to serve it.
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
                // Secrets are kept on this machine whatever the store is.
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

    /// A clock to delete old data by.
    pub(crate) fn removal_clock(&self) -> Arc<dyn Clock> {
        match &self.engine {
            Some(engine) => engine.removal_clock(),
            None => Arc::new(SystemClock),
        }
    }

    /// Closes the store: what is still held is let go.
    pub(crate) async fn close(self) -> anyhow::Result<()> {
        tokio::task::spawn_blocking(move || drop(self))
            .await
            .context("closing the store")
    }
}

/// Options for work on a directory that is done in a moment.
pub(crate) fn brief_options(settings: &Settings) -> anyhow::Result<Options> {
    Ok(Options {
        background_sweep: false,
        master_key: master_key::read(&settings.encryption)?,
        open_files_max: DescriptorLimit::raise().store_files(),
        ..Options::default()
    })
}

/// Makes a data directory that holds only secrets, or keeps other users out of the one that is there.
fn prepare_secrets_directory(data_dir: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(data_dir)
        .and_then(|()| homeport_engine::tighten_directory(data_dir))
        .with_context(|| format!("preparing the data directory {}", data_dir.display()))?;
    Ok(())
}

/// Refuses a directory that is not there: only serving and restoring make one.
pub(crate) fn must_exist(data_dir: &Path) -> anyhow::Result<()> {
    if !data_dir.is_dir() {
        bail!("there is no data directory at {}", data_dir.display());
    }
    Ok(())
}

async fn engine_options(settings: &Settings) -> anyhow::Result<Options> {
    // A command that fetches it may take its time.
    let encryption = settings.encryption.clone();
    let master_key = tokio::task::spawn_blocking(move || master_key::read(&encryption)).await??;
    let settings = &settings.store;
    Ok(Options {
        master_key,
        durability: match settings.durability {
            DurabilityWord::Sync => Durability::Sync,
            DurabilityWord::Relaxed => Durability::Relaxed,
        },
        cache_bytes: settings.cache_mib.get() * MEBIBYTE,
        open_files_max: DescriptorLimit::raise().store_files(),
        disk_reserve_bytes: settings.disk_reserve_mib.get() * MEBIBYTE,
        ..Options::default()
    })
}

/// Opens Amazon DynamoDB. This is the only place that does.
pub(crate) async fn open_remote(settings: &StoreSettings) -> anyhow::Result<Arc<Remote>> {
    let settings = homeport_remote::Settings {
        endpoint_url: settings.endpoint_url.as_ref().map(ToString::to_string),
        region: settings.region.clone(),
        // Who asks is for AWS's own settings to say: environment, profile or machine.
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
        .context("reaching Amazon DynamoDB")?;
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
