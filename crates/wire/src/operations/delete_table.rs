//! DeleteTable: removes a table with everything in it.

use bytes::Bytes;
use homeport_engine::TableExtent;
use serde::Deserialize;

use crate::failure::Failure;
use crate::input::{self, Text};
use crate::service::Service;
use crate::table_name;
use crate::tables::description;
use crate::tables::settings::TableSettings;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Input<'a> {
    #[serde(borrow)]
    table_name: Option<Text<'a>>,
}

pub(super) async fn run(service: &Service, body: &Bytes) -> Result<Vec<u8>, Failure> {
    let input: Input<'_> = input::read(body)?;
    let name = table_name::of_tables(input.table_name.as_ref())?;
    let table = service.engine().describe_table(name)?;
    if table.is_restoring {
        return Err(Failure::being_created(name));
    }
    if TableSettings::read(&table.settings).deletion_protection {
        return Err(Failure::validation(
            "Resource cannot be deleted as it is currently protected against deletion. Disable deletion protection first.",
        ));
    }
    let deleted = service.engine().delete_table(name).await?;
    let described = description::describe(
        &service.config().region,
        &deleted,
        &TableExtent::default(),
        "DELETING",
    );
    super::describe_table::wrapped("TableDescription", &described)
}
