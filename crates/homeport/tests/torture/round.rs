//! One round: a new data directory, writers, and the planned faults, with a verification after each.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::checker;
use crate::clients::Clients;
use crate::clock::Clock;
use crate::crew::Crew;
use crate::faults;
use crate::history::Recorder;
use crate::location::Location;
use crate::options::Options;
use crate::plan::{Fault, Step};
use crate::report::Report;
use crate::server::{Launch, NoStart, Server};
use crate::target::{Announcer, Target};
use crate::workloads::{Problem, Scope, Workloads};

/// Limit for every workload to write again after a fault, including the server's start.
const RECOVERY_MAX: Duration = Duration::from_secs(30);
/// The same limit in the short run, which shares its cores with other tests.
const RECOVERY_MAX_SHORT: Duration = Duration::from_secs(90);
/// Limit for failing reads after a fault.
const UNREADABLE_MAX: Duration = Duration::from_secs(30);
const SAMPLE_EVERY: Duration = Duration::from_millis(200);
/// More resident memory than this counts as a leak.
const RESIDENT_MAX_BYTES: u64 = 1024 * 1024 * 1024;

pub(crate) struct Round<'a> {
    pub(crate) options: &'a Options,
    pub(crate) launch: Launch,
    pub(crate) location: Location,
    pub(crate) clock: Option<Clock>,
    /// Directory for copies and logs, outside of the private file system.
    pub(crate) directory: PathBuf,
    pub(crate) workloads: Workloads,
    pub(crate) report: &'a mut Report,
    announcer: Announcer,
    target: Target,
    server: Option<Server>,
    starts: u32,
    recorder: Recorder,
    recovery_max: Duration,
}

