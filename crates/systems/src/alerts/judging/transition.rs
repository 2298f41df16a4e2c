//! Storing a verdict: the watch, the alert that is raised or cleared, and its notifications, in one
//! transaction. So an alert is raised once and cleared once, however often a change is seen.

use std::collections::BTreeMap;

use homeport_item::Value;
use homeport_item::expression::{Condition as Expression, Path};
use homeport_store::{
    Action, CancelReason, ConditionCheck, Put, StoreError, TransactError, Transaction,
};

use super::judge::Finding;
use super::watch::Watch;
use crate::alerts::alert::{Alert, Cleared, clearing};
use crate::alerts::definitions::definition::Definition;
use crate::alerts::delivery::notification::{Event, Notification};
use crate::alerts::delivery::outbox::RETRIES;
use crate::alerts::types::AlertId;
use crate::alerts::{Alerts, AlertsError, schema};

/// Transactions per call of the store.
const TRANSACTIONS_AT_ONCE: usize = 100;
/// Counters of raised and cleared alerts.
pub(in crate::alerts) const RAISED: &str = "homeport_alerts_raised_total";
pub(in crate::alerts) const CLEARED: &str = "homeport_alerts_cleared_total";
/// Counts values that would have raised an alert and were too old for it.
pub(in crate::alerts) const TOO_OLD: &str = "homeport_alerts_too_old_total";

/// The writes that store a verdict.
#[derive(Debug, Clone)]
pub(in crate::alerts) struct Transition {
    actions: Vec<Action>,
    /// The watch after the writes.
    pub(in crate::alerts) after: Watch,
    event: Option<Event>,
}

/// The result of committing a transition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::alerts) enum Outcome {
    Done,
    /// Another process has changed the watch.
    WatchMoved,
    /// The definition was changed.
    DefinitionChanged,
    OutboxFull,
    /// The alert to clear is deleted or cleared.
    AlertGone,
    /// Concurrent transactions were in the way; it can be retried.
    Busy,
}

/// Parts that a transition omits because they cannot be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::alerts) struct OmittedParts {
    pub(in crate::alerts) notifications: bool,
    pub(in crate::alerts) alert: bool,
}

impl OmittedParts {
    /// The parts to omit in the next attempt.
    pub(in crate::alerts) fn after(mut self, outcome: Outcome) -> Self {
        self.notifications |= outcome == Outcome::OutboxFull;
        self.alert |= outcome == Outcome::AlertGone;
        self
    }
}

impl Alerts {
    /// Stores a watch only.
    pub(in crate::alerts) fn noting(
        &self,
        definition: &Definition,
        mut watch: Watch,
    ) -> Transition {
        let put = watch.save(&definition.terms.condition);
        Transition {
            actions: vec![put.into()],
            after: watch,
            event: None,
        }
    }

    pub(in crate::alerts) fn raising(
        &self,
        definition: &Definition,
        mut watch: Watch,
        finding: Finding,
        omitted: OmittedParts,
    ) -> Result<Transition, AlertsError> {
        let now = self.now();
        let alert = Alert {
            id: AlertId::new(now),
            definition_id: definition.id.clone(),
            definition_name: definition.terms.name.clone(),
            source: definition.terms.source.clone(),
            device: watch.device.clone(),
            severity: definition.terms.severity,
            reason: finding.reason,
            value: finding.value,
            observed_at: finding.observed_at,
            raised_at: now,
            cleared: None,
            acknowledged: None,
            snooze: None,
            snoozes: 0,
            assignment: None,
            comments: Vec::new(),
            delivery_failed_at: (omitted.notifications && !definition.terms.targets.is_empty())
                .then_some(now),
        };
        let due_at = definition.notify_at(now, watch.notified_at);
        let targets = definition.terms.targets.iter().enumerate();
        let notifications = targets.map(|(number, target)| {
            Notification::queued(
                &alert.id,
                &definition.id,
                Event::Raised,
                number,
                target,
                now,
                due_at,
            )
        });
        let notifications: Vec<_> = notifications.collect();
        watch.open = Some(alert.id.clone());
        if !notifications.is_empty() {
            watch.notified_at = Some(due_at);
        }
        let put = watch.save(&definition.terms.condition);
        let is_as_known = Path::from(schema::REVISION)
            .equals(definition.revision)
            .and(Expression::not_exists(schema::DELETED));
        let key = schema::definition_key(&definition.id);
        let mut actions = vec![
            put.into(),
            ConditionCheck::new(schema::DEFINITIONS, key, is_as_known).into(),
            Put::new(schema::ALERTS, alert.to_item()).into(),
        ];
        actions.extend(self.outgoing(notifications, omitted)?);
        Ok(Transition {
            actions,
            after: watch,
            event: Some(Event::Raised),
        })
    }

