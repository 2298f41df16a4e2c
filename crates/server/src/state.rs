//! What the handlers work with.

use std::sync::Arc;

use async_trait::async_trait;
use homeport_store::StoreError;
use homeport_systems::alerts::Alerts;
use homeport_systems::api_keys::ApiKeys;
use homeport_systems::chargers::Chargers;
use homeport_systems::messages::Publish;
use homeport_systems::push::Push;
use homeport_systems::records::Records;
use homeport_systems::rules::RuleEngine;
use homeport_systems::sensors::Sensors;
use homeport_systems::telemetry::Telemetry;
use homeport_wire::listen::AllowedOrigins;
use metrics_exporter_prometheus::PrometheusHandle;

use crate::auth::AdminToken;
use crate::console::Console;
use crate::jwt::UserTokens;
use crate::limits::RateLimiter;
use crate::measure::Gauges;
use crate::mqtt::Broker;

/// Everything a handler may need; cheap to clone.
#[derive(Clone)]
pub struct AppState {
    pub sensors: Sensors,
    pub chargers: Chargers,
    pub records: Records,
    pub push: Push,
    pub telemetry: Telemetry,
    pub rules: RuleEngine,
    /// Where messages are published. It is kept here for all who publish without holding on to it.
    pub publish: Arc<dyn Publish>,
    pub alerts: Alerts,
    pub api_keys: Arc<ApiKeys>,
    pub broker: Broker,
    pub admin_token: AdminToken,
    /// Web pages that may use MQTT over WebSockets, beside our own.
    pub allowed_origins: AllowedOrigins,
    pub user_tokens: Arc<UserTokens>,
    pub rate_limiter: Arc<RateLimiter>,
    pub health: Arc<dyn Health>,
    pub store_clock: Arc<dyn StoreClock>,
    pub metrics: PrometheusHandle,
    pub gauges: Arc<dyn Gauges>,
    pub console: Arc<Console>,
}

/// Whether the server can do its work.
pub trait Health: Send + Sync + 'static {
    /// Why requests that write would fail now, if they would.
    fn problem(&self) -> Option<String>;

    /// Why only a restart of the process helps, if that is so.
    fn needs_restart(&self) -> Option<String> {
        None
    }

    /// A warning for operators; requests are served all the same.
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
    /// When the store cannot be written.
    async fn confirm(&self) -> Result<ClockState, StoreError>;
}

/// The server's clock and the store's commit time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockState {
    /// The server's clock.
    pub wall_ms: i64,
    /// The store's time.
    pub commit_ms: i64,
    /// Whether the store deletes what has expired.
    pub is_confirmed: bool,
}

impl std::fmt::Debug for AppState {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("AppState").finish_non_exhaustive()
    }
}
