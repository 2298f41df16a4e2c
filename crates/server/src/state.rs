//! The state that handlers share.

use std::sync::Arc;

use async_trait::async_trait;
use homeport_listen::AllowedOrigins;
use homeport_store::{Clock, StoreError};
use homeport_systems::alerts::Alerts;
use homeport_systems::api_keys::ApiKeys;
use homeport_systems::chargers::Chargers;
use homeport_systems::people::People;
use homeport_systems::push::Push;
use homeport_systems::records::Records;
use homeport_systems::rules::RuleEngine;
use homeport_systems::sensors::Sensors;
use homeport_systems::telemetry::Telemetry;
use homeport_systems::time::FutureLimit;
use metrics_exporter_prometheus::PrometheusHandle;

use crate::auth::{AdminToken, KeyVerifier, RateLimiter, SignInLimits, UserTokens};
use crate::console::Console;
use crate::metrics::Gauges;
use crate::mqtt::Broker;

/// Everything that handlers need; cheap to clone.
#[derive(Clone)]
pub struct AppState {
    pub clock: Arc<dyn Clock>,
    /// How far the times of data may be ahead of the clock.
    pub future_limit: FutureLimit,
    pub sensors: Sensors,
    pub chargers: Chargers,
    pub records: Records,
    pub push: Push,
    pub telemetry: Telemetry,
    pub rules: RuleEngine,
    pub alerts: Alerts,
    pub api_keys: Arc<ApiKeys>,
    pub key_verifier: Arc<KeyVerifier>,
    pub broker: Broker,
    /// People who operate the server.
    pub people: People,
    pub(crate) sign_in_limits: Arc<SignInLimits>,
    pub admin_token: AdminToken,
    /// Web pages of other origins that may use MQTT over WebSockets.
    pub allowed_origins: AllowedOrigins,
    pub user_tokens: Arc<UserTokens>,
    pub rate_limiter: Arc<RateLimiter>,
    pub health: Arc<dyn Health>,
    pub store_clock: Arc<dyn StoreClock>,
    pub metrics: PrometheusHandle,
    pub gauges: Arc<dyn Gauges>,
    pub console: Arc<Console>,
}

/// Health of the server.
#[async_trait]
pub trait Health: Send + Sync + 'static {
    /// Why some requests, such as writes, fail now; `None` if all can succeed.
    fn problem(&self) -> Option<String>;

    /// Why the process must be restarted, if it must.
    fn needs_restart(&self) -> Option<String> {
        None
    }

    /// The tables of the systems that do not exist.
    async fn missing_tables(&self) -> Vec<String> {
        Vec::new()
    }

    /// A warning for operators that does not affect requests.
    fn warning(&self) -> Option<String> {
        None
    }
}

/// The store's time, which an operator may have to confirm.
#[async_trait]
pub trait StoreClock: Send + Sync + 'static {
    fn state(&self) -> ClockState;

    /// Confirms the server's clock.
    ///
    /// # Errors
    /// If the store cannot be written.
    async fn confirm(&self) -> Result<ClockState, StoreError>;
}

/// The server's clock and the store's commit time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockState {
    /// The server's clock.
    pub wall_ms: i64,
    /// The store's commit time.
    pub commit_ms: i64,
    /// Whether the clock is confirmed, so that the store deletes expired items.
    pub is_confirmed: bool,
}

impl std::fmt::Debug for AppState {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("AppState").finish_non_exhaustive()
    }
}
