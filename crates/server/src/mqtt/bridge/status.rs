//! The status of a bridge, for readiness and metrics.

use std::sync::{Mutex, MutexGuard, PoisonError};

use metrics::{Counter, Gauge, counter, gauge};

/// The status of a bridge.
pub struct BridgeStatus {
    /// Why it is not connected; `None` while it is.
    problem: Mutex<Option<String>>,
    connected: Gauge,
    connects: Counter,
    pub(super) received: [Counter; 2],
    pub(super) acknowledged: Counter,
    pub(super) dropped_retained: Counter,
    pub(super) dropped_invalid: Counter,
    pub(super) dropped_too_large: Counter,
    pub(super) dropped_circle: Counter,
}

impl BridgeStatus {
    /// The status of a bridge that has not connected yet.
    #[must_use]
    pub fn new() -> Self {
        let dropped =
            |reason: &'static str| counter!("homeport_bridge_dropped_total", "reason" => reason);
        let status = Self {
            problem: Mutex::new(Some("it has not connected yet".to_owned())),
            connected: gauge!("homeport_bridge_connected"),
            connects: counter!("homeport_bridge_connects_total"),
            received: ["0", "1"]
                .map(|qos| counter!("homeport_bridge_messages_received_total", "qos" => qos)),
            acknowledged: counter!("homeport_bridge_messages_acknowledged_total"),
            dropped_retained: dropped("retained"),
            dropped_invalid: dropped("invalid"),
            dropped_too_large: dropped("too_large"),
            dropped_circle: dropped("circle"),
        };
        status.connected.set(0.0);
        status
    }

    /// Why the bridge is not connected; `None` while it is.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        self.lock().clone()
    }

    pub(super) fn connected(&self) {
        *self.lock() = None;
        self.connected.set(1.0);
        self.connects.increment(1);
    }

    pub(super) fn disconnected(&self, reason: String) {
        *self.lock() = Some(reason);
        self.connected.set(0.0);
    }

    fn lock(&self) -> MutexGuard<'_, Option<String>> {
        self.problem.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for BridgeStatus {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for BridgeStatus {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("BridgeStatus")
            .field("problem", &self.problem())
            .finish_non_exhaustive()
    }
}
