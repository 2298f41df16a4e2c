//! The command line. Settings are declared in `config`; this file has the options of single commands.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use homeport_systems::api_keys::KeyId;
use homeport_systems::export::Format;
use homeport_systems::fleet::{SYSTEMS, SystemName};
use homeport_systems::people::{PersonName, Role};
use homeport_systems::rules::RuleName;

use crate::config::{
    AllSections, DirectorySections, Flags, FleetSections, KeysSections, MoveSections,
    RulesSections, Secret, StoreSections, Url,
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
    Serve(Flags<AllSections>),
    /// Verify a data directory without a running server; changes nothing in it
    Check(Flags<DirectorySections>),
    /// Copy everything readable of a damaged data directory to a new one, and list what is missing
    Salvage(CopyArguments),
    /// Back up all tables of a data directory without a running server to a file
    Backup(BackupArguments),
    /// Create a data directory from a backup
    Restore(RestoreArguments),
    /// Show how a data directory is encrypted, change its master key, or make encrypted copies
    #[command(subcommand)]
    Encryption(EncryptionCommand),
    /// Create, list and revoke API keys of devices
    #[command(subcommand)]
    Keys(KeysCommand),
    /// Create, list and disable people, and reset their passwords
    #[command(subcommand)]
    Users(UsersCommand),
    /// List Homeport's tables, print them for Terraform or CloudFormation, or create them
    #[command(subcommand)]
    Tables(TablesCommand),
    /// Show the store's time, and confirm it after the clock was implausibly far ahead
    #[command(subcommand)]
    Time(TimeCommand),
    /// Show settings
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Run a fleet of simulated devices against a server and verify that no data is lost
    Simulate(homeport_simulate::SimulateSettings),
    /// Migrate chargers, or recount their statistics, in a data directory without a running server
    #[command(subcommand)]
    Chargers(ChargersCommand),
    /// Check and clean up push devices, in a store or through the server that has it open
    #[command(subcommand)]
    Push(PushCommand),
    /// Manage rules, try a statement, or run a rule over stored history
    #[command(subcommand)]
    Rules(RulesCommand),
    /// Export what devices stored to a file, from a store or through the server that has it open
    Export(ExportArguments),
    /// Move all tables from the embedded store to Amazon DynamoDB or back while the server runs; resumes an interrupted
    /// move
    Move(MoveArguments),
}

#[derive(Debug, Args)]
pub(crate) struct MoveArguments {
    #[command(flatten)]
    pub(crate) flags: Flags<MoveSections>,

    /// Target of the move; the other store is the source
    #[arg(long, value_name = "STORE")]
    pub(crate) to: Destination,

    /// Move only this table; may be repeated. By default, all tables of the embedded store, or those of Amazon DynamoDB
    /// that Homeport uses
    #[arg(long = "table", value_name = "TABLE")]
    pub(crate) tables: Vec<String>,

    /// Finish the move: nothing writes to the source any more; verify that both stores are equal
    #[arg(long)]
    pub(crate) finish: bool,

    /// Abandon the move: disable the streams that it enabled and delete its state; copied items remain
    #[arg(long, conflicts_with_all = ["finish", "replace"])]
    pub(crate) abandon: bool,

    /// Delete items in the target's tables that are not from this move, instead of failing
    #[arg(long)]
    pub(crate) replace: bool,
}

/// The two stores, as the settings describe them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Destination {
    /// Amazon DynamoDB, or the endpoint at store.endpoint_url
    Dynamodb,
    /// The embedded store in the data directory
    Embedded,
}

/// Reads the name of a system whose devices store values.
fn exported_system() -> impl TypedValueParser<Value = SystemName> {
    let systems = SYSTEMS.iter().filter(|system| system.has_values);
    PossibleValuesParser::new(systems.map(|system| system.name.as_str())).map(SystemName::from)
}

#[derive(Debug, Args)]
pub(crate) struct ExportArguments {
    #[command(flatten)]
    pub(crate) flags: Flags<FleetSections>,

    /// Use the server at this URL instead of opening the store; needs the admin token
    #[arg(long, value_name = "URL", help_heading = "Where")]
    pub(crate) url: Option<Url>,

    /// System whose data is exported
    #[arg(value_parser = exported_system())]
    pub(crate) system: SystemName,

    /// Id of one device, as in the list of devices; by default all devices of the system
    #[arg(long, value_name = "ID")]
    pub(crate) device: Option<String>,

    /// Start of the time range: milliseconds since 1970, or RFC 3339
    #[arg(long, value_name = "TIME")]
    pub(crate) from: Option<String>,

