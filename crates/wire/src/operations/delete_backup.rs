//! DeleteBackup: removes a backup.

use serde::Deserialize;

use crate::access::{Permission, Request, Resources};
use crate::failure::Failure;
use crate::input::Text;
use crate::service::Service;
use crate::tables::backup;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Input<'a> {
    #[serde(borrow)]
    backup_arn: Option<Text<'a>>,
}

impl<'a> Request<'a> for Input<'a> {
    fn permissions(&self, resources: &Resources<'_>) -> Vec<Permission> {
        vec![resources.backup(self.backup_arn.as_ref())]
    }
}

pub(super) async fn run(service: &Service, input: Input<'_>) -> Result<Vec<u8>, Failure> {
    let found = backup::find(service.engine(), input.backup_arn.as_ref())?;
    let deleted = service.engine().delete_table_backup(&found.id).await?;
    let described = backup::describe(&service.config().region, &deleted, true);
    super::describe_table::wrapped("BackupDescription", &described)
}
