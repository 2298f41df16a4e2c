//! The options of a run: short as a test, longer with environment variables that `cargo xtask torture` sets.

use std::path::PathBuf;
use std::time::Duration;

use crate::plan::Fault;
use crate::{clock, location};

/// Seed of the short run.
const SEED: u64 = 17;

#[derive(Debug, Clone)]
pub(crate) struct Options {
    pub(crate) seed: u64,
    /// First round, to repeat a later round of an earlier run.
    pub(crate) first_round: u64,
    /// Duration of the run; one short round if not given.
    pub(crate) duration: Option<Duration>,
    pub(crate) faults: Vec<Fault>,
    /// Faults that a short run skips, and why this machine cannot inject them.
    pub(crate) left_out: Vec<(Fault, &'static str)>,
    /// File for the report, in addition to the output.
    pub(crate) report: Option<PathBuf>,
    /// The server's binary: of this build, or one whose defenses were removed.
    pub(crate) binary: PathBuf,
}

impl Options {
    pub(crate) fn from_environment() -> Result<Self, String> {
        let variable = |name: &str| std::env::var(format!("HOMEPORT_TORTURE_{name}")).ok();
        let number = |name: &str| -> Result<Option<u64>, String> {
            let Some(text) = variable(name) else {
                return Ok(None);
            };
            let number = text.parse();
            number
                .map(Some)
                .map_err(|_| format!("HOMEPORT_TORTURE_{name}={text} is not a number"))
        };
        let minutes = number("MINUTES")?;
        let mut left_out = Vec::new();
        let faults = match variable("FAULTS") {
            Some(names) => parse_faults(&names)?,
            None if minutes.is_some() => Fault::ALL.to_vec(),
            None => {
                let reason = |fault: Fault| Some((fault, unavailable(fault)?));
                left_out = Fault::ALL.into_iter().filter_map(reason).collect();
                let is_left_out = |fault: &Fault| left_out.iter().any(|(out, _)| out == fault);
                let mut faults = Fault::ALL.to_vec();
                faults.retain(|fault| !is_left_out(fault));
                faults
            }
        };
        Ok(Self {
            seed: number("SEED")?.unwrap_or(SEED),
            first_round: number("ROUND")?.unwrap_or(0),
            duration: minutes.map(|minutes| Duration::from_secs(minutes * 60)),
            faults,
            left_out,
            report: variable("REPORT").map(PathBuf::from),
            binary: variable("BINARY")
                .unwrap_or_else(|| env!("CARGO_BIN_EXE_homeport").to_owned())
                .into(),
        })
    }

    pub(crate) fn is_short(&self) -> bool {
        self.duration.is_none()
    }
}

/// Why a fault cannot be injected on this machine.
pub(crate) fn unavailable(fault: Fault) -> Option<&'static str> {
    match fault {
        Fault::Clock if clock::library().is_none() => {
            Some("libfaketime is missing: install Debian's package faketime")
        }
        fault => location::unavailable(fault),
    }
}

fn parse_faults(names: &str) -> Result<Vec<Fault>, String> {
    let parse = |name: &str| {
        let fault = Fault::ALL.into_iter().find(|fault| fault.name() == name);
        let known: Vec<&str> = Fault::ALL.iter().map(|fault| fault.name()).collect();
        fault.ok_or_else(|| format!("unknown fault {name}; choose from {}", known.join(",")))
    };
    names.split(',').map(parse).collect()
}
