//! The commands. Settings are declared in `config`; here is only what a command itself is asked.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use homeport_systems::api_keys::KeyId;
use homeport_systems::export::Format;
use homeport_systems::fleet::SystemName;
use homeport_systems::rules::RuleName;

use crate::config::{
    Everything, Flags, OnDirectory, OnFleet, OnKeys, OnMove, OnRules, OnStore, Secret, Url,
};

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
    /// Verify a data directory that is not being served; changes nothing in it
    Check(Flags<OnDirectory>),
    /// Copy everything readable of a damaged data directory to a new one, and list what is missing
    Salvage(CopyArguments),
    /// Write all tables of a data directory that is not being served to a file
    Backup(BackupArguments),
    /// Make a new data directory from a backup
    Restore(RestoreArguments),
    /// Show how a data directory is sealed, change its master key, make sealed copies
    #[command(subcommand)]
    Encryption(EncryptionCommand),
    /// Make, list and revoke the API keys of devices
    #[command(subcommand)]
    Keys(KeysCommand),
    /// Show the tables that Homeport keeps, as a listing or for other tools, and make them
    #[command(subcommand)]
    Tables(TablesCommand),
    /// Show the store's time, and confirm it after the clock was implausibly far ahead
    #[command(subcommand)]
    Time(TimeCommand),
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
    /// Look after rules, try a statement, run a rule over stored history
    #[command(subcommand)]
    Rules(RulesCommand),
    /// Write what devices stored to a file, from a store or through the server that has it open
    Export(ExportArguments),
    /// Move all tables from the embedded store to Amazon DynamoDB or back, while the server runs; goes on
    /// where it was cut off
    Move(MoveArguments),
}

#[derive(Debug, Args)]
pub(crate) struct MoveArguments {
    #[command(flatten)]
    pub(crate) flags: Flags<OnMove>,

    /// Where to; the other one is where from
    #[arg(long, value_name = "STORE")]
    pub(crate) to: Destination,

    /// Only this table; may be repeated. Unless given, all tables of the embedded store, or those of Amazon
    /// DynamoDB that Homeport uses
    #[arg(long = "table", value_name = "TABLE")]
    pub(crate) tables: Vec<String>,

    /// Nothing writes to the source any more: prove that both are equal and end the move
    #[arg(long)]
    pub(crate) finish: bool,

    /// Give the move up: switch off the streams that it switched on and forget it; what was copied stays
    #[arg(long, conflicts_with_all = ["finish", "replace"])]
    pub(crate) abandon: bool,

    /// Delete items of the target's tables that are not from this move, instead of refusing them
    #[arg(long)]
    pub(crate) replace: bool,
}

/// The two stores, each as the settings describe it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Destination {
    /// Amazon DynamoDB, or what is at store.endpoint_url
    Dynamodb,
    /// The embedded store in the data directory
    Embedded,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArguments {
    #[command(flatten)]
    pub(crate) flags: Flags<OnFleet>,

    /// Ask the server at this address instead of opening the store; it needs the admin token
    #[arg(long, value_name = "URL", help_heading = "Where")]
    pub(crate) url: Option<Url>,

    /// sensors, chargers, telemetry or records
    pub(crate) system: SystemName,

    /// One device, by its id in the list of devices; all of the system unless given
    #[arg(long, value_name = "ID")]
    pub(crate) device: Option<String>,

    /// The oldest time wanted: milliseconds since 1970, or RFC 3339
    #[arg(long, value_name = "TIME")]
    pub(crate) from: Option<String>,

    /// The newest time wanted
    #[arg(long, value_name = "TIME")]
    pub(crate) to: Option<String>,

    /// csv and parquet have a row for each value, ndjson a line for each stored item
    #[arg(long, value_name = "FORMAT", default_value = "csv")]
    pub(crate) format: Format,

    /// csv: texts as stored. Unless given, a text that a spreadsheet could evaluate as a formula (one that
    /// begins with =, +, - or @, also after white space, or with a tab or line break) gets the prefix '
    #[arg(long)]
    pub(crate) raw: bool,

    /// The file; standard output unless given
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RulesCommand {
    /// List rules by name
    List(RulesPlace),
    /// Print a rule as JSON
    Show(NamedRule),
    /// Make a rule of a file with AWS IoT's TopicRulePayload as JSON
    Create(CreateRuleArguments),
    /// Switch a rule on
    Enable(NamedRule),
    /// Switch a rule off
    Disable(NamedRule),
    /// Delete a rule; its versions stay readable
    Delete(NamedRule),
    /// Try a statement on a message and print the result with the reason for all that is Undefined;
    /// fails when the statement does not select the message
    Test(TestRuleArguments),
    /// Run a rule over the stored messages of a thing and print how what it would write differs from
    /// what is there; writes nothing
    Replay(ReplayArguments),
}

/// Where the rules are.
#[derive(Debug, Args)]
pub(crate) struct RulesPlace {
    #[command(flatten)]
    pub(crate) flags: Flags<OnRules>,

    /// Ask the server at this address instead of opening the store; it needs the admin token
    #[arg(long, value_name = "URL", help_heading = "Where")]
    pub(crate) url: Option<Url>,
}

#[derive(Debug, Args)]
pub(crate) struct NamedRule {
    #[command(flatten)]
    pub(crate) place: RulesPlace,

    /// The rule's name
    pub(crate) name: RuleName,
}

#[derive(Debug, Args)]
pub(crate) struct CreateRuleArguments {
    #[command(flatten)]
    pub(crate) place: RulesPlace,

    /// The name that it is to have
    pub(crate) name: RuleName,

    /// The file with the rule
    pub(crate) file: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct TestRuleArguments {
    /// The statement
    #[arg(
        long,
        value_name = "STATEMENT",
        conflicts_with = "sql_file",
        required_unless_present = "sql_file"
    )]
    pub(crate) sql: Option<String>,

    /// A file with the statement
    #[arg(long, value_name = "FILE")]
    pub(crate) sql_file: Option<PathBuf>,

    /// The topic of the message
    #[arg(long)]
    pub(crate) topic: String,

    /// The message; an empty object unless given
    #[arg(long, conflicts_with = "payload_file")]
    pub(crate) payload: Option<String>,

    /// A file with the message
    #[arg(long, value_name = "FILE")]
    pub(crate) payload_file: Option<PathBuf>,

    /// What clientid() answers
    #[arg(long, value_name = "ID")]
    pub(crate) client_id: Option<String>,

    /// What timestamp() answers, in milliseconds since 1970; now unless given
    #[arg(long, value_name = "MILLISECONDS", allow_negative_numbers = true)]
    pub(crate) timestamp: Option<i64>,
}

