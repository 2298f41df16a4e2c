//! Sending: a notification that is due is claimed, goes out, and what the target said is written
//! down.
//!
//! A claim is durable before anything leaves. What was never answered, because of the network or
//! because this process ended, is sent again when the claim has run out: the target may have it
//! already, so it can be told twice but is not forgotten. The trace says so.

use std::time::Duration;

use bytes::Bytes;

use super::alert::Alert;
use super::announcement::Announcement;
use super::definition::Target;
use super::notification::{Event, Notification, NotificationState, name};
use super::service::{Deliver, DeliveryError, Email, WebhookCall};
use super::types::{EmailAddress, TopicTemplate, WebhookUrl};
use super::{Alerts, AlertsError, schema};
use crate::messages::{Delivery, Message, Properties, Publisher};
use crate::push::{self, NewMessage, PushError};
use crate::time::EpochMillis;

/// How long a claim holds: longer than sending may take, with what is written around it.
pub(super) const CLAIM_MS: i64 = 2 * 60 * 1000;
/// How long one try may take, whatever the target does.
const TRY_TIMEOUT: Duration = Duration::from_secs(60);
/// Tries that a notification may have.
const ATTEMPTS_MAX: u32 = 12;
/// Tries without an answer that it may have: each may have been carried out.
const UNANSWERED_MAX: u32 = 3;
/// The pause after the first failure; every further one is twice as long, up to the longest.
const BACKOFF_FIRST_MS: i64 = 2000;
const BACKOFF_LONGEST_MS: i64 = 30 * 60 * 1000;
/// What a target asks for is waited for up to here.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(60 * 60);
/// How often an answer is tried to be written down before it counts as none.
const RECORD_ATTEMPTS_MAX: u32 = 5;
const RECORD_PAUSE: Duration = Duration::from_millis(200);
/// When a notification of a cleared alert looks again whether that of the raised one is settled.
const LOOK_AGAIN_MS: i64 = 1000;

/// What is to be done about a notification that is due.
enum Duty {
    Send(Announcement),
    Drop(&'static str),
    Wait(EpochMillis),
}

impl Alerts {
    /// Does what a notification that is due asks for; whether it was sent, answered or not.
    pub(super) async fn deliver(
        &self,
        mut notification: Notification,
        service: &dyn Deliver,
    ) -> Result<bool, AlertsError> {
        let now = self.now();
        if notification.state == NotificationState::Sending {
            unanswered(
                &mut notification,
                now,
                "not answered: the process ended or the store was away",
            );
            // It takes its turn again, with the pause that follows a failure.
            return self.save(&mut notification).await.map(|_| false);
        }
        let announcement = match self.duty(&notification, now).await? {
            Duty::Send(announcement) => announcement,
            Duty::Drop(reason) => {
                notification.finish(now, NotificationState::Dropped, reason);
                return self.save(&mut notification).await.map(|_| false);
            }
            Duty::Wait(until) => {
                notification.next_at = Some(until);
                return self.save(&mut notification).await.map(|_| false);
            }
        };
        notification.state = NotificationState::Sending;
        notification.attempts += 1;
        notification.next_at = Some(EpochMillis(now.0 + CLAIM_MS));
        let attempt = format!("sending, attempt {}", notification.attempts);
        notification.note(now, attempt);
        if !self.save(&mut notification).await? {
            return Ok(false);
        }
        let sending = self.send(&notification, announcement, service);
        let answer = tokio::time::timeout(TRY_TIMEOUT, sending).await;
        let answer = answer.unwrap_or_else(|_| {
            let reason = format!("no answer within {} seconds", TRY_TIMEOUT.as_secs());
            Err(DeliveryError::Unanswered(reason))
        });
        apply(&mut notification, self.now(), answer);
        self.record(&mut notification).await?;
        Ok(true)
    }

    /// Whether there is still a reason to send, and what.
    async fn duty(
        &self,
        notification: &Notification,
        now: EpochMillis,
    ) -> Result<Duty, AlertsError> {
        let alert = match self.alert(&notification.alert_id).await {
            Ok(alert) => alert,
            Err(AlertsError::AlertMissing) => return Ok(Duty::Drop("dropped: the alert is gone")),
            Err(error) => return Err(error),
        };
        match notification.event {
            Event::Raised if !alert.is_open() => {
                Ok(Duty::Drop("dropped: the alert was cleared before"))
            }
            Event::Raised if alert.acknowledged.is_some() => {
                Ok(Duty::Drop("dropped: the alert was acknowledged before"))
            }
            Event::Raised => Ok(announce(&alert, Event::Raised)),
            Event::Cleared => self.duty_after_raised(notification, &alert, now).await,
        }
    }