    /// End of the time range
    #[arg(long, value_name = "TIME")]
    pub(crate) to: Option<String>,

    /// csv and parquet have a row per value, ndjson has a line per stored item
    #[arg(long, value_name = "FORMAT", default_value = "csv")]
    pub(crate) format: Format,

    /// csv: text exactly as stored. By default, text that a spreadsheet could run as a formula (it begins with =, +, - or @,
    /// possibly after white space, or with a tab or line break) gets the prefix '
    #[arg(long)]
    pub(crate) raw: bool,

    /// Output file; standard output by default
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RulesCommand {
    /// List rules by name
    List(RulesAccess),
    /// Print a rule as JSON
    Show(NamedRule),
    /// Create a rule from a file with AWS IoT's TopicRulePayload as JSON
    Create(CreateRuleArguments),
    /// Enable a rule
    Enable(NamedRule),
    /// Disable a rule
    Disable(NamedRule),
    /// Delete a rule; its versions remain readable
    Delete(NamedRule),
    /// Evaluate a statement on a message and print the result, with the reason for every Undefined; fails if the statement
    /// does not select the message
    Test(TestRuleArguments),
    /// Run a rule over the stored messages of a thing and print how its writes would differ from the stored items; writes
    /// nothing
    Replay(ReplayArguments),
}

/// Options that select a store or a server.
#[derive(Debug, Args)]
pub(crate) struct RulesAccess {
    #[command(flatten)]
    pub(crate) flags: Flags<RulesSections>,

    /// Use the server at this URL instead of opening the store; needs the admin token
    #[arg(long, value_name = "URL", help_heading = "Where")]
    pub(crate) url: Option<Url>,
}

#[derive(Debug, Args)]
pub(crate) struct NamedRule {
    #[command(flatten)]
    pub(crate) access: RulesAccess,

    /// Name of the rule
    pub(crate) name: RuleName,
}

#[derive(Debug, Args)]
pub(crate) struct CreateRuleArguments {
    #[command(flatten)]
    pub(crate) access: RulesAccess,

    /// Name of the new rule
    pub(crate) name: RuleName,

    /// File with the rule
    pub(crate) file: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct TestRuleArguments {
    /// SQL statement
    #[arg(
        long,
        value_name = "STATEMENT",
        conflicts_with = "sql_file",
        required_unless_present = "sql_file"
    )]
    pub(crate) sql: Option<String>,

    /// File with the SQL statement
    #[arg(long, value_name = "FILE")]
    pub(crate) sql_file: Option<PathBuf>,

    /// Topic of the message
    #[arg(long)]
    pub(crate) topic: String,

    /// Message; an empty object by default
    #[arg(long, conflicts_with = "payload_file")]
    pub(crate) payload: Option<String>,

    /// File with the message
    #[arg(long, value_name = "FILE")]
    pub(crate) payload_file: Option<PathBuf>,

    /// Result of clientid()
    #[arg(long, value_name = "ID")]
    pub(crate) client_id: Option<String>,

    /// Result of timestamp(), in milliseconds since 1970; now by default
    #[arg(long, value_name = "MILLISECONDS", allow_negative_numbers = true)]
    pub(crate) timestamp: Option<i64>,
}

#[derive(Debug, Args)]
pub(crate) struct ReplayArguments {
    #[command(flatten)]
    pub(crate) access: RulesAccess,

    /// Name of the rule
    pub(crate) name: RuleName,

    /// Run the rule in this file instead of the stored one
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// Thing whose messages to use
    #[arg(long)]
    pub(crate) thing: homeport_systems::telemetry::ThingName,

    /// Time of the first message, in milliseconds since 1970
    #[arg(long, value_name = "MILLISECONDS")]
    pub(crate) from: Option<i64>,

    /// Time of the last message, in milliseconds since 1970
    #[arg(long, value_name = "MILLISECONDS")]
    pub(crate) to: Option<i64>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PushCommand {
    /// Delete devices that have been inactive for a long time
    Cleanup(CleanupArguments),
    /// Check the table of device tokens, and why a user gets no notifications
    Check(PushCheckArguments),
}

/// Options that select a store or a server.
#[derive(Debug, Args)]
pub(crate) struct PushAccess {
    #[command(flatten)]
    pub(crate) flags: Flags<FleetSections>,

    /// Use the server at this URL instead of opening the store; needs the admin token
    #[arg(long, value_name = "URL", help_heading = "Where")]
    pub(crate) url: Option<Url>,
}

#[derive(Debug, Args)]
pub(crate) struct CleanupArguments {
    #[command(flatten)]
    pub(crate) access: PushAccess,

