//! Sending: what is due is claimed, goes out in one request, and what Expo said is written down.
//!
//! A claim is durable before the request leaves. A request that was never answered, because of the
//! network or because this process ended, is sent again when the claim has run out: Expo may have
//! taken it, so that a device can be told twice but is not forgotten. The trace says so.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use homeport_item::{Item, Value};

use super::measured::store_error;
use super::notification::{DeviceFate, DeviceState, Notification};
use super::service::{
    DEVICE_NOT_REGISTERED, Envelope, MESSAGE_RATE_EXCEEDED, ServiceError, Ticket,
};
use super::types::{DeviceId, ExpoPushToken, UserId};
use super::worker::Worker;
use super::{MESSAGES_PER_REQUEST_MAX, PushError, schema};
use crate::fetch::fetch;
use crate::time::EpochMillis;

/// How long a claim holds: longer than a request to Expo may take, with what is written around it.
pub(super) const CLAIM_MS: i64 = 2 * 60 * 1000;
/// Requests that a message may be in.
const ATTEMPTS_MAX: u32 = 12;
/// Requests without an answer that a message may be in: each may have been carried out.
const UNANSWERED_MAX: u32 = 3;
/// The pause after the first failure; every further one is twice as long, up to the longest.
const BACKOFF_FIRST_MS: i64 = 1000;
const BACKOFF_LONGEST_MS: i64 = 30 * 60 * 1000;
/// What Expo asks for is waited for up to here.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(60 * 60);
/// How often tickets are tried to be written down before they count as unanswered.
const RECORD_ATTEMPTS_MAX: u32 = 5;
const RECORD_PAUSE: Duration = Duration::from_millis(200);

/// A message of a batch: which notification and which of its devices.
type Place = (usize, usize);

pub(super) fn backoff_ms(failures: u32) -> i64 {
    let doublings = failures.saturating_sub(1).min(20);
    (BACKOFF_FIRST_MS << doublings).min(BACKOFF_LONGEST_MS)
}

impl Worker {
    /// Sends what is due, as much as one request and the pace allow; how many messages went out.
    pub(super) async fn send_due(&mut self, due: &mut [Notification]) -> Result<usize, PushError> {
        let now = self.push.now();
        let room = self.pace.free(now).min(MESSAGES_PER_REQUEST_MAX);
        if now < self.sending_paused_until || room == 0 {
            return Ok(0);
        }
        let picked = pick(due, now, room);
        let batch = self.claim(due, picked, now).await?;
        if batch.is_empty() {
            return Ok(0);
        }
        let envelopes: Vec<Envelope> = batch
            .iter()
            .map(|((index, _), token)| Envelope {
                to: token.clone(),
                message: due[*index].message.clone(),
            })
            .collect();
        let answer = self.service.send(&envelopes).await;
        let now = self.push.now();
        self.pace.note(now, batch.len());
        let places: Vec<Place> = batch.into_iter().map(|(place, _)| place).collect();
        self.apply(due, &places, answer, now);
        self.record(due, &places).await?;
        Ok(places.len())
    }

    /// Marks messages as being sent, durably. What is left can be sent: its device is there and
    /// active, and nobody else has claimed it.
    async fn claim(
        &self,
        due: &mut [Notification],
        picked: Picked,
        now: EpochMillis,
    ) -> Result<Vec<(Place, ExpoPushToken)>, PushError> {
        let wanted = picked.places.iter().map(|(index, device)| {
            let notification = &due[*index];
            let fate = &notification.devices[*device];
            (notification.user_id.clone(), fate.device_id.clone())
        });
        let tokens = self.tokens(wanted.collect()).await?;
        let mut batch = Vec::new();
        for (index, device) in picked.places {
            let notification = &mut due[index];
            let user_id = notification.user_id.clone();
            let fate = &mut notification.devices[device];
            match tokens.get(&(user_id, fate.device_id.clone())) {
                None => fate.fail(now, "NotActive: the device is gone or inactive by now"),
                Some(None) => fate.fail(now, "InvalidToken: the device has no token of Expo's"),
                Some(Some(token)) => {
                    fate.state = DeviceState::Sending;
                    fate.attempts += 1;
                    fate.token_digest = Some(token.digest());
                    fate.next_at = Some(EpochMillis(now.0 + CLAIM_MS));
                    fate.note(now, format!("sending, attempt {}", fate.attempts));
                    batch.push(((index, device), token.clone()));
                }
            }
        }
        for index in picked.touched {
            let is_claimed = match self.push.save(&mut due[index]).await {
                Ok(is_claimed) => is_claimed,
                // The others are claimed and go out; this one is looked at again later.
                Err(error) => {
                    tracing::warn!(%error, "a notification could not be claimed");
                    false
                }
            };
            if !is_claimed {
                batch.retain(|((of, _), _)| *of != index);
            }
        }
        Ok(batch)
    }

