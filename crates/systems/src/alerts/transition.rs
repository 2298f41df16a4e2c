//! Writing down what was found: a watch, and with it an alert that is raised or cleared and what is
//! sent about it, all in one transaction. So each happens once, whatever is seen again.

use std::time::Duration;

use homeport_item::expression::{Condition as Expression, Path};
use homeport_store::{Action, CancelReason, Check, Put, StoreError, TransactError, Transaction};

use super::alert::{Alert, Cleared, clearing};
use super::definition::Definition;
use super::judge::Finding;
use super::notification::{Event, Notification, NotificationState, count_open};
use super::types::AlertId;
use super::watch::Watch;
use super::{Alerts, AlertsError, schema};

/// Transactions that are handed over at once.
const TRANSACTIONS_AT_ONCE: usize = 100;
/// How often a write is tried that got in another's way.
const CONFLICTS_MAX: u32 = 6;
/// The pause before the second try; every further one is twice as long.
const CONFLICT_PAUSE: Duration = Duration::from_millis(20);

/// Alerts that were raised and cleared.
pub(super) const RAISED: &str = "homeport_alerts_raised_total";
pub(super) const CLEARED: &str = "homeport_alerts_cleared_total";

/// What writes a finding down.
#[derive(Debug, Clone)]
pub(super) struct Transition {
    actions: Vec<Action>,
    /// The watch once it is written.
    pub(super) after: Watch,
    event: Option<Event>,
}

/// What became of a transition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Done,
    /// Someone else has moved the watch on.
    WatchMoved,
    /// The definition is not what it was.
    DefinitionChanged,
    /// There is no room for notifications.
    OutboxFull,
    /// The alert to clear is not there or not open.
    AlertGone,
    /// Nothing is wrong with it, but others were in the way.
    Busy,
}

/// What is left out of a transition because it cannot be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct LeftOut {
    pub(super) notifications: bool,
    pub(super) alert: bool,
}

impl LeftOut {
    /// What to leave out next time, after an outcome.
    pub(super) fn after(mut self, outcome: Outcome) -> Self {
        self.notifications |= outcome == Outcome::OutboxFull;
        self.alert |= outcome == Outcome::AlertGone;
        self
    }
}

impl Alerts {
    /// Remembers a watch and nothing else.
    pub(super) fn noting(&self, definition: &Definition, mut watch: Watch) -> Transition {
        let put = watch.save(&definition.terms.condition);
        Transition {
            actions: vec![put.into()],
            after: watch,
            event: None,
        }
    }

    pub(super) fn raising(
        &self,
        definition: &Definition,
        mut watch: Watch,
        finding: Finding,
        left_out: LeftOut,
    ) -> Result<Transition, AlertsError> {
        let now = self.now();
        let alert = Alert {
            id: AlertId::new(now),
            definition_id: definition.id.clone(),
            definition_name: definition.terms.name.clone(),
            source: definition.terms.source,
            device: watch.device.clone(),
            reason: finding.reason,
            value: finding.value,
            observed_at: finding.observed_at,
            raised_at: now,
            cleared: None,
            acknowledged: None,
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
            Check::new(schema::DEFINITIONS, key, is_as_known).into(),
            Put::new(schema::ALERTS, alert.to_item()).into(),
        ];
        actions.extend(self.outgoing(notifications, left_out)?);
        Ok(Transition {
            actions,
            after: watch,
            event: Some(Event::Raised),
        })
    }

    /// Clears the alert of a watch, and tells those who were told of it.
    pub(super) async fn clearing(
        &self,
        definition: &Definition,
        mut watch: Watch,
        finding: Finding,
        left_out: LeftOut,
    ) -> Result<Transition, AlertsError> {
        let now = self.now();
        let open = watch.open.take();
        let put = watch.save(&definition.terms.condition);
        let mut actions = vec![put.into()];
        let mut event = None;
        if let Some(id) = open.filter(|_| !left_out.alert) {
            let cleared = Cleared {
                at: now,
                reason: finding.reason,
                value: finding.value,
            };
            actions.push(clearing(&id, &cleared, self.0.settings.retention_secs).into());
            let due_at = definition.notify_at(now, None);
            let told = self.notifications(&id).await?.into_iter().filter(|told| {
                let may_be_told = told.next_at.is_some() || told.may_have_arrived();
                told.event == Event::Raised && may_be_told
            });
            let notifications = told.map(|told| {
                Notification::queued(
                    &id,
                    &definition.id,
                    Event::Cleared,
                    told.number,
                    &told.target,
                    now,
                    due_at,
                )
            });
            actions.extend(self.outgoing(notifications.collect(), left_out)?);
            event = Some(Event::Cleared);
        }
        Ok(Transition {
            actions,
            after: watch,
            event,
        })
    }

    /// Puts notifications into the outbox, or only the trace that there was no room for them.
    fn outgoing(
        &self,
        mut notifications: Vec<Notification>,
        left_out: LeftOut,
    ) -> Result<Vec<Action>, AlertsError> {
        let mut actions = Vec::new();
        if left_out.notifications {
            for notification in &mut notifications {
                let now = self.now();
                let reason = "failed: too many notifications wait to be sent";
                notification.finish(now, NotificationState::Failed, reason);
            }
        } else if !notifications.is_empty() {
            let count = i64::try_from(notifications.len()).unwrap_or(i64::MAX);
            let max = i64::try_from(self.0.settings.outbox_max).unwrap_or(i64::MAX);
            actions.push(count_open(count, Some(max)).into());
        }
        for notification in notifications {
            let item = notification.to_item(self.0.settings.retention_secs)?;
            actions.push(Put::new(schema::OUTBOX, item).into());
        }
        Ok(actions)
    }

    /// Carries transitions out side by side; what became of each, in order.
    ///
    /// # Errors
    /// When the store fails. Some may have been carried out.
    pub(super) async fn carry_out(
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

    /// Carries out a transaction whose first action has the condition that matters; false when it
    /// does not hold.
    pub(super) async fn commit(&self, actions: Vec<Action>) -> Result<bool, AlertsError> {
        let mut pause = CONFLICT_PAUSE;
        for _ in 0..CONFLICTS_MAX {
            let transaction = Transaction::new(actions.clone());
            match self.0.store.transact(transaction).await {
                Ok(()) => return Ok(true),
                Err(TransactError::Cancelled(reasons)) => {
                    if reasons
                        .iter()
                        .any(|reason| matches!(reason, CancelReason::ConditionFailed { .. }))
                    {
                        return Ok(false);
                    }
                    tokio::time::sleep(pause).await;
                    pause *= 2;
                }
                Err(TransactError::TokenMismatch) => break,
                Err(TransactError::Store(error)) => return Err(error.into()),
            }
        }
        Err(StoreError::Throttled.into())
    }
}

impl Transition {
    /// Why it was cancelled.
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
                    return Err(StoreError::Invalid(reason.clone()).into());
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
            None => {}
        }
    }
}