    /// That an alert is over is told to those who know of it, after they know.
    async fn duty_after_raised(
        &self,
        notification: &Notification,
        alert: &Alert,
        now: EpochMillis,
    ) -> Result<Duty, AlertsError> {
        let told = name(Event::Raised, notification.number);
        let key = schema::notification_key(&alert.id, &told);
        let get = homeport_store::Get::new(schema::OUTBOX, key);
        let raised = self.0.store.get(get).await?;
        let raised = raised.as_ref().map(Notification::from_item).transpose()?;
        Ok(match raised {
            Some(raised) if raised.may_have_arrived() => announce(alert, Event::Cleared),
            Some(Notification {
                next_at: Some(next_at),
                ..
            }) => Duty::Wait(EpochMillis(next_at.0.max(now.0) + LOOK_AGAIN_MS)),
            _ => Duty::Drop("dropped: nobody was told that the alert was raised"),
        })
    }

    async fn send(
        &self,
        notification: &Notification,
        said: Announcement,
        service: &dyn Deliver,
    ) -> Result<(), DeliveryError> {
        // The same however often it is tried. A webhook's id must have no dot in it.
        let id = format!(
            "{}-{}-{}",
            notification.alert_id,
            notification.event.as_str(),
            notification.number
        );
        match &notification.target {
            Target::Push { user_id } => self.send_push(user_id, &id, said).await,
            Target::Webhook { url, .. } => {
                let call = self.webhook_call(notification, url, id, &said)?;
                service.webhook(&call).await
            }
            Target::Mqtt { topic } => {
                let topic = topic.clone().unwrap_or_else(TopicTemplate::of_device);
                self.send_message(notification, &topic, &said).await
            }
            Target::Email { to } => service.email(&email(to, id, said)).await,
        }
    }

    fn webhook_call(
        &self,
        notification: &Notification,
        url: &WebhookUrl,
        id: String,
        said: &Announcement,
    ) -> Result<WebhookCall, DeliveryError> {
        let snapshot = self.0.registry.now();
        let definition = snapshot.get(&notification.definition_id);
        let own = definition.and_then(|definition| definition.secret_of(url.as_str()));
        let secret = own.or_else(|| self.0.settings.webhook_secret.clone());
        Ok(WebhookCall {
            url: url.clone(),
            secret: secret.ok_or_else(|| {
                DeliveryError::Refused("the webhook has no secret any more".to_owned())
            })?,
            id,
            at: self.now().seconds(),
            body: said.body.to_string(),
        })
    }

    /// Hands over to push, which does the rest. The same notification is the same there.
    async fn send_push(
        &self,
        user_id: &str,
        id: &str,
        said: Announcement,
    ) -> Result<(), DeliveryError> {
        let refused = |error: &dyn std::fmt::Display| DeliveryError::Refused(error.to_string());
        let user = user_id.parse().map_err(|error| refused(&error))?;
        let key = id.parse().map_err(|error| refused(&error))?;
        let data = match &said.body["data"] {
            serde_json::Value::Object(data) => {
                let named = ["alert_id", "definition_id", "device"];
                let members = named.map(|name| (name.to_owned(), data[name].clone()));
                Some(members.into_iter().collect())
            }
            _ => None,
        };
        let message = push::Message::new(NewMessage {
            title: said.title,
            body: said.text,
            data,
            ..NewMessage::default()
        });
        let message = message.map_err(|error| refused(&error))?;
        match self.0.push.notify(&user, message, Some(&key)).await {
            Ok(_) => Ok(()),
            Err(error @ (PushError::OutboxFull | PushError::Store(_))) => {
                Err(DeliveryError::Busy {
                    retry_after: None,
                    reason: error.to_string(),
                })
            }
            Err(error) => Err(refused(&error)),
        }
    }

