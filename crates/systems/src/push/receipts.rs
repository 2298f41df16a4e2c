//! What comes after sending: receipts are fetched, and tokens that Expo does not know any more are
//! deactivated. Both can be done twice without harm, so that nothing is claimed first.

use std::collections::{BTreeMap, BTreeSet};

use homeport_store::Get;

use super::measured::store_error;
use super::notification::{DeviceFate, DeviceState, Notification};
use super::send::backoff_ms;
use super::service::{DEVICE_NOT_REGISTERED, Receipt};
use super::types::UserId;
use super::worker::Worker;
use super::{PushError, RECEIPTS_PER_REQUEST_MAX, schema};
use crate::time::EpochMillis;

/// How long Expo keeps receipts.
const RECEIPT_AGE_MAX_MS: i64 = 24 * 60 * 60 * 1000;

impl Worker {
    /// Fetches the receipts that are due; how many were asked for.
    pub(super) async fn fetch_receipts(
        &mut self,
        due: &mut [Notification],
    ) -> Result<usize, PushError> {
        let now = self.push.now();
        if now < self.receipts_paused_until {
            return Ok(0);
        }
        let mut places = Vec::new();
        let mut tickets = Vec::new();
        for (index, notification) in due.iter().enumerate() {
            for (device, fate) in notification.devices.iter().enumerate() {
                let waits = fate.state == DeviceState::Sent && fate.is_due(now);
                if let Some(ticket) = fate.ticket_id.as_ref().filter(|_| waits)
                    && tickets.len() < RECEIPTS_PER_REQUEST_MAX
                {
                    places.push((index, device));
                    tickets.push(ticket.clone());
                }
            }
        }
        if tickets.is_empty() {
            return Ok(0);
        }
        let receipts = match self.service.receipts(&tickets).await {
            Ok(receipts) => {
                self.receipt_failures = 0;
                receipts
            }
            Err(error) => {
                tracing::warn!(%error, tickets = tickets.len(), "Expo's push service gave no receipts");
                self.receipt_failures += 1;
                let pause = backoff_ms(self.receipt_failures);
                self.receipts_paused_until = EpochMillis(self.push.now().0 + pause);
                // Those that Expo has thrown away by now are settled all the same.
                places.retain(|(index, device)| {
                    let fate = &due[*index].devices[*device];
                    is_too_old(fate, now)
                });
                BTreeMap::new()
            }
        };
        let now = self.push.now();
        let mut touched = BTreeSet::new();
        for (index, device) in places {
            let fate = &mut due[index].devices[device];
            let receipt = fate.ticket_id.as_ref().and_then(|id| receipts.get(id));
            settle(fate, receipt, self.push.settings.receipt_delay_secs, now);
            touched.insert(index);
        }
        for index in touched {
            self.push.save(&mut due[index]).await?;
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
            let mut is_touched = false;
            for fate in &mut notification.devices {
                if fate.deactivate {
                    deactivated += usize::from(self.deactivate_one(&user, fate).await?);
                    is_touched = true;
                }
            }
            if is_touched {
                self.push.save(notification).await?;
            }
        }
        Ok(deactivated)
    }

    async fn deactivate_one(
        &self,
        user: &UserId,
        fate: &mut DeviceFate,
    ) -> Result<bool, PushError> {
        let push = &self.push;
        let get = Get::new(push.table(), schema::device_key(user, &fate.device_id));
        let item = push.store.get(get).await.map_err(store_error)?;
        let token = item
            .as_ref()
            .and_then(|item| item.get(schema::EXPO_PUSH_TOKEN)?.as_str())
            .and_then(|token| token.parse::<super::ExpoPushToken>().ok())
            .filter(|token| Some(token.digest()) == fate.token_digest);
        let is_off = match token {
            Some(token) => {
                push.deactivate_token(user, &fate.device_id, token.as_str())
                    .await?
            }
            None => false,
        };
        fate.deactivate = false;
        fate.next_at = None;
        if is_off {
            fate.note(push.now(), "the token was deactivated");
            metrics::counter!("homeport_push_tokens_deactivated_total").increment(1);
        } else {
            fate.note(push.now(), "the device is gone or has another token by now");
        }
        Ok(is_off)
    }
}

fn settle(fate: &mut DeviceFate, receipt: Option<&Receipt>, delay_secs: i64, now: EpochMillis) {
    match receipt {
        Some(Receipt::Ok) => {
            fate.note(now, "delivered: the receipt is ok");
            fate.state = DeviceState::Delivered;
            fate.next_at = None;
            metrics::counter!("homeport_push_messages_total", "outcome" => "delivered")
                .increment(1);
        }
        Some(Receipt::Error { code, message }) if code == DEVICE_NOT_REGISTERED => {
            fate.fail_unregistered(now, format!("{code}: {message}"));
        }
        Some(Receipt::Error { code, message }) => fate.fail(now, format!("{code}: {message}")),
        None if is_too_old(fate, now) => {
            let reason = "no receipt within a day";
            fate.note(now, reason);
            fate.reason = Some(reason.to_owned());
            fate.next_at = None;
        }
        // Later each time: after as long again as it has been waited already.
        None => {
            let sent = fate.sent_at.map_or(now.0, |at| at.0);
            let pause = (now.0 - sent).max(delay_secs * 1000);
            let last = sent + RECEIPT_AGE_MAX_MS;
            fate.next_at = Some(EpochMillis((now.0 + pause).min(last)));
        }
    }
}

fn is_too_old(fate: &DeviceFate, now: EpochMillis) -> bool {
    fate.sent_at
        .is_none_or(|sent| now.0 - sent.0 >= RECEIPT_AGE_MAX_MS)
}