    /// The tokens of those devices that are there and active; `None` for one that is no token.
    async fn tokens(
        &self,
        wanted: BTreeSet<(UserId, DeviceId)>,
    ) -> Result<BTreeMap<(UserId, DeviceId), Option<ExpoPushToken>>, PushError> {
        let keys = wanted
            .iter()
            .map(|(user, device)| schema::device_key(user, device));
        let found = fetch(&*self.push.store, self.push.table(), keys, None).await;
        let found = found.map_err(store_error)?;
        Ok(found.iter().filter_map(active_token).collect())
    }

    /// What an answer means for each message of its batch.
    fn apply(
        &mut self,
        due: &mut [Notification],
        places: &[Place],
        answer: Result<Vec<Ticket>, ServiceError>,
        now: EpochMillis,
    ) {
        let tickets = match answer {
            Ok(tickets) if tickets.len() == places.len() => tickets,
            Ok(tickets) => {
                let reason = format!("{} tickets for {} messages", tickets.len(), places.len());
                return self.apply_failure(due, places, ServiceError::Unanswered(reason), now);
            }
            Err(error) => return self.apply_failure(due, places, error, now),
        };
        self.failures = 0;
        let receipt_at = EpochMillis(now.0 + self.push.settings.receipt_delay_secs * 1000);
        for ((index, device), ticket) in places.iter().zip(tickets) {
            let fate = &mut due[*index].devices[*device];
            match ticket {
                Ticket::Ok { id } => {
                    fate.note(now, format!("sent: ticket {id}"));
                    fate.state = DeviceState::Sent;
                    fate.ticket_id = Some(id);
                    fate.sent_at = Some(now);
                    fate.next_at = Some(receipt_at);
                    count("sent");
                }
                Ticket::Error { code, message } if code == DEVICE_NOT_REGISTERED => {
                    fate.fail_unregistered(now, format!("{code}: {message}"));
                }
                Ticket::Error { code, message } if code == MESSAGE_RATE_EXCEEDED => {
                    retry(fate, now, None, format!("{code}: {message}"));
                }
                Ticket::Error { code, message } => fate.fail(now, format!("{code}: {message}")),
            }
        }
    }

    fn apply_failure(
        &mut self,
        due: &mut [Notification],
        places: &[Place],
        error: ServiceError,
        now: EpochMillis,
    ) {
        tracing::warn!(%error, messages = places.len(), "Expo's push service took nothing");
        let text = error.to_string();
        let mut retry_after = None;
        match &error {
            ServiceError::Refused(_) => {}
            ServiceError::Unanswered(_) => self.failures += 1,
            ServiceError::Busy {
                retry_after: after, ..
            } => {
                self.failures += 1;
                retry_after = after.map(|after| after.min(RETRY_AFTER_MAX));
            }
        }
        if self.failures > 0 {
            let pause = backoff_ms(self.failures).max(millis(retry_after));
            self.sending_paused_until = EpochMillis(now.0 + pause);
        }
        for (index, device) in places {
            let fate = &mut due[*index].devices[*device];
            match &error {
                ServiceError::Refused(_) if places.len() > 1 => {
                    // One message can spoil a request for all: each gets one of its own.
                    fate.note(now, format!("{text}; will be sent alone"));
                    fate.state = DeviceState::Queued;
                    fate.is_alone = true;
                    fate.next_at = Some(now);
                }
                ServiceError::Refused(_) => fate.fail(now, text.clone()),
                ServiceError::Unanswered(_) => unanswered(fate, now, &text),
                ServiceError::Busy { .. } => retry(fate, now, retry_after, text.clone()),
            }
        }
    }

