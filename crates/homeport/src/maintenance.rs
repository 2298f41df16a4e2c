//! Commands on a data directory that nobody serves: check, backup, restore.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use homeport_engine::{Engine, Options};

use crate::arguments::{BackupSettings, DataSettings, RestoreSettings};

pub(crate) async fn check(settings: DataSettings) -> anyhow::Result<ExitCode> {
    let engine = open_existing(&settings.data_dir)?;
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

pub(crate) async fn backup(settings: BackupSettings) -> anyhow::Result<ExitCode> {
    let engine = open_existing(&settings.data.data_dir)?;
    let summary = engine.backup(&settings.file).await?;
    println!(
        "{} items of {} tables are in {}",
        summary.items,
        summary.tables,
        settings.file.display()
    );
    Ok(ExitCode::SUCCESS)
}

pub(crate) async fn restore(settings: RestoreSettings) -> anyhow::Result<ExitCode> {
    let data_dir = settings.data.data_dir;
    let summary = homeport_engine::restore(&settings.file, &data_dir, Options::default()).await?;
    println!(
        "{} items of {} tables are in {}",
        summary.items,
        summary.tables,
        data_dir.display()
    );
    Ok(ExitCode::SUCCESS)
}

/// Opens a directory that must be there: these commands never make one.
fn open_existing(data_dir: &Path) -> anyhow::Result<Engine> {
    if !data_dir.is_dir() {
        bail!("there is no data directory at {}", data_dir.display());
    }
    let options = Options {
        background_sweep: false,
        ..Options::default()
    };
    Engine::open(data_dir, options).with_context(|| format!("opening {}", data_dir.display()))
}