    async fn send_message(
        &self,
        notification: &Notification,
        topic: &TopicTemplate,
        said: &Announcement,
    ) -> Result<(), DeliveryError> {
        let alert = self.alert(&notification.alert_id).await;
        let busy = |error: &dyn std::fmt::Display| DeliveryError::Busy {
            retry_after: None,
            reason: error.to_string(),
        };
        let device = alert.map_err(|error| busy(&error))?.device;
        let message = Message {
            topic: topic.topic(&device),
            payload: Bytes::from(said.body.to_string()),
            delivery: Delivery::AtLeastOnce,
            retain: false,
            publisher: Publisher::alerts(),
            received_at: self.now(),
            properties: Properties {
                content_type: Some("application/json".to_owned()),
                payload_is_text: true,
                ..Properties::default()
            },
            hops: 0,
        };
        let published = self.0.publish.publish(message).await;
        published.map_err(|error| busy(&error))
    }

    /// Writes down what came of a try. Only a store that stays away makes it count as unanswered.
    async fn record(&self, notification: &mut Notification) -> Result<(), AlertsError> {
        let mut pause = RECORD_PAUSE;
        for _ in 1..RECORD_ATTEMPTS_MAX {
            if self.save(notification).await.is_ok() {
                return Ok(());
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
        self.save(notification).await.map(|_| ())
    }
}

fn announce(alert: &Alert, event: Event) -> Duty {
    Duty::Send(Announcement::new(alert, event))
}

fn email(to: &EmailAddress, id: String, said: Announcement) -> Email {
    let data = &said.body["data"];
    let line = |name: &str, label: &str| {
        let value = data[name].as_str();
        value.map(|value| format!("{label}: {value}\n"))
    };
    let lines = [
        line("device", "Device"),
        line("definition_name", "Definition"),
        line("value", "Value"),
        line("raised_at", "Raised"),
        line("cleared_at", "Cleared"),
        line("alert_id", "Alert"),
    ];
    let lines: String = lines.into_iter().flatten().collect();
    Email {
        to: to.clone(),
        id,
        subject: said.title,
        text: format!("{}\n\n{lines}", said.text),
    }
}

fn apply(notification: &mut Notification, now: EpochMillis, answer: Result<(), DeliveryError>) {
    match answer {
        Ok(()) => notification.finish(now, NotificationState::Sent, "sent"),
        Err(error @ DeliveryError::Refused(_)) => {
            let reason = format!("failed: {error}");
            notification.finish(now, NotificationState::Failed, reason);
        }
        Err(error @ DeliveryError::Unanswered(_)) => {
            unanswered(notification, now, &error.to_string());
        }
        Err(DeliveryError::Busy {
            retry_after,
            reason,
        }) => retry(
            notification,
            now,
            retry_after,
            &format!("not taken: {reason}"),
        ),
    }
}

fn unanswered(notification: &mut Notification, now: EpochMillis, text: &str) {
    notification.unanswered += 1;
    if notification.unanswered >= UNANSWERED_MAX {
        let reason = format!("failed: {text}; given up, it may have arrived");
        notification.finish(now, NotificationState::Failed, reason);
    } else {
        retry(
            notification,
            now,
            None,
            &format!("{text}; it may have arrived"),
        );
    }
}

fn retry(notification: &mut Notification, now: EpochMillis, after: Option<Duration>, reason: &str) {
    if notification.attempts >= ATTEMPTS_MAX {
        let reason = format!("failed: {reason}; given up after {ATTEMPTS_MAX} attempts");
        return notification.finish(now, NotificationState::Failed, reason);
    }
    let after = after.unwrap_or_default().min(RETRY_AFTER_MAX).as_millis();
    let pause = backoff_ms(notification.attempts).max(i64::try_from(after).unwrap_or(i64::MAX));
    notification.note(now, format!("{reason}; next attempt in {pause} ms"));
    notification.state = NotificationState::Queued;
    notification.next_at = Some(EpochMillis(now.0 + pause));
    metrics::counter!("homeport_alert_notifications_retried_total").increment(1);
}

fn backoff_ms(attempts: u32) -> i64 {
    let doublings = attempts.saturating_sub(1).min(20);
    (BACKOFF_FIRST_MS << doublings).min(BACKOFF_LONGEST_MS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let pauses: Vec<_> = [1, 2, 3, 10, 11, 99].map(backoff_ms).into();
        assert_eq!(pauses, [2000, 4000, 8000, 1_024_000, 1_800_000, 1_800_000]);
    }
}
