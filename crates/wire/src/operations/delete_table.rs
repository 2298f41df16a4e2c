//! DeleteTable: removes a table with everything in it.

use homeport_engine::TableExtent;
use serde::Deserialize;

use crate::access::{Permission, Request, Resources};
use crate::failure::Failure;
use crate::input::Text;
use crate::service::Service;
use crate::table_name;
use crate::tables::description;
use crate::tables::settings::TableSettings;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Input<'a> {
    #[serde(borrow)]
    table_name: Option<Text<'a>>,
}

impl<'a> Request<'a> for Input<'a> {
    fn permissions(&self, resources: &Resources<'_>) -> Vec<Permission> {
        vec![resources.table(self.table_name.as_ref())]
    }
}

pub(super) async fn run(service: &Service, input: Input<'_>) -> Result<Vec<u8>, Failure> {
    let name = table_name::of_tables(input.table_name.as_ref())?;
    let table = service.engine().describe_table(name)?;
    if table.is_restoring {
        return Err(Failure::being_created(name));
    }
    let deleted = service
        .engine()
        .delete_table_if(name, |settings| {
            match TableSettings::read(settings).deletion_protection {
                true => Err(Failure::validation(
                    "Resource cannot be deleted as it is currently protected against deletion. Disable deletion protection first.",
                )),
                false => Ok(()),
            }
        })
        .await?;
    let described = description::describe(
        &service.config().region,
        &deleted,
        &TableExtent::default(),
        "DELETING",
    );
    super::describe_table::wrapped("TableDescription", &described)
}
