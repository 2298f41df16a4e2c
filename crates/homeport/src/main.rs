//! The binary: command line, start-up and shutdown. Composition only; what Homeport does lives in
//! the crates below.

// They panic when the reader of a pipe has gone: use `say!` and `note!`.
#![deny(clippy::print_stdout, clippy::print_stderr)]

#[macro_use]
mod output;

mod address;
mod alerts;
mod arguments;
mod backend;
mod background;
mod bridge;
mod chargers;
mod config;
mod console;
mod descriptors;
mod dynamodb_credentials;
mod encryption;
mod export;
mod http;
mod keys;
mod logs;
mod maintenance;
mod master_key;
mod moving;
mod mqtt;
mod network;
mod pool;
mod push;
mod rules;
mod secrets;
mod serve;
mod server_client;
mod simulate;
mod tables;
mod tasks;
mod time;

use std::process::ExitCode;

use clap::Parser as _;

use crate::arguments::{Arguments, Command, ConfigCommand, TablesCommand};
use crate::config::{Flags, Settings};
use crate::output::{OutputClosed, print};

// Items are many small allocations, which the system's allocator serves slowly and from many arenas.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    homeport_engine::keep_new_files_private();
    match run(Arguments::parse()) {
        Ok(code) => code,
        Err(error) if error.is::<OutputClosed>() => ExitCode::SUCCESS,
        Err(error) => {
            note!("homeport: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        match arguments.command {
            Command::Serve(flags) => serve::serve(begin(&flags)?).await,
            Command::Check(flags) => maintenance::check(begin(&flags)?).await,
            Command::Backup(asked) => maintenance::backup(begin(&asked.flags)?, &asked.file).await,
            Command::Salvage(asked) => maintenance::salvage(begin(&asked.flags)?, &asked.to).await,
            Command::Restore(asked) => {
                maintenance::restore(begin(&asked.flags)?, &asked.file).await
            }
            Command::Encryption(command) => encryption::run(command).await,
            Command::Keys(command) => keys::run(command).await,
            Command::Tables(command) => show_or_create_tables(command).await,
            Command::Config(command) => show_settings(command),
            Command::Simulate(settings) => simulate::simulate(settings).await,
            Command::Chargers(command) => chargers::run(command).await,
            Command::Push(command) => push::run(command).await,
            Command::Rules(command) => rules::run(command).await,
            Command::Export(asked) => export::run(asked).await,
            Command::Time(command) => time::run(command).await,
            Command::Move(asked) => moving::run(asked).await,
        }
    })
}

/// Reads the settings and begins to log as they say.
fn begin<O>(flags: &Flags<O>) -> anyhow::Result<Settings> {
    let settings = config::load(flags)?;
    logs::start(&settings.logs)?;
    Ok(settings)
}

async fn show_or_create_tables(command: TablesCommand) -> anyhow::Result<ExitCode> {
    match command {
        TablesCommand::Describe(flags) => print(&tables::describe(&config::load(&flags)?)),
        TablesCommand::Terraform(flags) => print(&tables::terraform(&config::load(&flags)?)?),
        TablesCommand::Cloudformation(flags) => {
            print(&tables::cloudformation(&config::load(&flags)?)?)
        }
        TablesCommand::Create(flags) => tables::create(begin(&flags)?).await,
    }
}

fn show_settings(command: ConfigCommand) -> anyhow::Result<ExitCode> {
    match command {
        ConfigCommand::Print(flags) => {
            let values = config::values(&flags)?;
            // Settings that cannot be are no settings to show.
            Settings::read(&values)?;
            print(&config::effective(&values))
        }
        ConfigCommand::Template => print(&config::template()),
        ConfigCommand::Reference => print(&config::reference()),
    }
}
