//! Raising alerts of silent devices. Deadlines are in the store, so that a restart forgets none.

use homeport_item::expression::{KeyCondition, SortCondition};
use homeport_store::{Get, Query};

use super::judge::silence;
use super::transition::{OmittedParts, Outcome};
use super::watch::Watch;
use crate::alerts::definitions::condition::Condition;
use crate::alerts::{Alerts, AlertsError, schema};
use crate::fleet::SystemName;
use crate::time::EpochMillis;

/// Silences per page, and pages per turn.
const SILENCES_PER_PAGE: usize = 100;
const PAGES_MAX: usize = 20;
/// Attempts at one silence while other processes change its watch.
const TRIES_MAX: u32 = 4;

impl Alerts {
    /// Raises an alert for each device that was silent for too long; returns how many.
    ///
    /// # Errors
    /// When the store fails.
    pub(in crate::alerts) async fn raise_silent(&self) -> Result<usize, AlertsError> {
        let now = self.now();
        let mut query = waiting(Some(SortCondition::LessOrEqual(now.0.into())));
        query.limit = Some(SILENCES_PER_PAGE);
        let mut raised = 0;
        for _ in 0..PAGES_MAX {
            let page = self.0.store.query(query.clone()).await?;
            for item in &page.items {
                let due_at = item.get(schema::DUE_AT_MS);
                let due_at = due_at.and_then(|due| due.as_number()?.to_i64());
                match Watch::from_item(item) {
                    Ok(watch) => {
                        let due_at = EpochMillis(due_at.unwrap_or(now.0));
                        raised += usize::from(self.judge_silence(watch, due_at).await?);
                    }
                    // A malformed item must not block the others.
                    Err(error) => tracing::warn!(%error, "skipped a malformed watch"),
                }
            }
            query.start = page.next;
            if query.start.is_none() {
                break;
            }
        }
        Ok(raised)
    }

    /// When the next silence becomes an alert, unless data arrives before.
    pub(in crate::alerts) async fn next_silence(&self) -> Result<Option<EpochMillis>, AlertsError> {
        let page = self.0.store.query(waiting(None).limit(1)).await?;
        let due = page
            .items
            .first()
            .and_then(|item| item.get(schema::DUE_AT_MS));
        Ok(due
            .and_then(|due| due.as_number()?.to_i64())
            .map(EpochMillis))
    }

    /// Up to when all data of a source is judged; `None` when that is unknown.
    pub(super) fn judged_until(&self, system: &SystemName) -> Option<EpochMillis> {
        let name = self.source(system).ok()?.reaction_name();
        let status = self.0.reactions.as_ref()?.status().all();
        let (_, status) = status.into_iter().find(|(known, _)| *known == name)?;
        let is_well = status.problem.is_none();
        is_well.then(|| EpochMillis(self.now().0 - status.lag_ms))
    }

    async fn judge_silence(
        &self,
        mut watch: Watch,
        mut due_at: EpochMillis,
    ) -> Result<bool, AlertsError> {
        let mut omitted = OmittedParts::default();
        for _ in 0..TRIES_MAX {
            let snapshot = self.0.registry.now();
            let definition = snapshot.get(&watch.definition_id);
            let definition =
                definition.filter(|known| known.is_watching() && known.epoch == watch.epoch);
            let Some(definition) = definition else {
                // The registry may be outdated; if not, the definition was changed or deleted.
                let snapshot = self.refresh().await?;
                let known = snapshot.get(&watch.definition_id);
                if known.is_none_or(|known| known.epoch != watch.epoch || !known.is_watching()) {
                    self.retire(&watch, "the definition was changed").await?;
                    return Ok(false);
                }
                continue;
            };
            let Condition::Absence(absence) = &definition.terms.condition else {
                return Ok(false);
            };
            // Data that is stored and not judged yet may be a sign of life.
            let judged_until = self.judged_until(&definition.terms.source);
            if judged_until.is_none_or(|until| due_at > until) {
                return Ok(false);
            }
            let last = watch.seen_at.unwrap_or(definition.since);
            let finding = silence(absence, last);
            let transition = self.raising(definition, watch.clone(), finding, omitted)?;
            let outcome = self.carry_out(&[&transition]).await?;
            let outcome = outcome.first().copied().unwrap_or(Outcome::Busy);
            omitted = omitted.after(outcome);
            match outcome {
                Outcome::Done => {
                    self.0.cache.forget(&watch);
                    return Ok(true);
                }
                Outcome::OutboxFull => {}
                Outcome::Busy | Outcome::AlertGone => return Ok(false),
                Outcome::DefinitionChanged => {
                    self.refresh().await?;
                }
                Outcome::WatchMoved => {
                    let stored = self.0.store.get(Get::new(schema::WATCHES, watch.key()));
                    let Some(item) = stored.await? else {
                        return Ok(false);
                    };
                    watch = Watch::from_item(&item)?;
                    let due = item.get(schema::DUE_AT_MS);
                    match due.and_then(|due| due.as_number()?.to_i64()) {
                        Some(due) if due <= self.now().0 => due_at = EpochMillis(due),
                        _ => return Ok(false),
                    }
                }
            }
        }
        Ok(false)
    }
}

/// Devices that may fall silent, by deadline.
fn waiting(due: Option<SortCondition>) -> Query {
    let mut condition = KeyCondition::new(schema::WAITS, schema::SILENCE);
    if let Some(due) = due {
        condition = condition.with_sort(schema::DUE_AT_MS, due);
    }
    Query::new(schema::WATCHES, condition).on_index(schema::SILENCE_INDEX)
}
