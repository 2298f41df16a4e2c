//! RestoreTableFromBackup: starts to restore a backup as a new table.

use serde::Deserialize;

use crate::access::{Permission, Request, Resources};
use crate::constraints::Constraints;
use crate::failure::Failure;
use crate::input::Text;
use crate::service::Service;
use crate::tables::restored::{self, Overrides};
use crate::tables::settings::Restored;
use crate::tables::{arn, backup};

#[derive(Debug, Deserialize)]
pub(crate) struct Input<'a> {
    #[serde(rename = "TargetTableName", borrow)]
    target: Option<Text<'a>>,
    #[serde(rename = "BackupArn", borrow)]
    backup_arn: Option<Text<'a>>,
    #[serde(flatten)]
    changes: Overrides<'a>,
}

impl<'a> Request<'a> for Input<'a> {
    fn permissions(&self, resources: &Resources<'_>) -> Vec<Permission> {
        vec![
            resources.backup(self.backup_arn.as_ref()),
            resources.table(self.target.as_ref()),
        ]
    }
}

pub(crate) async fn run(service: &Service, input: Input<'_>) -> Result<Vec<u8>, Failure> {
    let changes = &input.changes;
    let mut constraints = Constraints::new();
    constraints.not_null("targetTableName", input.target.as_ref());
    constraints.resource_name("targetTableName", input.target.as_ref());
    constraints.not_null("backupArn", input.backup_arn.as_ref());
    changes.constrain(&mut constraints);
    constraints.finish()?;
    let engine = service.engine();
    let found = backup::find(engine, input.backup_arn.as_ref())?;
    if !found.is_complete {
        return Err(Failure::backup_in_use(&found.id));
    }
    let region = &service.config().region;
    let target = changes.table(
        input.target.as_ref().map_or("", Text::as_str),
        &found.schema,
        &found.settings,
        Restored {
            backup_arn: Some(backup::arn_of(region, &found)),
            table_arn: arn::of_table(region, &found.schema.name),
            at_ms: found.taken_at_ms,
        },
        service.config().clock.now_ms(),
    )?;
    let begun = engine.restore_table_backup(&found.id, target).await;
    restored::respond(service, begun)
}
