//! Uplinks of chargers on topics: who may publish them, and the intake that makes events of them before rules run.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use homeport_store::{Clock, StoreError};
use homeport_systems::api_keys::ApiKey;
use homeport_systems::chargers::{
    ChargerIds, Chargers, ChargersError, UPLINKS_TOPIC, Uplink, WirelessDeviceId,
};
use homeport_systems::messages::{Intake, IntakeError, Message};
use homeport_systems::rules::RuleEngine;
use homeport_systems::time::FutureLimit;
use metrics::counter;

use crate::auth::{Action, Caller, RateLimit, RateLimiter, Subject};
use crate::routes::chargers::{
    InvalidItem, OUT_OF_SCOPE, SYSTEM, check_uplink, rejected, uplink_result,
};

/// Lines about refused uplinks. The metric counts all of them.
const LINES: RateLimit = RateLimit {
    per_second: 1.0,
    burst: 20.0,
};

/// Whether a key of chargers may publish on a topic: on the topic of all chargers without scopes, and on that of one
/// charger in its scopes.
pub(crate) fn may_publish_uplinks(key: &Arc<ApiKey>, topic: &str) -> bool {
    let Some(device) = uplink_device(topic) else {
        return false;
    };
    let ids = device.map(|device| {
        device
            .parse()
            .map(|id: WirelessDeviceId| ChargerIds::from(id))
    });
    let subject = match &ids {
        None => Subject::All,
        Some(Ok(ids)) => Subject::Charger(ids),
        Some(Err(_)) => return false,
    };
    let caller = Caller::ApiKey(Arc::clone(key));
    caller.check(Action::Write, SYSTEM, subject).is_ok()
}

/// The UUID in a topic of uplinks: `Some(None)` for the topic of all chargers, `None` for other topics.
fn uplink_device(topic: &str) -> Option<Option<&str>> {
    match topic.strip_prefix(UPLINKS_TOPIC)? {
        "" => Some(None),
        device => device.strip_prefix('/').map(Some),
    }
}

/// Takes messages in: uplinks become events of chargers, then rules run.
pub(crate) struct MessageIntake {
    pub(crate) chargers: Chargers,
    pub(crate) rules: RuleEngine,
    pub(crate) future_limit: FutureLimit,
    pub(crate) refused: RefusedUplinks,
}

/// Counts and logs refused uplinks.
pub(crate) struct RefusedUplinks {
    lines: RateLimiter<()>,
    /// Refusals since the last line.
    unlogged: AtomicU64,
}

impl RefusedUplinks {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            lines: RateLimiter::new(LINES, clock),
            unlogged: AtomicU64::new(0),
        }
    }

    fn record(&self, message: &Message, code: &str, reason: &str) {
        counter!("homeport_mqtt_refused_total", "kind" => "uplink", "reason" => "payload_invalid")
            .increment(1);
        if self.lines.take(()).is_err() {
            self.unlogged.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let unlogged = self.unlogged.swap(0, Ordering::Relaxed);
        tracing::warn!(
            topic = message.topic,
            client_id = message.publisher.client_id,
            key_id = message.publisher.principal,
            code,
            reason,
            unlogged,
            "refused an uplink"
        );
    }
}

#[async_trait]
impl Intake for MessageIntake {
    async fn take(&self, message: &Message) -> Result<Vec<Message>, IntakeError> {
        // An alert on this topic is no uplink.
        if let Some(device) = uplink_device(&message.topic)
            && !message.publisher.is_alerts()
        {
            self.take_uplink(message, device).await?;
        }
        self.rules.take(message).await
    }
}

impl MessageIntake {
    /// Stores an uplink.
    async fn take_uplink(
        &self,
        message: &Message,
        device: Option<&str>,
    ) -> Result<(), IntakeError> {
        let times = (self.future_limit, message.received_at);
        let checked =
            check_uplink(&message.payload, times).and_then(|uplink| of_device(uplink, device));
        let result = match checked {
            Ok(uplink) => {
                let outcomes = self.chargers.ingest_uplinks(vec![uplink]).await;
                let outcomes = outcomes.map_err(|error| match error {
                    ChargersError::Store(error) => error,
                    error => StoreError::Unavailable(error.to_string()),
                })?;
                // Every uplink has an outcome. Without one, it may not be stored.
                uplink_result(outcomes.into_iter().next().ok_or(StoreError::Throttled)?)
            }
            Err(invalid) => rejected(invalid),
        };
        let Some((code, reason)) = result.rejection() else {
            return Ok(());
        };
        self.refused.record(message, code, reason);
        Err(IntakeError::Refused(reason.to_owned()))
    }
}

/// The uplink, if it is of the charger that the topic names.
fn of_device(uplink: Uplink, device: Option<&str>) -> Result<Uplink, InvalidItem> {
    match device {
        Some(device) if device.parse() != Ok(uplink.wireless) => Err(InvalidItem {
            code: OUT_OF_SCOPE,
            reason: format!(
                "the uplink of {} is on the topic of another charger",
                uplink.wireless
            ),
        }),
        _ => Ok(uplink),
    }
}