impl<'a> Round<'a> {
    pub(crate) fn new(
        options: &'a Options,
        directory: &Path,
        number: u64,
        report: &'a mut Report,
    ) -> Result<Self, String> {
        let clock = if options.faults.contains(&Fault::Clock) {
            Some(Clock::new(directory)?)
        } else {
            None
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now_ms = now.map_or(0, |now| i64::try_from(now.as_millis()).unwrap_or_default());
        let recorder = Recorder::new();
        let recovery_max = if options.is_short() {
            RECOVERY_MAX_SHORT
        } else {
            RECOVERY_MAX
        };
        let (announcer, target) = Announcer::new(None);
        Ok(Self {
            launch: Launch {
                binary: options.binary.clone(),
                is_sealed: (options.seed + number) % 2 == 1,
                clock: clock.as_ref().map(Clock::preload),
                limits_descriptors: options.faults.contains(&Fault::Descriptors),
                start_max: recovery_max,
                log_dir: directory.to_owned(),
            },
            location: Location::new(directory, &options.faults)?,
            clock,
            directory: directory.to_owned(),
            workloads: Workloads::new(now_ms, &recorder),
            options,
            report,
            announcer,
            target,
            server: None,
            starts: 0,
            recorder,
            recovery_max,
        })
    }

    /// Runs the steps. An error is a violation.
    pub(crate) async fn run(&mut self, steps: &[Step], seed: u64) -> Result<(), String> {
        self.start()?;
        let mut crew = Crew::start(&self.workloads, &self.target, seed).await?;
        let mut outcome = Ok(());
        for (at, step) in steps.iter().enumerate() {
            let began = Instant::now();
            let duration = self.options.duration;
            if duration.is_some_and(|duration| self.report.elapsed() >= duration) {
                break;
            }
            outcome = self.step(step, &crew).await;
            if let Err(why) = outcome {
                let name = step.fault.name();
                outcome = Err(format!("step {at} ({name}): {why}"));
                break;
            }
            println!(
                "  step {at} {}: {} ms",
                step.fault.name(),
                began.elapsed().as_millis()
            );
        }
        if outcome.is_ok() {
            outcome = match crew.stop_writers().await {
                Ok(()) => self.verify(&crew).await,
                stopped => stopped,
            };
        }
        let ended = crew.end(self.report).await;
        outcome?;
        ended?;
        self.finish()
    }

    async fn step(&mut self, step: &Step, crew: &Crew) -> Result<(), String> {
        self.report.steps += 1;
        self.wait(Duration::from_millis(step.run_ms)).await?;
        faults::inject(self, step, crew).await?;
        let ended = Instant::now();
        if self.server.is_none() {
            self.start()?;
        }
        let left = self.recovery_max.saturating_sub(ended.elapsed());
        crew.progress(left).await?;
        self.report.add_fault(step.fault, ended.elapsed());
        self.verify(crew).await
    }

    /// Lets the writers run, and samples the server.
    pub(crate) async fn wait(&mut self, duration: Duration) -> Result<(), String> {
        let began = Instant::now();
        while began.elapsed() < duration {
            tokio::time::sleep(SAMPLE_EVERY.min(duration)).await;
            if let Some(server) = &mut self.server {
                if server.has_ended() {
                    return Err("the server ended by itself".to_owned());
                }
                self.report.samples.take(server.id());
            }
        }
        Ok(())
    }

    pub(crate) fn start(&mut self) -> Result<(), String> {
        self.starts += 1;
        let name = format!("server-{}", self.starts);
        let server = match self.launch.start(&self.location.data_dir(), &name) {
            Ok(server) => server,
            Err(NoStart::Refused(why) | NoStart::Broken(why)) => {
                return Err(format!("the server does not start: {why}"));
            }
        };
        self.announcer.set(Some(server.addresses));
        self.server = Some(server);
        Ok(())
    }

    pub(crate) fn server(&self) -> Option<&Server> {
        self.server.as_ref()
    }

    pub(crate) fn target(&self) -> Target {
        self.target.clone()
    }

    /// Ends the server with kill -9.
    pub(crate) fn kill(&mut self) -> Result<(), String> {
        self.announcer.set(None);
        let Some(server) = self.server.take() else {
            return Ok(());
        };
        let log = server.log.clone();
        server.kill();
        no_panics(crate::server::panics(&log))
    }

    /// Ends the server with SIGTERM.
    pub(crate) fn terminate(&mut self) -> Result<(), String> {
        self.announcer.set(None);
        let Some(server) = self.server.take() else {
            return Ok(());
        };
        let log = server.log.clone();
        server.terminate()?;
        no_panics(crate::server::panics(&log))
    }

    /// Compares everything with what was acknowledged, while the writers are paused.
    pub(crate) async fn verify(&mut self, crew: &Crew) -> Result<(), String> {
        let _pause = crew.pause().await;
        crew.check()?;
        if let Some(server) = &self.server {
            no_panics(server.panics())?;
        }
        self.report.verifications += 1;
        let mut clients = Clients::new(self.target.clone());
        for workload in &self.workloads.all {
            let deadline = Instant::now() + UNREADABLE_MAX;
            loop {
                match workload.verify(&mut clients, Scope::Live).await {
                    Ok(()) => break,
                    Err(Problem::Violation(why)) => return Err(why),
                    Err(Problem::Unreadable(why)) if Instant::now() > deadline => {
                        return Err(format!("{} cannot be read: {why}", workload.name()));
                    }
                    Err(Problem::Unreadable(_)) => {
                        tokio::time::sleep(Duration::from_millis(50)).await;
                    }
                }
            }
        }
        if self.report.samples.resident_max_bytes() > RESIDENT_MAX_BYTES {
            return Err(format!("too much memory: {}", self.report.samples));
        }
        Ok(())
    }

    /// Stops the server, and checks the directory and the history.
    fn finish(&mut self) -> Result<(), String> {
        self.terminate()?;
        faults::check_is_clean(&self.launch, &self.location.data_dir())?;
        let history = self.recorder.history();
        let count = history.transactions.len();
        self.report.transactions += u64::try_from(count).unwrap_or_default();
        let anomalies = checker::check(&history);
        self.report.anomalies += u64::try_from(anomalies.len()).unwrap_or_default();
        match anomalies.first() {
            Some(first) => Err(format!("{} anomalies; {first}", anomalies.len())),
            None => Ok(()),
        }
    }

    /// Saves the data directory of a failed round from mounts that end with the process.
    pub(crate) fn keep(&mut self) {
        self.server = None;
        let kept = self.directory.join("kept");
        let copied = std::process::Command::new("cp")
            .args(["-a", "--"])
            .arg(self.location.data_dir())
            .arg(&kept)
            .status();
        if copied.is_ok_and(|status| status.success()) {
            println!("data directory and logs: {}", self.directory.display());
        }
    }
}

fn no_panics(panics: Vec<String>) -> Result<(), String> {
    match panics.first() {
        Some(panic) => Err(format!("the server panicked: {panic}")),
        None => Ok(()),
    }
}
