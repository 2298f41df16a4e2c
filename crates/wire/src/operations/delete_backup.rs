//! DeleteBackup: removes a backup.

use bytes::Bytes;
use serde::Deserialize;

use crate::failure::Failure;
use crate::input::{self, Text};
use crate::service::Service;
use crate::tables::backup;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Input<'a> {
    #[serde(borrow)]
    backup_arn: Option<Text<'a>>,
}

pub(super) async fn run(service: &Service, body: &Bytes) -> Result<Vec<u8>, Failure> {
    let input: Input<'_> = input::read(body)?;
    let found = backup::find(service.engine(), input.backup_arn.as_ref())?;
    let deleted = service.engine().delete_table_backup(&found.id).await?;
    let described = backup::describe(&service.config().region, &deleted, true);
    super::describe_table::wrapped("BackupDescription", &described)
}
