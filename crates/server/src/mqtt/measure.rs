//! Metrics of MQTT. Handles are created once: looking one up for each message would cost more than
//! counting.

use metrics::{Counter, Gauge, counter, gauge};

/// The meters of a broker.
pub(super) struct Meters {
    pub(super) connections: Gauge,
    pub(super) sessions: Gauge,
    pub(super) retained: Gauge,
    pub(super) received: [Counter; 2],
    pub(super) sent: [Counter; 2],
    pub(super) queued: Counter,
    /// Messages that waited because their key exceeds its rate limit.
    pub(super) throttled: Counter,
    pub(super) dropped_slow: Counter,
    pub(super) dropped_queue_full: Counter,
    pub(super) dropped_too_large: Counter,
    pub(super) dropped_expired: Counter,
    pub(super) dropped_store: Counter,
}

impl Meters {
    pub(super) fn new() -> Self {
        let dropped =
            |reason: &'static str| counter!("homeport_mqtt_dropped_total", "reason" => reason);
        let by_qos = |name: &'static str| ["0", "1"].map(|qos| counter!(name, "qos" => qos));
        Self {
            connections: gauge!("homeport_mqtt_connections"),
            sessions: gauge!("homeport_mqtt_sessions"),
            retained: gauge!("homeport_mqtt_retained_messages"),
            received: by_qos("homeport_mqtt_messages_received_total"),
            sent: by_qos("homeport_mqtt_messages_sent_total"),
            queued: counter!("homeport_mqtt_messages_queued_total"),
            throttled: counter!("homeport_mqtt_messages_throttled_total"),
            dropped_slow: dropped("slow_subscriber"),
            dropped_queue_full: dropped("queue_full"),
            dropped_too_large: dropped("too_large_for_subscriber"),
            dropped_expired: dropped("expired"),
            dropped_store: dropped("store"),
        }
    }
}
