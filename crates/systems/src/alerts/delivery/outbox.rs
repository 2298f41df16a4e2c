//! Notifications as a kind of outbox entry: each is sent on its own, if there is still a reason to.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use homeport_item::Item;
use homeport_item::expression::Path;
use homeport_store::{Action, Get, Put};

use super::announcement::Announcement;
use super::notification::{Event, Notification, name};
use super::service::{Deliver, Email, WebhookCall};
use crate::alerts::alert::Alert;
use crate::alerts::definitions::definition::Target;
use crate::alerts::types::{EmailAddress, TopicTemplate, WebhookUrl};
use crate::alerts::{Alerts, AlertsError, schema};
use crate::messages::{Delivery as DeliveryMode, Message, Properties, Publisher};
use crate::outbox::{
    Decision, Delivery, DeliveryEvent, OutboxKind, Place, Queue, RetryPolicy, SendError,
};
use crate::push::{self, IdempotencyKey, NewMessage, PushError, UserId};
use crate::time::EpochMillis;

pub(in crate::alerts) static RETRIES: RetryPolicy = RetryPolicy {
    claim_ms: 2 * 60 * 1000,
    send_timeout: Duration::from_secs(60),
    attempts_max: 12,
    unanswered_max: 3,
    backoff_first_ms: 2000,
    backoff_max_ms: 30 * 60 * 1000,
    count,
};

/// How long a notification of a cleared alert waits for the one that it was raised.
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

    fn now(&self) -> EpochMillis {
        self.alerts.now()
    }

    fn parse(&self, item: &Item) -> Result<Notification, AlertsError> {
        Notification::from_item(item)
    }

    fn write(&self, notification: &mut Notification) -> Result<Action, AlertsError> {
        let read_version = notification.version;
        notification.version += 1;
        let item = notification.to_item(self.alerts.0.settings.retention_secs)?;
        let put = Put::new(schema::OUTBOX, item);
        Ok(put
            .when(Path::from(schema::VERSION).equals(read_version))
            .into())
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

    fn after_finish(&self, notification: &Notification) {
        if matches!(notification.target, Target::Push { .. }) {
            self.alerts.0.push.wake_worker();
        }
    }
}

impl AlertOutbox {
    /// Decides whether there is still a reason to send a notification.
    async fn decide(
        &self,
        notification: &Notification,
    ) -> Result<Decision<OutgoingAlert>, AlertsError> {
        let alert = match self.alerts.alert(&notification.alert_id).await {
            Ok(alert) => alert,
            Err(AlertsError::AlertMissing) => return Ok(Decision::Drop("the alert was deleted")),
            Err(error) => return Err(error),
        };
        match notification.event {
            Event::Raised if !alert.is_open() => Ok(Decision::Drop("the alert was cleared before")),
            Event::Raised if alert.acknowledged.is_some() => {
                Ok(Decision::Drop("the alert was acknowledged before"))
            }
            Event::Raised => self.message(notification, &alert).await,
            Event::Cleared => self.decide_cleared(notification, &alert).await,
        }
    }

    /// A target learns that an alert was cleared after it learned that it was raised, and only then.
    async fn decide_cleared(
        &self,
        notification: &Notification,
        alert: &Alert,
    ) -> Result<Decision<OutgoingAlert>, AlertsError> {
        let raised = name(Event::Raised, notification.number);
        let key = schema::notification_key(&alert.id, &raised);
        let raised = self
            .queue()
            .store
            .get(Get::new(schema::OUTBOX, key))
            .await?;
        let raised = raised.as_ref().map(Notification::from_item).transpose()?;
        let raised = raised.map(|raised| raised.delivery);
        if raised.as_ref().is_some_and(Delivery::may_have_arrived) {
            return self.message(notification, alert).await;
        }
        Ok(match raised.and_then(|raised| raised.next_at) {
            Some(next_at) => {
                let next_at = next_at.max(self.now());
                Decision::Wait(EpochMillis(next_at.0 + RAISED_PENDING_PAUSE_MS))
            }
            None => Decision::Drop("the target was not notified that the alert was raised"),
        })
    }

    async fn message(
        &self,
        notification: &Notification,
        alert: &Alert,
    ) -> Result<Decision<OutgoingAlert>, AlertsError> {
        let announcement = Announcement::new(alert, notification.event);
        // The same for every attempt. The id of a webhook must not have a dot in it.
        let id = format!(
            "{}-{}-{}",
            notification.alert_id,
            notification.event.as_str(),
            notification.number
        );
        Ok(match &notification.target {
            Target::Push { user_id } => return self.hand_over(user_id, &id, announcement).await,
            Target::Webhook { url, .. } => self.webhook(notification, url, id, &announcement),
            Target::Mqtt { topic } => {
                let topic = topic.clone().unwrap_or_else(TopicTemplate::of_device);
                let message = self.mqtt_message(alert, &topic, &announcement);
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
        announcement: &Announcement,
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
            body: announcement.body.to_string(),
        }))
    }

    /// Puts a push message into push's own outbox, in the commit that finishes the notification.
    async fn hand_over(
        &self,
        user_id: &str,
        id: &str,
        announcement: Announcement,
    ) -> Result<Decision<OutgoingAlert>, AlertsError> {
        let refused = |error: &dyn std::fmt::Display| Decision::Fail(format!("refused: {error}"));
        let (user, key) = match (user_id.parse::<UserId>(), id.parse::<IdempotencyKey>()) {
            (Ok(user), Ok(key)) => (user, key),
            (Err(error), _) | (_, Err(error)) => return Ok(refused(&error)),
        };
        let data = match &announcement.body["data"] {
            serde_json::Value::Object(data) => {
                let named = ["alert_id", "definition_id", "device", "severity"];
                let members = named.map(|name| (name.to_owned(), data[name].clone()));
                Some(members.into_iter().collect())
            }
            _ => None,
        };
        let message = push::Message::new(NewMessage {
            title: Some(announcement.title),
            body: Some(announcement.text),
            data,
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

    fn mqtt_message(
        &self,
        alert: &Alert,
        topic: &TopicTemplate,
        announcement: &Announcement,
    ) -> Message {
        Message {
            topic: topic.topic(&alert.device),
            payload: Bytes::from(announcement.body.to_string()),
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
    let data = &announcement.body["data"];
    let line = |name: &str, label: &str| {
        let value = data[name].as_str();
        value.map(|value| format!("{label}: {value}\n"))
    };
    let lines = [
        line("device", "Device"),
        line("definition_name", "Definition"),
        line("severity", "Severity"),
        line("value", "Value"),
        line("raised_at", "Raised"),
        line("cleared_at", "Cleared"),
        line("alert_id", "Alert"),
    ];
    let lines: String = lines.into_iter().flatten().collect();
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
