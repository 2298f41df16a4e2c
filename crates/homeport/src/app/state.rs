//! Builds the state of the HTTP routes from the settings and the store.

use std::sync::Arc;

use async_trait::async_trait;
use homeport_engine::{ClockStatus, Condition, Engine};
use homeport_server::{
    AdminToken, AppState, BridgeStatus, Broker, BrokerParts, ClockState, Gauges, Health, RateLimit,
    RateLimiter, StoreClock, UserAlgorithm, UserKeys, UserTokenSettings, UserTokens,
};
use homeport_store::{Clock, StoreError, SystemClock};
use homeport_systems::alerts::Alerts;
use homeport_systems::api_keys::{ApiKeys, Pepper};
use homeport_systems::chargers::Chargers;
use homeport_systems::fleet;
use homeport_systems::messages::{Publish, PublishSlot};
use homeport_systems::push::{self, Push};
use homeport_systems::records::{self, Records};
use homeport_systems::schema::TableNames;
use homeport_systems::sensors::{self, Sensors};
use homeport_systems::telemetry::{self, Telemetry};

use crate::app::alerts;
use crate::app::console;
use crate::app::mqtt;
use crate::app::rules;
use crate::app::tasks::Tasks;
use crate::config::{JwtAlgorithm, Settings};
use crate::storage::backend::Backend;
use crate::storage::secrets::{self, Secret};

const SECS_PER_DAY: i64 = 24 * 60 * 60;
const MS_PER_HOUR: i64 = 60 * 60 * 1000;

/// Creates missing tables and builds the state of the HTTP routes, with the status that the bridge reports to.
pub(crate) async fn state(
    backend: &Backend,
    settings: &Settings,
    pepper: Secret,
    admin_token: &Secret,
    tasks: &Tasks,
) -> anyhow::Result<(AppState, Arc<BridgeStatus>)> {
    let store = &backend.store;
    let names = table_names(settings);
    store
        .ensure_tables(&homeport_systems::schema::tables(&names))
        .await?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let removal_clock = backend.removal_clock();
    let records = Records::new(
        Arc::clone(store),
        Arc::clone(&clock),
        records::Settings {
            table: names.records,
            ..records::Settings::default()
        },
    )
    .with_removal_clock(Arc::clone(&removal_clock));
    // Installed before any metric is recorded.
    let metrics = homeport_server::install_recorder()?;
    let bridge = Arc::new(BridgeStatus::new());
    let is_bridge_required = settings.bridge.url.is_some() && settings.bridge.required;
    let status = Arc::new(ServerStatus {
        engine: backend.engine.clone(),
        bridge: is_bridge_required.then(|| Arc::clone(&bridge)),
        tasks: tasks.clone(),
    });
    let push = Push::new(
        Arc::clone(store),
        Arc::clone(&clock),
        push_settings(settings)?,
    )
    .with_removal_clock(Arc::clone(&removal_clock));
    let api_keys = Arc::new(ApiKeys::new(
        Arc::clone(store),
        Arc::clone(&clock),
        Pepper::new(pepper.text),
    ));
    let admin_token = AdminToken::new(&admin_token.text, Arc::clone(&clock));
    let rate_limiter = Arc::new(RateLimiter::new(rate_limit(settings)?, Arc::clone(&clock)));
    let slot = PublishSlot::new();
    let rules = rules::engine(store, &clock, &push, Arc::new(slot.clone()), settings).await?;
    let broker = Broker::start(BrokerParts {
        settings: mqtt::settings(&settings.mqtt)?,
        store: Arc::clone(store),
        clock: Arc::clone(&clock),
        removal_clock: Arc::clone(&removal_clock),
        intake: Arc::new(rules.clone()),
        api_keys: Arc::clone(&api_keys),
        admin_token: admin_token.clone(),
        rate_limiter: Arc::clone(&rate_limiter),
    })
    .await?;
    let publish: Arc<dyn Publish> = Arc::new(broker.clone());
    slot.fill(&publish);
    let parts = homeport_systems::alerts::Parts {
        store: Arc::clone(store),
        clock: Arc::clone(&clock),
        feed: backend.feed.clone(),
        push: push.clone(),
        records: records.clone(),
        publish: Arc::new(slot.clone()),
    };
    let sensors = Sensors::new(
        Arc::clone(store),
        Arc::clone(&clock),
        sensor_settings(settings)?,
    );
    let chargers = Chargers::new(Arc::clone(store), Arc::clone(&clock));
    let fleet = fleet::Parts {
        store: Arc::clone(store),
        clock: Arc::clone(&clock),
        sensors: sensors.clone(),
        chargers: chargers.clone(),
        records: records.clone(),
        push: push.clone(),
        names: table_names(settings),
    };
    let state = AppState {
        telemetry: Telemetry::new(
            Arc::clone(store),
            Arc::clone(&clock),
            Arc::new(slot),
            &telemetry::Settings {
                table: names.telemetry,
            },
        ),
        rules,
        publish,
        console: Arc::new(console::console(backend, settings, fleet)?),
        chargers,
        sensors,
        records,
        api_keys,
        broker,
        push,
        alerts: Alerts::new(parts, alerts::settings(settings)?),
        user_tokens: Arc::new(UserTokens::new(user_tokens(settings)?, Arc::clone(&clock))),
        admin_token,
        allowed_origins: settings.network.allowed_origins.clone(),
        rate_limiter,
        health: Arc::clone(&status) as _,
        store_clock: Arc::clone(&status) as _,
        metrics,
        gauges: status,
    };
    Ok((state, bridge))
}

