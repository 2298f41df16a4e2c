//! `homeport tables`: prints the tables of all systems as a listing, Terraform or CloudFormation, or creates them in the
//! chosen store. AllSections comes from the schemas that the systems use.

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

use crate::app::state::table_names;
use crate::config::{Settings, StoreKind, StoreSettings};
use crate::storage::backend::Backend;

/// A listing of all tables with keys, indexes and expiry.
pub(crate) fn describe(settings: &Settings) -> String {
    describe::render(&schema::systems(&table_names(settings)))
}

/// Terraform for the tables and the permissions on them.
pub(crate) fn terraform(settings: &Settings) -> anyhow::Result<String> {
    check_key(&settings.store)?;
    let systems = schema::systems(&table_names(settings));
    Ok(terraform::render(&systems, &settings.store))
}

/// A CloudFormation template for the tables and the permissions on them.
pub(crate) fn cloudformation(settings: &Settings) -> anyhow::Result<String> {
    check_key(&settings.store)?;
    let systems = schema::systems(&table_names(settings));
    Ok(cloudformation::render(&systems, &settings.store))
}

/// Requires the ARN of a key, because permissions need it. Reading the settings already rejects an alias.
fn check_key(settings: &StoreSettings) -> anyhow::Result<()> {
    match &settings.kms_key_id {
        Some(key) if !key.starts_with("arn:") => {
            bail!(
                "store.kms_key_id must be an ARN for this command, because permissions name the key by its ARN: {key}"
            )
        }
        _ => Ok(()),
    }
}

/// Creates missing tables and indexes in the chosen store.
pub(crate) async fn create(settings: Settings) -> anyhow::Result<ExitCode> {
    let backend = Backend::open(&settings).await?;
    let tables = schema::tables(&table_names(&settings));
    let ensured = backend.store.ensure_tables(&tables).await;
    backend.close().await?;
    ensured?;
    print_line!(
        "{} tables exist in {}",
        tables.len(),
        match settings.store.kind {
            StoreKind::Embedded => settings.data.dir.display().to_string(),
            StoreKind::Dynamodb => "Amazon DynamoDB".to_owned(),
        }
    );
    Ok(ExitCode::SUCCESS)
}
