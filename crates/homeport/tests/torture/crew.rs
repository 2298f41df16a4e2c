//! The writers of a round: tasks that write through the workloads, can be paused, and count their operations.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{RwLock, RwLockWriteGuard};
use tokio::task::JoinHandle;

use crate::clients::Clients;
use crate::report::Report;
use crate::target::Target;
use crate::workloads::{OperationResult, Workload, Workloads};
use homeport_simulate::SeededRandom;

/// Maximum pause between two operations of a writer.
const PACE_MS_MAX: usize = 20;
const POLL_EVERY: Duration = Duration::from_millis(10);

pub(crate) struct Crew {
    members: Vec<Arc<Member>>,
    gate: Arc<RwLock<()>>,
    stop_writers: Arc<AtomicBool>,
    stop_subscriber: Arc<AtomicBool>,
    /// The writers' tasks, with the names of their workloads.
    writers: Vec<(&'static str, JoinHandle<()>)>,
    subscriber: JoinHandle<()>,
    violations: Arc<Mutex<Vec<String>>>,
}

/// A workload with counts of its operations.
struct Member {
    workload: Arc<dyn Workload>,
    /// In the order of `OperationResult::ALL`.
    counts: [AtomicU64; OperationResult::ALL.len()],
}

impl Crew {
    /// Starts the subscriber, prepares every workload and starts its writers.
    pub(crate) async fn start(
        workloads: &Workloads,
        target: &Target,
        seed: u64,
    ) -> Result<Self, String> {
        let stop_subscriber: Arc<AtomicBool> = Arc::default();
        let (telemetry, stop) = (
            Arc::clone(&workloads.telemetry),
            Arc::clone(&stop_subscriber),
        );
        let subscriber = target.clone();
        let mut crew = Self {
            members: Vec::new(),
            gate: Arc::default(),
            stop_writers: Arc::default(),
            stop_subscriber,
            writers: Vec::new(),
            subscriber: tokio::spawn(async move {
                let random = SeededRandom::new([seed]);
                telemetry.subscribe(subscriber, &stop, random).await;
            }),
            violations: Arc::default(),
        };
        for workload in &workloads.all {
            let mut clients = Clients::new(target.clone());
            let prepared = workload.prepare(&mut clients).await;
            prepared.map_err(|why| format!("preparing {}: {why}", workload.name()))?;
        }
        for workload in &workloads.all {
            let member = Arc::new(Member {
                workload: Arc::clone(workload),
                counts: Default::default(),
            });
            for lane in 0..workload.lanes() {
                let number = crew.writers.len() as u64 + 1;
                let random = SeededRandom::new([seed, number]);
                let task = crew.work(
                    Arc::clone(&member),
                    lane,
                    Clients::new(target.clone()),
                    random,
                );
                crew.writers.push((workload.name(), tokio::spawn(task)));
            }
            crew.members.push(member);
        }
        Ok(crew)
    }

    fn work(
        &self,
        member: Arc<Member>,
        lane: usize,
        mut clients: Clients,
        mut random: SeededRandom,
    ) -> impl Future<Output = ()> + Send + 'static {
        let (gate, stop) = (Arc::clone(&self.gate), Arc::clone(&self.stop_writers));
        let violations = Arc::clone(&self.violations);
        async move {
            while !stop.load(Ordering::Relaxed) {
                if clients.target().now().is_none() {
                    tokio::time::sleep(POLL_EVERY).await;
                    continue;
                }
                let pass = gate.read().await;
                let ended = member.workload.write(lane, &mut clients, &mut random).await;
                drop(pass);
                match ended {
                    Ok(ended) => member.count(ended),
                    Err(violation) => {
                        let mut violations =
                            violations.lock().unwrap_or_else(PoisonError::into_inner);
                        violations.push(violation);
                        return;
                    }
                }
                let pace = u64::try_from(random.below(PACE_MS_MAX)).unwrap_or_default();
                tokio::time::sleep(Duration::from_millis(pace)).await;
            }
        }
    }

    /// Waits for running operations and holds back new ones until the guard is dropped.
    pub(crate) async fn pause(&self) -> RwLockWriteGuard<'_, ()> {
        self.gate.write().await
    }

    /// Waits until every workload has had a write acknowledged.
    pub(crate) async fn progress(&self, within: Duration) -> Result<(), String> {
        let deadline = Instant::now() + within;
        let written = |member: &Arc<Member>| member.total(OperationResult::Acknowledged);
        let before: Vec<u64> = self.members.iter().map(written).collect();
        loop {
            self.check()?;
            let mut pairs = self.members.iter().zip(&before);
            match pairs.find(|(member, before)| written(member) <= **before) {
                None => return Ok(()),
                Some((member, _)) if Instant::now() > deadline => {
                    let name = member.workload.name();
                    return Err(format!("{name} wrote nothing in time after the fault"));
                }
                Some(_) => tokio::time::sleep(POLL_EVERY).await,
            }
        }
    }

    /// Fails if a writer has seen a violation, or has stopped by itself.
    pub(crate) fn check(&self) -> Result<(), String> {
        let mut violations = self
            .violations
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(violation) = violations.pop() {
            return Err(violation);
        }
        let is_lost = |task: &JoinHandle<()>, stop: &AtomicBool| {
            task.is_finished() && !stop.load(Ordering::Relaxed)
        };
        let mut writers = self.writers.iter();
        if let Some((name, _)) = writers.find(|(_, task)| is_lost(task, &self.stop_writers)) {
            return Err(format!("a writer of {name} panicked"));
        }
        if is_lost(&self.subscriber, &self.stop_subscriber) {
            return Err("the subscriber panicked".to_owned());
        }
        Ok(())
    }

    /// Stops the writers after their running operations. The subscriber still receives.
    pub(crate) async fn stop_writers(&mut self) -> Result<(), String> {
        self.stop_writers.store(true, Ordering::Relaxed);
        for (name, task) in self.writers.drain(..) {
            let ended = task.await;
            ended.map_err(|_| format!("a writer of {name} panicked"))?;
        }
        self.check()
    }

    /// Stops everything and adds the counts to the report.
    pub(crate) async fn end(mut self, report: &mut Report) -> Result<(), String> {
        let writers = self.stop_writers().await;
        self.stop_subscriber.store(true, Ordering::Relaxed);
        let subscriber = self.subscriber.await;
        for member in &self.members {
            for ended in OperationResult::ALL {
                report.add_operations(member.workload.name(), ended, member.total(ended));
            }
        }
        subscriber.map_err(|_| "the subscriber panicked".to_owned())?;
        writers
    }
}

impl Member {
    fn count(&self, ended: OperationResult) {
        self.counts[ended as usize].fetch_add(1, Ordering::Relaxed);
    }

    fn total(&self, ended: OperationResult) -> u64 {
        self.counts[ended as usize].load(Ordering::Relaxed)
    }
}