/// The tables whose names are settings.
pub(crate) fn table_names(settings: &Settings) -> TableNames {
    TableNames {
        records: settings.records.table.clone(),
        device_tokens: settings.push.table.clone(),
        telemetry: settings.telemetry.table.clone(),
    }
}

pub(crate) fn push_settings(settings: &Settings) -> anyhow::Result<push::Settings> {
    let push = &settings.push;
    Ok(push::Settings {
        table: push.table.clone(),
        outbox_max: push.outbox_max.count(),
        rate_per_second: push.rate_per_second.count(),
        receipt_delay_secs: i64::try_from(push.receipt_delay_secs.get())?,
    })
}

fn user_tokens(settings: &Settings) -> anyhow::Result<UserTokenSettings> {
    let users = &settings.users;
    let keys = match (&users.jwks_file, &users.jwks_url) {
        (Some(file), _) => UserKeys::JwksFile(file.clone()),
        (None, Some(url)) => UserKeys::JwksUrl(url.to_string()),
        (None, None) => UserKeys::Secret(secrets::user_jwt_secret(settings)?.text),
    };
    let algorithm = match users.jwt_algorithm {
        JwtAlgorithm::Hs256 => UserAlgorithm::Hs256,
        JwtAlgorithm::Rs256 => UserAlgorithm::Rs256,
        JwtAlgorithm::Es256 => UserAlgorithm::Es256,
    };
    Ok(UserTokenSettings {
        issuer: users.jwt_issuer.clone(),
        audience: users.jwt_audience.clone(),
        leeway_secs: i64::try_from(users.jwt_leeway_secs.get())?,
        ..UserTokenSettings::new(algorithm, keys)
    })
}

fn sensor_settings(settings: &Settings) -> anyhow::Result<sensors::Settings> {
    let days = i64::try_from(settings.sensors.reading_retention_days.get())?;
    Ok(sensors::Settings {
        retention_secs: (days > 0).then_some(days * SECS_PER_DAY),
        last_seen_every_secs: i64::try_from(settings.sensors.last_seen_every_secs.get())?,
    })
}

fn rate_limit(settings: &Settings) -> anyhow::Result<RateLimit> {
    let per_second = f64::from(u32::try_from(settings.api_keys.rate_per_second.get())?);
    Ok(RateLimit {
        per_second,
        burst: per_second * 2.0,
    })
}

/// The source of health checks, gauges and the store's clock.
struct ServerStatus {
    /// Set if the store is embedded.
    engine: Option<Engine>,
    /// Set if the server is not ready without its bridge.
    bridge: Option<Arc<BridgeStatus>>,
    tasks: Tasks,
}

impl Health for ServerStatus {
    fn problem(&self) -> Option<String> {
        let bridge = self.bridge.as_ref().and_then(|bridge| bridge.problem());
        self.engine_problem()
            .or_else(|| self.task_problem())
            .or_else(|| bridge.map(|problem| format!("the bridge is not connected: {problem}")))
    }

