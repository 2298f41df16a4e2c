//! The HTTP interface put together from the systems and the engine.

use std::sync::Arc;

use homeport_engine::Engine;
use homeport_server::{AdminToken, AppState, Gauges, Health, RateLimiter};
use homeport_store::{Clock, Store, SystemClock};
use homeport_systems::api_keys::{ApiKeys, Pepper};
use homeport_systems::sensors::{Sensors, Settings};

use crate::arguments::ServeSettings;
use crate::secrets::Secret;

/// Builds what the handlers work with, on tables that are there afterwards.
pub(crate) async fn state(
    engine: &Engine,
    settings: &ServeSettings,
    pepper: Secret,
    admin_token: &Secret,
) -> anyhow::Result<AppState> {
    let tables = [
        homeport_systems::sensors::schema::tables(),
        homeport_systems::api_keys::schema::tables(),
    ]
    .concat();
    engine.ensure_tables(&tables).await?;
    let store: Arc<dyn Store> = Arc::new(engine.clone());
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let sensor_settings = Settings {
        retention_secs: settings.reading_retention_secs(),
        ..Settings::default()
    };
    let view = Arc::new(EngineView(engine.clone()));
    Ok(AppState {
        sensors: Sensors::new(Arc::clone(&store), Arc::clone(&clock), sensor_settings),
        api_keys: Arc::new(ApiKeys::new(
            store,
            Arc::clone(&clock),
            Pepper::new(pepper.text),
        )),
        admin_token: AdminToken::new(&admin_token.text),
        rate_limiter: Arc::new(RateLimiter::new(settings.rate_limit(), clock)),
        health: Arc::clone(&view) as _,
        metrics: homeport_server::install_recorder()?,
        gauges: view,
    })
}

/// The engine as health checks and metrics see it.
struct EngineView(Engine);

impl Health for EngineView {
    fn problem(&self) -> Option<String> {
        if self.0.write_failure().is_some() {
            return Some("writing to the data directory failed; a restart is needed".to_owned());
        }
        self.0
            .is_disk_short()
            .then(|| "the disk is nearly full".to_owned())
    }
}

impl Gauges for EngineView {
    fn read(&self) -> Vec<(&'static str, f64)> {
        let metrics = self.0.metrics();
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
