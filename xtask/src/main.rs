//! The project's own commands, run as `cargo xtask <command>`.
//!
//! It contains only what contributors and continuous integration run. Product code does not depend on it, and it depends on
//! no product crate, so that it builds even when they do not.

mod clients;
mod debian;
mod fuzz;
mod peers;
mod process;
mod steps;
mod target;
mod test;
mod tidy;
mod tools;
mod torture;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Homeport's development commands")]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run all checks and tests; stops at the first failing step
    Test {
        /// Arguments for cargo-nextest, for example the name of a test
        #[arg(last = true)]
        nextest_args: Vec<String>,
    },
    /// Check the project's own rules
    Tidy,
    /// Attack a server with mutated and random requests
    Hostile {
        #[arg(long, default_value_t = 10)]
        minutes: u32,
        /// Seed, to repeat the requests of an earlier run
        #[arg(long)]
        seed: Option<u64>,
    },
    /// Run writers against a server while injecting faults, and check that no data is lost
    Torture(torture::Torture),
    /// Fuzz the parsers, each target for a given time
    Fuzz(fuzz::Fuzz),
    /// Ingest at full rate beside idle tables; fails on stalls and on growing memory or journals
    Soak {
        /// How long to ingest
        #[arg(long, default_value_t = 30)]
        minutes: u32,
    },
    /// Build the benchmark and the server in release mode, and run the benchmark
    Bench {
        /// Arguments for the benchmark
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        bench_args: Vec<String>,
    },
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Printed here, because the runtime would add a useless backtrace.
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> anyhow::Result<()> {
    let root = repository_root()?;
    match CommandLine::parse().command {
        Command::Test { nextest_args } => test::run(&root, &nextest_args),
        Command::Tidy => tidy::run(&root),
        Command::Bench { bench_args } => bench(&root, &bench_args),
        Command::Soak { minutes } => soak(&root, minutes),
        Command::Fuzz(fuzz) => fuzz.run(&root),
        Command::Torture(torture) => torture.run(&root),
        Command::Hostile { minutes, seed } => hostile(&root, minutes, seed),
    }
}

fn bench(root: &Path, bench_args: &[String]) -> anyhow::Result<()> {
    let dynoxide = peers::ensure_dynoxide(root)?;
    let mut program = build_bench(root)?;
    program.env(peers::DYNOXIDE_VARIABLE, dynoxide);
    process::run(program.args(bench_args))
}

/// The data is in the build directory, where the next run removes gigabytes that an interrupted run left.
fn soak(root: &Path, minutes: u32) -> anyhow::Result<()> {
    let mut program = build_bench(root)?;
    let directory = target::directory(root)?.join("soak");
    let remove = || match std::fs::remove_dir_all(&directory) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    };
    remove()?;
    let outcome = process::run(
        program
            .args(["--soak", &minutes.to_string(), "--directory"])
            .arg(&directory),
    );
    remove()?;
    outcome
}

/// Builds benchmark and server together, so that it measures this tree.
fn build_bench(root: &Path) -> anyhow::Result<std::process::Command> {
    process::run(process::cargo(root).args([
        "build",
        "--release",
        "--locked",
        "--package",
        "homeport",
        "--package",
        "homeport-bench",
    ]))?;
    let program = target::directory(root)?
        .join("release")
        .join(format!("homeport-bench{}", std::env::consts::EXE_SUFFIX));
    let mut command = std::process::Command::new(program);
    command.current_dir(root);
    Ok(command)
}

/// Runs the hostile test for a given time, in release mode.
fn hostile(root: &Path, minutes: u32, seed: Option<u64>) -> anyhow::Result<()> {
    let mut command = process::cargo(root);
    command
        .env("HOMEPORT_HOSTILE_MINUTES", minutes.to_string())
        .args([
            "test",
            "--release",
            "--locked",
            "--package",
            "homeport",
            "--test",
            "hostile",
            "--",
            "--nocapture",
        ]);
    if let Some(seed) = seed {
        command.env("HOMEPORT_HOSTILE_SEED", seed.to_string());
    }
    process::run(&mut command)
}

/// The directory of the workspace, determined at run time: two checkouts may share a target directory, so a path fixed at
/// compile time could be the other one's.
fn repository_root() -> anyhow::Result<PathBuf> {
    let manifest_dir = std::env::var_os("CARGO_MANIFEST_DIR")
        .context("CARGO_MANIFEST_DIR is not set; run `cargo xtask`")?;
    let mut root = PathBuf::from(manifest_dir);
    root.pop();
    Ok(root)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn command_line_is_consistent() {
        CommandLine::command().debug_assert();
    }

    #[test]
    fn arguments_after_two_dashes_go_to_nextest() {
        let parsed =
            CommandLine::parse_from(["xtask", "test", "--", "--no-capture", "key_order"]).command;
        let Command::Test { nextest_args } = parsed else {
            panic!("parsed as another command");
        };
        assert_eq!(nextest_args, ["--no-capture", "key_order"]);
    }

    #[test]
    fn bench_takes_options_without_two_dashes() {
        let parsed = CommandLine::parse_from(["xtask", "bench", "ingest", "--secs", "5"]).command;
        let Command::Bench { bench_args } = parsed else {
            panic!("parsed as another command");
        };
        assert_eq!(bench_args, ["ingest", "--secs", "5"]);
    }
}
