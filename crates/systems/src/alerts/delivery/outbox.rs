//! Notifications as a kind of outbox entry: each is sent on its own, if there is still a reason to.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use homeport_item::expression::{Condition as Expression, Update};
use homeport_item::{Item, Value};
use homeport_store::{Action, Update as UpdateRequest, WriteError};

use super::announcement::Announcement;
use super::notification::{Event, Notification};
use super::service::{Deliver, Email, WebhookCall};
use crate::alerts::alert::Alert;
use crate::alerts::definitions::definition::Target;
use crate::alerts::types::{EmailAddress, TopicTemplate, WebhookUrl};
use crate::alerts::{Alerts, AlertsError, schema};
use crate::messages::{Delivery as DeliveryMode, Message, Properties, Publisher};
use crate::outbox::{
    Decision, DeliveryEvent, DeliveryState, OutboxKind, Place, Queue, RetryPolicy, SendError,
};
use crate::push::{self, IdempotencyKey, NewMessage, PushError, UserId};
use crate::time::EpochMillis;

pub(in crate::alerts) static RETRIES: RetryPolicy = RetryPolicy {
    claim_ms: 2 * 60 * 1000,
    send_timeout: Duration::from_secs(60),
    // A day, the last hours of it every half an hour.
    attempts_max: 60,
    recognizes_repeats: false,
    backoff_first_ms: 2000,
    backoff_max_ms: 30 * 60 * 1000,
    count,
};
/// Receivers of webhooks recognize repeats by their id.
static WEBHOOK_RETRIES: RetryPolicy = RetryPolicy {
    recognizes_repeats: true,
    ..RETRIES
};

/// How long a notification that an alert was cleared waits for the one that it was raised.
const RAISED_PENDING_PAUSE_MS: i64 = 1000;

#[derive(Clone)]
pub(in crate::alerts) struct AlertOutbox {
    pub(in crate::alerts) alerts: Alerts,
    pub(in crate::alerts) service: Arc<dyn Deliver>,
}

/// A notification, ready to be sent to its target.
pub(in crate::alerts) enum OutgoingAlert {
    Webhook(WebhookCall),
    Email(Email),
    Mqtt(Message),
}

#[async_trait]
impl OutboxKind for AlertOutbox {
    type Entry = Notification;
    type Message = OutgoingAlert;
    type Answer = ();
    type Error = AlertsError;

    fn queue(&self) -> &Queue {
        &self.alerts.0.outbox
    }

    fn policy(&self) -> &'static RetryPolicy {
        &RETRIES
    }

    fn policy_of(&self, notification: &Notification) -> &'static RetryPolicy {
        match notification.target {
            Target::Webhook { .. } => &WEBHOOK_RETRIES,
            _ => &RETRIES,
        }
    }

    fn now(&self) -> EpochMillis {
        self.alerts.now()
    }

    fn parse(&self, item: &Item) -> Result<Notification, AlertsError> {
        Notification::from_item(item)
    }

    fn write(&self, notification: &mut Notification) -> Result<Action, AlertsError> {
        let retention_secs = self.alerts.0.settings.retention_secs;
        Ok(notification.save(retention_secs)?.into())
    }

    async fn prepare(
        &self,
        notifications: &mut [Notification],
        places: &[Place],
    ) -> Result<Vec<Decision<OutgoingAlert>>, AlertsError> {
        let mut decisions = Vec::with_capacity(places.len());
        for place in places {
            decisions.push(self.decide(&notifications[place.entry]).await?);
        }
        Ok(decisions)
    }

    async fn send(&self, messages: Vec<OutgoingAlert>) -> Result<Vec<()>, SendError> {
        let mut answers = Vec::with_capacity(messages.len());
        for message in messages {
            match message {
                OutgoingAlert::Webhook(call) => self.service.webhook(&call).await?,
                OutgoingAlert::Email(email) => self.service.email(&email).await?,
                OutgoingAlert::Mqtt(message) => self.publish(message).await?,
            }
            answers.push(());
        }
        Ok(answers)
    }

    fn apply_answer(&self, notification: &mut Notification, _: usize, (): ()) {
        let now = self.now();
        notification.delivery.sent(&RETRIES, now, "sent", None);
    }

    /// Marks the alert, so that operators find what was not delivered.
    async fn before_failure(&self, notification: &Notification) -> Result<(), AlertsError> {
        if notification.event == Event::Test {
            return Ok(());
        }
        let update = Update::new().set(schema::DELIVERY_FAILED_AT, Value::from(self.now().0));
        let key = schema::alert_key(&notification.alert_id);
        let mark = UpdateRequest::new(schema::ALERTS, key, update);
        let is_stored = Expression::exists(schema::ALL);
        match self.alerts.0.store.update(mark.when(is_stored)).await {
            // Without the alert there is nothing to find.
            Ok(_) | Err(WriteError::ConditionFailed { .. }) => Ok(()),
            Err(WriteError::Store(error)) => Err(error.into()),
        }
    }

    fn after_hand_over(&self, _: &Notification) {
        self.alerts.0.push.wake_worker();
    }
}

