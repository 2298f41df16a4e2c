//! `homeport chargers`: migrates chargers and recounts their days, in a data directory without a running server, or in
//! Amazon DynamoDB.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use homeport_engine::Engine;
use homeport_item::schema::TableSchema;
use homeport_store::{Clock as _, StoreError, SystemClock};
use homeport_systems::chargers::migration::{DESCRIPTIONS_MAX, Migration, Stage, old_tables};
use homeport_systems::chargers::{Chargers, schema};
use homeport_systems::time::EpochMillis;

use crate::arguments::{ChargersCommand, MigrateArguments, RebuildArguments};
use crate::config::{Settings, StoreKind};
use crate::storage::backend::{self, Backend};

/// Days to recount before the next line of progress.
const REBUILD_DAYS_AT_ONCE: usize = 10_000;

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
    let migration = Migration::start(store, now, arguments.dry_run).await?;
    let mut migration = migration.with_old_tables(old_tables_of(backend).await?);
    if arguments.restart {
        migration.restart().await?;
    }
    match migration.progress().stage {
        Stage::Devices => {}
        Stage::Done => print_line!(
            "an earlier run read all old items; this one only retries refused items. To read all of them again, use --restart"
        ),
        stage => print_line!("resuming at: {}", stage.name()),
    }
    while migration.step().await? {
        print_line!("{}", summary(&migration));
    }
    print_line!("{}", summary(&migration));
    print_problems(&migration);
    if arguments.accept_refused {
        migration.accept_refused().await?;
    }
    if migration.accepted_count() > 0 {
        print_line!("{} refused items are accepted", migration.accepted_count());
    }
    if arguments.dry_run {
        for table in &arguments.delete_table {
            print_line!("would delete the table {table}");
        }
        print_line!("dry run: nothing was written");
    }
    if !migration.is_complete() {
        print_line!("NOT complete: {}; no table was deleted", remedy(&migration));
        return Ok(ExitCode::FAILURE);
    }
    if arguments.dry_run {
        return Ok(ExitCode::SUCCESS);
    }
    print_line!("complete: every old item was read back from the new tables");
    if let Some(engine) = &backend.engine {
        for table in &arguments.delete_table {
            delete(engine, table).await?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The old tables as they are in the store: their keys may have other names than in the design document.
async fn old_tables_of(backend: &Backend) -> anyhow::Result<Vec<TableSchema>> {
    let mut found = Vec::new();
    for table in old_tables() {
        if let Some(engine) = &backend.engine {
            match engine.table(&table.name) {
                Ok(view) => found.push(view.schema().clone()),
                Err(StoreError::TableNotFound(_)) => {}
                Err(error) => return Err(error.into()),
            }
        } else if let Some(remote) = &backend.remote
            && let Some(described) = remote.describe(&table.name).await?
        {
            found.push(described.schema);
        }
    }
    Ok(found)
}

fn print_problems(migration: &Migration) {
    for refused in migration.refused().take(DESCRIPTIONS_MAX) {
        print_line!(
            "- refused: {}: {}: {}",
            refused.source.table(),
            refused.key_text(),
            refused.reason
        );
    }
    for description in migration.descriptions() {
        print_line!("- missing: {description}");
    }
}

/// What to do about an incomplete migration.
fn remedy(migration: &Migration) -> &'static str {
    if migration.progress().counts.missing > 0 {
        "some items are missing in the new tables; read all old items again with --restart"
    } else {
        "fix the refused items in the old tables and run it again, or accept them with --accept-refused"
    }
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
