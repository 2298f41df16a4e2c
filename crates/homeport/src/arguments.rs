//! The command line. Every setting can also come from the environment.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use homeport_engine::{Durability, Options};
use homeport_wire::{Config, Credential};

const MEBIBYTE: u64 = 1024 * 1024;

#[derive(Debug, Parser)]
#[command(
    name = "homeport",
    version,
    about = "A device-data backend in one binary"
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Open the data directory and serve until stopped
    Serve(ServeSettings),
    /// Verify a data directory that is not being served
    Check(DataSettings),
    /// Write all tables of a data directory that is not being served to a file
    Backup(BackupSettings),
    /// Make a new data directory from a backup
    Restore(RestoreSettings),
}

#[derive(Debug, Args)]
pub(crate) struct DataSettings {
    /// Where the data is kept
    #[arg(
        long,
        env = "HOMEPORT_DATA_DIR",
        default_value = "data",
        value_name = "DIR"
    )]
    pub(crate) data_dir: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct ServeSettings {
    #[command(flatten)]
    pub(crate) data: DataSettings,

    /// When a write is acknowledged
    #[arg(long, env = "HOMEPORT_DURABILITY", default_value = "sync")]
    pub(crate) durability: DurabilitySetting,

    /// Memory for data read from disk, in MiB
    #[arg(long, env = "HOMEPORT_CACHE_MIB", default_value_t = 64, value_name = "MIB",
          value_parser = clap::value_parser!(u64).range(1..=1_048_576))]
    pub(crate) cache_mib: u64,

    #[command(flatten)]
    pub(crate) dynamodb: DynamodbSettings,
}

#[derive(Debug, Args)]
pub(crate) struct DynamodbSettings {
    /// Where DynamoDB's protocol is served; without an access key only on this machine
    #[arg(
        long,
        env = "HOMEPORT_DYNAMODB_LISTEN",
        default_value = "127.0.0.1:8000",
        value_name = "ADDRESS"
    )]
    pub(crate) dynamodb_listen: SocketAddr,

    /// The region in ARNs
    #[arg(
        long,
        env = "HOMEPORT_DYNAMODB_REGION",
        default_value = "us-east-1",
        value_name = "REGION"
    )]
    pub(crate) dynamodb_region: String,

    /// The access key id that requests must be signed with
    #[arg(
        long,
        env = "HOMEPORT_DYNAMODB_ACCESS_KEY_ID",
        value_name = "ID",
        requires = "dynamodb_secret_access_key"
    )]
    pub(crate) dynamodb_access_key_id: Option<String>,

    /// Its secret; better given in the environment than on the command line
    #[arg(
        long,
        env = "HOMEPORT_DYNAMODB_SECRET_ACCESS_KEY",
        value_name = "SECRET",
        hide_env_values = true,
        requires = "dynamodb_access_key_id"
    )]
    dynamodb_secret_access_key: Option<Secret>,

    /// Connections that are served at one time
    #[arg(
        long,
        env = "HOMEPORT_DYNAMODB_CONNECTIONS",
        default_value_t = 1024,
        value_name = "COUNT"
    )]
    pub(crate) dynamodb_connections: usize,
}

/// A text that no log and no message shows.
#[derive(Clone)]
struct Secret(String);

impl std::str::FromStr for Secret {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(text.to_owned()))
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("(secret)")
    }
}

#[derive(Debug, Args)]
pub(crate) struct BackupSettings {
    #[command(flatten)]
    pub(crate) data: DataSettings,

    /// The file to write; it must not exist
    pub(crate) file: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct RestoreSettings {
    #[command(flatten)]
    pub(crate) data: DataSettings,

    /// The backup to read; the data directory must not exist
    pub(crate) file: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DurabilitySetting {
    /// When it is on disk: it survives a power cut
    Sync,
    /// When the operating system has it, which writes it to disk every 50 ms: a power cut may take
    /// the last moments with it
    Relaxed,
}

impl DynamodbSettings {
    pub(crate) fn config(&self) -> Config {
        let id = self.dynamodb_access_key_id.as_ref();
        let secret = self.dynamodb_secret_access_key.as_ref();
        Config {
            region: self.dynamodb_region.clone(),
            credentials: id
                .zip(secret)
                .map(|(id, secret)| Credential::new(id, &secret.0))
                .into_iter()
                .collect(),
            connections_max: self.dynamodb_connections.max(1),
            ..Config::default()
        }
    }
}

impl ServeSettings {
    pub(crate) fn engine_options(&self) -> Options {
        Options {
            durability: match self.durability {
                DurabilitySetting::Sync => Durability::Sync,
                DurabilitySetting::Relaxed => Durability::Relaxed,
            },
            cache_bytes: self.cache_mib * MEBIBYTE,
            ..Options::default()
        }
    }
}
