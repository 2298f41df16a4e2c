//! The binary: command line, start-up and shutdown. It only composes; the crates below do the work.

// These macros panic when the reader closes the pipe: use `print_line!` and `print_notice!`.
#![deny(clippy::print_stdout, clippy::print_stderr)]

#[macro_use]
mod output;

mod app;
mod arguments;
mod client;
mod commands;
mod config;
mod logs;
mod storage;

use std::process::ExitCode;

use clap::Parser as _;

use crate::app::serve;
use crate::arguments::{Arguments, Command, ConfigCommand, TablesCommand};
use crate::commands::{
    chargers, encryption, export, keys, maintenance, moving, push, rules, simulate, tables, time,
    users,
};
use crate::config::{Flags, Settings};
use crate::output::{OutputClosed, print};

// The system's allocator is slow for items, which are many small allocations, and uses many arenas.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    homeport_engine::keep_new_files_private();
    match run(Arguments::parse()) {
        Ok(code) => code,
        Err(error) if error.is::<OutputClosed>() => ExitCode::SUCCESS,
        Err(error) => {
            print_notice!("homeport: {error:#}");
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
            Command::Backup(arguments) => {
                maintenance::backup(begin(&arguments.flags)?, &arguments.file).await
            }
            Command::Salvage(arguments) => {
                maintenance::salvage(begin(&arguments.flags)?, &arguments.to).await
            }
            Command::Restore(arguments) => {
                maintenance::restore(begin(&arguments.flags)?, &arguments.file).await
            }
            Command::Encryption(command) => encryption::run(command).await,
            Command::Keys(command) => keys::run(command).await,
            Command::Users(command) => users::run(command).await,
            Command::Tables(command) => show_or_create_tables(command).await,
            Command::Config(command) => show_settings(command),
            Command::Simulate(settings) => simulate::run(settings).await,
            Command::Chargers(command) => chargers::run(command).await,
            Command::Push(command) => push::run(command).await,
            Command::Rules(command) => rules::run(command).await,
            Command::Export(arguments) => export::run(arguments).await,
            Command::Time(command) => time::run(command).await,
            Command::Move(arguments) => moving::run(arguments).await,
        }
    })
}

/// Reads the settings and starts logging.
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
            // Invalid settings are reported, not printed.
            Settings::read(&values)?;
            print(&config::effective(&values))
        }
        ConfigCommand::Template => print(&config::template()),
        ConfigCommand::Reference => print(&config::reference()),
    }
}
