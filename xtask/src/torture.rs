//! `cargo xtask torture`: the test of the same name with optimisations, for as long as wanted.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::{debian, process};

#[derive(Args)]
pub(crate) struct Torture {
    /// How long to run
    #[arg(long, default_value_t = 10)]
    minutes: u32,
    /// Repeats the faults of an earlier run
    #[arg(long)]
    seed: Option<u64>,
    /// The round to begin with, to repeat a later one of an earlier run
    #[arg(long)]
    round: Option<u64>,
    /// Faults to inject: kill,term,power,disk,descriptors,clock,damage
    #[arg(long)]
    faults: Option<String>,
    /// Where to write the report, in Markdown
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
            // The test runs in the directory of its package.
            command.env("HOMEPORT_TORTURE_REPORT", std::path::absolute(report)?);
        }
        process::run(&mut command)
    }
}
