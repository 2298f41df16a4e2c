//! `cargo xtask torture`: runs the torture test in release mode for a given time.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::{debian, process};

#[derive(Args)]
pub(crate) struct Torture {
    /// How long to run
    #[arg(long, default_value_t = 10)]
    minutes: u32,
    /// Seed, to repeat the faults of an earlier run
    #[arg(long)]
    seed: Option<u64>,
    /// First round, to repeat a later round of an earlier run
    #[arg(long)]
    round: Option<u64>,
    /// Faults to inject: kill,term,power,disk,descriptors,clock,damage
    #[arg(long)]
    faults: Option<String>,
    /// Markdown file to write the report to
    #[arg(long)]
    report: Option<PathBuf>,
}

impl Torture {
    pub(crate) fn run(&self, root: &Path) -> anyhow::Result<()> {
        debian::ensure(debian::TORTURE_PROGRAMS)?;
        let mut command = process::cargo(root);
        command
            .env("HOMEPORT_TORTURE_MINUTES", self.minutes.to_string())
            .args(["test", "--release", "--locked", "--package", "homeport"])
            .args(["--test", "torture", "--"])
            .args(["faults_lose_nothing", "--nocapture"]);
        if let Some(seed) = self.seed {
            command.env("HOMEPORT_TORTURE_SEED", seed.to_string());
        }
        if let Some(round) = self.round {
            command.env("HOMEPORT_TORTURE_ROUND", round.to_string());
        }
        if let Some(faults) = &self.faults {
            command.env("HOMEPORT_TORTURE_FAULTS", faults);
        }
        if let Some(report) = &self.report {
            // The test's working directory is that of its package.
            command.env("HOMEPORT_TORTURE_REPORT", std::path::absolute(report)?);
        }
        process::run(&mut command)
    }
}
