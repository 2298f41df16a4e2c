//! DescribeBackup: a backup and the table that it was taken of.

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
    let described = backup::describe(&service.config().region, &found, false);
    super::describe_table::wrapped("BackupDescription", &described)
}
