//! What the handlers work with.

use std::sync::Arc;

use homeport_systems::alerts::Alerts;
use homeport_systems::api_keys::ApiKeys;
use homeport_systems::chargers::Chargers;
use homeport_systems::messages::Publish;
use homeport_systems::push::Push;
use homeport_systems::records::Records;
use homeport_systems::rules::RuleEngine;
use homeport_systems::sensors::Sensors;
use homeport_systems::telemetry::Telemetry;
use metrics_exporter_prometheus::PrometheusHandle;
use subtle::ConstantTimeEq as _;

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
    pub user_tokens: Arc<UserTokens>,
    pub rate_limiter: Arc<RateLimiter>,
    pub health: Arc<dyn Health>,
    pub metrics: PrometheusHandle,
    pub gauges: Arc<dyn Gauges>,
    pub console: Arc<Console>,
}

/// Whether the server can do its work.
pub trait Health: Send + Sync + 'static {
    /// Why requests that write would fail now, if they would.
    fn problem(&self) -> Option<String>;
}

/// What operators prove themselves with. It never prints.
#[derive(Clone)]
pub struct AdminToken(Arc<str>);

impl AdminToken {
    #[must_use]
    pub fn new(token: &str) -> Self {
        Self(token.into())
    }

    /// Compares in a time that does not tell where two tokens differ.
    pub(crate) fn is(&self, text: &str) -> bool {
        self.0.as_bytes().ct_eq(text.as_bytes()).into()
    }
}

impl std::fmt::Debug for AdminToken {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("AdminToken(…)")
    }
}

impl std::fmt::Debug for AppState {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("AppState").finish_non_exhaustive()
    }
}
