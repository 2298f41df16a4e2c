//! Snoozing an alert: no notifications until a time. Then its targets are notified that it is still open.

use homeport_item::Value;
use homeport_item::expression::{Condition as Expression, Path, Update};
use homeport_store::{StoreError, Update as UpdateRequest, WriteError};

use crate::alerts::alert::Alert;
use crate::alerts::delivery::notification::{Event, Notification};
use crate::alerts::judging::transition::OmittedParts;
use crate::alerts::types::{AlertId, PersonName};
use crate::alerts::{Alerts, AlertsError, schema};
use crate::outbox::{DeliveryState, commit};
use crate::sensors::InvalidField;
use crate::time::EpochMillis;

/// The longest snooze: 31 days.
pub const SNOOZE_SECS_MAX: i64 = 31 * 24 * 60 * 60;
/// Snoozes of one alert: each stores a notification for each target.
pub const SNOOZES_MAX: i64 = 50;
/// Attempts at a change while others change the same alert.
const TRIES_MAX: u32 = 5;

impl Alerts {
    /// Snoozes an open alert. A further snooze replaces the one before.
    ///
    /// # Errors
    /// When the time is not within the next 31 days; when the alert does not exist, is cleared or was snoozed too
    /// often; when the outbox is full, or the store fails.
    pub async fn snooze(
        &self,
        id: &AlertId,
        by: PersonName,
        until: EpochMillis,
    ) -> Result<Alert, AlertsError> {
        let now = self.now();
        if until <= now || until.0 - now.0 > SNOOZE_SECS_MAX * 1000 {
            return Err(AlertsError::Invalid(InvalidField {
                field: "until",
                expected: "a time within the next 31 days",
            }));
        }
        for _ in 0..TRIES_MAX {
            let alert = self.alert(id).await?;
            if !alert.is_open() {
                return Err(AlertsError::AlertCleared);
            }
            if alert.snoozes >= SNOOZES_MAX {
                return Err(AlertsError::TooManySnoozes);
            }
            let round = alert.snoozes + 1;
            let update = snoozing(now, &by, until, round);
            let unchanged = match alert.snoozes {
                0 => Expression::not_exists(schema::SNOOZES),
                count => Path::from(schema::SNOOZES).equals(count),
            };
            let is_open = Expression::exists(schema::OPEN);
            let request = UpdateRequest::new(schema::ALERTS, schema::alert_key(id), update);
            let mut actions = vec![request.when(is_open.and(unchanged)).into()];
            let reminders = self.reminders(&alert, round, now, until).await?;
            actions.extend(self.outgoing(reminders, OmittedParts::default())?);
            if commit(&*self.0.store, actions).await? {
                self.reschedule(&alert, until).await?;
                return self.alert(id).await;
            }
            let stored = self.alert(id).await?;
            if stored.is_open() && stored.snoozes == alert.snoozes {
                return Err(AlertsError::OutboxFull);
            }
        }
        Err(StoreError::Throttled.into())
    }

    /// Ends the snooze of an alert now, without a notification that it ended. What waited for its end is sent. An
    /// alert that is not snoozed stays as it is.
    ///
    /// # Errors
    /// When the alert does not exist, or the store fails.
    pub async fn end_snooze(&self, id: &AlertId, by: PersonName) -> Result<Alert, AlertsError> {
        for _ in 0..TRIES_MAX {
            let now = self.now();
            let alert = self.alert(id).await?;
            if alert.snoozed(now).is_none() {
                return Ok(alert);
            }
            let update = snoozing(now, &by, now, alert.snoozes + 1);
            let unchanged = Path::from(schema::SNOOZES).equals(alert.snoozes);
            if let Some(alert) = self.change(id, update, unchanged).await? {
                self.reschedule(&alert, now).await?;
                return Ok(alert);
            }
        }
        Err(StoreError::Throttled.into())
    }

    /// The notifications that are sent when the snooze ends: one for each target of the alert.
    async fn reminders(
        &self,
        alert: &Alert,
        round: i64,
        now: EpochMillis,
        until: EpochMillis,
    ) -> Result<Vec<Notification>, AlertsError> {
        let due_at = self.notify_at(alert, until);
        let notifications = self.notifications(&alert.id).await?.into_iter();
        // A target that was not notified yet is notified at the end that the alert was raised.
        let raised = notifications.filter(|one| {
            let is_held_back = one.delivery.state == DeliveryState::Queued;
            one.event == Event::Raised && (!is_held_back || alert.acknowledged.is_some())
        });
        let reminders = raised.map(|raised| Notification {
            round,
            ..Notification::queued(
                &alert.id,
                &alert.definition_id,
                Event::SnoozeEnded,
                raised.number,
                &raised.target,
                now,
                due_at,
            )
        });
        Ok(reminders.collect())
    }

    /// Moves notifications that wait to a time. One that a worker has just claimed decides for itself.
    async fn reschedule(&self, alert: &Alert, at: EpochMillis) -> Result<(), AlertsError> {
        let due_at = self.notify_at(alert, at);
        for mut notification in self.notifications(&alert.id).await? {
            let delivery = &mut notification.delivery;
            let is_reminder = notification.event == Event::SnoozeEnded;
            if delivery.state != DeliveryState::Queued || is_reminder {
                continue;
            }
            delivery.next_at = Some(due_at);
            let put = notification.save(self.0.settings.retention_secs)?;
            match self.0.store.put(put).await {
                Ok(_) | Err(WriteError::ConditionFailed { .. }) => {}
                Err(WriteError::Store(error)) => return Err(error.into()),
            }
        }
        self.0.work.notify_one();
        Ok(())
    }

    /// When a notification that is due at a time is sent: quiet hours delay it.
    fn notify_at(&self, alert: &Alert, at: EpochMillis) -> EpochMillis {
        let snapshot = self.0.registry.now();
        let definition = snapshot.get(&alert.definition_id);
        definition.map_or(at, |definition| definition.notify_at(at, None))
    }
}

/// The update that stores a snooze. One that ends at once is the end of the one before. The new number drops the
/// notifications of all snoozes before.
fn snoozing(now: EpochMillis, by: &PersonName, until: EpochMillis, number: i64) -> Update {
    Update::new()
        .set(schema::SNOOZED_AT, Value::from(now.0))
        .set(schema::SNOOZED_BY, Value::from(by))
        .set(schema::SNOOZED_UNTIL, Value::from(until.0))
        .set(schema::SNOOZES, Value::from(number))
}