impl AlertOutbox {
    /// Decides whether there is still a reason to send a notification.
    async fn decide(
        &self,
        notification: &Notification,
    ) -> Result<Decision<OutgoingAlert>, AlertsError> {
        if notification.delivery.state == DeliveryState::HandedOver {
            return self.follow_push(notification).await;
        }
        if notification.event == Event::Test {
            return self.decide_test(notification).await;
        }
        let alert = match self.alerts.alert(&notification.alert_id).await {
            Ok(alert) => alert,
            Err(AlertsError::AlertMissing) => return Ok(Decision::Drop("the alert was deleted")),
            Err(error) => return Err(error),
        };
        let is_open = alert.is_open();
        match notification.event {
            Event::Raised | Event::SnoozeEnded if !is_open => {
                return Ok(Decision::Drop("the alert was cleared before"));
            }
            Event::Raised if alert.acknowledged.is_some() => {
                return Ok(Decision::Drop("the alert was acknowledged before"));
            }
            Event::SnoozeEnded if alert.snooze.is_none() || notification.round != alert.snoozes => {
                return Ok(Decision::Drop("the snooze was changed before it ended"));
            }
            _ => {}
        }
        if let Some(snooze) = alert.snoozed(self.now()) {
            return Ok(Decision::Wait(snooze.until));
        }
        match notification.event {
            Event::Cleared => self.decide_cleared(notification, &alert).await,
            event => {
                self.message(notification, Announcement::new(&alert, event)?)
                    .await
            }
        }
    }

    async fn decide_test(
        &self,
        notification: &Notification,
    ) -> Result<Decision<OutgoingAlert>, AlertsError> {
        match self.alerts.definition(&notification.definition_id).await {
            Ok(definition) => {
                let test = Announcement::test(notification, &definition, self.now())?;
                self.message(notification, test).await
            }
            Err(AlertsError::DefinitionMissing) => Ok(Decision::Drop("the definition was deleted")),
            Err(error) => Err(error),
        }
    }

    /// A target learns that an alert was cleared after it learned that it is open, and only then.
    async fn decide_cleared(
        &self,
        notification: &Notification,
        alert: &Alert,
    ) -> Result<Decision<OutgoingAlert>, AlertsError> {
        let (mut is_known, mut next_at) = (false, None);
        for before in self.alerts.notifications(&alert.id).await? {
            if before.event == Event::Cleared || before.number != notification.number {
                continue;
            }
            let due_at = before.delivery.next_at;
            let result = self.alerts.result_of(before).await?;
            is_known |= result.may_have_arrived();
            if result.is_open() {
                next_at = [next_at, due_at].into_iter().flatten().min();
            }
        }
        if is_known {
            let announcement = Announcement::new(alert, notification.event)?;
            return self.message(notification, announcement).await;
        }
        Ok(match next_at {
            Some(next_at) => {
                let next_at = next_at.max(self.now());
                Decision::Wait(EpochMillis(next_at.0 + RAISED_PENDING_PAUSE_MS))
            }
            None => Decision::Drop("the target was not notified that the alert was raised"),
        })
    }

    /// Decides about a notification that push delivers: its result is the result of the push message.
    async fn follow_push(
        &self,
        notification: &Notification,
    ) -> Result<Decision<OutgoingAlert>, AlertsError> {
        let Some(pushed) = self.alerts.pushed(notification).await? else {
            return Ok(Decision::Drop(
                "the push message was deleted before its result was known",
            ));
        };
        let outcome = pushed.outcome();
        let now = self.now();
        if let Some(due_at) = outcome.due_at {
            // Each pause is at least as long as the whole time since then, so that pauses double.
            let waited_ms = (now.0 - pushed.created_at.0).clamp(1000, RETRIES.backoff_max_ms);
            return Ok(Decision::Wait(EpochMillis(
                (due_at.0 + 1000).max(now.0 + waited_ms),
            )));
        }
        let reason = outcome.reason;
        Ok(match outcome.state {
            DeliveryState::Failed => {
                let reason = reason.unwrap_or_else(|| "push failed".to_owned());
                Decision::Fail(reason)
            }
            state => {
                let reason = reason.map(|reason| format!(", {reason}"));
                let step = format!("{}{}", state.as_str(), reason.unwrap_or_default());
                Decision::Arrived(state, step)
            }
        })
    }

