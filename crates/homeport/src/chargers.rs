//! `homeport chargers`: migration and rebuilding, on a data directory that nobody serves, or on Amazon
//! DynamoDB.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use homeport_engine::Engine;
use homeport_store::{Clock as _, SystemClock};
use homeport_systems::chargers::migration::{Migration, Stage};
use homeport_systems::chargers::{Chargers, schema};
use homeport_systems::time::EpochMillis;

use crate::arguments::{ChargersCommand, MigrateArguments, RebuildArguments};
use crate::backend::{self, Backend};
use crate::config::{Settings, StoreKind};

/// Days that are counted between two lines of progress.
const REBUILD_DAYS_AT_ONCE: usize = 10_000;
/// Steps between two lines of progress.
const STEPS_PER_LINE: usize = 20;

pub(crate) async fn run(command: ChargersCommand) -> anyhow::Result<ExitCode> {
    match command {
        ChargersCommand::Migrate(asked) => migrate(asked).await,
        ChargersCommand::Rebuild(asked) => rebuild(asked).await,
    }
}

async fn migrate(asked: MigrateArguments) -> anyhow::Result<ExitCode> {
    let backend = open(&crate::begin(&asked.flags)?).await?;
    let code = migrate_on(&backend, &asked).await;
    backend.close().await?;
    code
}

async fn migrate_on(backend: &Backend, asked: &MigrateArguments) -> anyhow::Result<ExitCode> {
    if backend.engine.is_none() && !asked.delete_table.is_empty() {
        bail!("tables of Amazon DynamoDB are deleted with its own tools");
    }
    let now = EpochMillis(SystemClock.now_ms());
    let store = Arc::clone(&backend.store);
    let mut migration = Migration::start(store, now, asked.dry_run).await?;
    if asked.restart {
        migration.restart();
    }
    let stage = migration.progress().stage;
    if stage != Stage::Devices {
        say!("going on at: {}", stage.name());
    }
    let mut steps: usize = 0;
    while migration.step().await? {
        steps += 1;
        if steps.is_multiple_of(STEPS_PER_LINE) {
            say!("{}", summary(&migration));
        }
    }
    say!("{}", summary(&migration));
    for description in migration.descriptions() {
        say!("- {description}");
    }
    if asked.dry_run {
        for table in &asked.delete_table {
            say!("would delete the table {table}");
        }
        say!("dry run: nothing was written");
        return Ok(ExitCode::SUCCESS);
    }
    if !migration.is_complete() {
        say!("NOT complete: see above; no table was deleted");
        return Ok(ExitCode::FAILURE);
    }
    say!("complete: every old item was read back from the new tables");
    if let Some(engine) = &backend.engine {
        for table in &asked.delete_table {
            delete(engine, table).await?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Opens the store that is set, which must be there.
async fn open(settings: &Settings) -> anyhow::Result<Backend> {
    if settings.store.kind == StoreKind::Embedded {
        backend::must_exist(&settings.data.dir)?;
    }
    Backend::open(settings).await
}

fn summary(migration: &Migration) -> String {
    let progress = migration.progress();
    let counts = progress.counts;
    format!(
        "{}: {} devices, {} events, {} states, {} days; {} refused, {} verified, {} missing",
        progress.stage.name(),
        counts.devices,
        counts.events,
        counts.states,
        counts.daily,
        counts.refused,
        counts.verified,
        counts.missing
    )
}

async fn delete(engine: &Engine, table: &str) -> anyhow::Result<()> {
    if !engine.table_names().iter().any(|name| name == table) {
        say!("there is no table {table}");
        return Ok(());
    }
    engine
        .delete_table(table)
        .await
        .with_context(|| format!("deleting {table}"))?;
    say!("deleted the table {table}");
    Ok(())
}

async fn rebuild(asked: RebuildArguments) -> anyhow::Result<ExitCode> {
    let backend = open(&crate::begin(&asked.flags)?).await?;
    let code = rebuild_on(&backend, &asked).await;
    backend.close().await?;
    code
}

async fn rebuild_on(backend: &Backend, asked: &RebuildArguments) -> anyhow::Result<ExitCode> {
    backend.store.ensure_tables(&schema::tables()).await?;
    let chargers = Chargers::new(Arc::clone(&backend.store), Arc::new(SystemClock));
    let device = asked.device.as_ref().map(|device| device.sc_id());
    let (mut days, mut cursor) = (0, None);
    loop {
        let rebuilt = chargers
            .rebuild(
                device.as_ref(),
                asked.from,
                asked.to,
                REBUILD_DAYS_AT_ONCE,
                cursor,
            )
            .await?;
        days += rebuilt.days;
        say!("{days} days counted");
        cursor = rebuilt.next;
        if cursor.is_none() {
            return Ok(ExitCode::SUCCESS);
        }
    }
}
