//! The result of a notification at its target. A push message has its result in push's outbox, which is read
//! each time: there is no second copy that could differ.

use homeport_item::expression::KeyCondition;
use homeport_store::Query;

use super::notification::Notification;
use crate::alerts::definitions::definition::Target;
use crate::alerts::types::AlertId;
use crate::alerts::{Alerts, AlertsError, schema};
use crate::outbox::DeliveryState;
use crate::push::{self, DeviceDelivery, IdempotencyKey, PushError, UserId};
use crate::time::EpochMillis;

/// A notification with its result so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotificationResult {
    pub notification: Notification,
    pub state: DeliveryState,
    /// Why it failed, was dropped, or did not reach every device.
    pub reason: Option<String>,
    pub attempts: u32,
    /// Attempts without an answer; each of them may have arrived.
    pub unanswered: u32,
    pub next_attempt_at: Option<EpochMillis>,
    /// The devices of a push message.
    pub devices: Vec<DeviceDelivery>,
}

impl NotificationResult {
    fn stored(notification: Notification) -> Self {
        let delivery = &notification.delivery;
        Self {
            state: delivery.state,
            reason: delivery.reason.clone(),
            attempts: delivery.attempts,
            unanswered: delivery.unanswered,
            next_attempt_at: delivery.next_attempt_at(),
            devices: Vec::new(),
            notification,
        }
    }

    /// Whether the target has the message or may have it.
    pub(in crate::alerts) fn may_have_arrived(&self) -> bool {
        match self.state {
            DeliveryState::Sent | DeliveryState::Delivered => true,
            DeliveryState::Failed => self.unanswered > 0,
            _ => false,
        }
    }

    /// Whether the target may get the message later.
    pub(in crate::alerts) fn is_open(&self) -> bool {
        matches!(
            self.state,
            DeliveryState::Queued | DeliveryState::Sending | DeliveryState::HandedOver
        )
    }
}

impl Alerts {
    /// The notifications of an alert, or of a test, with their results.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn notification_results(
        &self,
        id: &AlertId,
    ) -> Result<Vec<NotificationResult>, AlertsError> {
        let mut results = Vec::new();
        for notification in self.notifications(id).await? {
            results.push(self.result_of(notification).await?);
        }
        Ok(results)
    }

    /// The stored notifications of an alert, or of a test.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn notifications(&self, id: &AlertId) -> Result<Vec<Notification>, AlertsError> {
        let mut query = Query {
            consistent: true,
            ..Query::new(schema::OUTBOX, KeyCondition::new(schema::ALERT_ID, id))
        };
        let mut notifications = Vec::new();
        loop {
            let page = self.0.store.query(query.clone()).await?;
            for item in &page.items {
                notifications.push(Notification::from_item(item)?);
            }
            query.start = page.next;
            if query.start.is_none() {
                return Ok(notifications);
            }
        }
    }

    pub(in crate::alerts) async fn result_of(
        &self,
        notification: Notification,
    ) -> Result<NotificationResult, AlertsError> {
        let Some(pushed) = self.pushed(&notification).await? else {
            return Ok(NotificationResult::stored(notification));
        };
        let outcome = pushed.outcome();
        Ok(NotificationResult {
            state: outcome.state,
            reason: outcome.reason,
            attempts: outcome.attempts,
            unanswered: outcome.unanswered,
            next_attempt_at: outcome.next_attempt_at,
            devices: pushed.devices,
            notification,
        })
    }

    /// The push message of a notification, if it has one that is still stored.
    pub(super) async fn pushed(
        &self,
        notification: &Notification,
    ) -> Result<Option<push::Notification>, AlertsError> {
        let Target::Push { user_id } = &notification.target else {
            return Ok(None);
        };
        let user = user_id.parse::<UserId>();
        let key = notification.message_id().parse::<IdempotencyKey>();
        let (Ok(user), Ok(key)) = (user, key) else {
            return Ok(None);
        };
        match self.0.push.accepted_with(&user, &key).await {
            Ok(pushed) => Ok(pushed),
            Err(PushError::Store(error)) => Err(error.into()),
            Err(error) => Err(AlertsError::Malformed(error.to_string())),
        }
    }
}
