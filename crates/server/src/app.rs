//! Composition: builds every part of the server from a store, a clock and settings. The binary and the tests use it.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use homeport_listen::AllowedOrigins;
use homeport_store::{ChangeFeed, Clock, Store, StoreError};
use homeport_systems::alerts::{self, Alerts};
use homeport_systems::api_keys::{ApiKeys, Pepper};
use homeport_systems::browse::TableBrowser;
use homeport_systems::chargers::Chargers;
use homeport_systems::fleet::{Expectations, Fleet, SourceDeps, Sources, System};
use homeport_systems::live::Live;
use homeport_systems::people::{self, People};
use homeport_systems::push::{self, Push};
use homeport_systems::records::{self, Records};
use homeport_systems::rules::{NewRule, RuleEngine, RuleEngineDeps, RuleError};
use homeport_systems::schema::{self, TableNames};
use homeport_systems::sensors::{self, Sensors};
use homeport_systems::telemetry::{self, Telemetry};
use homeport_systems::time::{EpochMillis, FutureLimit};
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::sync::Semaphore;

use crate::auth::{
    AdminToken, KeyVerifier, RateLimit, RateLimiter, SignInLimits, UserTokenSettings, UserTokens,
};
use crate::console::{Console, EXPORTS_MAX, Storage};
use crate::metrics::Gauges;
use crate::mqtt::{Broker, BrokerParts, MqttSettings};
use crate::state::{AppState, Health, StoreClock};
use crate::uplink_topics::{MessageIntake, RefusedUplinks};

/// What the server is built on.
pub struct AppDeps {
    pub store: Arc<dyn Store>,
    /// The systems with devices.
    pub systems: Vec<&'static System>,
    /// The change feed, if the store has one.
    pub feed: Option<Arc<dyn ChangeFeed>>,
    pub clock: Arc<dyn Clock>,
    /// Decides when old data is deleted; it ignores unconfirmed clock jumps.
    pub removal_clock: Arc<dyn Clock>,
    pub storage: Arc<dyn Storage>,
    pub health: Arc<dyn Health>,
    pub store_clock: Arc<dyn StoreClock>,
    pub gauges: Arc<dyn Gauges>,
    pub metrics: PrometheusHandle,
}

/// The settings of all parts.
pub struct AppSettings {
    pub tables: TableNames,
    pub pepper: Pepper,
    pub admin_token: String,
    /// The limit of each API key.
    pub rate_limit: RateLimit,
    /// How far the times of data may be ahead of the clock.
    pub future_limit: FutureLimit,
    /// Web pages of other origins that may use MQTT over WebSockets.
    pub allowed_origins: AllowedOrigins,
    pub user_tokens: UserTokenSettings,
    pub session_secs: i64,
    pub sensors: sensors::Settings,
    pub push: push::Settings,
    pub records: records::Settings,
    pub alerts: alerts::Settings,
    pub mqtt: MqttSettings,
    pub expectations: Expectations,
    /// The rules of the rules file.
    pub rules: Vec<NewRule>,
    /// The URLs that receive notifications of the `sns` action, by the topic's ARN.
    pub sns_topics: HashMap<String, String>,
}

impl fmt::Debug for AppDeps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AppDeps").finish_non_exhaustive()
    }
}

/// Shows no settings, because some are secrets.
impl fmt::Debug for AppSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AppSettings").finish_non_exhaustive()
    }
}

