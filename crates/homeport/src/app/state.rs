//! Builds the state of the HTTP routes from the settings and the store.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use homeport_engine::{ClockStatus, Condition, Engine};
use homeport_remote::Remote;
use homeport_server::{
    AppDeps, AppSettings, AppState, BridgeStatus, BuildError, ClockState, Gauges, Health,
    MqttSettings, RateLimit, StoreClock, UserAlgorithm, UserKeys, UserTokenSettings,
};
use homeport_store::{Clock as _, StoreError, SystemClock};
use homeport_systems::api_keys::Pepper;
use homeport_systems::fleet::SYSTEMS;
use homeport_systems::schema::TableNames;
use homeport_systems::time::FutureLimit;
use homeport_systems::{push, records, sensors};
use tokio::sync::Mutex;

use crate::app::alerts;
use crate::app::console;
use crate::app::mqtt;
use crate::app::rules;
use crate::app::tasks::Tasks;
use crate::app::tls::CertificateExpiry;
use crate::config::{JwtAlgorithm, Settings};
use crate::storage::backend::Backend;
use crate::storage::secrets::{self, Secret};

const SECS_PER_DAY: i64 = 24 * 60 * 60;
const MS_PER_HOUR: i64 = 60 * 60 * 1000;
/// How often the tables of Amazon DynamoDB are looked up for health checks.
const MISSING_TABLES_EVERY: Duration = Duration::from_secs(60);

/// Creates missing tables and builds the state of the HTTP routes, with the status that the bridge reports to.
pub(crate) async fn state(
    backend: &Backend,
    settings: &Settings,
    pepper: Secret,
    admin_token: &Secret,
    tasks: &Tasks,
    certificates: &CertificateExpiry,
) -> anyhow::Result<(AppState, Arc<BridgeStatus>)> {
    // IMPORTANT: installed first, because handles that are created before it record nothing.
    let metrics = homeport_server::install_recorder()?;
    let bridge = Arc::new(BridgeStatus::new());
    let is_bridge_required = settings.bridge.url.is_some() && settings.bridge.required;
    let status = Arc::new(ServerStatus {
        engine: backend.engine.clone(),
        remote: backend.remote.clone(),
        tables: homeport_systems::schema::tables(&table_names(settings))
            .into_iter()
            .map(|table| table.name)
            .collect(),
        missing: Mutex::default(),
        bridge: is_bridge_required.then(|| Arc::clone(&bridge)),
        tasks: tasks.clone(),
        certificates: certificates.clone(),
    });
    let deps = AppDeps {
        store: Arc::clone(&backend.store),
        systems: SYSTEMS.to_vec(),
        feed: backend.feed.clone(),
        clock: Arc::new(SystemClock),
        removal_clock: backend.removal_clock(),
        storage: console::storage(backend, settings)?,
        health: Arc::clone(&status) as _,
        store_clock: Arc::clone(&status) as _,
        gauges: status,
        metrics,
    };
    let app_settings = AppSettings {
        tables: table_names(settings),
        pepper: Pepper::new(pepper.text),
        admin_token: admin_token.text.clone(),
        rate_limit: rate_limit(settings)?,
        future_limit: future_limit(settings)?,
        allowed_origins: settings.network.allowed_origins.clone(),
        user_tokens: user_tokens(settings)?,
        session_secs: console::session_secs(settings)?,
        sensors: sensor_settings(settings)?,
        push: push_settings(settings)?,
        records: records::Settings {
            table: settings.records.table.clone(),
            housekeeping_every_secs: i64::try_from(settings.records.housekeeping_every_secs.get())?,
        },
        alerts: alerts::settings(settings)?,
        mqtt: MqttSettings {
            is_bridged: settings.bridge.url.is_some(),
            ..mqtt::settings(&settings.mqtt)?
        },
        expectations: console::expectations(settings)?,
        rules: rules::of_file(settings)?,
        sns_topics: rules::sns_topics(settings),
    };
    let state = match AppState::build(deps, app_settings).await {
        Ok(state) => state,
        Err(BuildError::Rules(error)) => return Err(rules::in_file(settings, &error)),
        Err(error) => return Err(error.into()),
    };
    Ok((state, bridge))
}

