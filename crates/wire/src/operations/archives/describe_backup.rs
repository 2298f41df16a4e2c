//! DescribeBackup: a backup and its source table.

use super::backup_input::BackupInput;
use crate::failure::Failure;
use crate::output;
use crate::service::Service;
use crate::tables::backup;

pub(crate) async fn run(service: &Service, input: BackupInput<'_>) -> Result<Vec<u8>, Failure> {
    let found = input.find(service)?;
    let described = backup::describe(&service.config().region, &found, false);
    output::single_member("BackupDescription", &described)
}
