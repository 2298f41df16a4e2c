//! DeleteBackup: deletes a backup.

use super::backup_input::BackupInput;
use crate::failure::Failure;
use crate::output;
use crate::service::Service;
use crate::tables::backup;

pub(crate) async fn run(service: &Service, input: BackupInput<'_>) -> Result<Vec<u8>, Failure> {
    let found = input.find(service)?;
    let deleted = service.engine().delete_table_backup(&found.id).await?;
    let described = backup::describe(&service.config().region, &deleted, true);
    output::single_member("BackupDescription", &described)
}
