//! CreateBackup, DescribeBackup and DeleteBackup: one backup of a table.

use serde::Deserialize;

use crate::access::one_resource;
use crate::constraints::Constraints;
use crate::failure::Failure;
use crate::input::Text;
use crate::output;
use crate::service::Service;
use crate::table_name;
use crate::tables::backup;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct NewBackup<'a> {
    #[serde(borrow)]
    table_name: Option<Text<'a>>,
    #[serde(borrow)]
    backup_name: Option<Text<'a>>,
}

one_resource!(NewBackup, table, table_name);

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct NamedBackup<'a> {
    #[serde(borrow)]
    backup_arn: Option<Text<'a>>,
}

one_resource!(NamedBackup, backup, backup_arn);

/// Starts a backup of a table in its current state.
pub(crate) async fn create_backup(
    service: &Service,
    input: NewBackup<'_>,
) -> Result<Vec<u8>, Failure> {
    let table = table_name::of_tables(input.table_name.as_ref())?;
    let mut constraints = Constraints::new();
    let name = input.backup_name.as_ref();
    constraints.not_null("backupName", name);
    constraints.resource_name("backupName", name);
    constraints.finish()?;
    let name = name.map_or("", Text::as_str);
    let begun = service.engine().create_table_backup(table, name).await?;
    let details = backup::details(&service.config().region, &begun, false);
    output::single_member("BackupDetails", &details)
}

pub(crate) async fn describe_backup(
    service: &Service,
    input: NamedBackup<'_>,
) -> Result<Vec<u8>, Failure> {
    let found = backup::find(service.engine(), input.backup_arn.as_ref())?;
    let described = backup::describe(&service.config().region, &found, false);
    output::single_member("BackupDescription", &described)
}

pub(crate) async fn delete_backup(
    service: &Service,
    input: NamedBackup<'_>,
) -> Result<Vec<u8>, Failure> {
    let found = backup::find(service.engine(), input.backup_arn.as_ref())?;
    let deleted = service.engine().delete_table_backup(&found.id).await?;
    let described = backup::describe(&service.config().region, &deleted, true);
    output::single_member("BackupDescription", &described)
}
