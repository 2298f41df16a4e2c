//! The HTTP interface put together from the systems and the store.

use std::sync::Arc;

use homeport_engine::Engine;
use homeport_server::{
    AdminToken, AppState, Broker, BrokerParts, Gauges, Health, RateLimit, RateLimiter,
    UserAlgorithm, UserKeys, UserTokenSettings, UserTokens,
};
use homeport_store::{Clock, SystemClock};
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

use crate::alerts;
use crate::backend::Backend;
use crate::config::{JwtAlgorithm, Settings};
use crate::secrets::{self, Secret};
use crate::{console, mqtt, rules};

const SECS_PER_DAY: i64 = 24 * 60 * 60;

/// Builds what the handlers work with, on tables that are there afterwards.
pub(crate) async fn state(
    backend: &Backend,
    settings: &Settings,
    pepper: Secret,
    admin_token: &Secret,
) -> anyhow::Result<AppState> {
    let store = &backend.store;
    let names = table_names(settings);
    store
        .ensure_tables(&homeport_systems::schema::tables(&names))
        .await?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let view = Arc::new(EngineView(backend.engine.clone()));
    let records = Records::new(
        Arc::clone(store),
        Arc::clone(&clock),
        records::Settings {
            table: names.records,
            ..records::Settings::default()
        },
    );
    // Before anything counts.
    let metrics = homeport_server::install_recorder()?;
    let push = Push::new(
        Arc::clone(store),
        Arc::clone(&clock),
        push_settings(settings)?,
    );
    let api_keys = Arc::new(ApiKeys::new(
        Arc::clone(store),
        Arc::clone(&clock),
        Pepper::new(pepper.text),
    ));
    let slot = PublishSlot::new();
    let rules = rules::engine(store, &clock, &push, Arc::new(slot.clone()), settings).await?;
    let broker = Broker::start(BrokerParts {
        settings: mqtt::settings(&settings.mqtt)?,
        store: Arc::clone(store),
        clock: Arc::clone(&clock),
        intake: Arc::new(rules.clone()),
        api_keys: Arc::clone(&api_keys),
        admin_token: AdminToken::new(&admin_token.text),
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
    Ok(AppState {
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
        admin_token: AdminToken::new(&admin_token.text),
        rate_limiter: Arc::new(RateLimiter::new(rate_limit(settings)?, clock)),
        health: Arc::clone(&view) as _,
        metrics,
        gauges: view,
    })
}

/// The tables whose names can be set.
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

/// The engine, if there is one, as health checks and metrics see it.
struct EngineView(Option<Engine>);

impl Health for EngineView {
    fn problem(&self) -> Option<String> {
        let engine = self.0.as_ref()?;
        if engine.write_failure().is_some() {
            return Some("writing to the data directory failed; a restart is needed".to_owned());
        }
        engine
            .is_disk_short()
            .then(|| "the disk is nearly full".to_owned())
    }
}

impl Gauges for EngineView {
    fn read(&self) -> Vec<(&'static str, f64)> {
        let Some(engine) = &self.0 else {
            return Vec::new();
        };
        let metrics = engine.metrics();
        vec![
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
