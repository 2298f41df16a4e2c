//! Judging what a source's changes bring, as they are followed.
//!
//! A page of changes is sorted into one job for each definition and device, and the jobs are done
//! side by side: each judges its observations in the order of their own times until something is
//! raised or cleared, writes that down, and goes on.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use homeport_item::Item;
use homeport_item::expression::KeyCondition;
use homeport_store::{BATCH_GET_MAX, Change, Get, Query, StoreError};

use super::definition::Definition;
use super::judge::{Observation, Verdict, judge};
use super::source::Source;
use super::transition::{LeftOut, Outcome, Transition};
use super::types::{DefinitionId, DeviceName};
use super::watch::{Mark, Watch};
use super::{Alerts, AlertsError, schema};
use crate::fetch::fetch;
use crate::reactions::{Reaction, ReactionError};
use crate::time::EpochMillis;

/// Watches that are kept in memory. They are only a shortcut: every write is on the condition that
/// the stored one is the same.
const CACHED_MAX: usize = 50_000;
/// How often one job may start over because others were in its way.
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
pub(super) struct WatchCache(Mutex<HashMap<(DefinitionId, DeviceName), Watch>>);

/// An item to judge.
#[derive(Debug, Clone, Copy)]
struct Observed<'a> {
    item: &'a Item,
    stored_at: EpochMillis,
}

/// What is to be judged of one device by one definition.
struct Job<'a> {
    definition: Arc<Definition>,
    observed: BTreeMap<Mark, Observed<'a>>,
    watch: Watch,
    /// Up to where the observations are judged.
    done: Option<Mark>,
    left_out: LeftOut,
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

    pub(super) fn forget(&self, watch: &Watch) {
        let key = (watch.definition_id.clone(), watch.device.clone());
        self.lock().remove(&key);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<(DefinitionId, DeviceName), Watch>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AlertReaction {
    pub(super) fn new(alerts: Alerts, source: Source) -> Self {
        Self { alerts, source }
    }

    async fn judge_all(&self, items: &[Observed<'_>]) -> Result<(), AlertsError> {
        // IMPORTANT: with no definitions in memory yet, changes would be passed over for good.
        let snapshot = self.alerts.0.registry.loaded(&*self.alerts.0.store).await?;
        let definitions = snapshot.watching(self.source.kind);
        if definitions.is_empty() || items.is_empty() {
            return Ok(());
        }
        let naming = self.source.naming(&self.alerts.0.records).await?;
        let mut sorted: BTreeMap<(usize, DeviceName), BTreeMap<Mark, Observed<'_>>> =
            BTreeMap::new();
        for observed in items {
            let subject = self
                .source
                .subject(&naming, observed.item, observed.stored_at);
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
                left_out: LeftOut::default(),
                retries: 0,
            });
        }
        self.work_off(jobs).await
    }

    async fn work_off(&self, mut jobs: Vec<Job<'_>>) -> Result<(), AlertsError> {
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
                    job.left_out = LeftOut::default();
                    self.alerts.0.cache.put(job.watch.clone());
                    jobs.push(job);
                } else if let Some(job) = self.again(job, outcome).await? {
                    jobs.push(job);
                }
            }
        }
        Ok(())
    }

    /// A job that could not be done, with what it should have known; none when there is nothing to
    /// do any more.
    async fn again<'a>(
        &self,
        mut job: Job<'a>,
        outcome: Outcome,
    ) -> Result<Option<Job<'a>>, AlertsError> {
        job.retries += 1;
        if job.retries > RETRIES_MAX {
            return Err(StoreError::Throttled.into());
        }
        job.left_out = job.left_out.after(outcome);
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
        // What it says is judged already is left out by judging again.
        job.done = None;
        Ok(Some(job))
    }

    /// The newest item of every device that is watched, for when changes were missed.
    async fn judge_newest(&self) -> Result<(), AlertsError> {
        let naming = self.source.naming(&self.alerts.0.records).await?;
        for definition in self.alerts.refresh().await?.watching(self.source.kind) {
            let condition = KeyCondition::new(schema::DEFINITION_ID, &definition.id);
            let mut query = Query::new(schema::WATCHES, condition).limit(BATCH_GET_MAX);
            loop {
                let page = self.alerts.0.store.query(query.clone()).await?;
                let mut newest = Vec::new();
                for watch in &page.items {
                    let device = Watch::from_item(watch)?.device;
                    let (store, records) = (&*self.alerts.0.store, &self.alerts.0.records);
                    let item = self.source.newest(store, records, &naming, &device).await?;
                    newest.extend(item);
                }
                let now = self.alerts.now();
                let observed: Vec<_> = newest
                    .iter()
                    .filter_map(|item| {
                        // When it was stored is not known; when it was made is early enough.
                        let subject = self.source.subject(&naming, item, now)?;
                        Some(Observed {
                            item,
                            stored_at: subject.mark.at.min(now),
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
    /// Judges up to the next observation that raises or clears; what writes it down, and up to
    /// where it has judged. None when nothing is left to be written down.
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
            };
            let transition = match judge(condition, &mut watch, observation) {
                Verdict::Nothing => continue,
                Verdict::Noted => {
                    is_noted = true;
                    continue;
                }
                Verdict::Raise(finding) => {
                    alerts.raising(&self.definition, watch, finding, self.left_out)?
                }
                Verdict::Clear(finding) => {
                    let clearing = alerts.clearing(&self.definition, watch, finding, self.left_out);
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
    /// What is known of devices, from memory or from the store.
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

    /// A watch that belongs to a definition as it is now: one from before is brought to its end.
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
                Some(Observed {
                    item: change.new.as_ref()?,
                    stored_at: EpochMillis(change.at_ms),
                })
            })
            .collect();
        self.judge_all(&items).await.map_err(ReactionError::new)
    }

    async fn start_over(&self) -> Result<(), ReactionError> {
        self.judge_newest().await.map_err(ReactionError::new)
    }
}