#[derive(Debug, Args)]
pub(crate) struct ReplayArguments {
    #[command(flatten)]
    pub(crate) place: RulesPlace,

    /// The rule's name
    pub(crate) name: RuleName,

    /// Run the rule of this file instead of the one of the store
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// The thing whose messages it runs over
    #[arg(long)]
    pub(crate) thing: homeport_systems::telemetry::ThingName,

    /// The oldest message, in milliseconds since 1970
    #[arg(long, value_name = "MILLISECONDS")]
    pub(crate) from: Option<i64>,

    /// The newest message, in milliseconds since 1970
    #[arg(long, value_name = "MILLISECONDS")]
    pub(crate) to: Option<i64>,
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
pub(crate) enum EncryptionCommand {
    /// Say whether a data directory is sealed, and under which master key
    Status(Flags<OnDirectory>),
    /// Have a data directory that is not being served opened by another master key; no data is rewritten
    Rotate(RotateArguments),
    /// Make a sealed copy of a data directory that is not being served; one that is sealed already gets new data keys
    Seal(CopyArguments),
    /// Make a copy that is not sealed of a data directory that is
    Unseal(CopyArguments),
}

#[derive(Debug, Args)]
pub(crate) struct RotateArguments {
    #[command(flatten)]
    pub(crate) flags: Flags<OnDirectory>,

    /// The new master key
    #[arg(
        long,
        value_name = "KEY",
        env = "HOMEPORT_NEW_MASTER_KEY",
        hide_env_values = true
    )]
    pub(crate) new_master_key: Option<Secret>,

    /// A file with the new master key
    #[arg(long, value_name = "FILE")]
    pub(crate) new_master_key_file: Option<PathBuf>,

    /// A command for sh that prints the new master key
    #[arg(long, value_name = "COMMAND")]
    pub(crate) new_master_key_command: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct CopyArguments {
    #[command(flatten)]
    pub(crate) flags: Flags<OnDirectory>,

    /// The data directory to make; it must not exist
    #[arg(long, value_name = "DIR")]
    pub(crate) to: PathBuf,
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
pub(crate) enum TimeCommand {
    /// Show what the clock and the store say, and whether the time is confirmed
    Show(TimePlace),
    /// Confirm that the clock is right: expired items and old changes are deleted again
    Confirm(TimePlace),
}

/// Where the store is.
#[derive(Debug, Args)]
pub(crate) struct TimePlace {
    #[command(flatten)]
    pub(crate) flags: Flags<OnKeys>,

    /// Ask the server at this address instead of opening the store; it needs the admin token
    #[arg(long, value_name = "URL", help_heading = "Where")]
    pub(crate) url: Option<Url>,
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
    pub(crate) key_id: KeyId,
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