    fn needs_restart(&self) -> Option<String> {
        let condition = self.engine.as_ref().map(Engine::condition);
        match condition {
            Some(Condition::NeedsRestart(_)) => self.engine_problem(),
            _ => self.task_problem(),
        }
    }

    fn warning(&self) -> Option<String> {
        let status = self.engine.as_ref()?.clock_status();
        status.is_suspended.then(|| {
            let hours = (status.wall_ms - status.commit_ms) / MS_PER_HOUR;
            format!(
                "the clock is {hours} hours ahead of the last commit; expired items and old changes are kept until the time is confirmed with `homeport time confirm`"
            )
        })
    }
}

#[async_trait]
impl StoreClock for ServerStatus {
    fn state(&self) -> ClockState {
        match &self.engine {
            Some(engine) => clock_state(engine.clock_status()),
            None => trusted_clock(),
        }
    }

    async fn confirm(&self) -> Result<ClockState, StoreError> {
        match &self.engine {
            Some(engine) => Ok(clock_state(engine.confirm_time().await?)),
            None => Ok(trusted_clock()),
        }
    }
}

pub(crate) fn clock_state(status: ClockStatus) -> ClockState {
    ClockState {
        wall_ms: status.wall_ms,
        commit_ms: status.commit_ms,
        is_confirmed: !status.is_suspended,
    }
}

/// Amazon DynamoDB has its own clock, which needs no confirmation.
fn trusted_clock() -> ClockState {
    let now_ms = SystemClock.now_ms();
    ClockState {
        wall_ms: now_ms,
        commit_ms: now_ms,
        is_confirmed: true,
    }
}

impl ServerStatus {
    fn task_problem(&self) -> Option<String> {
        let name = self.tasks.panicked()?;
        Some(format!(
            "a background task failed ({name}): restart the server"
        ))
    }

    // Details stay in the log, because they contain paths.
    fn engine_problem(&self) -> Option<String> {
        let text = match self.engine.as_ref()?.condition() {
            Condition::Ready => return None,
            Condition::DiskShort => {
                "the disk is nearly full: reads and deletes work, other writes are refused"
            }
            Condition::DiskFull => "the disk is full: reads work, writes and deletes are refused",
            Condition::WritesFailed(_) => {
                "writing to the data directory failed: reads work, writes are refused until the store has reopened it"
            }
            Condition::Closed(_) => {
                "writing to the data directory failed, and the store cannot reopen it yet"
            }
            Condition::NeedsRestart(_) => {
                "writing to the data directory failed: restart the server"
            }
        };
        Some(text.to_owned())
    }
}

impl Gauges for ServerStatus {
    fn read(&self) -> Vec<(&'static str, f64)> {
        let Some(engine) = &self.engine else {
            return Vec::new();
        };
        let metrics = engine.metrics();
        let clock = engine.clock_status();
        let condition = engine.condition();
        let is_short = matches!(condition, Condition::DiskShort | Condition::DiskFull);
        let is_failed = !is_short && condition != Condition::Ready;
        vec![
            (
                "homeport_clock_unconfirmed",
                f64::from(u8::from(clock.is_suspended)),
            ),
            (
                "homeport_clock_lead_seconds",
                (clock.wall_ms - clock.commit_ms) as f64 / 1e3,
            ),
            ("homeport_disk_free_bytes", metrics.disk_free_bytes as f64),
            ("homeport_disk_short", f64::from(u8::from(is_short))),
            ("homeport_writes_failed", f64::from(u8::from(is_failed))),
            ("homeport_store_reopened", metrics.reopened as f64),
            ("homeport_commits", metrics.commits as f64),
            ("homeport_commit_bytes", metrics.commit_bytes as f64),
            (
                "homeport_commit_seconds",
                metrics.commit_micros as f64 / 1e6,
            ),
            (
                "homeport_flush_wait_seconds",
                metrics.flush_wait_micros as f64 / 1e6,
            ),
            ("homeport_expired_items", metrics.expired as f64),
            ("homeport_queue_bytes", metrics.queued_bytes as f64),
            (
                "homeport_write_buffer_bytes",
                metrics.write_buffer_bytes as f64,
            ),
            ("homeport_cache_bytes", metrics.cache_bytes as f64),
            ("homeport_disk_bytes", metrics.disk_bytes as f64),
        ]
    }
}