/// Why the server cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    #[error("the rules file is invalid")]
    Rules(#[source] RuleError),
    #[error("loading the rules failed")]
    LoadRules(#[source] RuleError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl AppState {
    /// Creates missing tables and builds all parts.
    ///
    /// # Errors
    /// If a rule is invalid, or the store fails.
    pub async fn build(deps: AppDeps, settings: AppSettings) -> Result<Self, BuildError> {
        let (store, clock) = (&deps.store, &deps.clock);
        let names = &settings.tables;
        let tables = schema::tables(names);
        store.ensure_tables(&tables).await?;
        let records = Records::new(Arc::clone(store), Arc::clone(clock), settings.records)
            .with_removal_clock(Arc::clone(&deps.removal_clock));
        let push = Push::new(Arc::clone(store), Arc::clone(clock), settings.push)
            .with_removal_clock(Arc::clone(&deps.removal_clock));
        let sensors = Sensors::new(Arc::clone(store), Arc::clone(clock), settings.sensors);
        let chargers = Chargers::new(Arc::clone(store), Arc::clone(clock));
        let api_keys = Arc::new(ApiKeys::new(
            Arc::clone(store),
            Arc::clone(clock),
            settings.pepper,
        ));
        let key_verifier = KeyVerifier::new(Arc::clone(&api_keys), Arc::clone(clock));
        let key_verifier = Arc::new(key_verifier);
        let admin_token = AdminToken::new(&settings.admin_token, Arc::clone(clock));
        let people_settings = people::Settings {
            session_secs: settings.session_secs,
            admin_generation: admin_token.generation(),
        };
        let people = People::new(Arc::clone(store), Arc::clone(clock), people_settings);
        let rate_limiter = Arc::new(RateLimiter::new(settings.rate_limit, Arc::clone(clock)));
        let rules = RuleEngine::new(
            RuleEngineDeps {
                store: Arc::clone(store),
                clock: Arc::clone(clock),
                push: push.clone(),
                tables,
                telemetry_table: names.telemetry.clone(),
                future_limit: settings.future_limit,
                sns_topics: settings.sns_topics,
            },
            settings.rules,
        )
        .map_err(BuildError::Rules)?;
        rules.load().await.map_err(BuildError::LoadRules)?;
        let broker = Broker::start(BrokerParts {
            settings: settings.mqtt,
            store: Arc::clone(store),
            clock: Arc::clone(clock),
            removal_clock: Arc::clone(&deps.removal_clock),
            intake: Arc::new(MessageIntake {
                chargers: chargers.clone(),
                rules: rules.clone(),
                future_limit: settings.future_limit,
                refused: RefusedUplinks::new(Arc::clone(clock)),
            }),
            api_keys: Arc::clone(&api_keys),
            key_verifier: Arc::clone(&key_verifier),
            admin_token: admin_token.clone(),
            rate_limiter: Arc::clone(&rate_limiter),
        })
        .await?;
        let telemetry_settings = telemetry::Settings {
            table: names.telemetry.clone(),
        };
        let telemetry = Telemetry::new(Arc::clone(store), Arc::clone(clock), &telemetry_settings);
        let source_deps = SourceDeps {
            store: Arc::clone(store),
            sensors: sensors.clone(),
            chargers: chargers.clone(),
            telemetry: telemetry.clone(),
            records: records.clone(),
            push: push.clone(),
        };
        let sources = Sources::connect(&deps.systems, &source_deps);
        let alert_parts = alerts::Parts {
            store: Arc::clone(store),
            clock: Arc::clone(clock),
            feed: deps.feed.clone(),
            push: push.clone(),
            sources: sources.clone(),
            publish: Arc::new(broker.clone()),
        };
        let console = Console {
            tables: TableBrowser::new(Arc::clone(store)),
            live: Live::new(
                Arc::clone(store),
                deps.feed.clone(),
                Arc::clone(clock),
                sources.clone(),
            ),
            fleet: Fleet::new(
                Arc::clone(store),
                Arc::clone(clock),
                sources,
                settings.expectations,
            ),
            storage: Arc::clone(&deps.storage),
            exports: Arc::new(Semaphore::new(EXPORTS_MAX)),
            started_at: EpochMillis(clock.now_ms()),
        };
        Ok(Self {
            clock: Arc::clone(clock),
            future_limit: settings.future_limit,
            telemetry,
            alerts: Alerts::new(alert_parts, settings.alerts),
            user_tokens: Arc::new(UserTokens::new(settings.user_tokens, Arc::clone(clock))),
            allowed_origins: settings.allowed_origins,
            console: Arc::new(console),
            sensors,
            chargers,
            records,
            push,
            rules,
            api_keys,
            key_verifier,
            broker,
            people,
            sign_in_limits: Arc::new(SignInLimits::new(Arc::clone(clock))),
            admin_token,
            rate_limiter,
            health: deps.health,
            store_clock: deps.store_clock,
            metrics: deps.metrics,
            gauges: deps.gauges,
        })
    }
}
