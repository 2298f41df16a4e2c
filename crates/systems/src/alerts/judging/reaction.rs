//! Follows the changes of a source and judges them.
//!
//! A page of changes is sorted into one job for each definition and device. The jobs run in parallel.
//! Each judges its observations in the order of their own times until an alert is raised or cleared,
//! stores that, and continues.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use homeport_item::Item;
use homeport_item::expression::KeyCondition;
use homeport_store::{BATCH_GET_MAX, Change, Get, Query, StoreError};

use super::judge::{Observation, Verdict, judge};
use super::source::Source;
use super::transition::{OmittedParts, Outcome, TOO_OLD, Transition};
use super::watch::{Mark, Watch};
use crate::alerts::definitions::definition::Definition;
use crate::alerts::types::{DefinitionId, DeviceName};
use crate::alerts::{Alerts, AlertsError, schema};
use crate::fetch::fetch;
use crate::reactions::{Reaction, ReactionError};
use crate::time::EpochMillis;

/// Watches that are cached. A stale one is harmless: every write is conditional on the stored
/// version.
const CACHED_MAX: usize = 50_000;
/// How often a job may start over because of concurrent writes.
const RETRIES_MAX: u32 = 8;
const RETRY_PAUSE: Duration = Duration::from_millis(20);

/// Follows one source.
#[derive(Debug, Clone)]
pub struct AlertReaction {
    alerts: Alerts,
    source: Source,
}

/// Watches by definition and device.
#[derive(Debug, Default)]
pub(in crate::alerts) struct WatchCache(Mutex<HashMap<(DefinitionId, DeviceName), Watch>>);

/// An item to judge.
#[derive(Debug, Clone, Copy)]
struct Observed<'a> {
    item: &'a Item,
    stored_at: EpochMillis,
    /// The moment at which the age of its value counts.
    known_at: EpochMillis,
}

/// The observations of one device for one definition.
struct Job<'a> {
    definition: Arc<Definition>,
    observed: BTreeMap<Mark, Observed<'a>>,
    watch: Watch,
    /// The last observation that is judged and stored.
    done: Option<Mark>,
    omitted: OmittedParts,
    retries: u32,
}

impl WatchCache {
    fn get(&self, key: &(DefinitionId, DeviceName)) -> Option<Watch> {
        self.lock().get(key).cloned()
    }

    fn put(&self, watch: Watch) {
        let mut cached = self.lock();
        if cached.len() >= CACHED_MAX {
            cached.clear();
        }
        let key = (watch.definition_id.clone(), watch.device.clone());
        cached.insert(key, watch);
    }