    async fn message(
        &self,
        notification: &Notification,
        announcement: Announcement,
    ) -> Result<Decision<OutgoingAlert>, AlertsError> {
        let id = notification.message_id();
        Ok(match &notification.target {
            Target::Push { user_id } => {
                return self
                    .hand_over(notification, user_id, &id, announcement)
                    .await;
            }
            Target::Webhook { url, .. } => self.webhook(notification, url, id, announcement),
            Target::Mqtt { topic } => {
                let topic = topic.clone().unwrap_or_else(TopicTemplate::of_device);
                let message = self.mqtt_message(&topic, announcement);
                Decision::Send(OutgoingAlert::Mqtt(message))
            }
            Target::Email { to } => {
                Decision::Send(OutgoingAlert::Email(email(to, id, announcement)))
            }
        })
    }

    fn webhook(
        &self,
        notification: &Notification,
        url: &WebhookUrl,
        id: String,
        announcement: Announcement,
    ) -> Decision<OutgoingAlert> {
        let snapshot = self.alerts.0.registry.now();
        let definition = snapshot.get(&notification.definition_id);
        let own = definition.and_then(|definition| definition.secret_of(url.as_str()));
        let Some(secret) = own.or_else(|| self.alerts.0.settings.webhook_secret.clone()) else {
            return Decision::Fail("refused: the webhook has no secret any more".to_owned());
        };
        Decision::Send(OutgoingAlert::Webhook(WebhookCall {
            url: url.clone(),
            secret,
            id,
            at: self.now().seconds(),
            body: announcement.body,
        }))
    }

    /// Puts a push message into push's own outbox, in the commit that finishes the notification.
    async fn hand_over(
        &self,
        notification: &Notification,
        user_id: &str,
        id: &str,
        announcement: Announcement,
    ) -> Result<Decision<OutgoingAlert>, AlertsError> {
        let refused = |error: &dyn std::fmt::Display| Decision::Fail(format!("refused: {error}"));
        let (user, key) = match (user_id.parse::<UserId>(), id.parse::<IdempotencyKey>()) {
            (Ok(user), Ok(key)) => (user, key),
            (Err(error), _) | (_, Err(error)) => return Ok(refused(&error)),
        };
        let subject = match notification.event {
            Event::Test => "test_id",
            _ => "alert_id",
        };
        let data = [
            (subject, notification.alert_id.as_str()),
            ("definition_id", notification.definition_id.as_str()),
            ("device", announcement.device.as_str()),
            ("severity", announcement.severity.as_str()),
        ];
        let data = data.map(|(name, text)| (name.to_owned(), text.into()));
        let message = push::Message::new(NewMessage {
            title: Some(announcement.title),
            body: Some(announcement.text),
            data: Some(data.into_iter().collect()),
            ..NewMessage::default()
        });
        let message = match message {
            Ok(message) => message,
            Err(error) => return Ok(refused(&error)),
        };
        match self
            .alerts
            .0
            .push
            .accepting_writes(&user, message, &key)
            .await
        {
            Ok(writes) => Ok(Decision::HandOver(writes.unwrap_or_default())),
            Err(PushError::Store(error)) => Err(error.into()),
            Err(error) => Ok(refused(&error)),
        }
    }

    fn mqtt_message(&self, topic: &TopicTemplate, announcement: Announcement) -> Message {
        Message {
            topic: topic.topic(&announcement.device),
            payload: Bytes::from(announcement.body),
            delivery: DeliveryMode::AtLeastOnce,
            retain: false,
            publisher: Publisher::alerts(),
            received_at: self.now(),
            properties: Properties {
                content_type: Some("application/json".to_owned()),
                payload_is_text: true,
                ..Properties::default()
            },
            hops: 0,
        }
    }

    async fn publish(&self, message: Message) -> Result<(), SendError> {
        let published = self.alerts.0.publish.publish(message).await;
        published.map_err(|error| SendError::Busy {
            retry_after: None,
            reason: error.to_string(),
        })
    }
}

fn email(to: &EmailAddress, id: String, announcement: Announcement) -> Email {
    let lines = announcement.lines.iter();
    let lines: String = lines
        .map(|(name, line)| format!("{name}: {line}\n"))
        .collect();
    Email {
        to: to.clone(),
        id,
        subject: announcement.title,
        text: format!("{}\n\n{lines}", announcement.text),
    }
}

fn count(event: DeliveryEvent) {
    let outcome = match event {
        DeliveryEvent::Sent | DeliveryEvent::Delivered => "sent",
        DeliveryEvent::Failed => "failed",
        DeliveryEvent::Dropped => "dropped",
        DeliveryEvent::Retried => {
            return metrics::counter!("homeport_alert_notifications_retried_total").increment(1);
        }
    };
    metrics::counter!("homeport_alert_notifications_total", "outcome" => outcome).increment(1);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receiver_may_be_down_for_a_day() {
        assert!(RETRIES.patience() > Duration::from_secs(24 * 60 * 60));
    }
}
