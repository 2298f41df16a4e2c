//! The result of a notification over all devices of its user.

use std::collections::BTreeSet;

use super::notification::Notification;
use crate::outbox::DeliveryState;
use crate::time::EpochMillis;

/// Different reasons that a result lists.
const REASONS_MAX: usize = 3;

/// The state of a notification: the best one that a device has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushOutcome {
    pub state: DeliveryState,
    /// Why devices did not get it.
    pub reason: Option<String>,
    /// The most attempts that a device needed.
    pub attempts: u32,
    /// The most attempts without an answer that a device has.
    pub unanswered: u32,
    pub next_attempt_at: Option<EpochMillis>,
    /// When the next work on it is due; `None` if the result is final.
    pub due_at: Option<EpochMillis>,
}

impl Notification {
    #[must_use]
    pub fn outcome(&self) -> PushOutcome {
        let deliveries = || self.devices.iter().map(|device| &device.delivery);
        let best = [
            DeliveryState::Delivered,
            DeliveryState::Sent,
            DeliveryState::Sending,
            DeliveryState::Queued,
        ];
        let state = best
            .into_iter()
            .find(|state| deliveries().any(|delivery| delivery.state == *state));
        PushOutcome {
            state: state.unwrap_or(DeliveryState::Failed),
            reason: self.reason(),
            attempts: deliveries().map(|one| one.attempts).max().unwrap_or(0),
            unanswered: deliveries().map(|one| one.unanswered).max().unwrap_or(0),
            next_attempt_at: deliveries().filter_map(|one| one.next_attempt_at()).min(),
            due_at: deliveries().filter_map(|one| one.next_at).min(),
        }
    }

    fn reason(&self) -> Option<String> {
        if self.devices.is_empty() {
            return Some("the user has no active device".to_owned());
        }
        let failed = self.devices.iter().map(|device| &device.delivery);
        let failed = failed.filter(|delivery| delivery.state == DeliveryState::Failed);
        let count = failed.clone().count();
        let reasons: BTreeSet<&str> = match count {
            // For instance, that no receipt came.
            0 => {
                let deliveries = self.devices.iter().map(|device| &device.delivery);
                deliveries.filter_map(|one| one.reason.as_deref()).collect()
            }
            _ => failed.filter_map(|one| one.reason.as_deref()).collect(),
        };
        if reasons.is_empty() {
            return None;
        }
        let reasons: Vec<&str> = reasons.into_iter().take(REASONS_MAX).collect();
        let reasons = reasons.join("; ");
        Some(match (count, self.devices.len()) {
            (0, _) | (1, 1) => reasons,
            (count, devices) => format!("{count} of {devices} devices failed: {reasons}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::message::{Message, NewMessage};
    use super::super::notification::{DeviceDelivery, NotificationId, Part};
    use super::*;
    use crate::push::sending::RETRIES;

    const NOW: EpochMillis = EpochMillis(1_800_000_000_000);

    fn device(state: DeliveryState) -> DeviceDelivery {
        let mut device = DeviceDelivery::queued("phone".parse().expect("a device"), NOW);
        let delivery = &mut device.delivery;
        match state {
            DeliveryState::Failed => delivery.fail(&RETRIES, NOW, "gone"),
            DeliveryState::Sent => delivery.sent(&RETRIES, NOW, "sent", Some(NOW)),
            DeliveryState::Delivered => delivery.delivered(&RETRIES, NOW, "delivered"),
            state => delivery.state = state,
        }
        device
    }

    fn outcome(states: &[DeliveryState]) -> PushOutcome {
        let message = NewMessage {
            body: Some("Ready".to_owned()),
            ..NewMessage::default()
        };
        let notification = Notification {
            id: NotificationId::new(NOW),
            user_id: "anna".parse().expect("a user"),
            message: Message::new(message).expect("a message"),
            created_at: NOW,
            finished_at: None,
            devices: states.iter().copied().map(device).collect(),
            tally: None,
            part: Part::ONLY,
            version: 1,
        };
        notification.outcome()
    }

    #[test]
    fn best_device_decides_the_state() {
        use DeliveryState::{Delivered, Failed, Queued, Sending, Sent};
        for (states, expected, is_final) in [
            (vec![], Failed, true),
            (vec![Failed, Failed], Failed, true),
            (vec![Failed, Queued], Queued, false),
            (vec![Queued, Sending], Sending, false),
            (vec![Failed, Sent, Queued], Sent, false),
            (vec![Delivered, Failed], Delivered, true),
        ] {
            let outcome = outcome(&states);
            assert_eq!(outcome.state, expected, "{states:?}");
            assert_eq!(outcome.due_at.is_none(), is_final, "{states:?}");
        }
    }

    #[test]
    fn reason_counts_the_devices_that_failed() {
        use DeliveryState::{Delivered, Failed};
        let reason = |states: &[DeliveryState]| outcome(states).reason;
        assert_eq!(
            reason(&[]).as_deref(),
            Some("the user has no active device")
        );
        assert_eq!(reason(&[Failed]).as_deref(), Some("gone"));
        assert_eq!(
            reason(&[Failed, Delivered, Failed]).as_deref(),
            Some("2 of 3 devices failed: gone")
        );
        assert_eq!(reason(&[Delivered]), None);
    }
}