/// The tables whose names are settings.
pub(crate) fn table_names(settings: &Settings) -> TableNames {
    TableNames {
        records: settings.records.table.clone(),
        device_tokens: settings.push.table.clone(),
        broadcast_index: settings.push.broadcast_index,
        telemetry: settings.telemetry.table.clone(),
    }
}

pub(crate) fn push_settings(settings: &Settings) -> anyhow::Result<push::Settings> {
    let push = &settings.push;
    Ok(push::Settings {
        table: push.table.clone(),
        broadcast_index: push.broadcast_index,
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

pub(crate) fn future_limit(settings: &Settings) -> anyhow::Result<FutureLimit> {
    let secs = settings.ingest.future_limit_secs.get();
    Ok(FutureLimit::new(i64::try_from(secs)?))
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
    /// Set if the store is Amazon DynamoDB.
    remote: Option<Arc<Remote>>,
    /// The tables of all systems.
    tables: Vec<String>,
    /// The tables that were missing in Amazon DynamoDB, and when that was looked up.
    missing: Mutex<Option<(Instant, Vec<String>)>>,
    /// Set if the server is not ready without its bridge.
    bridge: Option<Arc<BridgeStatus>>,
    tasks: Tasks,
    certificates: CertificateExpiry,
}

#[async_trait]
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

    async fn missing_tables(&self) -> Vec<String> {
        match &self.engine {
            Some(engine) => {
                let is_missing = |table: &&String| engine.table(table).is_err();
                self.tables.iter().filter(is_missing).cloned().collect()
            }
            None => self.missing_in_dynamodb().await,
        }
    }

    fn warning(&self) -> Option<String> {
        let warnings = [self.clock_warning(), self.certificates.warning()];
        let warnings: Vec<String> = warnings.into_iter().flatten().collect();
        (!warnings.is_empty()).then(|| warnings.join("; "))
    }
}

impl ServerStatus {
    fn clock_warning(&self) -> Option<String> {
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
    /// The missing tables, looked up at most once in [`MISSING_TABLES_EVERY`]. A table that cannot be described counts as
    /// present.
    async fn missing_in_dynamodb(&self) -> Vec<String> {
        let Some(remote) = &self.remote else {
            return Vec::new();
        };
        let mut known = self.missing.lock().await;
        if let Some((at, missing)) = &*known
            && at.elapsed() < MISSING_TABLES_EVERY
        {
            return missing.clone();
        }
        let mut missing = Vec::new();
        for table in &self.tables {
            if let Ok(None) = remote.describe(table).await {
                missing.push(table.clone());
            }
        }
        *known = Some((Instant::now(), missing.clone()));
        missing
    }

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
        let mut gauges = self.engine.as_ref().map_or_else(Vec::new, engine_gauges);
        if let Some(expires_at) = self.certificates.earliest() {
            let name = "homeport_tls_certificate_expiry_timestamp_seconds";
            gauges.push((name, expires_at as f64));
        }
        gauges
    }
}

fn engine_gauges(engine: &Engine) -> Vec<(&'static str, f64)> {
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

#[cfg(test)]
mod tests {
    use homeport_engine::Options;
    use homeport_store::Store as _;

    use super::*;

    #[tokio::test]
    async fn missing_tables_are_named() {
        let directory = tempfile::tempdir().expect("a directory");
        let engine = Engine::open(directory.path(), Options::default()).expect("opens");
        let tables = push::schema::tables("tokens", false);
        engine.ensure_tables(&tables).await.expect("tables");
        let status = ServerStatus {
            engine: Some(engine.clone()),
            remote: None,
            tables: tables.into_iter().map(|table| table.name).collect(),
            missing: Mutex::default(),
            bridge: None,
            tasks: Tasks::default(),
            certificates: CertificateExpiry::default(),
        };
        assert!(status.missing_tables().await.is_empty());
        engine.delete_table("tokens").await.expect("deleted");
        assert_eq!(status.missing_tables().await, ["tokens"]);
    }
}
