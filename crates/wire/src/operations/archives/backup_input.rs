//! The request of the operations that only name a backup.

use std::sync::Arc;

use homeport_engine::TableBackup;
use serde::Deserialize;

use crate::access::{Permission, Request, Resources};
use crate::failure::Failure;
use crate::input::Text;
use crate::service::Service;
use crate::tables::backup;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct BackupInput<'a> {
    #[serde(borrow)]
    backup_arn: Option<Text<'a>>,
}

impl<'a> Request<'a> for BackupInput<'a> {
    fn permissions(&self, resources: &Resources<'_>) -> Vec<Permission> {
        vec![resources.backup(self.backup_arn.as_ref())]
    }
}

impl BackupInput<'_> {
    /// The backup that the request names.
    pub(crate) fn find(&self, service: &Service) -> Result<Arc<TableBackup>, Failure> {
        backup::find(service.engine(), self.backup_arn.as_ref())
    }
}
