//! The binary: command line, start-up and shutdown. Composition only; what Homeport does lives in
//! the crates below.

mod arguments;
mod http;
mod maintenance;
mod secrets;
mod serve;

use std::process::ExitCode;

use clap::Parser as _;

use crate::arguments::{Arguments, Command};

// Items are many small allocations, which the system's allocator serves slowly and from many arenas.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    start_logging();
    match run(arguments) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("homeport: {error:#}");
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
            Command::Serve(settings) => serve::serve(settings).await,
            Command::Check(settings) => maintenance::check(settings).await,
            Command::Backup(settings) => maintenance::backup(settings).await,
            Command::Restore(settings) => maintenance::restore(settings).await,
        }
    })
}

/// Logs go to standard error; `HOMEPORT_LOG` says how much (`info` unless set).
fn start_logging() {
    let filter = tracing_subscriber::EnvFilter::try_from_env("HOMEPORT_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info,fjall=warn,lsm_tree=warn"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .init();
}
