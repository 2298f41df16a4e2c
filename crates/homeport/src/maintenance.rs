//! Commands on a data directory that nobody serves: check, backup, restore.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use homeport_engine::Engine;

use crate::backend;
use crate::config::{Settings, StoreKind};

pub(crate) async fn check(settings: Settings) -> anyhow::Result<ExitCode> {
    let engine = open_existing(&settings)?;
    let report = engine.check().await?;
    println!(
        "{} tables, {} items, {} index entries, {} expiry entries, {} changes: {}",
        report.tables,
        report.items,
        report.index_entries,
        report.expiry_entries,
        report.changes,
        match report.problems {
            0 => "all agree".to_owned(),
            1 => "1 problem".to_owned(),
            problems => format!("{problems} problems"),
        }
    );
    for description in &report.descriptions {
        println!("- {description}");
    }
    Ok(if report.problems == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

pub(crate) async fn backup(settings: Settings, file: &Path) -> anyhow::Result<ExitCode> {
    let engine = open_existing(&settings)?;
    let summary = engine.backup(file).await?;
    println!(
        "{} items of {} tables are in {}",
        summary.items,
        summary.tables,
        file.display()
    );
    Ok(ExitCode::SUCCESS)
}

pub(crate) async fn restore(settings: Settings, file: &Path) -> anyhow::Result<ExitCode> {
    must_be_embedded(&settings)?;
    let options = backend::brief_options(&settings)?;
    let data_dir = settings.data.dir;
    let summary = homeport_engine::restore(file, &data_dir, options).await?;
    println!(
        "{} items of {} tables are in {}",
        summary.items,
        summary.tables,
        data_dir.display()
    );
    Ok(ExitCode::SUCCESS)
}

/// Opens a directory that must be there: these commands never make one.
pub(crate) fn open_existing(settings: &Settings) -> anyhow::Result<Engine> {
    must_be_embedded(settings)?;
    let data_dir = &settings.data.dir;
    backend::must_exist(data_dir)?;
    Engine::open(data_dir, backend::brief_options(settings)?)
        .with_context(|| format!("opening {}", data_dir.display()))
}

/// Amazon DynamoDB checks itself and has backups of its own.
pub(crate) fn must_be_embedded(settings: &Settings) -> anyhow::Result<()> {
    if settings.store.kind != StoreKind::Embedded {
        bail!("this command works on the embedded store only, but store.kind is another");
    }
    Ok(())
}
