//! Measures the engine beside the key-value store that it stands on, which is its limit, and
//! beside SQLite, and prints one table: `cargo xtask bench`.

mod child;
mod contestant;
mod engine_side;
mod group_commit;
mod machine;
mod measure;
mod process;
mod raw_side;
mod rows;
mod sqlite_side;
mod stream;
mod table;
mod workload;

use std::path::{Path, PathBuf};

use clap::{Parser, ValueEnum};

use crate::engine_side::EngineSide;
use crate::raw_side::RawSide;
use crate::rows::{Arena, Sizes};
use crate::sqlite_side::SqliteSide;

// Items are many small allocations, which the system's allocator serves slowly and from many arenas.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Parser)]
#[command(about = "Measures the engine beside the raw key-value store and SQLite")]
struct CommandLine {
    /// A tenth of everything
    #[arg(long)]
    quick: bool,
    /// Only the rows whose name contains this text, and no crash
    #[arg(long)]
    only: Option<String>,
    /// Where the data goes; a new folder in the system's temporary one by default
    #[arg(long)]
    directory: Option<PathBuf>,
    /// What this process is; for the benchmark's own use
    #[arg(long, value_enum, default_value_t = Role::Table)]
    role: Role,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Role {
    /// Measure and print the table
    Table,
    /// Ingest until killed
    Ingest,
    /// Start such a process, kill it, and look at what is left
    Crash,
}

/// Readings that the killed process has stored, each with a marker.
const CRASH_READINGS: u64 = 2_500_000;
const SYNCS: usize = 2_000;

fn main() -> anyhow::Result<()> {
    let arguments = CommandLine::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
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
    match arguments.role {
        Role::Ingest => runtime.block_on(child::ingest_until_killed(&directory)),
        Role::Crash => {
            let crash = runtime.block_on(child::crash(&directory, CRASH_READINGS / divisor))?;
            table::print_crash(&crash);
            Ok(())
        }
        Role::Table => runtime.block_on(print_table(&arguments, &directory, divisor)),
    }
}

async fn print_table(
    arguments: &CommandLine,
    directory: &Path,
    divisor: u64,
) -> anyhow::Result<()> {
    let speed = machine::sync_speed(directory, SYNCS)?;
    let sizes = if arguments.quick {
        Sizes::quick()
    } else {
        Sizes::full()
    };
    let arena = Arena::new(
        sizes,
        arguments.only.clone(),
        EngineSide::open(&directory.join("engine")).await?,
        RawSide::open(&directory.join("raw"))?,
        SqliteSide::open(&directory.join("sqlite"))?,
    );
    let rows = arena.measure().await;
    table::print_machine(&speed);
    println!();
    table::print_rows(&rows);
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