    /// Clears the alert of a watch and notifies the targets that know of it.
    pub(in crate::alerts) async fn clearing(
        &self,
        definition: &Definition,
        mut watch: Watch,
        finding: Finding,
        omitted: OmittedParts,
    ) -> Result<Transition, AlertsError> {
        let now = self.now();
        let open = watch.open.take();
        let put = watch.save(&definition.terms.condition);
        let mut actions = vec![put.into()];
        let mut event = None;
        if let Some(id) = open.filter(|_| !omitted.alert) {
            let cleared = Cleared {
                at: now,
                reason: finding.reason,
                value: finding.value,
            };
            let due_at = definition.notify_at(now, None);
            // A target is notified once, whatever it was notified of before.
            let mut known = BTreeMap::new();
            for before in self.notifications(&id).await? {
                let delivery = &before.delivery;
                let is_known = delivery.next_at.is_some() || delivery.may_have_arrived();
                if is_known && before.event != Event::Cleared {
                    known.insert(before.number, before.target);
                }
            }
            let notifications = known.iter().map(|(number, target)| {
                let event = Event::Cleared;
                Notification::queued(&id, &definition.id, event, *number, target, now, due_at)
            });
            let notifications: Vec<_> = notifications.collect();
            let mut clearing = clearing(&id, &cleared, self.0.settings.retention_secs);
            if omitted.notifications && !notifications.is_empty() {
                let failed_at = Value::from(now.0);
                clearing.update = clearing.update.set(schema::DELIVERY_FAILED_AT, failed_at);
            }
            actions.push(clearing.into());
            actions.extend(self.outgoing(notifications, omitted)?);
            event = Some(Event::Cleared);
        }
        Ok(Transition {
            actions,
            after: watch,
            event,
        })
    }

    /// Enqueues notifications. If the outbox is full they are stored as failed.
    pub(in crate::alerts) fn outgoing(
        &self,
        mut notifications: Vec<Notification>,
        omitted: OmittedParts,
    ) -> Result<Vec<Action>, AlertsError> {
        let mut actions = Vec::new();
        if omitted.notifications {
            for notification in &mut notifications {
                let reason = "the outbox is full";
                notification.delivery.fail(&RETRIES, self.now(), reason);
            }
        } else if !notifications.is_empty() {
            let count = i64::try_from(notifications.len()).unwrap_or(i64::MAX);
            let max = i64::try_from(self.0.settings.outbox_max).unwrap_or(i64::MAX);
            let added = schema::open_counter().add(schema::OUTBOX, count, Some(max));
            actions.push(added.into());
        }
        for notification in notifications {
            let item = notification.to_item(self.0.settings.retention_secs)?;
            actions.push(Put::new(schema::OUTBOX, item).into());
        }
        Ok(actions)
    }

    /// Commits transitions in parallel; returns their outcomes in order.
    ///
    /// # Errors
    /// When the store fails. Some may be committed.
    pub(in crate::alerts) async fn carry_out(
        &self,
        transitions: &[&Transition],
    ) -> Result<Vec<Outcome>, AlertsError> {
        let mut outcomes = Vec::with_capacity(transitions.len());
        for chunk in transitions.chunks(TRANSACTIONS_AT_ONCE) {
            let handed_over = chunk
                .iter()
                .map(|transition| Transaction::new(transition.actions.clone()));
            let answers = self.0.store.transact_each(handed_over.collect()).await;
            for (answer, transition) in answers.into_iter().zip(chunk) {
                let outcome = match answer {
                    Ok(()) => Outcome::Done,
                    Err(TransactError::Cancelled(reasons)) => transition.why(&reasons)?,
                    Err(TransactError::TokenMismatch) => Outcome::Busy,
                    Err(TransactError::Store(error)) => return Err(error.into()),
                };
                if outcome == Outcome::Done {
                    transition.done();
                }
                outcomes.push(outcome);
            }
        }
        if outcomes
            .iter()
            .any(|outcome| matches!(outcome, Outcome::OutboxFull | Outcome::Done))
            && transitions
                .iter()
                .any(|transition| transition.event.is_some())
        {
            self.0.work.notify_one();
        }
        Ok(outcomes)
    }
}

impl Transition {
    /// The outcome of a cancelled transaction.
    fn why(&self, reasons: &[CancelReason]) -> Result<Outcome, AlertsError> {
        for (reason, action) in reasons.iter().zip(&self.actions) {
            match reason {
                CancelReason::ConditionFailed { .. } => {
                    return Ok(match action.table() {
                        schema::WATCHES => Outcome::WatchMoved,
                        schema::DEFINITIONS => Outcome::DefinitionChanged,
                        schema::ALERTS => Outcome::AlertGone,
                        _ => Outcome::OutboxFull,
                    });
                }
                CancelReason::Invalid(reason) => {
                    return Err(StoreError::invalid(reason.clone()).into());
                }
                CancelReason::None | CancelReason::Conflict | CancelReason::Throttled => {}
            }
        }
        Ok(Outcome::Busy)
    }

    fn done(&self) {
        match self.event {
            Some(Event::Raised) => metrics::counter!(RAISED).increment(1),
            Some(Event::Cleared) => metrics::counter!(CLEARED).increment(1),
            Some(Event::SnoozeEnded | Event::Test) | None => {}
        }
    }
}
