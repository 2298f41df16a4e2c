//! The work after sending: receipts are fetched, and tokens that Expo does not know any more are
//! deactivated. Both are harmless when repeated, so that nothing is claimed first.

use std::collections::{BTreeMap, BTreeSet};

use homeport_store::Get;

use super::outbox::RETRIES;
use super::service::{DEVICE_NOT_REGISTERED, MESSAGE_RATE_EXCEEDED, Receipt};
use super::worker::Worker;
use crate::outbox::{DeliveryState, OutboxKind as _, Place, save};
use crate::push::notifications::{DeviceDelivery, Notification};
use crate::push::types::{ExpoPushToken, UserId};
use crate::push::{PushError, RECEIPTS_PER_REQUEST_MAX, schema};
use crate::time::EpochMillis;

/// How long Expo keeps receipts.
const RECEIPT_AGE_MAX_MS: i64 = 24 * 60 * 60 * 1000;

impl Worker {
    /// Fetches the receipts that are due; returns how many were requested.
    pub(super) async fn fetch_receipts(
        &mut self,
        due: &mut [Notification],
    ) -> Result<usize, PushError> {
        let now = self.outbox.now();
        if self.receipts.is_paused(now) {
            return Ok(0);
        }
        let (mut places, tickets) = due_tickets(due, now);
        if tickets.is_empty() {
            return Ok(0);
        }
        let receipts = match self.outbox.receipts(&tickets).await {
            Ok(receipts) => {
                self.receipts.succeeded();
                receipts
            }
            Err(error) => {
                tracing::warn!(%error, tickets = tickets.len(), "Expo's push service returned no receipts");
                self.receipts.failed(self.outbox.now(), &error);
                // Expo has deleted the receipts of the oldest tickets: these are settled anyway.
                places.retain(|place| is_too_old(&due[place.entry].devices[place.delivery], now));
                BTreeMap::new()
            }
        };
        let now = self.outbox.now();
        let delay_secs = self.outbox.push.settings.receipt_delay_secs;
        let mut changed = BTreeSet::new();
        for place in places {
            let device = &mut due[place.entry].devices[place.delivery];
            let receipt = device.ticket_id.as_ref().and_then(|id| receipts.get(id));
            settle(device, receipt, delay_secs, now);
            changed.insert(place.entry);
        }
        for index in changed {
            save(&self.outbox, &mut due[index]).await?;
        }
        Ok(tickets.len())
    }

    /// Deactivates the tokens that Expo does not know any more.
    pub(super) async fn deactivate_due(
        &mut self,
        due: &mut [Notification],
    ) -> Result<usize, PushError> {
        let mut deactivated = 0;
        for notification in due {
            let user = notification.user_id.clone();
            let mut is_changed = false;
            for device in &mut notification.devices {
                if device.deactivate {
                    deactivated += usize::from(self.deactivate_one(&user, device).await?);
                    is_changed = true;
                }
            }
            if is_changed {
                save(&self.outbox, notification).await?;
            }
        }
        Ok(deactivated)
    }

    async fn deactivate_one(
        &self,
        user: &UserId,
        device: &mut DeviceDelivery,
    ) -> Result<bool, PushError> {
        let push = &self.outbox.push;
        let get = Get::new(push.table(), schema::device_key(user, &device.device_id));
        let item = push.store.get(get).await?;
        let token = item
            .as_ref()
            .and_then(|item| item.get(schema::EXPO_PUSH_TOKEN)?.as_str())
            .and_then(|token| token.parse::<ExpoPushToken>().ok())
            .filter(|token| Some(token.digest()) == device.token_digest);
        let is_deactivated = match token {
            Some(token) => {
                push.deactivate_token(user, &device.device_id, token.as_str())
                    .await?
            }
            None => false,
        };
        device.deactivate = false;
        device.delivery.next_at = None;
        if is_deactivated {
            device
                .delivery
                .note(push.now(), "the token was deactivated");
            metrics::counter!("homeport_push_tokens_deactivated_total").increment(1);
        } else {
            let step = "the device was deleted or has another token";
            device.delivery.note(push.now(), step);
        }
        Ok(is_deactivated)
    }
}

/// The tickets whose receipts are due, as many as one request takes.
fn due_tickets(due: &[Notification], now: EpochMillis) -> (Vec<Place>, Vec<String>) {
    let devices = due.iter().enumerate().flat_map(|(entry, notification)| {
        let devices = notification.devices.iter().enumerate();
        devices.map(move |(delivery, device)| (Place { entry, delivery }, device))
    });
    devices
        .filter(|(_, device)| {
            device.delivery.state == DeliveryState::Sent && device.delivery.is_due(now)
        })
        .filter_map(|(place, device)| Some((place, device.ticket_id.clone()?)))
        .take(RECEIPTS_PER_REQUEST_MAX)
        .unzip()
}

fn settle(
    device: &mut DeviceDelivery,
    receipt: Option<&Receipt>,
    delay_secs: i64,
    now: EpochMillis,
) {
    match receipt {
        Some(Receipt::Ok) => {
            let step = "delivered: the receipt is ok";
            device.delivery.delivered(&RETRIES, now, step);
        }
        Some(Receipt::Error { code, message }) if code == DEVICE_NOT_REGISTERED => {
            device.fail_unregistered(now, format!("{code}: {message}"));
        }
        Some(Receipt::Error { code, message }) if code == MESSAGE_RATE_EXCEEDED => {
            // Nothing arrived. The next attempt gets a ticket of its own.
            device.ticket_id = None;
            device.sent_at = None;
            let reason = format!("{code}: {message}");
            device.delivery.retry(&RETRIES, now, None, &reason);
        }
        Some(Receipt::Error { code, message }) => {
            let reason = format!("{code}: {message}");
            device.delivery.fail(&RETRIES, now, reason);
        }
        None if is_too_old(device, now) => {
            let reason = "no receipt within a day";
            device.delivery.note(now, reason);
            device.delivery.reason = Some(reason.to_owned());
            device.delivery.next_at = None;
        }
        // Each pause is as long as the whole time since sending, so that pauses double.
        None => {
            let sent = device.sent_at.map_or(now.0, |at| at.0);
            let pause = (now.0 - sent).max(delay_secs * 1000);
            let last = sent + RECEIPT_AGE_MAX_MS;
            device.delivery.next_at = Some(EpochMillis((now.0 + pause).min(last)));
        }
    }
}

fn is_too_old(device: &DeviceDelivery, now: EpochMillis) -> bool {
    device
        .sent_at
        .is_none_or(|sent| now.0 - sent.0 >= RECEIPT_AGE_MAX_MS)
}
