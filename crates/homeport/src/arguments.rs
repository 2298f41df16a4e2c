//! The command line. Every setting can also come from the environment.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use homeport_engine::{Durability, Options};
use homeport_server::RateLimit;
use homeport_wire::{Config, Credential};

const MEBIBYTE: u64 = 1024 * 1024;
const SECS_PER_DAY: i64 = 24 * 60 * 60;

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

    /// Where devices and people are served over HTTP
    #[arg(
        long,
        env = "HOMEPORT_HTTP_LISTEN",
        default_value = "127.0.0.1:8080",
        value_name = "ADDRESS"
    )]
    pub(crate) http_listen: SocketAddr,

    /// The token of operators; made on the first start unless given
    #[arg(
        long,
        env = "HOMEPORT_ADMIN_TOKEN",
        hide_env_values = true,
        value_name = "TOKEN"
    )]
    pub(crate) admin_token: Option<String>,

    /// What is hashed with every API key; made on the first start unless given
    #[arg(
        long,
        env = "API_KEY_PEPPER",
        hide_env_values = true,
        value_name = "SECRET"
    )]
    pub(crate) api_key_pepper: Option<String>,

    /// How long readings are kept, in days; 0 keeps them for ever
    #[arg(long, env = "HOMEPORT_READING_RETENTION_DAYS", default_value_t = 90, value_name = "DAYS",
          value_parser = clap::value_parser!(u32).range(0..=36_500))]
    pub(crate) reading_retention_days: u32,

    /// Requests a second that one API key may make
    #[arg(long, env = "HOMEPORT_RATE_PER_SECOND", default_value_t = 1000, value_name = "REQUESTS",
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) rate_per_second: u32,

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
    pub(crate) fn reading_retention_secs(&self) -> Option<i64> {
        match self.reading_retention_days {
            0 => None,
            days => Some(i64::from(days) * SECS_PER_DAY),
        }
    }

    pub(crate) fn rate_limit(&self) -> RateLimit {
        let per_second = f64::from(self.rate_per_second);
        RateLimit {
            per_second,
            burst: per_second * 2.0,
        }
    }

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
