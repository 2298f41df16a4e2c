//! Notifications of alerts as the API shows them: what became of each at its target.

use homeport_systems::alerts::NotificationResult;
use homeport_systems::outbox::DeliveryState;
use homeport_systems::time::{EpochMillis, UtcMillis};
use serde::Serialize;
use utoipa::ToSchema;

use crate::routes::push::DeviceDeliveryBody;

/// Devices of a push message that are shown.
const DEVICES_SHOWN_MAX: usize = 100;

/// A notification to one target.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AlertNotification)]
pub(super) struct NotificationBody {
    /// `raised`, `cleared`, `snooze_ended` or `test`
    event: &'static str,
    /// `push`, `webhook`, `mqtt` or `email`
    target: &'static str,
    /// User, URL, topic or e-mail address
    to: String,
    /// `queued`, `sending`, `sent`, `delivered`, `failed` or `dropped`. A push message has the best state of the
    /// user's devices
    #[schema(example = "sent")]
    state: &'static str,
    /// Why it failed or was dropped, or why some devices did not get it
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    attempts: u32,
    /// Attempts without a response; each may have been delivered
    unanswered: u32,
    /// When it is sent again
    #[serde(skip_serializing_if = "Option::is_none")]
    next_attempt_at: Option<String>,
    /// Devices of a push message
    #[serde(skip_serializing_if = "Option::is_none")]
    device_count: Option<usize>,
    /// The first 100 devices of a push message
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    devices: Vec<DeviceDeliveryBody>,
    trace: Vec<StepBody>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AlertNotificationStep)]
struct StepBody {
    at: String,
    step: String,
}

pub(super) fn time(at: EpochMillis) -> String {
    UtcMillis::new(at).to_string()
}

impl From<NotificationResult> for NotificationBody {
    fn from(result: NotificationResult) -> Self {
        let notification = result.notification;
        let trace = notification
            .delivery
            .steps
            .into_iter()
            .map(|step| StepBody {
                at: time(step.at),
                step: step.what,
            });
        let count = result.devices.len();
        let devices = result.devices.into_iter().take(DEVICES_SHOWN_MAX);
        Self {
            event: notification.event.as_str(),
            target: notification.target.kind(),
            to: notification.target.address(),
            state: match result.state {
                // Its push message was deleted meanwhile.
                DeliveryState::HandedOver => DeliveryState::Sending.as_str(),
                state => state.as_str(),
            },
            reason: result.reason,
            attempts: result.attempts,
            unanswered: result.unanswered,
            next_attempt_at: result.next_attempt_at.map(time),
            device_count: (count > 0).then_some(count),
            devices: devices.map(DeviceDeliveryBody::from).collect(),
            trace: trace.collect(),
        }
    }
}
