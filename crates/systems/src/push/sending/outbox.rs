//! Notifications as a kind of outbox entry: up to a hundred messages go to Expo in one request.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use homeport_item::expression::Path;
use homeport_item::{Item, Value};
use homeport_store::{Action, Put};

use super::service::{
    DEVICE_NOT_REGISTERED, Envelope, MESSAGE_RATE_EXCEEDED, PushService, Receipt, Ticket,
    error_without_tokens,
};
use crate::fetch::fetch;
use crate::outbox::{
    Decision, DeliveryEvent, Entry as _, OutboxKind, Place, Queue, RetryPolicy, SendError,
};
use crate::push::broadcasts::Tally;
use crate::push::notifications::Notification;
use crate::push::notifications::stored;
use crate::push::types::{DeviceId, ExpoPushToken, UserId};
use crate::push::{Push, PushError, schema};
use crate::time::EpochMillis;

pub(in crate::push) static RETRIES: RetryPolicy = RetryPolicy {
    claim_ms: 2 * 60 * 1000,
    send_timeout: Duration::from_secs(60),
    // A day, the last hours of it every half an hour.
    attempts_max: 60,
    recognizes_repeats: false,
    backoff_first_ms: 1000,
    backoff_max_ms: 30 * 60 * 1000,
    count,
};

#[derive(Clone)]
pub(super) struct PushOutbox {
    pub(super) push: Push,
    pub(super) service: Arc<dyn PushService>,
}

#[async_trait]
impl OutboxKind for PushOutbox {
    type Entry = Notification;
    type Message = Envelope;
    type Answer = Ticket;
    type Error = PushError;

    fn queue(&self) -> &Queue {
        &self.push.outbox
    }

    fn policy(&self) -> &'static RetryPolicy {
        &RETRIES
    }

    fn now(&self) -> EpochMillis {
        self.push.now()
    }

    fn parse(&self, item: &Item) -> Result<Notification, PushError> {
        stored::from_item(item)
    }

    fn write(&self, notification: &mut Notification) -> Result<Action, PushError> {
        let read_version = notification.version;
        notification.version += 1;
        let is_finished = notification.due_at().is_none();
        notification.finished_at = is_finished.then(|| self.now());
        if let Some(tally) = &mut notification.tally {
            *tally = Tally::of(&notification.devices);
        }
        let put = Put::new(schema::NOTIFICATIONS, stored::to_item(notification));
        Ok(put
            .when(Path::from(schema::VERSION).equals(read_version))
            .into())
    }

    /// The broadcast of a notification counts its deliveries.
    fn write_beside(&self, before: &Notification, after: &Notification) -> Option<Action> {
        after.counting(before)
    }

    async fn prepare(
        &self,
        notifications: &mut [Notification],
        places: &[Place],
    ) -> Result<Vec<Decision<Envelope>>, PushError> {
        let broadcasts = notifications.iter().filter_map(Notification::broadcast_id);
        let cancelled = self.push.cancelled_among(broadcasts.collect()).await?;
        let wanted = places.iter().map(|place| {
            let notification = &notifications[place.entry];
            let device = &notification.devices[place.delivery];
            (notification.user_id.clone(), device.device_id.clone())
        });
        let tokens = self.active_tokens(wanted.collect()).await?;
        let decisions = places.iter().map(|place| {
            let notification = &mut notifications[place.entry];
            let broadcast = notification.broadcast_id();
            let device = &mut notification.devices[place.delivery];
            let key = (notification.user_id.clone(), device.device_id.clone());
            if broadcast.is_some_and(|id| cancelled.contains(&id)) {
                return Decision::Drop("the broadcast was cancelled");
            }
            match tokens.get(&key) {
                None => Decision::Fail("NotActive: the device is deleted or inactive".to_owned()),
                Some(None) => {
                    Decision::Fail("InvalidToken: the device has no Expo push token".to_owned())
                }
                Some(Some(token)) => {
                    device.token_digest = Some(token.digest());
                    Decision::Send(Envelope {
                        to: token.clone(),
                        message: notification.message.clone(),
                    })
                }
            }
        });
        Ok(decisions.collect())
    }

    async fn send(&self, messages: Vec<Envelope>) -> Result<Vec<Ticket>, SendError> {
        match self.service.send(&messages).await {
            Ok(tickets) => Ok(tickets.into_iter().map(Ticket::without_tokens).collect()),
            Err(error) => Err(error_without_tokens(error)),
        }
    }

    fn apply_answer(&self, notification: &mut Notification, index: usize, ticket: Ticket) {
        let now = self.now();
        let device = &mut notification.devices[index];
        match ticket {
            Ticket::Ok { id } => {
                let delay_ms = self.push.settings.receipt_delay_secs * 1000;
                let receipt_at = EpochMillis(now.0 + delay_ms);
                let step = format!("sent: ticket {id}");
                device.delivery.sent(&RETRIES, now, step, Some(receipt_at));
                device.ticket_id = Some(id);
                device.sent_at = Some(now);
            }
            Ticket::Error { code, message } if code == DEVICE_NOT_REGISTERED => {
                device.fail_unregistered(now, format!("{code}: {message}"));
            }
            Ticket::Error { code, message } if code == MESSAGE_RATE_EXCEEDED => {
                let reason = format!("{code}: {message}");
                device.delivery.retry(&RETRIES, now, None, &reason);
            }
            Ticket::Error { code, message } => {
                let reason = format!("{code}: {message}");
                device.delivery.fail(&RETRIES, now, reason);
            }
        }
    }
}

impl PushOutbox {
    /// The available receipts of tickets.
    pub(super) async fn receipts(
        &self,
        tickets: &[String],
    ) -> Result<BTreeMap<String, Receipt>, SendError> {
        let receipts = self.service.receipts(tickets).await;
        let receipts = receipts.map_err(error_without_tokens)?.into_iter();
        Ok(receipts
            .map(|(id, receipt)| (id, receipt.without_tokens()))
            .collect())
    }

    /// The tokens of those devices that exist and are active; `None` for a malformed token.
    async fn active_tokens(
        &self,
        wanted: BTreeSet<(UserId, DeviceId)>,
    ) -> Result<BTreeMap<(UserId, DeviceId), Option<ExpoPushToken>>, PushError> {
        let keys = wanted
            .iter()
            .map(|(user, device)| schema::device_key(user, device));
        let items = fetch(&*self.push.store, self.push.table(), keys, None).await?;
        Ok(items.iter().filter_map(active_token).collect())
    }
}

fn active_token(item: &Item) -> Option<((UserId, DeviceId), Option<ExpoPushToken>)> {
    let text = |name| item.get(name).and_then(Value::as_str);
    let user = text(schema::USER_ID)?.parse().ok()?;
    let device = text(schema::DEVICE_ID)?.parse().ok()?;
    let is_active = item.get(schema::IS_ACTIVE).and_then(Value::as_bool) == Some(true);
    let token = text(schema::EXPO_PUSH_TOKEN).and_then(|token| token.parse().ok());
    is_active.then_some(((user, device), token))
}

fn count(event: DeliveryEvent) {
    let outcome = match event {
        DeliveryEvent::Sent => "sent",
        DeliveryEvent::Delivered => "delivered",
        DeliveryEvent::Retried => "retried",
        DeliveryEvent::Failed => "failed",
        DeliveryEvent::Dropped => "dropped",
    };
    metrics::counter!("homeport_push_messages_total", "outcome" => outcome).increment(1);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receiver_may_be_down_for_a_day() {
        assert!(RETRIES.patience() > Duration::from_secs(24 * 60 * 60));
    }
}
