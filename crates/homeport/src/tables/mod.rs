//! `homeport tables`: the tables of all systems as a listing, as Terraform, as CloudFormation, and
//! made in the chosen store. All of it is printed from the schemas that the systems use.

mod cloudformation;
mod describe;
mod policies;
#[cfg(test)]
mod resolved;
mod rights;
mod shape;
mod terraform;

use std::process::ExitCode;

use anyhow::bail;
use homeport_systems::schema;

use crate::backend::Backend;
use crate::config::{Settings, StoreKind, StoreSettings};
use crate::http::table_names;

/// Every table with its keys, indexes and expiry, for people.
pub(crate) fn describe(settings: &Settings) -> String {
    describe::render(&schema::systems(&table_names(settings)))
}

/// Terraform's text for the tables and for the rights on them.
pub(crate) fn terraform(settings: &Settings) -> anyhow::Result<String> {
    check_key(&settings.store)?;
    let systems = schema::systems(&table_names(settings));
    Ok(terraform::render(&systems, &settings.store))
}

/// CloudFormation's template for the tables and for the rights on them, in JSON.
pub(crate) fn cloudformation(settings: &Settings) -> anyhow::Result<String> {
    check_key(&settings.store)?;
    let systems = schema::systems(&table_names(settings));
    Ok(cloudformation::render(&systems, &settings.store))
}

/// Rights on a key are granted by its ARN; tables themselves would take an id as well. An alias is refused
/// where settings are read.
fn check_key(settings: &StoreSettings) -> anyhow::Result<()> {
    match &settings.kms_key_id {
        Some(key) if !key.starts_with("arn:") => {
            bail!("store.kms_key_id must be an ARN here, since rights are granted by it: {key}")
        }
        _ => Ok(()),
    }
}

/// Makes the tables and indexes that are missing in the chosen store.
pub(crate) async fn create(settings: Settings) -> anyhow::Result<ExitCode> {
    let backend = Backend::open(&settings).await?;
    let tables = schema::tables(&table_names(&settings));
    let ensured = backend.store.ensure_tables(&tables).await;
    backend.close().await?;
    ensured?;
    say!(
        "{} tables exist in {}",
        tables.len(),
        match settings.store.kind {
            StoreKind::Embedded => settings.data.dir.display().to_string(),
            StoreKind::Dynamodb => "Amazon DynamoDB".to_owned(),
        }
    );
    Ok(ExitCode::SUCCESS)
}