    /// Delete devices that have been inactive for longer than this
    #[arg(long, value_name = "DAYS", default_value_t = homeport_systems::push::CLEANUP_AGE_DAYS_DEFAULT)]
    pub(crate) older_than_days: u32,

    /// Count the devices without deleting them
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PushCheckArguments {
    #[command(flatten)]
    pub(crate) access: PushAccess,

    /// Show each device of this user, and whether it gets notifications
    #[arg(long, value_name = "ID")]
    pub(crate) user: Option<homeport_systems::push::UserId>,
}

#[derive(Debug, Args)]
pub(crate) struct BackupArguments {
    #[command(flatten)]
    pub(crate) flags: Flags<DirectorySections>,

    /// File to write; it must not exist
    pub(crate) file: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct RestoreArguments {
    #[command(flatten)]
    pub(crate) flags: Flags<DirectorySections>,

    /// Backup to read; the data directory must not exist
    pub(crate) file: PathBuf,
}

#[derive(Debug, Subcommand)]
pub(crate) enum EncryptionCommand {
    /// Show whether a data directory is encrypted, and with which master key
    Status(Flags<DirectorySections>),
    /// Change the master key of a data directory without a running server; rewrites no data
    Rotate(RotateArguments),
    /// Make an encrypted copy of a data directory without a running server; an encrypted one gets new data keys
    Seal(CopyArguments),
    /// Make an unencrypted copy of an encrypted data directory
    Unseal(CopyArguments),
}

#[derive(Debug, Args)]
pub(crate) struct RotateArguments {
    #[command(flatten)]
    pub(crate) flags: Flags<DirectorySections>,

    /// New master key
    #[arg(
        long,
        value_name = "KEY",
        env = "HOMEPORT_NEW_MASTER_KEY",
        hide_env_values = true
    )]
    pub(crate) new_master_key: Option<Secret>,

    /// File with the new master key
    #[arg(long, value_name = "FILE")]
    pub(crate) new_master_key_file: Option<PathBuf>,

