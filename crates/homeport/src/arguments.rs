//! The command line. Every setting can also come from the environment.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use homeport_engine::{Durability, Options};

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
