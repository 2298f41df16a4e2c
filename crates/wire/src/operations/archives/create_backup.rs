//! CreateBackup: starts a backup of a table in its current state.

use serde::Deserialize;

use crate::access::{Permission, Request, Resources};
use crate::constraints::Constraints;
use crate::failure::Failure;
use crate::input::Text;
use crate::output;
use crate::service::Service;
use crate::table_name;
use crate::tables::backup;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Input<'a> {
    #[serde(borrow)]
    table_name: Option<Text<'a>>,
    #[serde(borrow)]
    backup_name: Option<Text<'a>>,
}

impl<'a> Request<'a> for Input<'a> {
    fn permissions(&self, resources: &Resources<'_>) -> Vec<Permission> {
        vec![resources.table(self.table_name.as_ref())]
    }
}

pub(crate) async fn run(service: &Service, input: Input<'_>) -> Result<Vec<u8>, Failure> {
    let (table, name) = check(&input)?;
    let begun = service.engine().create_table_backup(table, name).await?;
    let details = backup::details(&service.config().region, &begun, false);
    output::single_member("BackupDetails", &details)
}

fn check<'a>(input: &'a Input<'_>) -> Result<(&'a str, &'a str), Failure> {
    let table = table_name::of_tables(input.table_name.as_ref())?;
    let mut constraints = Constraints::new();
    let name = input.backup_name.as_ref();
    constraints.not_null("backupName", name);
    constraints.resource_name("backupName", name);
    constraints.finish()?;
    Ok((table, name.map_or("", Text::as_str)))
}