    /// Shell command that prints the new master key
    #[arg(long, value_name = "COMMAND")]
    pub(crate) new_master_key_command: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct CopyArguments {
    #[command(flatten)]
    pub(crate) flags: Flags<DirectorySections>,

    /// Data directory to create; it must not exist
    #[arg(long, value_name = "DIR")]
    pub(crate) to: PathBuf,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ChargersCommand {
    /// Migrate data from the earlier tables; resumes an interrupted migration
    Migrate(MigrateArguments),
    /// Recount daily statistics from the events
    Rebuild(RebuildArguments),
}

#[derive(Debug, Args)]
pub(crate) struct MigrateArguments {
    #[command(flatten)]
    pub(crate) flags: Flags<StoreSections>,

    /// Show what would be done without writing anything
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Start over, even if an earlier run was complete
    #[arg(long)]
    pub(crate) restart: bool,

    /// Accept that the items which cannot be migrated stay behind
    #[arg(long)]
    pub(crate) accept_refused: bool,

    /// Delete this unused table once everything is verified
    #[arg(long, value_name = "TABLE", value_parser = clap::builder::PossibleValuesParser::new(homeport_systems::chargers::migration::ORPHANS))]
    pub(crate) delete_table: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct RebuildArguments {
    #[command(flatten)]
    pub(crate) flags: Flags<StoreSections>,

    /// SC-ID or UUID of a charger; all chargers by default
    #[arg(long, value_name = "ID")]
    pub(crate) device: Option<homeport_systems::chargers::DeviceName>,

    /// First day, in Mountain Time
    #[arg(long, value_name = "YYYY-MM-DD")]
    pub(crate) from: homeport_systems::chargers::MountainDay,

    /// Last day
    #[arg(long, value_name = "YYYY-MM-DD")]
    pub(crate) to: homeport_systems::chargers::MountainDay,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TimeCommand {
    /// Show the clock's and the store's time, and whether the time is confirmed
    Show(TimeAccess),
    /// Confirm that the clock is right, so that expired items and old changes are deleted again
    Confirm(TimeAccess),
}

/// Options that select a store or a server.
#[derive(Debug, Args)]
pub(crate) struct TimeAccess {
    #[command(flatten)]
    pub(crate) flags: Flags<KeysSections>,

    /// Use the server at this URL instead of opening the store; needs the admin token
    #[arg(long, value_name = "URL", help_heading = "Where")]
    pub(crate) url: Option<Url>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KeysCommand {
    /// Create a key and print it; it is shown only once
    Create(CreateArguments),
    /// List keys, newest first
    List(ListArguments),
    /// Revoke a key; it remains in the list
    Revoke(RevokeArguments),
}

/// Options that select a store or a server.
#[derive(Debug, Args)]
pub(crate) struct KeysAccess {
    #[command(flatten)]
    pub(crate) flags: Flags<KeysSections>,

    /// Use the server at this URL instead of opening the store; needs the admin token
    #[arg(long, value_name = "URL", help_heading = "Where")]
    pub(crate) url: Option<Url>,
}

#[derive(Debug, Args)]
pub(crate) struct CreateArguments {
    #[command(flatten)]
    pub(crate) access: KeysAccess,

    /// Description of the key
    #[arg(long, value_name = "TEXT")]
    pub(crate) description: Option<String>,

    /// System whose devices use the key; sensors by default
    #[arg(long, value_name = "NAME")]
    pub(crate) system: Option<String>,

    /// Device, thing, group or user that the key is for; may be repeated
    #[arg(long = "scope", value_name = "SCOPE", required_unless_present = "all")]
    pub(crate) scopes: Vec<String>,

    /// Create a key for the whole system instead of a key with scopes
    #[arg(long, conflicts_with = "scopes")]
    pub(crate) all: bool,

    /// Permission of a telemetry key: send_commands, or subscribe_fleet with --all; of a push key: send_broadcasts with --all; may be repeated
    #[arg(long = "permission", value_name = "NAME")]
    pub(crate) permissions: Vec<String>,

    /// Print JSON, as the HTTP interface returns it
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    #[command(flatten)]
    pub(crate) access: KeysAccess,

    /// Print JSON, as the HTTP interface returns it
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RevokeArguments {
    #[command(flatten)]
    pub(crate) access: KeysAccess,

    /// Id of the key
    pub(crate) key_id: KeyId,
}

#[derive(Debug, Subcommand)]
pub(crate) enum UsersCommand {
    /// Create a person; without --password-stdin, a password is generated and shown once
    Create(CreateUserArguments),
    /// List people by name
    List(ListArguments),
    /// Disable a person, whose sessions and tokens become invalid
    Disable(UserArguments),
    /// Set another password; all sessions and tokens become invalid
    ResetPassword(ResetPasswordArguments),
}

#[derive(Debug, Args)]
pub(crate) struct PasswordArguments {
    /// Read the password from the first line of standard input instead of generating one
    #[arg(long)]
    pub(crate) password_stdin: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CreateUserArguments {
    #[command(flatten)]
    pub(crate) access: KeysAccess,

    /// Name with which the person signs in, such as an e-mail address
    pub(crate) name: PersonName,

    /// viewer, operator or administrator
    #[arg(long, value_name = "ROLE")]
    pub(crate) role: Role,

    /// System that the role is limited to; may be repeated
    #[arg(long = "system", value_name = "NAME")]
    pub(crate) systems: Vec<String>,

    /// Group of records that the role is limited to; may be repeated
    #[arg(long = "group", value_name = "ID")]
    pub(crate) groups: Vec<String>,

    /// Device that the role is limited to, as sensors/AA:BB:CC:DD:EE:FF; may be repeated
    #[arg(long = "device", value_name = "SYSTEM/ID")]
    pub(crate) devices: Vec<String>,

    #[command(flatten)]
    pub(crate) password: PasswordArguments,

    /// Print JSON, as the HTTP interface returns it
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct UserArguments {
    #[command(flatten)]
    pub(crate) access: KeysAccess,

    /// Name of the person
    pub(crate) name: PersonName,
}

#[derive(Debug, Args)]
pub(crate) struct ResetPasswordArguments {
    #[command(flatten)]
    pub(crate) access: KeysAccess,

    /// Name of the person
    pub(crate) name: PersonName,

    #[command(flatten)]
    pub(crate) password: PasswordArguments,

    /// Print JSON, as the HTTP interface returns it
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TablesCommand {
    /// List every table with its keys, indexes and expiry
    Describe(Flags<StoreSections>),
    /// Print Terraform for the tables and for the permissions that Homeport needs
    Terraform(Flags<StoreSections>),
    /// Print a CloudFormation template for the tables and permissions
    Cloudformation(Flags<StoreSections>),
    /// Create missing tables in the chosen store
    Create(Flags<StoreSections>),
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print the effective settings and where each was set, without secrets
    Print(Flags<AllSections>),
    /// Print a configuration file with every setting and its default
    Template,
    /// Print the reference of all settings in Markdown
    Reference,
}
