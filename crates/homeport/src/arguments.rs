//! The commands. Settings are declared in `config`; here is only what a command itself is asked.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use homeport_systems::ids::UuidV4;

use crate::config::{Everything, Flags, OnDirectory, OnKeys, OnStore, Url};

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
    /// Open the store and serve until stopped
    Serve(Flags<Everything>),
    /// Verify a data directory that is not being served
    Check(Flags<OnDirectory>),
    /// Write all tables of a data directory that is not being served to a file
    Backup(BackupArguments),
    /// Make a new data directory from a backup
    Restore(RestoreArguments),
    /// Make, list and revoke the API keys of devices
    #[command(subcommand)]
    Keys(KeysCommand),
    /// Show the tables that Homeport keeps, as a listing or for other tools, and make them
    #[command(subcommand)]
    Tables(TablesCommand),
    /// Show settings
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Run a fleet of devices against a server and check that nothing gets lost
    Simulate(crate::simulate::SimulateSettings),
    /// Work on the chargers of a data directory that is not being served
    #[command(subcommand)]
    Chargers(ChargersCommand),
    /// Look after the devices of push in a store that is not being served, or in Amazon DynamoDB
    #[command(subcommand)]
    Push(PushCommand),
}

#[derive(Debug, Subcommand)]
pub(crate) enum PushCommand {
    /// Delete devices that have been inactive for long
    Cleanup(CleanupArguments),
    /// Answer the runbook's questions: what is in the table, and why a user gets nothing
    Check(PushCheckArguments),
}

#[derive(Debug, Args)]
pub(crate) struct CleanupArguments {
    #[command(flatten)]
    pub(crate) flags: Flags<OnStore>,

    /// Inactive for longer than this
    #[arg(long, value_name = "DAYS", default_value_t = homeport_systems::push::CLEANUP_AGE_DAYS_DEFAULT)]
    pub(crate) older_than_days: u32,

    /// Count them, and delete nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PushCheckArguments {
    #[command(flatten)]
    pub(crate) flags: Flags<OnStore>,

    /// Show each device of this user, and whether a notification would go there
    #[arg(long, value_name = "ID")]
    pub(crate) user: Option<homeport_systems::push::UserId>,
}

#[derive(Debug, Args)]
pub(crate) struct BackupArguments {
    #[command(flatten)]
    pub(crate) flags: Flags<OnDirectory>,

    /// The file to write; it must not exist
    pub(crate) file: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct RestoreArguments {
    #[command(flatten)]
    pub(crate) flags: Flags<OnDirectory>,

    /// The backup to read; the data directory must not exist
    pub(crate) file: PathBuf,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ChargersCommand {
    /// Bring data over from the tables that came before; goes on where it was cut off
    Migrate(MigrateArguments),
    /// Count daily statistics again from the events
    Rebuild(RebuildArguments),
}

#[derive(Debug, Args)]
pub(crate) struct MigrateArguments {
    #[command(flatten)]
    pub(crate) flags: Flags<OnStore>,

    /// Say what would be done, and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Look at everything again, also if an earlier run came to its end
    #[arg(long)]
    pub(crate) restart: bool,

    /// Delete this table, which nothing uses any more, once everything is verified
    #[arg(long, value_name = "TABLE", value_parser = clap::builder::PossibleValuesParser::new(homeport_systems::chargers::migration::ORPHANS))]
    pub(crate) delete_table: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct RebuildArguments {
    #[command(flatten)]
    pub(crate) flags: Flags<OnStore>,

    /// The charger, by its SC-ID or UUID; all of them unless given
    #[arg(long, value_name = "ID")]
    pub(crate) device: Option<homeport_systems::chargers::DeviceName>,

    /// The first day, in Mountain Time
    #[arg(long, value_name = "YYYY-MM-DD")]
    pub(crate) from: homeport_systems::chargers::MountainDay,

    /// The last day
    #[arg(long, value_name = "YYYY-MM-DD")]
    pub(crate) to: homeport_systems::chargers::MountainDay,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KeysCommand {
    /// Make a key and print it, this once
    Create(CreateArguments),
    /// List keys, the newest first
    List(ListArguments),
    /// Revoke a key: it stays in the list and opens nothing any more
    Revoke(RevokeArguments),
}

/// Where the keys are.
#[derive(Debug, Args)]
pub(crate) struct KeysPlace {
    #[command(flatten)]
    pub(crate) flags: Flags<OnKeys>,

    /// Ask the server at this address instead of opening the store; it needs the admin token
    #[arg(long, value_name = "URL", help_heading = "Where")]
    pub(crate) url: Option<Url>,
}

#[derive(Debug, Args)]
pub(crate) struct CreateArguments {
    #[command(flatten)]
    pub(crate) place: KeysPlace,

    /// What the key is for, in words
    #[arg(long, value_name = "TEXT")]
    pub(crate) description: Option<String>,

    /// The system whose devices use it; sensors unless said otherwise
    #[arg(long, value_name = "NAME")]
    pub(crate) system: Option<String>,

    /// A device, thing or group that it may write for; may be repeated; any unless given
    #[arg(long = "scope", value_name = "SCOPE")]
    pub(crate) scopes: Vec<String>,

    /// Print JSON, as the HTTP interface answers it
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    #[command(flatten)]
    pub(crate) place: KeysPlace,

    /// Print JSON, as the HTTP interface answers it
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RevokeArguments {
    #[command(flatten)]
    pub(crate) place: KeysPlace,

    /// The key's id
    pub(crate) key_id: UuidV4,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TablesCommand {
    /// List every table with its keys, indexes and expiry
    Describe(Flags<OnStore>),
    /// Print Terraform resources for the tables and for the rights that Homeport needs
    Terraform(Flags<OnStore>),
    /// Print the same as a CloudFormation template
    Cloudformation(Flags<OnStore>),
    /// Make the tables that are missing in the chosen store
    Create(Flags<OnStore>),
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print the effective settings, each with where it came from; secrets are left out
    Print(Flags<Everything>),
    /// Print a configuration file with every setting and its default
    Template,
    /// Print the reference of all settings in Markdown
    Reference,
}