    /// Writes down what was applied. IMPORTANT: tickets that are lost here are messages that go out
    /// twice, so that a store that is away for a moment is waited for.
    async fn record(&self, due: &mut [Notification], places: &[Place]) -> Result<(), PushError> {
        let touched: BTreeSet<usize> = places.iter().map(|(index, _)| *index).collect();
        let mut first_error = None;
        for index in touched {
            if let Err(error) = self.record_one(&mut due[index]).await {
                first_error.get_or_insert(error);
            }
        }
        first_error.map_or(Ok(()), Err)
    }

    async fn record_one(&self, notification: &mut Notification) -> Result<(), PushError> {
        let mut pause = RECORD_PAUSE;
        for _ in 1..RECORD_ATTEMPTS_MAX {
            if self.push.save(notification).await.is_ok() {
                return Ok(());
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
        self.push.save(notification).await.map(|_| ())
    }
}

/// What a look at the outbox chose.
#[derive(Default)]
struct Picked {
    places: Vec<Place>,
    /// Notifications that changed, also where nothing of them is to be sent.
    touched: BTreeSet<usize>,
}

/// The messages to send, oldest first. Those whose claim ran out were never answered.
fn pick(due: &mut [Notification], now: EpochMillis, room: usize) -> Picked {
    let mut picked = Picked::default();
    for (index, notification) in due.iter_mut().enumerate() {
        for (device, fate) in notification.devices.iter_mut().enumerate() {
            let is_unsent = matches!(fate.state, DeviceState::Queued | DeviceState::Sending);
            let count = picked.places.len();
            if !is_unsent || !fate.is_due(now) || count == room || (fate.is_alone && count > 0) {
                continue;
            }
            picked.touched.insert(index);
            if fate.state == DeviceState::Sending {
                unanswered(
                    fate,
                    now,
                    "not answered: the process ended or the store was away",
                );
                if fate.state == DeviceState::Failed {
                    continue;
                }
            }
            picked.places.push((index, device));
            if fate.is_alone {
                return picked;
            }
        }
    }
    picked
}

fn unanswered(fate: &mut DeviceFate, now: EpochMillis, text: &str) {
    fate.unanswered += 1;
    if fate.unanswered >= UNANSWERED_MAX {
        let reason = format!("{text}; given up, it may have arrived");
        fate.fail(now, reason);
    } else {
        retry(fate, now, None, format!("{text}; it may have arrived"));
    }
}

fn retry(fate: &mut DeviceFate, now: EpochMillis, after: Option<Duration>, reason: String) {
    if fate.attempts >= ATTEMPTS_MAX {
        return fate.fail(
            now,
            format!("{reason}; given up after {ATTEMPTS_MAX} attempts"),
        );
    }
    let pause = backoff_ms(fate.attempts).max(millis(after));
    fate.note(now, format!("{reason}; next attempt in {pause} ms"));
    fate.state = DeviceState::Queued;
    fate.next_at = Some(EpochMillis(now.0 + pause));
    count("retried");
}

fn millis(duration: Option<Duration>) -> i64 {
    let millis = duration.unwrap_or_default().as_millis();
    i64::try_from(millis).unwrap_or(i64::MAX)
}

fn count(outcome: &'static str) {
    metrics::counter!("homeport_push_messages_total", "outcome" => outcome).increment(1);
}

/// Whose device an item is, and its token, if it is active.
fn active_token(item: &Item) -> Option<((UserId, DeviceId), Option<ExpoPushToken>)> {
    let text = |name| item.get(name).and_then(Value::as_str);
    let user = text(schema::USER_ID)?.parse().ok()?;
    let device = text(schema::DEVICE_ID)?.parse().ok()?;
    let is_active = item.get(schema::IS_ACTIVE).and_then(Value::as_bool) == Some(true);
    let token = text(schema::EXPO_PUSH_TOKEN).and_then(|token| token.parse().ok());
    is_active.then_some(((user, device), token))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let pauses: Vec<_> = [1, 2, 3, 11, 12, 99].map(backoff_ms).into();
        assert_eq!(pauses, [1000, 2000, 4000, 1_024_000, 1_800_000, 1_800_000]);
    }
}
