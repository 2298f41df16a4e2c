//! The writers of a round: tasks that write through the workloads, can be paused, and count what
//! they did.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{RwLock, RwLockWriteGuard};
use tokio::task::JoinHandle;

use crate::clients::Clients;
use crate::dice::Dice;
use crate::report::Report;
use crate::target::Target;
use crate::workloads::{Ended, Workload, Workloads};

/// Pause between two operations of a writer, at most.
const PACE_MS_MAX: usize = 20;
const POLL_EVERY: Duration = Duration::from_millis(10);

pub(crate) struct Crew {
    members: Vec<Arc<Member>>,
    gate: Arc<RwLock<()>>,
    stop_writers: Arc<AtomicBool>,
    stop_subscriber: Arc<AtomicBool>,
    /// Each with the name of its workload.
    writers: Vec<(&'static str, JoinHandle<()>)>,
    subscriber: JoinHandle<()>,
    violations: Arc<Mutex<Vec<String>>>,
}

/// A workload with the numbers of its writers' operations.
struct Member {
    workload: Arc<dyn Workload>,
    /// In the order of `Ended::ALL`.
    counts: [AtomicU64; Ended::ALL.len()],
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
                let dice = Dice::new(seed);
                telemetry.subscribe(subscriber, &stop, dice).await;
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
                let dice = Dice::new(seed.wrapping_add(number * 7919));
                let task = crew.work(
                    Arc::clone(&member),
                    lane,
                    Clients::new(target.clone()),
                    dice,
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
        mut dice: Dice,
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
                let ended = member.workload.write(lane, &mut clients, &mut dice).await;
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
                let pace = u64::try_from(dice.below(PACE_MS_MAX)).unwrap_or_default();
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
        let written = |member: &Arc<Member>| member.total(Ended::Acknowledged);
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

    /// Fails if a writer has seen a violation, or has stopped although it was not told to.
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
            for ended in Ended::ALL {
                report.add_operations(member.workload.name(), ended, member.total(ended));
            }
        }
        subscriber.map_err(|_| "the subscriber panicked".to_owned())?;
        writers
    }
}

impl Member {
    fn count(&self, ended: Ended) {
        self.counts[ended as usize].fetch_add(1, Ordering::Relaxed);
    }

    fn total(&self, ended: Ended) -> u64 {
        self.counts[ended as usize].load(Ordering::Relaxed)
    }
}