    pub(in crate::alerts) fn forget(&self, watch: &Watch) {
        let key = (watch.definition_id.clone(), watch.device.clone());
        self.lock().remove(&key);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<(DefinitionId, DeviceName), Watch>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AlertReaction {
    pub(in crate::alerts) fn new(alerts: Alerts, source: Source) -> Self {
        Self { alerts, source }
    }

    async fn judge_all(&self, items: &[Observed<'_>]) -> Result<(), AlertsError> {
        // IMPORTANT: without loaded definitions, these changes would be skipped for good.
        let snapshot = self.alerts.0.registry.loaded(&*self.alerts.0.store).await?;
        let definitions = snapshot.watching(self.source.system());
        if definitions.is_empty() || items.is_empty() {
            return Ok(());
        }
        self.source.devices.prepare().await?;
        let mut sorted: BTreeMap<(usize, DeviceName), BTreeMap<Mark, Observed<'_>>> =
            BTreeMap::new();
        for observed in items {
            let subject = self.source.subject(observed.item, observed.stored_at);
            let Some(subject) = subject else {
                continue;
            };
            for (number, definition) in definitions.iter().enumerate() {
                if definition.watches(&subject.device, observed.item, observed.stored_at) {
                    let key = (number, subject.device.clone());
                    let of_device = sorted.entry(key).or_default();
                    of_device.insert(subject.mark.clone(), *observed);
                }
            }
        }
        let wanted = sorted
            .keys()
            .map(|(number, device)| (definitions[*number].id.clone(), device.clone()));
        let mut watches = self.alerts.watches(wanted.collect()).await?;
        let mut jobs = Vec::with_capacity(sorted.len());
        for ((number, device), observed) in sorted {
            let definition = Arc::clone(&definitions[number]);
            let watch = watches.remove(&(definition.id.clone(), device.clone()));
            let watch = self.alerts.current(&definition, device, watch).await?;
            jobs.push(Job {
                definition,
                observed,
                watch,
                done: None,
                omitted: OmittedParts::default(),
                retries: 0,
            });
        }
        self.run_jobs(jobs).await
    }

    async fn run_jobs(&self, mut jobs: Vec<Job<'_>>) -> Result<(), AlertsError> {
        while !jobs.is_empty() {
            let mut pending: Vec<(Job<'_>, Transition, Option<Mark>)> = Vec::new();
            for job in jobs {
                if let Some((transition, mark)) = job.next(&self.alerts).await? {
                    pending.push((job, transition, mark));
                }
            }
            let transitions: Vec<_> = pending.iter().map(|(_, step, _)| step).collect();
            let outcomes = self.alerts.carry_out(&transitions).await?;
            jobs = Vec::new();
            for ((mut job, transition, mark), outcome) in pending.into_iter().zip(outcomes) {
                if outcome == Outcome::Done {
                    job.watch = transition.after;
                    job.done = mark;
                    job.omitted = OmittedParts::default();
                    self.alerts.0.cache.put(job.watch.clone());
                    jobs.push(job);
                } else if let Some(job) = self.reload(job, outcome).await? {
                    jobs.push(job);
                }
            }
        }
        Ok(())
    }

    /// Reloads what a failed job was based on; `None` when its definition no longer watches.
    async fn reload<'a>(
        &self,
        mut job: Job<'a>,
        outcome: Outcome,
    ) -> Result<Option<Job<'a>>, AlertsError> {
        job.retries += 1;
        if job.retries > RETRIES_MAX {
            return Err(StoreError::Throttled.into());
        }
        job.omitted = job.omitted.after(outcome);
        match outcome {
            Outcome::OutboxFull | Outcome::AlertGone | Outcome::Done => return Ok(Some(job)),
            Outcome::Busy => tokio::time::sleep(RETRY_PAUSE * job.retries).await,
            Outcome::WatchMoved => {}
            Outcome::DefinitionChanged => {
                let snapshot = self.alerts.refresh().await?;
                let definition = snapshot.get(&job.definition.id);
                let Some(definition) = definition.filter(|definition| definition.is_watching())
                else {
                    return Ok(None);
                };
                job.definition = Arc::clone(definition);
            }
        }
        let device = job.watch.device.clone();
        let key = schema::watch_key(&job.definition.id, &device);
        let stored = self
            .alerts
            .0
            .store
            .get(Get::new(schema::WATCHES, key))
            .await?;
        let stored = stored.as_ref().map(Watch::from_item).transpose()?;
        job.watch = self.alerts.current(&job.definition, device, stored).await?;
        // Judging again skips what the stored watch has judged already.
        job.done = None;
        Ok(Some(job))
    }

    /// Judges the newest item of every watched device, after changes were missed.
    async fn judge_newest(&self) -> Result<(), AlertsError> {
        self.source.devices.prepare().await?;
        for definition in self.alerts.refresh().await?.watching(self.source.system()) {
            let condition = KeyCondition::new(schema::DEFINITION_ID, &definition.id);
            let mut query = Query::new(schema::WATCHES, condition).limit(BATCH_GET_MAX);
            loop {
                let page = self.alerts.0.store.query(query.clone()).await?;
                let mut newest = Vec::new();
                for watch in &page.items {
                    let device = Watch::from_item(watch)?.device;
                    newest.extend(self.source.devices.newest_item(device.as_str()).await?);
                }
                let now = self.alerts.now();
                let observed: Vec<_> = newest
                    .iter()
                    .filter_map(|item| {
                        // The time of storing is unknown; the item's own time is early enough.
                        let subject = self.source.subject(item, now)?;
                        Some(Observed {
                            item,
                            stored_at: subject.mark.at.min(now),
                            known_at: now,
                        })
                    })
                    .collect();
                self.judge_all(&observed).await?;
                query.start = page.next;
                if query.start.is_none() {
                    break;
                }
            }
        }
        Ok(())
    }
}

impl Job<'_> {
    /// Judges up to the next observation that raises or clears an alert. Returns the transition and
    /// the last judged observation; `None` when there is nothing to store.
    async fn next(
        &self,
        alerts: &Alerts,
    ) -> Result<Option<(Transition, Option<Mark>)>, AlertsError> {
        let condition = &self.definition.terms.condition;
        let mut watch = self.watch.clone();
        let mut is_noted = false;
        for (mark, observed) in &self.observed {
            if self.done.as_ref().is_some_and(|done| mark <= done) {
                continue;
            }
            let observation = Observation {
                mark,
                stored_at: observed.stored_at,
                item: observed.item,
                is_old: alerts.0.settings.is_old(mark.at, observed.known_at),
            };
            let transition = match judge(condition, &mut watch, observation) {
                Verdict::Nothing => continue,
                Verdict::Noted => {
                    is_noted = true;
                    continue;
                }
                Verdict::TooOld => {
                    metrics::counter!(TOO_OLD).increment(1);
                    is_noted = true;
                    continue;
                }
                Verdict::Raise(finding) => {
                    alerts.raising(&self.definition, watch, finding, self.omitted)?
                }
                Verdict::Clear(finding) => {
                    let clearing = alerts.clearing(&self.definition, watch, finding, self.omitted);
                    clearing.await?
                }
            };
            return Ok(Some((transition, Some(mark.clone()))));
        }
        let last = self.observed.keys().next_back().cloned();
        Ok(is_noted.then(|| (alerts.noting(&self.definition, watch), last)))
    }
}

impl Alerts {
    /// The watches of devices, from the cache or from the store.
    async fn watches(
        &self,
        wanted: Vec<(DefinitionId, DeviceName)>,
    ) -> Result<HashMap<(DefinitionId, DeviceName), Watch>, AlertsError> {
        let mut found = HashMap::with_capacity(wanted.len());
        let mut missing = Vec::new();
        for key in wanted {
            match self.0.cache.get(&key) {
                Some(watch) => {
                    found.insert(key, watch);
                }
                None => missing.push(schema::watch_key(&key.0, &key.1)),
            }
        }
        for item in &fetch(&*self.0.store, schema::WATCHES, missing, None).await? {
            let watch = Watch::from_item(item)?;
            self.0.cache.put(watch.clone());
            found.insert((watch.definition_id.clone(), watch.device.clone()), watch);
        }
        Ok(found)
    }

