//! Commands on a data directory without a running server: check, salvage, backup, restore.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use homeport_engine::Engine;

use crate::config::{Settings, StoreKind};
use crate::storage::backend;
use crate::storage::secrets::FILES;

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
    print_line!(
        "{} table files, {} tables, {} items, {} index entries, {} expiry entries, {} changes, {} backups: {}",
        report.table_files,
        report.tables,
        report.items,
        report.index_entries,
        report.expiry_entries,
        report.changes,
        report.backups,
        match report.problems {
            0 => "no problems".to_owned(),
            1 => "1 problem".to_owned(),
            problems => format!("{problems} problems"),
        }
    );
    for description in &report.descriptions {
        print_line!("- {description}");
    }
    if report.problems > 0 {
        print_line!(
            "Copy everything readable to a new data directory with \"homeport salvage\", or restore a backup."
        );
    }
    for name in &report.set_aside {
        print_line!("unused files, set aside: {name}");
    }
    Ok(if report.problems == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Copies everything readable to a new data directory. Fails if anything is missing.
pub(crate) async fn salvage(settings: Settings, to: &Path) -> anyhow::Result<ExitCode> {
    must_be_embedded(&settings)?;
    let data_dir = &settings.data.dir;
    backend::must_exist(data_dir)?;
    let options = backend::brief_options(&settings)?;
    let report = homeport_engine::salvage(data_dir, to, options, &FILES)
        .await
        .with_context(|| format!("salvaging {}", data_dir.display()))?;
    print_line!(
        "{} items of {} tables and {} backups of tables are in {}",
        report.items,
        report.tables,
        report.backups,
        to.display()
    );
    print_line!("The change log is not copied: streams and point-in-time recovery start over.");
    for name in &report.set_aside {
        print_line!("not copied, because no table uses it: set-aside/{name}");
    }
    if report.is_complete() {
        print_line!("No missing data was found.");
        return Ok(ExitCode::SUCCESS);
    }
    print_line!("{} problems were found:", report.problems);
    for description in &report.descriptions {
        print_line!("- {description}");
    }
    let described = u64::try_from(report.descriptions.len())?;
    if described < report.problems {
        print_line!("and {} more", report.problems - described);
    }
    Ok(ExitCode::FAILURE)
}

pub(crate) async fn backup(settings: Settings, file: &Path) -> anyhow::Result<ExitCode> {
    let engine = open_existing(&settings)?;
    let summary = engine.backup(file).await?;
    print_line!(
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
    print_line!(
        "{} items of {} tables are in {}",
        summary.items,
        summary.tables,
        data_dir.display()
    );
    Ok(ExitCode::SUCCESS)
}

/// Opens an existing directory; these commands never create one.
pub(crate) fn open_existing(settings: &Settings) -> anyhow::Result<Engine> {
    must_be_embedded(settings)?;
    let data_dir = &settings.data.dir;
    backend::must_exist(data_dir)?;
    Engine::open(data_dir, backend::brief_options(settings)?)
        .with_context(|| format!("opening {}", data_dir.display()))
}

/// Rejects Amazon DynamoDB, which has its own checks and backups.
pub(crate) fn must_be_embedded(settings: &Settings) -> anyhow::Result<()> {
    if settings.store.kind != StoreKind::Embedded {
        bail!("this command works on the embedded store only; set store.kind to embedded");
    }
    Ok(())
}
