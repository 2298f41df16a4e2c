//! What a broadcast counts of the notifications by which users get it. The counts change in the same commit as the
//! deliveries, so that a crash cannot separate them.

use std::collections::{BTreeMap, BTreeSet};

use homeport_item::expression::Update;
use homeport_store::{Action, Update as UpdateRequest};

use crate::outbox::{DeliveryState, Entry as _};
use crate::push::notifications::{DeviceDelivery, Notification};
use crate::push::schema;

/// Codes that reasons of failed deliveries begin with, and the attributes that count them: Expo's documented errors
/// and our own. Another code counts as the last one, so that their number is bounded.
pub(super) const FAILURES: [(&str, &str); 13] = [
    ("DeviceNotRegistered", "failed_DeviceNotRegistered"),
    ("DeveloperError", "failed_DeveloperError"),
    ("ExpoError", "failed_ExpoError"),
    ("InvalidCredentials", "failed_InvalidCredentials"),
    ("InvalidToken", "failed_InvalidToken"),
    ("MessageRateExceeded", "failed_MessageRateExceeded"),
    ("MessageTooBig", "failed_MessageTooBig"),
    ("MismatchSenderId", "failed_MismatchSenderId"),
    ("NotActive", "failed_NotActive"),
    ("ProviderError", "failed_ProviderError"),
    ("not answered", "failed_not_answered"),
    ("not taken", "failed_not_taken"),
    ("Other", "failed_Other"),
];

/// Deliveries by the attribute that counts them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::push) struct Tally(BTreeMap<&'static str, i64>);

impl Tally {
    pub(in crate::push) fn of(devices: &[DeviceDelivery]) -> Self {
        let mut counts = BTreeMap::new();
        for device in devices {
            let delivery = &device.delivery;
            let state = match delivery.state {
                DeliveryState::Queued | DeliveryState::Sending | DeliveryState::HandedOver => {
                    schema::QUEUED
                }
                DeliveryState::Sent => schema::SENT,
                DeliveryState::Delivered => schema::DELIVERED,
                DeliveryState::Failed => schema::FAILED,
                DeliveryState::Dropped => schema::DROPPED,
            };
            *counts.entry(state).or_default() += 1;
            if delivery.state == DeliveryState::Failed {
                let code = failure(delivery.reason.as_deref().unwrap_or_default());
                *counts.entry(code).or_default() += 1;
            }
        }
        Self(counts)
    }
}

fn failure(reason: &str) -> &'static str {
    let code = reason.split(':').next().unwrap_or_default();
    let known = FAILURES.iter().find(|(known, _)| *known == code);
    known
        .or(FAILURES.last())
        .map_or("", |(_, attribute)| attribute)
}

impl Notification {
    /// The write by which the broadcast counts what has changed since `before`; `None` if that is nothing, or there is
    /// no broadcast.
    pub(in crate::push) fn counting(&self, before: &Self) -> Option<Action> {
        let id = self.broadcast_id()?;
        let (Some(old), new) = (&before.tally, Tally::of(&self.devices)) else {
            return None;
        };
        let mut update = Update::new();
        let attributes: BTreeSet<_> = old.0.keys().chain(new.0.keys()).collect();
        for attribute in attributes {
            let count = |tally: &Tally| tally.0.get(attribute).copied().unwrap_or_default();
            let more = count(&new) - count(old);
            if more != 0 {
                update = update.add(*attribute, more);
            }
        }
        if self.due_at().is_none() {
            update = update.add(schema::OPEN_NOTIFICATIONS, -1);
        }
        let key = schema::broadcast_key(&id);
        (!update.is_empty()).then(|| UpdateRequest::new(schema::NOTIFICATIONS, key, update).into())
    }
}
