//! Commands on a data directory that nobody serves: check, salvage, backup, restore.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use homeport_engine::Engine;

use crate::backend;
use crate::config::{Settings, StoreKind};
use crate::secrets::FILES;

pub(crate) async fn check(settings: Settings) -> anyhow::Result<ExitCode> {
    must_be_embedded(&settings)?;
    let data_dir = settings.data.dir.clone();
    backend::must_exist(&data_dir)?;
    let options = backend::brief_options(&settings)?;
    let checking = {
        let data_dir = data_dir.clone();
        move || homeport_engine::check_directory(&data_dir, &options)
    };
    let report = tokio::task::spawn_blocking(checking)
        .await?
        .with_context(|| format!("checking {}", data_dir.display()))?;
    say!(
        "{} table files, {} tables, {} items, {} index entries, {} expiry entries, {} changes, {} backups: {}",
        report.table_files,
        report.tables,
        report.items,
        report.index_entries,
        report.expiry_entries,
        report.changes,
        report.backups,
        match report.problems {
            0 => "all agree".to_owned(),
            1 => "1 problem".to_owned(),
            problems => format!("{problems} problems"),
        }
    );
    for description in &report.descriptions {
        say!("- {description}");
    }
    if report.problems > 0 {
        say!(
            "Copy everything readable to a new data directory with \"homeport salvage\", or restore a backup."
        );
    }
    for name in &report.set_aside {
        say!("set aside, and used by no table: {name}");
    }
    Ok(if report.problems == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Copies everything readable to a new data directory; fails when anything is missing.
pub(crate) async fn salvage(settings: Settings, to: &Path) -> anyhow::Result<ExitCode> {
    must_be_embedded(&settings)?;
    let data_dir = &settings.data.dir;
    backend::must_exist(data_dir)?;
    let options = backend::brief_options(&settings)?;
    let report = homeport_engine::salvage(data_dir, to, options, &FILES)
        .await
        .with_context(|| format!("copying what can be read of {}", data_dir.display()))?;
    say!(
        "{} items of {} tables and {} backups of tables are in {}",
        report.items,
        report.tables,
        report.backups,
        to.display()
    );
    say!("The change log is not copied: streams and point-in-time recovery start again.");
    for name in &report.set_aside {
        say!("not copied: set-aside/{name}, which no table uses");
    }
    if report.is_complete() {
        say!("No missing data was found.");
        return Ok(ExitCode::SUCCESS);
    }
    say!("{} problems were found:", report.problems);
    for description in &report.descriptions {
        say!("- {description}");
    }
    let described = u64::try_from(report.descriptions.len())?;
    if described < report.problems {
        say!("and {} more", report.problems - described);
    }
    Ok(ExitCode::FAILURE)
}

pub(crate) async fn backup(settings: Settings, file: &Path) -> anyhow::Result<ExitCode> {
    let engine = open_existing(&settings)?;
    let summary = engine.backup(file).await?;
    say!(
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
    say!(
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
