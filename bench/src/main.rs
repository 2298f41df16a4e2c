//! Measures and prints tables: `cargo xtask bench`. It compares the engine with its key-value store, which is the upper limit,
//! and with SQLite; DynamoDB's protocol with other servers of it; readings over HTTP with a route that only parses them; and
//! messages over MQTT with a broker that stores nothing.

mod child;
mod contestant;
mod engine_side;
mod group_commit;
mod ingest;
mod load;
mod machine;
mod measure;
mod mqtt;
mod process;
mod raw_side;
mod rows;
mod soak;
mod sqlite_side;
mod stream;
mod table;
mod wire;
mod workload;

use std::path::{Path, PathBuf};

use clap::{Parser, ValueEnum};

use crate::engine_side::EngineSide;
use crate::raw_side::RawSide;
use crate::rows::{Arena, Sizes};
use crate::sqlite_side::SqliteSide;

// The system's allocator is slow for items, which are many small allocations, and uses many arenas.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Parser)]
#[command(about = "Measures Homeport beside its limits and its peers")]
struct CommandLine {
    /// Measure with a tenth of the data
    #[arg(long)]
    quick: bool,
    /// Measure only this part
    #[arg(long, value_enum)]
    part: Option<Part>,
    /// Measure only rows whose name contains this text, without the crash
    #[arg(long)]
    only: Option<String>,
    /// Directory for the data; by default a new temporary one
    #[arg(long)]
    directory: Option<PathBuf>,
    /// Run a soak test for this many minutes instead; fails on stalls and on growing memory or journals
    #[arg(long, value_name = "MINUTES")]
    soak: Option<u32>,
    /// Role of this process; internal
    #[arg(long, value_enum, default_value_t = Role::Table)]
    role: Role,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Role {
    /// Measure and print the tables
    Table,
    /// Ingest until killed
    Ingest,
    /// Start such a process, kill it, and measure what it left
    Crash,
    /// Serve the route that only parses readings
    BareRoute,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// The engine, compared with the key-value store and SQLite
    Engine,
    /// DynamoDB's protocol, compared with dynoxide and DynamoDB Local
    Wire,
    /// Readings over HTTP, compared with a route that only parses and with the engine alone
    Http,
    /// Messages over MQTT, compared with a broker that stores nothing
    Mqtt,
}

/// Readings that the killed process stores, each with a marker.
const CRASH_READINGS: u64 = 2_500_000;
const SYNCS: usize = 2_000;

fn main() -> anyhow::Result<()> {
    let arguments = CommandLine::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let kept;
    let directory = match &arguments.directory {
        Some(directory) => {
            std::fs::create_dir_all(directory)?;
            directory.clone()
        }
        None => {
            kept = tempfile::tempdir()?;
            kept.path().to_owned()
        }
    };
    let divisor = if arguments.quick { 10 } else { 1 };
    if let Some(minutes) = arguments.soak {
        return soak::run(&runtime, &directory, minutes);
    }
    match arguments.role {
        Role::Ingest => runtime.block_on(child::ingest_until_killed(&directory)),
        Role::Crash => {
            let crash = runtime.block_on(child::crash(&directory, CRASH_READINGS / divisor))?;
            table::print_crash(&crash);
            Ok(())
        }
        Role::BareRoute => runtime.block_on(ingest::bare::serve()),
        Role::Table => print_parts(&arguments, &runtime, &directory, divisor),
    }
}

fn print_parts(
    arguments: &CommandLine,
    runtime: &tokio::runtime::Runtime,
    directory: &Path,
    divisor: u64,
) -> anyhow::Result<()> {
    let speed = machine::sync_speed(directory, SYNCS)?;
    table::print_machine(&speed);
    let is_wanted = |part| arguments.part.is_none_or(|wanted| wanted == part);
    let only = arguments.only.as_deref();
    let times = wire::Times::new(arguments.quick);
    if is_wanted(Part::Engine) {
        println!();
        runtime.block_on(print_engine(arguments, directory, divisor))?;
    }
    if is_wanted(Part::Wire) {
        println!();
        wire::run(directory, times, only)?;
    }
    if is_wanted(Part::Http) {
        println!();
        ingest::run(runtime, directory, times, only)?;
    }
    if is_wanted(Part::Mqtt) {
        println!();
        mqtt::run(directory, times, only)?;
    }
    Ok(())
}

async fn print_engine(
    arguments: &CommandLine,
    directory: &Path,
    divisor: u64,
) -> anyhow::Result<()> {
    let sizes = if arguments.quick {
        Sizes::quick()
    } else {
        Sizes::full()
    };
    let (plain_path, sealed_path) = (directory.join("engine"), directory.join("engine-sealed"));
    let plain = EngineSide::open(&plain_path).await?;
    let sealed = EngineSide::open_sealed(&sealed_path).await?;
    let arena = Arena::new(
        sizes,
        arguments.only.clone(),
        plain.clone(),
        sealed.clone(),
        RawSide::open(&directory.join("raw"))?,
        SqliteSide::open(&directory.join("sqlite"))?,
    );
    let rows = arena.measure().await;
    println!("## The engine");
    println!();
    table::print_durability();
    println!();
    table::print_rows(&rows);
    plain.compact().await?;
    sealed.compact().await?;
    println!();
    let used = (
        process::disk_use(&plain_path)?,
        process::disk_use(&sealed_path)?,
    );
    table::print_sealed(&rows, used.0, used.1);
    drop((plain, sealed));
    if arguments.only.is_some() {
        return Ok(());
    }
    eprintln!("measuring: memory, start after a crash, size on disk");
    let crash = child::crash(&directory.join("crash"), CRASH_READINGS / divisor).await?;
    println!();
    table::print_crash(&crash);
    println!();
    table::print_goals(&rows, &crash);
    Ok(())
}
