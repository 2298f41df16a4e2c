//! `homeport chargers`: migrates chargers and recounts their days, in a data directory without a running server, or in
//! Amazon DynamoDB.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use homeport_engine::Engine;
use homeport_store::{Clock as _, SystemClock};
use homeport_systems::chargers::migration::{Migration, Stage};
use homeport_systems::chargers::{Chargers, schema};
use homeport_systems::time::EpochMillis;

use crate::arguments::{ChargersCommand, MigrateArguments, RebuildArguments};
use crate::config::{Settings, StoreKind};
use crate::storage::backend::{self, Backend};

/// Days to recount before the next line of progress.
const REBUILD_DAYS_AT_ONCE: usize = 10_000;
/// Steps before the next line of progress.
const STEPS_PER_LINE: usize = 20;

pub(crate) async fn run(command: ChargersCommand) -> anyhow::Result<ExitCode> {
    match command {
        ChargersCommand::Migrate(arguments) => migrate(arguments).await,
        ChargersCommand::Rebuild(arguments) => rebuild(arguments).await,
    }
}

async fn migrate(arguments: MigrateArguments) -> anyhow::Result<ExitCode> {
    let backend = open(&crate::begin(&arguments.flags)?).await?;
    let code = migrate_on(&backend, &arguments).await;
    backend.close().await?;
    code
}

async fn migrate_on(backend: &Backend, arguments: &MigrateArguments) -> anyhow::Result<ExitCode> {
    if backend.engine.is_none() && !arguments.delete_table.is_empty() {
        bail!(
            "--delete-table works on the embedded store only; delete tables of Amazon DynamoDB with the AWS CLI"
        );
    }
    let now = EpochMillis(SystemClock.now_ms());
    let store = Arc::clone(&backend.store);
    let mut migration = Migration::start(store, now, arguments.dry_run).await?;
    if arguments.restart {
        migration.restart();
    }
    let stage = migration.progress().stage;
    if stage != Stage::Devices {
        print_line!("resuming at: {}", stage.name());
    }
    let mut steps: usize = 0;
    while migration.step().await? {
        steps += 1;
        if steps.is_multiple_of(STEPS_PER_LINE) {
            print_line!("{}", summary(&migration));
        }
    }
    print_line!("{}", summary(&migration));
    for description in migration.descriptions() {
        print_line!("- {description}");
    }
    if arguments.dry_run {
        for table in &arguments.delete_table {
            print_line!("would delete the table {table}");
        }
        print_line!("dry run: nothing was written");
        return Ok(ExitCode::SUCCESS);
    }
    if !migration.is_complete() {
        print_line!(
            "NOT complete: fix the problems listed above and run it again; no table was deleted"
        );
        return Ok(ExitCode::FAILURE);
    }
    print_line!("complete: every old item was read back from the new tables");
    if let Some(engine) = &backend.engine {
        for table in &arguments.delete_table {
            delete(engine, table).await?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Opens the configured store, which must exist.
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
        "{}: {} devices, {} events, {} states, {} days; {} rejected, {} verified, {} missing",
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
        print_line!("there is no table {table}");
        return Ok(());
    }
    engine
        .delete_table(table)
        .await
        .with_context(|| format!("deleting {table}"))?;
    print_line!("deleted the table {table}");
    Ok(())
}

async fn rebuild(arguments: RebuildArguments) -> anyhow::Result<ExitCode> {
    let backend = open(&crate::begin(&arguments.flags)?).await?;
    let code = rebuild_on(&backend, &arguments).await;
    backend.close().await?;
    code
}

async fn rebuild_on(backend: &Backend, arguments: &RebuildArguments) -> anyhow::Result<ExitCode> {
    backend.store.ensure_tables(&schema::tables()).await?;
    let chargers = Chargers::new(Arc::clone(&backend.store), Arc::new(SystemClock));
    let device = match &arguments.device {
        Some(device) => Some(chargers.find(device).await?),
        None => None,
    };
    let (mut days, mut cursor) = (0, None);
    loop {
        let rebuilt = chargers
            .rebuild(
                device.as_ref(),
                arguments.from,
                arguments.to,
                REBUILD_DAYS_AT_ONCE,
                cursor,
            )
            .await?;
        days += rebuilt.days;
        print_line!("{days} days recounted");
        cursor = rebuilt.next;
        if cursor.is_none() {
            return Ok(ExitCode::SUCCESS);
        }
    }
}