    /// The watch for the current epoch of a definition. A watch of an earlier epoch is retired.
    async fn current(
        &self,
        definition: &Definition,
        device: DeviceName,
        watch: Option<Watch>,
    ) -> Result<Watch, AlertsError> {
        match watch {
            Some(watch) if watch.epoch == definition.epoch => Ok(watch),
            Some(watch) => {
                self.retire(&watch, "the definition was changed").await?;
                Ok(Watch::new(definition, device))
            }
            None => Ok(Watch::new(definition, device)),
        }
    }
}

#[async_trait]
impl Reaction for AlertReaction {
    fn name(&self) -> &'static str {
        self.source.reaction_name()
    }

    fn table(&self) -> &str {
        self.source.table()
    }

    async fn apply(&self, changes: &[Change]) -> Result<(), ReactionError> {
        let items: Vec<_> = changes
            .iter()
            .filter_map(|change| {
                let stored_at = EpochMillis(change.at_ms);
                Some(Observed {
                    item: change.new.as_ref()?,
                    stored_at,
                    known_at: stored_at,
                })
            })
            .collect();
        self.judge_all(&items).await.map_err(ReactionError::new)
    }

    async fn start_over(&self) -> Result<(), ReactionError> {
        self.judge_newest().await.map_err(ReactionError::new)
    }
}
